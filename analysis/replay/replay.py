# SPDX-License-Identifier: MIT
"""Analyses a repetition for a command: prints one line and returns an exit status."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path

from lib.errors import InputError, fail
from lib.exit_codes import Exit, of_parts
from lib.terminal import complain, located, say
from runs.spec_file import repetitions
from runs.thinned import KEEP


def replay_all(
    run: Path, force: bool = False, alone: bool = False, keep: str = KEEP[0], ready: Callable[[], bool] = lambda: True
) -> int:
    """Analyses a repetition, or each one of a run; returns the exit status. `alone` draws in this process; `keep` is
    that of `derive`. `ready` is called when everything is imported, and before `run` is read; if it returns false,
    nothing is analysed.
    """
    with nullcontext() if alone else drawing_pool() as pool:
        import analysis.replay.derive  # noqa: F401  takes about as long as the analysis of a small run

        if not ready():
            return Exit.DONE
        return of_parts([replay(directory, pool, force, keep=keep) for directory in repetitions(run)])


def drawing_pool() -> Executor:
    """Drawing processes, forked: call before any thread starts. One of them begins to load matplotlib at once."""
    from analysis.figures.drawing import warm_up
    from lib import syscalls

    pool = ProcessPoolExecutor(
        min(2, os.cpu_count() or 1), mp_context=get_context("fork"), initializer=syscalls.die_with_parent
    )
    pool.submit(warm_up)
    return pool


def replay(
    directory: Path, pool: Executor | None, force: bool = False, shown: Path | None = None, keep: str = KEEP[0]
) -> int:
    """Derives a repetition's files and prints the verdict. Returns the exit status.

    Messages name `shown` in place of a `directory` that will be renamed.
    """
    from analysis.replay.derive import derive
    from runs import record

    compared: list[str] = []
    shown = shown or directory
    try:
        summary, damage = derive(
            directory, force, pool, keep, lambda files, changed: compared.append(_comparison(files, changed))
        )
    except InputError as error:
        return fail([str(error).replace(str(directory), str(shown))])
    except BrokenProcessPool:
        return fail([f"{shown}: a drawing process was killed (no memory?); earlier results are kept"])
    except OSError as error:
        return fail([f"{shown}: cannot write {located(error, 'a file')}; earlier results are kept"])
    fail([f"{shown}: {line}" for line in damage])
    used = summary["utilization"]["mean"]
    verdict = "valid" if summary["valid"] else f"NOT VALID: {summary['reasons'][0]}"
    more = f" (and {len(summary['reasons']) - 1} more)" if len(summary["reasons"]) > 1 else ""
    utilization = "unknown" if used is None else f"{used:.2%}"
    line = f"{shown}: utilization {utilization}, {summary['drops']} drops, {verdict}{more}{''.join(compared)}"
    say(line)
    if not damage and (unknown := record.unrecorded(directory)):
        complain(f"note: {unknown.replace(str(directory), str(shown))}")
    return Exit.DOUBTFUL if damage else Exit.DONE


def _comparison(files: int, changed: list[str]) -> str:
    """The comparison of derived files with the earlier ones, which another version may have made."""
    if not changed:
        return f"; all {files} files are byte for byte what they were"
    return f"; {len(changed)} of {files} files are not what they were: {', '.join(changed)}"
