# SPDX-License-Identifier: MIT
"""`make sweep`, top to bottom: plan, announce the needs, run the missing jobs in rounds, report the results.

The state of a job follows from its directory alone (runs/job_state.py), so a sweep can be stopped in any way and called
again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars

from experiments.lab.choice import choose
from experiments.machine import machine_speed
from experiments.machine.host import Host
from experiments.plan import cost
from experiments.plan.sizes import sizes
from experiments.run import expectations, runner
from experiments.run.analysis_process import user_problem
from experiments.run.watch import SWEEP, watched
from experiments.spec import disk
from experiments.spec.demand import pool_packets
from experiments.sweep import engine, needs, plan, remote_labs, slurm
from experiments.sweep.engines import PARALLEL, SLURM
from experiments.sweep.plan import Job
from experiments.sweep.progress import SweepProgress
from experiments.sweep.published import NONE, Published
from experiments.sweep.rounds import ATTEMPTS, Attempts, Round
from experiments.sweep.searches import Searches
from experiments.sweep.spec import Sweep
from experiments.sweep.thin import thin
from lib import files
from lib.errors import Interrupted, RunError
from lib.exit_codes import Exit
from lib.terminal import complain, located, one_line, say
from runs import record, results, run_table, verdict
from runs.job_state import JobState, State, look
from runs.names import ABORTED, NOTE, REPETITION, SUMMARY, SWEEP_RUNS

if TYPE_CHECKING:
    from analysis.papers.paper import Paper

INDEX_EVERY_S = 30.0
MOST_SHOWN = 20  # lines about runs that failed
ANALYSIS_MIB = 2048  # a Slurm job's memory for the analysis, in addition to the run's virtual machine
ALL_VALID, NOTHING, SOME_NOT_VALID = 0, 1, 2


class Options(NamedTuple):
    """Options beside the spec. None for `at_once` and `attempts` means their defaults."""

    results: Path
    at_once: int | None = None
    attempts: int | None = None
    inventory: str = ""  # of remote labs that run the jobs instead of this machine
    engine: str = PARALLEL
    published: Published = NONE  # runs that need not be done
    expecting: expectations.Expecting = expectations.NOTHING
    note: str | None = None
    watch: bool = False  # a page shows the points as they come in


class Engine(NamedTuple):
    """Runs jobs, about `at_once` at the same time. `start` takes the names of jobs and returns when these jobs have
    ended. `missing` lists requirements of all jobs that this machine lacks; other machines check themselves.
    """

    at_once: int
    start: Callable[[list[str], Callable[[], None]], None]
    missing: Callable[[], list[str]] = list


def run(sweep: Sweep, probe: Callable[[str], Host], options: Options, with_page: bool = True) -> int:
    """Runs the missing jobs of the sweep, and makes its report `with_page`. Returns the exit status. Raises SpecError,
    RunError.
    """
    jobs = planned(sweep, probe)
    check(options)
    _check(jobs.first)
    expectations.begin(options.expecting, [job.spec for job in jobs.first])
    directory = options.results / sweep.name
    with contextlib.ExitStack() as until_the_end:
        ending = until_the_end.enter_context(runner.Ending())
        until_the_end.enter_context(_alone(directory, options.results))
        if options.note:
            files.write_text(directory / NOTE, f"{options.note}\n")
        if options.watch:
            until_the_end.enter_context(watched(directory, SWEEP, jobs.first[0].spec.clock))
        try:
            asked = finish(sweep, jobs, directory, options, ending)
            ending.check()
        except Interrupted as interrupted:
            say("")  # below the progress bar
            complain(f"stopped by {interrupted}; the same command resumes the sweep")
            return 128 + interrupted.signal
    for line in jobs.lines(directory):
        say(line)
    # If all runs are published, there is no directory.
    if with_page and any(run_table.repetitions(directory)) and (path := page(directory)):
        say(f"{directory.name}: report -> {path}")
    status = conclude(asked, directory, options.published)
    return max(_expected(sweep, asked, directory, options.expecting), status) if status != NOTHING else status


def _expected(sweep: Sweep, jobs: list[Job], directory: Path, expecting: expectations.Expecting) -> Exit:
    """Judges each point by its valid runs. Raises RunError."""
    summaries: dict[str, list[dict[str, Any]]] = {}
    for job in jobs if expecting.expect else ():
        valid = summaries.setdefault(plan.describe(job.point), [])
        if look(directory / SWEEP_RUNS / job.id).state is State.VALID:
            valid.append(verdict.read(directory / SWEEP_RUNS / job.id / REPETITION))
    return expectations.report(expectations.judge(expecting.expect, summaries), sweep.name, expecting.junit)


def page(directory: Path, papers: Iterable[Paper] | None = None) -> Path | None:
    """Makes the sweep's report and returns its path. An error is reported, and the result is then None: the runs are
    done, so the sweep does not fail.
    """
    from analysis.report.sweep_report import write
    from lib.errors import InputError

    try:
        path = write(directory, papers=papers)
        if unknown := record.unrecorded_among(run_table.repetitions(directory), directory):
            complain(f"note: {unknown}")
        return path
    except (InputError, RunError) as error:
        complain(f"no report: {error}")
    except OSError as error:
        complain(f"no report: {located(error, directory)}")
    return None


def planned(sweep: Sweep, probe: Callable[[str], Host]) -> Jobs | Searches:
    return Searches(sweep, probe) if sweep.search else Jobs(sweep, probe)


def missing(
    sweep: Sweep,
    probe: Callable[[str], Host],
    options: Options,
    table: polars.DataFrame,
    slow: float = 1.0,
) -> needs.Need:
    """The needs of the missing jobs, by the run table and the stored runs, on a machine with the slowness `slow`. Runs
    and writes nothing. Raises SpecError, RunError.
    """
    jobs, directory = planned(sweep, probe), options.results / sweep.name
    attempts = Attempts(options.attempts, jobs.first[0].spec.clock == "virtual")
    now = jobs.next(table, given_up(directory, attempts))
    todo = left(now.jobs, directory, options.published, attempts)
    at_once = how_many(jobs.first, options.at_once) if options.engine == PARALLEL else slurm.processors()
    return needs.of(sweep, now, todo, options.at_once or at_once, slow)


def left(jobs: list[Job], directory: Path, published: Published, attempts: Attempts) -> list[Job]:
    """The jobs that still have to run."""
    return [job for job in jobs if attempts.left(published.state(directory / SWEEP_RUNS / job.id, job))]


def slowness(options: Options) -> float:
    """The slowness of this machine with all processors busy (machine_speed.py); 1 if other machines run the jobs."""
    if options.inventory or options.engine == SLURM:
        return 1.0
    return machine_speed.slowness(options.at_once or len(os.sched_getaffinity(0)))


class Jobs:
    """The jobs of a sweep, all known from the beginning. Searches (searches.py) derive their jobs from results."""

    def __init__(self, sweep: Sweep, probe: Callable[[str], Host]) -> None:
        self.first = self.largest = plan.jobs(sweep, probe)

    def next(self, table: polars.DataFrame, given_up: set[str]) -> Round:
        """The jobs, given the run table and the jobs that will have no valid run."""
        return Round(self.first, 0, 0.0)

    def write_tables(self, directory: Path, table: polars.DataFrame, given_up: set[str]) -> None:
        """Writes the tables of a search: none."""

    def lines(self, directory: Path) -> list[str]:
        """Lines about the result of a search: none."""
        return []


def finish(sweep: Sweep, jobs: Jobs | Searches, directory: Path, options: Options, ending: runner.Ending) -> list[Job]:
    """Runs jobs until none is left. Returns all jobs. Raises RunError if there is no room for them."""
    virtual = jobs.first[0].spec.clock == "virtual"
    where = (_under_slurm if options.engine == SLURM else _here)(jobs, directory, options)
    of_all = where.at_once
    attempts = Attempts(options.attempts, virtual)
    table = options.published.beside(run_table.write(options.results))
    said, slow = False, slowness(options)

    def job_s(job: Job) -> float:
        return cost.repetition_s(job.spec, keep=sweep.keep)

    with SweepProgress(sweep.name, of_all, slow) as progress:
        while True:
            now = jobs.next(table, given_up(directory, attempts))
            plan.write(directory, sweep, now.jobs, slurm.queued(directory) if options.engine == SLURM else ())
            todo = left(now.jobs, directory, options.published, attempts)
            if not said:
                say(needs.headline(sweep, needs.of(sweep, now, todo, of_all, slow), directory))
                tidy(sweep, now.jobs, directory)
                said = True
            shortage = needs.shortage(needs.of(sweep, now, todo, of_all), directory)
            if shortage:
                raise RunError(shortage)
            if lacks := where.missing() if todo else []:
                raise RunError(*lacks)
            done = len(now.jobs) - len(todo)
            alone_s = now.more_cost_s * of_all / min(of_all, now.more_at_once)  # the added jobs leave processors idle
            progress.expect(len(now.jobs) + now.more, done, sum(map(job_s, todo)) + alone_s)
            rounds = options.attempts or ATTEMPTS
            while todo and rounds:
                watch = Watch(todo, directory, options.results, progress, ending, job_s)
                where.start([job.id for job in todo], watch)
                todo = left(todo, directory, options.published, attempts)
                rounds -= 1
                ended = [job for job in todo if job.id not in watch.left]
                if rounds:
                    progress.again(len(ended), sum(map(job_s, ended)))
            table = options.published.beside(run_table.write(options.results))
            jobs.write_tables(directory, table, given_up(directory, attempts))
            if todo or not now.more:  # jobs without a valid run after all attempts would have none after more rounds
                return now.jobs


def check(options: Options) -> None:
    """Raises RunError if the engine's programs are missing."""
    if options.engine == SLURM:
        slurm.check()
    else:
        engine.program()


