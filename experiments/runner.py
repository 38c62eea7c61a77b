# SPDX-License-Identifier: MIT
"""`make experiment`, top to bottom: check the host, make the run's directory, run each repetition in a cell of its own,
analyse it when that is gone, and say what came of it.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from types import FrameType

from experiments import cell, disk, host, machine, results
from experiments.analyse import analyse
from experiments.cell import Interrupted
from experiments.errors import RunError
from experiments.resolve import Resolved
from experiments.verdict import headline, show

EXIT_NOT_VALID = 2


def run(spec: Resolved, results_directory: Path) -> int:
    """Runs the whole experiment; returns the exit status of the command line. Raises RunError."""
    preflight(results_directory)
    with Ending(), machine.alone(machine.NAME), results.locked(results_directory):
        for left in results.unanalysed(results_directory):
            print(f"note: {left} was recorded but not analysed: {results.replay_command(left)}", file=sys.stderr)
        shortage = disk.shortage(spec, results_directory)
        if shortage:
            raise RunError(shortage)
        directory = results.create(results_directory, spec.name, time.time())
        print(headline(spec, directory), flush=True)
        valid = True
        for number in range(1, spec.reps + 1):
            try:
                valid = repeat(spec, number, directory) and valid
            except Interrupted as interrupted:
                print(f"error: ended by {interrupted}; what was recorded is in {directory}", file=sys.stderr)
                return 128 + interrupted.signal
        results.point_latest(results_directory, directory)
    return 0 if valid else EXIT_NOT_VALID


def preflight(results_directory: Path) -> None:
    """Everything that would stop the run later, before anything is touched."""
    lines = host.missing()
    for path in (host.CHECKOUT, results_directory):
        if path.is_relative_to(cell.RUN):
            lines.append(f"{path} is in {cell.RUN}, of which a run has its own: use another directory")
    problem = results.latest_problem(results_directory)
    if problem:
        lines.append(problem)
    if lines:
        raise RunError(*lines)


def repeat(spec: Resolved, number: int, directory: Path) -> bool:
    """One repetition with its analysis. Returns whether it is valid. One that does not come to its end is marked."""
    from experiments import repetition

    own = results.create_repetition(directory, number)
    try:
        begin = time.monotonic()
        cell.run(lambda: repetition.run(spec, number, own))
        print("analysing", flush=True)
        summary = analyse(own)
        show(summary, own, time.monotonic() - begin, spec.traffic_seconds)
    except (RunError, Interrupted) as error:
        if not results.is_recorded(own):
            results.abort(own, str(error) if isinstance(error, RunError) else f"ended by {error}")
        raise
    return bool(summary.get("valid"))


class Ending:
    """While it is entered, SIGINT, SIGTERM and SIGHUP raise Interrupted in this process."""

    def __enter__(self) -> None:
        self.before = {number: signal.signal(number, self._raise) for number in cell.FORWARDED}

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    @staticmethod
    def _raise(number: int, frame: FrameType | None) -> None:
        raise Interrupted(number)
