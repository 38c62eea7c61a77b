# SPDX-License-Identifier: MIT
"""One job of a sweep: records and analyses one repetition in the job's directory. The output goes to a file there.

The job ends when the process that started the job ends, for any reason. An unfinished job is done again
(runs/job_state.py).
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

from experiments.lab.choice import choose
from experiments.run import runner
from experiments.run.analysis_process import analyse
from experiments.sweep import plan
from experiments.sweep.thin import thin
from lib import files, owner, syscalls
from lib.errors import Interrupted, RunError
from lib.keys import Keys, field
from lib.terminal import say
from model.experiment import Experiment
from runs import results
from runs.aborted import Cause
from runs.job_state import State, look, make_room
from runs.names import REPETITION, SWEEP_RUNS

LOG = "job.log"


class Asked(Keys):
    sweep: Path = field("the sweep's directory", default=None)
    name: str = field("the job's name", default=None)


def command(asked: Asked) -> int:
    """Returns the exit status. Raises RunError."""
    return run(asked.sweep, asked.name)


def run(directory: Path, name: str) -> int:
    """Runs the job `name` of the sweep in `directory`; returns 0 valid, 2 not valid, 1 aborted, or 128 plus the number
    of the signal that stopped the job. Raises RunError if there is no such job.
    """
    syscalls.die_with_parent()
    job, keep = plan.read_job(directory, name)
    run_directory = directory.absolute() / SWEEP_RUNS / name
    files.make(run_directory)
    with _said_to(run_directory / LOG), results.running(run_directory), runner.Ending():
        try:
            return _run(job.spec, run_directory, keep)
        except Interrupted as interrupted:
            return 128 + interrupted.signal
        except RunError as error:
            _abort(run_directory, error.lines)
        except Exception as error:
            traceback.print_exc()
            _abort(run_directory, [f"internal error: {type(error).__name__}: {error}"])
        return 1


def _run(spec: Experiment, run_directory: Path, keep: str) -> int:
    repetition = run_directory / REPETITION
    state = look(run_directory).state
    if state is not State.VALID:
        lab = choose(spec)
        with lab.processors() as processors:  # for the analysis, too, which would disturb an experiment in real time
            if state is not State.RECORDED:
                make_room(run_directory)
                runner.check_room(lab, run_directory, len(processors), beside_mib=0)  # this process has its memory
                runner.record(lab, 1, results.create_repetition(run_directory, 1), *processors[:1])
            if not analyse(repetition, alone=spec.clock == "virtual", keep=keep).get("valid"):
                return runner.EXIT_NOT_VALID
    thin(repetition, keep)
    owner.give(run_directory)
    return 0


def _abort(run_directory: Path, lines: list[str]) -> None:
    """Marks the attempt as failed, with its error lines; makes the repetition's directory if necessary."""
    for line in lines:
        say(line)
    with contextlib.suppress(OSError):
        (run_directory / REPETITION).mkdir(exist_ok=True)
        results.abort(run_directory / REPETITION, Cause.FAILED, "; ".join(lines))
        owner.give(run_directory)


@contextlib.contextmanager
def _said_to(log: Path) -> Iterator[None]:
    """Redirects the output of this process and its children to `log`."""
    file = files.open_regular(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.dup2(file, sys.stdout.fileno())
        os.dup2(file, sys.stderr.fileno())
        yield
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os.close(file)