def _here(jobs: Jobs | Searches, directory: Path, options: Options) -> Engine:
    """GNU parallel, on this machine or on the labs of an inventory."""
    virtual = jobs.first[0].spec.clock == "virtual"
    labs = remote_labs.ready(remote_labs.load(Path(options.inventory)), virtual) if options.inventory else None
    at_once = how_many(jobs.first, options.at_once, away=bool(labs))
    of_all = sum(at_once or lab.processors for lab in labs) if labs else at_once
    missing = list if labs else choose(jobs.first[0].spec).missing
    return Engine(of_all, lambda names, watch: engine.run(directory, names, at_once, watch, labs), missing)


def _under_slurm(jobs: Jobs | Searches, directory: Path, options: Options) -> Engine:
    if jobs.first[0].spec.clock != "virtual":
        raise RunError("ENGINE=slurm: in real time runs would disturb the nodes' other jobs; allowed: CLOCK=virtual")
    size = slurm.Size(
        max(sizes(job.spec).machine_mib for job in jobs.largest) + ANALYSIS_MIB,
        max(cost.repetition_s(job.spec) for job in jobs.largest),
    )
    at_once = options.at_once or 0
    return Engine(at_once or slurm.processors(), lambda names, watch: slurm.run(directory, names, at_once, watch, size))


