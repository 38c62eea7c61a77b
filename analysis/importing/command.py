# SPDX-License-Identifier: MIT
"""The command `import`. A damaged capture is imported up to the damage (exit status 2). An incomplete last line of a
text trace is left out and noted. Other damaged files are refused.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path

from analysis.importing import sources
from analysis.importing.asked import Asked
from lib import files
from lib.errors import InputError, fail
from lib.exit_codes import Exit, of_parts
from lib.terminal import located, say
from runs.names import PAGE, REPETITION

SCRATCH = ".importing"


def run(asked: Asked) -> int:
    """Imports and analyses; returns the exit status. Raises InputError."""
    try:
        return _import(asked)
    except REPORTED as error:
        raise InputError(_line(error)) from None


REPORTED = (InputError, MemoryError, OSError)  # reported in one line; no file of the experiment remains


def _line(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}; nothing was imported: measure less of the source (WARMUP, DURATION)"
    if isinstance(error, OSError):
        return f"{located(error, 'OUTPUT')}; nothing was imported"
    return str(error)


def _import(asked: Asked) -> int:
    """Imports each experiment into its own directory, completely or not at all. With EXPERIMENT=all, an experiment that
    cannot be imported is reported, and the others are imported.
    """
    if asked.experiment != "all":
        if asked.output.exists() and any(asked.output.iterdir()):
            raise InputError(
                f"{asked.output}: exists and is not empty; allowed: a new directory, as OUTPUT=results/theirs"
            )
        ((_, read),) = sources.find(asked)
        experiment, repetition = read(), asked.output / REPETITION
        can_replay = experiment.can_replay
        status = _experiment(experiment, asked.output)
        if repetition.exists():
            what_if = f", or ask for another buffer: make replay RUN={shlex.quote(str(repetition))} BUF=50p"
            say(f"next: open {shlex.quote(str(repetition / PAGE))}{what_if * can_replay}")
        return status
    statuses = []
    for name, read in sources.find(asked):
        run = asked.output / "runs" / name
        if (run / REPETITION).exists():
            say(f"{run}: is imported already")
            statuses.append(int(Exit.DONE))
            continue
        try:
            statuses.append(_experiment(read(), run))
        except REPORTED as error:
            statuses.append(fail([f"experiment {name}: {_line(error)}"]))
    if Exit.DONE in statuses or Exit.DOUBTFUL in statuses:
        say(f"next: make runs RESULTS={shlex.quote(str(asked.output))}")
    if failed := statuses.count(Exit.NOTHING):
        fail([f"{failed} of {len(statuses)} experiments were not imported"])
    return of_parts(statuses)


def _experiment(experiment: sources.AnyExperiment, run: Path) -> int:
    status = _import_one(experiment, run / REPETITION)
    for line in (*experiment.source.remarks, *experiment.source.notes) if status == Exit.DONE else ():
        say(f"{run}: {line}")
    fail(experiment.damage)
    return Exit.DOUBTFUL if experiment.damage and status == Exit.DONE else status


def _import_one(experiment: sources.AnyExperiment, repetition: Path) -> int:
    """Writes and analyses an experiment in a scratch directory, then renames the directory. After a failure nothing
    remains.
    """
    from analysis.replay.replay import drawing_pool, replay

    made = [path for path in repetition.parents if not path.exists()]
    try:
        with files.claimed(repetition.parent, make=True) as run, files.scratch(SCRATCH, run) as within:
            scratch = files.path_of(within) / repetition.name
            scratch.mkdir()
            experiment.write(scratch)
            with drawing_pool() as pool:
                status = replay(scratch, pool, shown=repetition)
            if status == Exit.DONE:
                files.deliver([repetition.name], within, run)
            return status
    finally:
        for path in made:
            with suppress(OSError):  # the directory is not empty
                path.rmdir()
