# SPDX-License-Identifier: MIT
"""`make experiment`, top to bottom: check the host, make the run's directory, record each repetition in its lab,
analyse it, and show the results.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from experiments.lab.choice import choose
from experiments.lab.interface import Lab
from experiments.machine import cell, host
from experiments.machine.cell import SignalHandler
from experiments.machine.interruption import forget, interrupt
from experiments.run import cost_question, expectations
from experiments.run.analysis_process import Analyst, analyse, user_problem
from experiments.run.expectations import Expectation, Expecting, Judged
from experiments.run.side_by_side import run_each
from experiments.run.terminal_headline import headline, took
from experiments.run.terminal_results import Outcome, outcome, show_all, show_one
from experiments.run.watch import RUN, watched
from experiments.spec import disk
from lib import files, owner
from lib.errors import Interrupted, RunError
from lib.terminal import complain, say
from model.experiment import Experiment
from runs import results
from runs.aborted import Cause
from runs.names import NOTE
from runs.verdict import Area

EXIT_NOT_VALID = 2
PROCESSES_MIB = 128  # of Python, beside each repetition that is recorded


def run(
    spec: Experiment, results_directory: Path, inventory: str = "", yes: bool = False, wait: bool = True,
    in_virtual_time: Callable[[], str | None] = lambda: None, first: int = 1,
    expecting: Expecting = expectations.NOTHING, note: str | None = None, watch: bool = False,
) -> int:  # fmt: skip
    """Runs the whole experiment, on a testbed if `inventory` is given or the target needs a testbed. Returns the exit
    status of the command line. With `yes` no question about time and disk space is asked; without `wait` the experiment
    is refused if it would have to wait for another. `in_virtual_time` gives the command that repeats a run that was
    late. `first` is the number of the first repetition. As soon as all that is expected is decided, no further
    repetition begins. With `watch` a page shows the run. Raises SpecError, RunError.
    """
    expectations.begin(expecting, [spec])
    lab = choose(spec, inventory)
    preflight(lab, results_directory)
    with Ending() as ending, lab.processors(wait) as processors, contextlib.ExitStack() as until_the_end:
        if results_directory.is_dir():  # before the question: nobody should agree to an experiment that has no room
            check_room(lab, results_directory, len(processors))
        lab.slow = cost_question.ask(spec, len(processors), yes)
        with results.locked(results_directory):
            for repetition in results.unanalysed(results_directory):
                complain(f"note: {repetition} was recorded but not analysed: {results.replay_command(repetition)}")
            check_room(lab, results_directory, len(processors))
            directory = results.create(results_directory, spec.name or "", time.time())
            until_the_end.enter_context(results.running(directory))
            if note:
                files.write_text(directory / NOTE, f"{note}\n")
        if watch:
            until_the_end.enter_context(watched(directory, RUN, spec.clock))
        say(headline(spec, directory))
        try:
            outcomes = repeat_all(lab, directory, processors, first, expecting.expect)
            ending.check()
        except Interrupted as interrupted:
            complain(f"error: ended by {interrupted}; what was recorded is in {directory}")
            return 128 + interrupted.signal
        results.point_latest(results_directory, directory)
        if any(Area.FIDELITY.is_in("; ".join(each.reasons)) for each in outcomes) and (command := in_virtual_time()):
            complain(f"no frame is late in virtual time: {command}")
    expected = expectations.report(judged(outcomes, expecting.expect), spec.name or "", expecting.junit)
    return max(expected, 0 if all(each.valid for each in outcomes) else EXIT_NOT_VALID)


def preflight(lab: Lab, results_directory: Path) -> None:
    """Raises RunError with all problems that would stop the run later, before the run changes anything."""
    lines = lab.missing()
    for path in (host.CHECKOUT, results_directory):
        if path.is_relative_to(cell.RUN):
            lines.append(f"{path} is in {cell.RUN}, which a run replaces by a private one: use another directory")
    problem = results.latest_problem(results_directory)
    lines += [line for line in (problem, user_problem()) if line]
    if lines:
        raise RunError(*lines)


def check_room(lab: Lab, directory: Path, at_once: int, beside_mib: int = PROCESSES_MIB) -> None:
    """Raises RunError if the disk or the memory cannot hold the experiment."""
    shortages = (disk.shortage(lab.spec, directory), disk.temporary_shortage(lab.spec))
    if lines := [line for line in (*shortages, lab.memory_shortage(at_once, beside_mib)) if line]:
        raise RunError(*lines)


def repeat_all(
    lab: Lab, directory: Path, processors: list[int], first: int = 1, expect: tuple[Expectation, ...] = ()
) -> list[Outcome]:
    """Records and analyses every repetition, from number `first`. Several processors record in parallel."""
    numbers = list(range(first, first + (lab.spec.reps or 1)))
    outcomes: list[Outcome] = []
    for some in _batches(numbers, expect):
        if len(processors) > 1:
            begin = time.monotonic()
            recorded = run_each(
                lambda number, processor: record(lab, number, results.create_repetition(directory, number), processor),
                some, processors,
            )  # fmt: skip
            for number in recorded:
                outcomes.append(conclude(lab.spec, number, results.repetition_path(directory, number), begin))
        else:
            for number in some:
                outcomes.append(_one(lab, number, directory, processors))
        if len(outcomes) < len(numbers) and expectations.is_decided(judged(outcomes, expect)):
            say(f"{len(outcomes)} of {len(numbers)} repetitions decide what was expected")
            break
    if len(outcomes) > 1:
        show_all(outcomes)
    return outcomes


def _batches(numbers: list[int], expect: tuple[Expectation, ...]) -> list[list[int]]:
    """All repetitions at once, or, if something is expected, the fewest that decide and then as many more each time."""
    size = expectations.FEWEST if expect else len(numbers)
    return [numbers[at : at + size] for at in range(0, len(numbers), size)]


def _one(lab: Lab, number: int, directory: Path, processors: list[int]) -> Outcome:
    begin = time.monotonic()
    repetition = results.create_repetition(directory, number)
    # Not in real time: the imports would take processor time from the switch.
    early = Analyst(repetition) if lab.spec.clock == "virtual" else contextlib.nullcontext()
    with early as analyst:
        record(lab, number, repetition, *processors)
        return conclude(lab.spec, number, repetition, begin, analyst)


def judged(outcomes: list[Outcome], expect: tuple[Expectation, ...]) -> list[Judged]:
    """What was expected of the valid repetitions."""
    return expectations.judge(expect, {"": [each.summary for each in outcomes if each.valid]})


def record(lab: Lab, number: int, repetition: Path, processor: int | None = None) -> None:
    """Records the raw files of one repetition. Marks the repetition as aborted if recording fails or is stopped."""
    try:
        with disk.explained(repetition, Path(tempfile.gettempdir())):
            lab.record(number, repetition, processor)
    except RunError as error:
        results.abort(repetition, Cause.FAILED, str(error))
        owner.give(repetition)
        raise
    except Interrupted as interrupted:
        results.abort(repetition, Cause.STOPPED, f"ended by {interrupted}")
        owner.give(repetition)
        raise


def conclude(
    spec: Experiment, number: int, repetition: Path, begin_s: float, analyst: Analyst | None = None
) -> Outcome:
    """Analyses a repetition, in the waiting process if there is one. Shows its results and the time since `begin_s`.
    With several repetitions shows only one line.
    """
    reps = spec.reps or 1
    of = f" repetition {number} of {reps}" if reps > 1 else ""
    print(f"analysing{of}", flush=True)
    result = outcome(number, analyst.analyse() if analyst else analyse(repetition), repetition)
    time_taken = took(spec, time.monotonic() - begin_s)
    if reps == 1:
        show_one(result, time_taken)
    else:
        say(f"  {'valid' if result.valid else 'NOT VALID'}, after {time_taken}")
    return result


class Ending(SignalHandler):
    """A context in which SIGINT, SIGTERM and SIGHUP raise Interrupted in this process, unless they are ignored."""

    def __init__(self) -> None:
        self.number = 0  # of the last signal

    def check(self) -> None:
        """Raises Interrupted if a signal has come: Python may have dropped the exception (interruption.py)."""
        if self.number:
            forget()
            raise Interrupted(self.number)

    def handle(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        interrupt(number)

    def __exit__(self, *_: object) -> None:
        forget()
        super().__exit__()