def given_up(directory: Path, attempts: Attempts) -> set[str]:
    """Jobs that used their last attempt without a valid run."""
    runs = directory / SWEEP_RUNS
    return {
        run.name
        for run in (runs.iterdir() if runs.is_dir() else ())
        if (job_state := look(run)).state is not State.VALID and not attempts.left(job_state)
    }


def tidy(sweep: Sweep, jobs: list[Job], directory: Path) -> None:
    """Thins the valid runs: earlier thinning may have been killed, and KEEP may have changed."""
    for job in jobs:
        if look(directory / SWEEP_RUNS / job.id).state is State.VALID:
            thin(directory / SWEEP_RUNS / job.id / REPETITION, sweep.keep)


class Watch:
    """Called while jobs run: shows their progress and updates the run table. Raises after a signal, or if the disk is
    full. GNU parallel then ends the jobs; Slurm's tasks go on after a signal.
    """

    def __init__(
        self,
        todo: list[Job],
        directory: Path,
        results: Path,
        progress: SweepProgress,
        ending: runner.Ending,
        job_s: Callable[[Job], float],
    ) -> None:
        self.directory, self.results, self.progress, self.ending = directory, results, progress, ending
        self.job_s = job_s  # the expected duration of a job
        self.left = {job.id: job for job in todo}
        self.earlier = {job.id: _ending(directory / SWEEP_RUNS / job.id / REPETITION) for job in todo}
        self.last_index_s = time.monotonic()
        self.new = False

    def __call__(self) -> None:
        self.ending.check()
        for job in list(self.left.values()):
            run_directory = self.directory / SWEEP_RUNS / job.id
            ending = _ending(run_directory / REPETITION)
            if ending not in (None, self.earlier[job.id]) and not results.is_running(run_directory):
                del self.left[job.id]
                self.new = True
                self.progress.finished(self.job_s(job), look(run_directory).state is State.VALID)
        running = [job for job in self.left.values() if results.is_running(self.directory / SWEEP_RUNS / job.id)]
        self.progress.show([job.id for job in running], sum(map(self.job_s, running)))
        if self.new and time.monotonic() - self.last_index_s > INDEX_EVERY_S:
            run_table.write(self.results)
            self.last_index_s, self.new = time.monotonic(), False
        free = disk.free_bytes(self.directory)
        if free < disk.RESERVE_BYTES:
            raise RunError(
                f"{self.directory}: the disk is full ({disk.mib(free)} left): make room; then the same command resumes "
                "the sweep"
            )


