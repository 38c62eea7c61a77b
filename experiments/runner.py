# SPDX-License-Identifier: MIT
"""`make experiment`, top to bottom: check the host, make the run's directory, run each repetition in a cell of its own,
analyse it when that is gone, and say what came of it.
"""

from __future__ import annotations

import contextlib
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from controlplane.targets import TARGETS
from experiments import capabilities, cell, disk, host, machine, missing
from experiments.analysis_process import analyse, user_problem
from experiments.announce import headline, show
from experiments.cell import Interrupted
from experiments.deploy import inventory_of
from experiments.lab import testbed as testbed_module
from experiments.lab.testbed import Testbed
from experiments.resolve import Resolved
from experiments.side_by_side import run_each
from lib import owner
from lib.errors import RunError
from lib.terminal import complain, say
from runs import results

EXIT_NOT_VALID = 2


def run(spec: Resolved, results_directory: Path, inventory: str = "") -> int:
    """Runs the whole experiment, on the machines of `inventory` if its target has a testbed; returns the exit status of
    the command line. Raises RunError.
    """
    testbed = testbed_of(spec, inventory)
    preflight(spec, results_directory)
    with Ending() as ending, processors(spec) as own, contextlib.ExitStack() as until_the_end:
        with results.tended(results_directory):
            for left in results.unanalysed(results_directory):
                complain(f"note: {left} was recorded but not analysed: {results.replay_command(left)}")
            check_room(spec, results_directory, own)
            directory = results.create(results_directory, spec.name, time.time())
            until_the_end.enter_context(results.running(directory))
        say(headline(spec, directory))
        try:
            valid = repeat_all(spec, directory, own, testbed)
            ending.check()
        except Interrupted as interrupted:
            complain(f"error: ended by {interrupted}; what was recorded is in {directory}")
            return 128 + interrupted.signal
        results.point_latest(results_directory, directory)
    return 0 if valid else EXIT_NOT_VALID


def preflight(spec: Resolved, results_directory: Path) -> None:
    """Everything that would stop the run later, before anything is touched."""
    lines = missing.of(spec)
    for path in (host.CHECKOUT, results_directory):
        if path.is_relative_to(cell.RUN):
            lines.append(f"{path} is in {cell.RUN}, of which a run has its own: use another directory")
    problem = results.latest_problem(results_directory)
    lines += [line for line in (problem, user_problem()) if line]
    if lines:
        raise RunError(*lines)


def testbed_of(spec: Resolved, inventory: str) -> Testbed | None:
    """The machines of an experiment that is not in the lab. Raises RunError if something of them is not known."""
    if not capabilities.on_testbed(TARGETS[spec.target].capabilities):
        if inventory:
            raise RunError(f"INVENTORY={inventory}: TARGET={spec.target} runs in the lab of this machine; leave it out")
        return None
    return testbed_module.load(inventory_of(spec.target, inventory), spec.target)


def check_room(spec: Resolved, directory: Path, own: list[int]) -> None:
    """Raises RunError if the disk or the memory cannot hold the experiment."""
    shortages = [line for line in (disk.shortage(spec, directory), memory_shortage(spec, own)) if line]
    if shortages:
        raise RunError(*shortages)


def memory_shortage(spec: Resolved, processors: list[int]) -> str | None:
    """What to tell the user if there is no room for the virtual machines that run at once; None if there is."""
    from experiments.lab import virtual as virtual_lab

    return virtual_lab.memory_problem(spec, len(processors)) if spec.clock == "virtual" else None


@contextlib.contextmanager
def processors(spec: Resolved) -> Iterator[list[int]]:
    """Holds the processors that the experiment may use: all of them, or one for each repetition in virtual time."""
    if spec.clock == "virtual":
        with machine.free_processors(machine.NAME, spec.reps) as found:
            yield found
    else:
        with machine.all_processors(machine.NAME):
            yield []


def repeat_all(spec: Resolved, directory: Path, own: list[int], testbed: Testbed | None = None) -> bool:
    """Every repetition, those in virtual time side by side. Returns whether all are valid."""
    numbers = list(range(1, spec.reps + 1))
    verdicts = []
    if len(own) > 1:
        begin = time.monotonic()
        for number in run_each(lambda number, one: record(spec, number, directory, one), numbers, own):
            verdicts.append(conclude(spec, directory / f"rep-{number}", begin))
    else:
        for number in numbers:
            begin = time.monotonic()
            record(spec, number, directory, own[0] if own else None, testbed)
            verdicts.append(conclude(spec, directory / f"rep-{number}", begin))
    return all(verdicts)


def record(
    spec: Resolved, number: int, directory: Path, processor: int | None = None, testbed: Testbed | None = None
) -> None:
    """One repetition up to its raw files. One that does not come to its end is marked."""
    from experiments.lab import real, repetition
    from experiments.lab import virtual as virtual_lab

    own = results.create_repetition(directory, number)
    try:
        with disk.explained(own, Path(tempfile.gettempdir())):
            if testbed:
                testbed_module.run(spec, number, own, testbed)
            elif spec.clock == "virtual":
                virtual_lab.run(spec, number, own, processor)
            else:
                cell.run(lambda: repetition.run(spec, number, own, real.real()))
    except (RunError, Interrupted) as error:
        results.abort(own, str(error) if isinstance(error, RunError) else f"{results.STOPPED}{error}")
        owner.give(own)
        raise


def conclude(spec: Resolved, own: Path, begin_s: float) -> bool:
    """Analyses a repetition that began at `begin_s` and shows what came of it. Returns whether it is valid."""
    print("analysing", flush=True)
    summary = analyse(own)
    show(summary, own, spec, time.monotonic() - begin_s)
    return bool(summary.get("valid"))


class Ending:
    """While it is entered, SIGINT, SIGTERM and SIGHUP raise Interrupted in this process, unless they are ignored."""

    def __init__(self) -> None:
        self.seen: Interrupted | None = None

    def __enter__(self) -> Ending:
        self.before = {number: signal.signal(number, self._raise) for number in cell.forwarded()}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raises what a signal raised where Python drops exceptions: in the end of an object, in a weak reference's
        callback, of which each import has one.
        """
        if self.seen:
            raise self.seen

    def _raise(self, number: int, frame: FrameType | None) -> None:
        self.seen = Interrupted(number)
        raise self.seen
