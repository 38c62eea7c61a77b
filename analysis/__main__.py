# SPDX-License-Identifier: MIT
"""python -m analysis DIRECTORY [--force]: every derived file of a repetition, or of each one of a run, from raw files.

python -m analysis advise [KEY=VALUE]...: what buffer each rule asks for (analysis/advise/; a directory of that name is
./advise).

Exit status: 0 analysed (the verdict is in summary.json), 1 not analysed and nothing changed, 2 wrong usage, 3 raw files
are damaged: what could be read was analysed and is marked not valid.

python -m analysis import FROM=... OUTPUT=...: captures of others as run directories (analysis/importing/).

python -m analysis export RUN --format F --output PATH: a run in the formats of others (analysis/exporting/).

python -m analysis sweep-report DIRECTORY [--figures DIRECTORY]: the page of a sweep (analysis/sweep_report/).

python -m analysis import-artifact FILE [--output TABLE]: reads postcards of the first seed paper's artifact.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path

from lib.terminal import printable

OK, FAILED, DAMAGED = 0, 1, 3


def main(arguments: list[str] | None = None) -> int:
    """Analyses what the command line names. Prints one line a repetition; errors on stderr, one line each."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == ["advise"]:
        from analysis.advise.command import main as advise

        return advise(words[1:])
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["import"]:
        from analysis.importing.command import main as import_

        return import_(arguments[1:])
    if arguments[:1] == ["export"]:
        from analysis.exporting.command import main as export

        return export(arguments[1:])
    if words[:1] == ["sweep-report"]:
        from analysis.sweep_report.command import main as sweep_report

        return sweep_report(words[1:])
    if arguments[:1] == ["import-artifact"]:
        from analysis import import_artifact

        return import_artifact.main(arguments[1:])
    parser = argparse.ArgumentParser(prog="python -m analysis", description=__doc__.splitlines()[0])
    parser.add_argument(
        "directory", type=Path, help="a repetition (results/<run>/rep-1), or a run with repetitions in it"
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace earlier results even if raw files are damaged since, or the new ones are not valid",
    )
    parser.add_argument(
        "--alone",
        action="store_true",
        help="draw in this process: slower for one, faster where many are analysed at once",
    )
    options = parser.parse_args(words)
    with nullcontext() if options.alone else drawing_pool() as pool:
        return max(analyse(directory, pool, options.force) for directory in _repetitions(options.directory))


def drawing_pool() -> Executor:
    """Processes that draw, forked before anything starts a thread, and busy loading matplotlib from now on."""
    from analysis.figures.drawing import warm_up
    from lib import syscalls

    pool = ProcessPoolExecutor(
        min(2, os.cpu_count() or 1), mp_context=get_context("fork"), initializer=syscalls.die_with_parent
    )
    pool.submit(warm_up)
    return pool


def _repetitions(directory: Path) -> list[Path]:
    if (directory / "spec.yaml").exists():
        return [directory]
    found = sorted(path for path in directory.glob("rep-*") if path.is_dir())
    return found or [directory]


def analyse(directory: Path, pool: Executor | None, force: bool = False, shown: Path | None = None) -> int:
    """Returns the exit status. Where lines say `shown`, the directory is only in the making."""
    from analysis.derive import derive
    from lib.errors import InputError
    from runs import record

    compared: list[str] = []
    shown = shown or directory
    try:
        summary, damage = derive(
            directory, force, pool, lambda files, changed: compared.append(_comparison(files, changed))
        )
    except InputError as error:
        return _complain(str(error).replace(str(directory), str(shown)))
    except BrokenProcessPool:
        return _complain(f"{shown}: a drawing process was killed (no memory?); earlier results are kept")
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        return _complain(f"{shown}: cannot write:{where} {error.strerror or error}; earlier results are kept")
    for line in damage:
        _complain(f"{shown}: {line}")
    used = summary["utilization"]["mean"]
    verdict = "valid" if summary["valid"] else f"NOT VALID: {summary['reasons'][0]}"
    more = f" (and {len(summary['reasons']) - 1} more)" if len(summary["reasons"]) > 1 else ""
    utilization = "unknown" if used is None else f"{used:.2%}"
    line = f"{shown}: utilization {utilization}, {summary['drops']} drops, {verdict}{more}{''.join(compared)}"
    print(printable(line))
    if not damage and (unknown := record.unrecorded(directory)):
        print(printable(f"note: {unknown.replace(str(directory), str(shown))}"), file=sys.stderr)
    return DAMAGED if damage else OK


def _complain(line: str) -> int:
    """Says it, as a terminal may show it. Returns the exit status."""
    print(printable(f"analysis: {line}"), file=sys.stderr)
    return FAILED


def _comparison(files: int, changed: list[str]) -> str:
    """How files that were made again compare with those that were there: another version makes others."""
    if not changed:
        return f"; all {files} files are byte for byte what they were"
    return f"; {len(changed)} of {files} files are not what they were: {', '.join(changed)}"


if __name__ == "__main__":
    sys.exit(main())