def _ending(repetition: Path) -> tuple[int, int, int] | None:
    """Identifies the file that shows the attempt's end; None if the attempt has not ended. The value differs between
    attempts, also in virtual time.
    """
    for name in (SUMMARY, ABORTED):
        with contextlib.suppress(OSError):
            file = (repetition / name).stat(follow_symlinks=False)
            return file.st_ino, file.st_mtime_ns, file.st_size
    return None


def how_many(jobs: list[Job], asked: int | None, away: bool = False) -> int:
    """The number of jobs at once: one in real time, else `asked` (None: one per processor), fewer if memory is short.
    Raises RunError.

    With `away` the result is the number of jobs on each lab; 0: one per processor of the lab.
    """
    if jobs[0].spec.clock != "virtual":
        if asked and asked > 1:
            raise RunError("JOBS: in real time runs would disturb each other; allowed: 1")
        return 1
    if away:
        return asked or 0
    at_once = asked or len(os.sched_getaffinity(0))
    largest = max((job.spec for job in jobs), key=lambda spec: pool_packets(spec) * spec.frame_bytes)
    lab = choose(largest)
    while at_once > 1 and lab.memory_shortage(at_once, runner.PROCESSES_MIB):
        at_once -= 1
    problem = lab.memory_shortage(1, runner.PROCESSES_MIB)
    if problem:
        raise RunError(problem)
    return at_once


def conclude(jobs: list[Job], directory: Path, published: Published = NONE) -> int:
    """Reports the results of the jobs; returns the exit status."""
    states = [(job, published.state(directory / SWEEP_RUNS / job.id, job)) for job in jobs]
    failed = [(job, job_state) for job, job_state in states if job_state.state is not State.VALID]
    valid = len(states) - len(failed)
    say(f"{directory.name}: {valid} of {len(states)} runs are valid -> {directory}")
    for job, job_state in failed[:MOST_SHOWN]:
        complain(_line(job, job_state, directory))
    if len(failed) > MOST_SHOWN:
        complain(f"  and {len(failed) - MOST_SHOWN} more")
    if failed:
        complain("ATTEMPTS=<more> tries these again; the others are not touched")
        return SOME_NOT_VALID if valid else NOTHING
    return ALL_VALID


def _line(job: Job, job_state: JobState, directory: Path) -> str:
    reason = job_state.reason if len(job_state.reason) <= 300 else job_state.reason[:297] + "..."
    what = f"{plan.describe(job.point)}, repetition {job.repetition}"
    return f"  {job_state.state.value}: {what}: {reason or 'no trace'} ({directory / SWEEP_RUNS / job.id})"


def _check(jobs: list[Job]) -> None:
    """Raises RunError for problems that would stop every job."""
    from experiments.setup import missing as lacking

    lines = {line: None for job in jobs for line in lacking.of(job.spec)}
    lines |= {line: None for line in [user_problem()] if line}
    if lines:
        raise RunError(*lines)


@contextlib.contextmanager
def _alone(directory: Path, parent: Path) -> Iterator[None]:
    """Makes the sweep's directory and holds its lock. Raises RunError if another sweep has it."""
    with contextlib.ExitStack() as held:
        try:
            files.make(parent)
            lock = held.enter_context(files.claimed(directory, make=True))
            held.enter_context(files.claimed(SWEEP_RUNS, lock, make=True))
        except OSError as error:
            raise RunError(
                f"{directory} cannot hold a sweep: {one_line(error)}; choose another with RESULTS="
            ) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(
                f"{directory}: another make sweep works on it; wait for its end, or choose another name with NAME="
            ) from None
        except OSError as error:
            raise RunError(
                f"{directory}: its file system, as NFS, does not lock directories ({one_line(error)}); choose another "
                "directory with RESULTS="
            ) from None
        yield
