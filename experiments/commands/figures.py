# SPDX-License-Identifier: MIT
"""`make figures PAPER=spang2021`: does the missing runs of a paper's sweeps, then draws the paper's figures. If the
command is stopped, the same command resumes.

Exit status: 0 drawn from valid runs only; 1 nothing drawn; 2 drawn, but some runs are missing or not valid (the
figures say which); 128 + the signal's number when it was stopped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from analysis.figures.printed import Printing, begin
from analysis.papers import draw as papers_draw
from analysis.papers import publish, registry
from analysis.papers.paper import NS3, REAL, Paper, PaperFigure
from analysis.papers.paper import sweeps as sweeps_of
from analysis.papers.paper_runs import PaperRuns, SweepConditions
from analysis.papers.published import PublishedRuns
from controlplane.policy import MARKING_MODES
from experiments.commands import map_of_papers
from experiments.machine import host
from experiments.spec.keys import KEYS, MOST_REPS
from experiments.sweep import needs, plan, run, spec
from experiments.sweep.command import MOST_ATTEMPTS, MOST_JOBS, prober
from experiments.sweep.engines import ENGINES, PARALLEL, SLURM
from experiments.sweep.published import Published
from lib import units
from lib.errors import BadValue, RunError, SpecError, fail
from lib.keys import Wrong, field, flag
from lib.places import IS_INSTALLED
from lib.terminal import complain, counted, say
from lib.values import whole_number
from runs import run_table

DOCS = host.CHECKOUT / "docs/results"
STOPPED = 128
DEFAULT_MODE = KEYS["mode"].default


def _paper(text: str) -> Paper | None:
    return None if text == map_of_papers.WORD else registry.find(text)


class Asked(Printing):
    """`paper` is None for the map of all papers."""

    paper: Paper | None = field(
        f"the paper: {', '.join(registry.packages())}, or a folder that has a PAPER; {map_of_papers.WORD}: the map of "
        "all published runs", _paper, None, values=(*registry.packages(), map_of_papers.WORD),
    )  # fmt: skip
    figure: str | None = field(
        "the figures to draw: 5a, all parts of a figure (5), or several (3,8,table1) (default: all)"
    )
    smoke: bool = flag("1: short runs")
    results: Path = field("the directory of the sweeps and figures", default="results")
    reps: int | None = field(
        "most repetitions of each point (default: as many as the specs say)", whole_number(1, MOST_REPS)
    )
    engine: str = field(f"what runs the jobs: {' or '.join(ENGINES)}", default=PARALLEL, values=ENGINES)
    jobs: int | None = field("runs at once (default: as many as the machine has room for)", whole_number(1, MOST_JOBS))
    attempts: int | None = field(
        "how often a run is tried, in total, until it is valid (default 3; in virtual time a run that is not valid is "
        "not repeated)", whole_number(1, MOST_ATTEMPTS),
    )  # fmt: skip
    clock: str = field(
        "real: run the sweeps' real-time versions, for the figure that compares the clocks; or virtual",
        default="virtual", values=("virtual", "real"),
    )  # fmt: skip
    switch: str | None = field(
        "ns3: simulate the sweeps' versions for ns-3, to stand beside the other runs", values=("ns3",)
    )
    mode: str | None = field(
        "for a paper with a second set of runs, in another MODE: run this set, into directories of its own"
    )
    beside: Path | None = field("a checkout of the paper's published data, which figures then show beside the runs")
    runs: str | None = field(
        "published: use the runs of docs/results/, and do only the missing runs", values=("published",)
    )
    show: bool = flag("1: say what would be run, and run and draw nothing")
    draw: str | None = field("only: draw from what is stored, and run nothing", values=("only",))
    publish: bool = flag("1: copy figures, page and runs to docs/results/; implies RUNS=published")

    def check(self, wrong: Wrong) -> None:
        given = self.model_fields_set
        if self.paper is None:
            for name in sorted(given - map_of_papers.TAKES):
                wrong(
                    name,
                    f"has no meaning with PAPER={map_of_papers.WORD}, which only draws published tables; leave it out",
                )
            return
        if self.publish and IS_INSTALLED:
            wrong("publish", "copies to docs/results/ of a checkout; leave it out")
        if self.publish and self.figure:
            wrong("publish", "publishes all figures; leave FIGURE out")
        figures = self._tried("figure", lambda: self.chosen, wrong)
        self._tried("beside", lambda: self.published_numbers, wrong)
        if self.clock == "real":
            words = ", ".join(figure.word for figure in self.paper.comparing_clocks)
            if not words:
                wrong("clock", "is compared by no figure of this paper; leave it out")
            elif self.figure and figures != self.paper.comparing_clocks:
                wrong("figure", f"is drawn from runs in virtual time; with CLOCK=real leave FIGURE out, or say {words}")
        self._check_sets(self.paper, figures or (), wrong)
        if self.draw and not self.runs and not self.results.is_dir():
            wrong("results", "is not a directory; allowed with DRAW=only: one with runs")
        if self.runs and self.smoke:
            wrong("runs", "has no short runs; leave SMOKE out")
        elif self.runs and not self._published.is_dir():
            wrong("runs", f"has no runs of this paper: {self._published} is missing; leave RUNS out")

    @staticmethod
    def _tried(name: str, read: Callable[[], Any], wrong: Wrong) -> Any:
        """The value that follows from the key `name` and the paper; None if it is wrong."""
        try:
            return read()
        except ValueError as error:
            wrong(name, str(error))

    def _check_sets(self, paper: Paper, figures: tuple[PaperFigure, ...], wrong: Wrong) -> None:
        """The rules of MODE and SWITCH, which ask for other versions of the sweeps."""
        if self.mode and (paper.second is None or paper.second.key != "mode"):
            wrong("mode", "is in the specs of this paper; leave it out")
        elif self.mode and paper.second and self.mode != paper.second.value:
            wrong("mode", f"is not a set of this paper; allowed: {paper.second.value}, or no MODE")
        elif self.mode and self.clock == "real":
            wrong("mode", "has no runs in real time; leave CLOCK out")
        if self.switch and (also := [name.upper() for name in ("mode", "clock") if name in self.model_fields_set]):
            wrong("switch", f"has its own sweeps; leave {' and '.join(also)} out")
        elif self.switch and figures and not _for_ns3(paper, sweeps_of(figures)):
            wrong("switch", "needs sweeps with a version for ns-3, and these have none; allowed: sweeps with `ns3:` in "
                  "their specs")  # fmt: skip

    @property
    def the_paper(self) -> Paper:
        assert self.paper is not None  # PAPER=all is another command
        return self.paper

    @cached_property
    def chosen(self) -> tuple[PaperFigure, ...]:
        """Raises ValueError."""
        return self.the_paper.choose(self.figure)

    @cached_property
    def published_numbers(self) -> Any:
        """The published numbers of BESIDE, as paper.read_beside returns them. Raises ValueError."""
        if self.beside is None:
            return None
        if self.the_paper.read_beside is None:
            raise ValueError("is of no use: no published data of this paper can be read; leave it out")
        return self.the_paper.read_beside(self.beside.absolute())

    @property
    def _published(self) -> Path:
        return DOCS / self.the_paper.published_name

    @cached_property
    def published(self) -> PublishedRuns | None:
        """The published runs, which need not be done, if RUNS= or PUBLISH= asks for them. Raises InputError."""
        is_asked = self.runs or (self.publish and not self.smoke and self._published.is_dir())
        return PublishedRuns(self._published) if is_asked else None

    @cached_property
    def options(self) -> run.Options:
        done = Published(self.published.table if self.published else None)
        return run.Options(self.results.absolute(), self.jobs, self.attempts, engine=self.engine, published=done)

    @property
    def output(self) -> Path:
        return self.options.results / "figures" / self.the_paper.output_name(self.smoke)


def run_command(asked: Asked) -> int:
    """Returns the exit status. Raises SpecError, RunError, InputError, OSError."""
    begin(asked)
    if asked.paper is None:
        return map_of_papers.draw_map(asked.results, asked.publish)
    if asked.show:
        probe = prober(build=False, ns3=bool(asked.switch))
        say_what_is_missing(sweeps_to_run(asked, probe), probe, asked.options)
        return 0
    status = 0 if asked.draw else measure(asked)
    return status if status >= STOPPED else max(status, draw(asked))


def _for_ns3(paper: Paper, stems: Iterable[str]) -> tuple[str, ...]:
    """The sweeps that have a version for ns-3."""
    return tuple(stem for stem in stems if spec.has_version(paper.specs / f"{stem}.yaml", "ns3"))


def read_sweeps(paper: Paper, stems: Iterable[str], words: Mapping[str, object], smoke: bool) -> dict[str, spec.Sweep]:
    """The sweeps by stem. Raises SpecError, also if a sweep does not have the name under which figures look for it."""
    sweeps = {stem: spec.read(paper.specs / f"{stem}.yaml", words, smoke) for stem in stems}
    version = REAL if words.get("clock") == "real" else NS3 if words.get("switch") == "ns3" else ""
    suffix = paper.second.suffix if paper.second and paper.second.key in words else ""
    wrong = [
        BadValue("name", sweep.name, f"is not found by figures; allowed: {paper.key}-{stem} in its spec", sweep.file)
        for stem, sweep in sweeps.items()
        if sweep.name != paper.sweep_name(stem + version, smoke, suffix)
    ]
    if wrong:
        raise SpecError(wrong)
    return sweeps


def conditions(paper: Paper) -> dict[str, SweepConditions]:
    """The conditions that all runs of a sweep share, by the sweep's stem. An imported run belongs to each sweep whose
    conditions it meets. Sweeps whose flows or buffer cannot be compared (a buffer in bytes, for example) are left out.
    Raises SpecError.
    """
    by_stem = {}
    for stem, sweep in read_sweeps(paper, paper.stems, {}, smoke=False).items():
        with contextlib.suppress(ValueError):
            by_stem[stem] = _in_common(sweep)
    return by_stem


def _in_common(sweep: spec.Sweep) -> SweepConditions:
    """The conditions that all points of `sweep` share. Raises ValueError if flows or buffer cannot be compared."""
    varied = {key for point in sweep.points for key in point}
    same = {key: value for key, value in ({"mode": DEFAULT_MODE} | sweep.base).items() if key not in varied}
    return SweepConditions(
        flows=int(same["flows"]) if "flows" in same else None,
        is_marked=same["mode"] in MARKING_MODES if "mode" in same else None,
        buffer=units.parse(same["buf"], ("bdp", "packets")) if "buf" in same else None,
    )


def sweeps_asked_for(asked: Asked) -> list[spec.Sweep]:
    """The sweeps of the figures, in the version that is asked for. Raises SpecError."""
    paper = asked.the_paper
    figures, words = (paper.comparing_clocks, {"clock": "real"}) if asked.clock == "real" else (asked.chosen, {})
    stems = sweeps_of(figures)
    if asked.mode:
        words, stems = {"mode": asked.mode}, _that_can_change(paper, stems, "mode")
    if asked.switch:
        words, stems = {"switch": "ns3"}, _for_ns3(paper, stems)
    return list(read_sweeps(paper, stems, words, asked.smoke).values())


def sweeps_to_run(asked: Asked, probe: Callable[[str], host.Host]) -> list[spec.Sweep]:
    """The sweeps of the figures, searches last, without points for which the kernel lacks an optional congestion
    control. Raises SpecError.
    """
    most = asked.reps or MOST_REPS
    sweeps = [plan.offered(sweep.limited(most), probe) for sweep in sweeps_asked_for(asked)]
    return sorted(sweeps, key=lambda sweep: bool(sweep.search))


def measure(asked: Asked, probe: Callable[[str], host.Host] | None = None) -> int:
    """Does the missing runs. The order gives the most figures if the command is stopped early: all sweeps' first
    repetitions come before the second ones, and searches, which take longest, come last in each round. A sweep that
    cannot be run does not stop the others. Returns the worst status of a sweep.
    """
    run.check(asked.options)
    probe = probe or prober(build=True, ns3=bool(asked.switch))
    whole_sweeps = sweeps_to_run(asked, probe)
    say_what_is_missing(whole_sweeps, probe, asked.options)
    worst, refused = 0, {}
    most = max((sweep.most_reps for sweep in whole_sweeps), default=0)
    # Under a scheduler all repetitions are in the queue at once.
    rounds = [most] if asked.options.engine == SLURM else range(1, most + 1)
    for repetitions in rounds:
        for sweep in whole_sweeps:
            if (repetitions > sweep.most_reps and len(rounds) > 1) or sweep.name in refused:
                continue
            say(f"repetition {min(repetitions, sweep.most_reps)} of {sweep.most_reps}: {sweep.about}")
            try:
                status = run.run(sweep.limited(repetitions), probe, asked.options, with_page=False)
            except RunError as error:
                refused[sweep.name] = error.lines
                continue
            if status >= STOPPED:
                return status
            worst = max(worst, status)
    for lines in refused.values():
        fail(lines)
    return max(worst, 2) if refused else worst


def _that_can_change(paper: Paper, stems: Iterable[str], key: str) -> tuple[str, ...]:
    """The sweeps that do not vary the key `key` themselves."""
    return tuple(
        stem
        for stem in stems
        if not any(key in point for point in spec.read(paper.specs / f"{stem}.yaml", {}, smoke=False).points)
    )


def say_what_is_missing(sweeps: list[spec.Sweep], probe: Callable[[str], host.Host], options: run.Options) -> None:
    """Announces the missing runs of all sweeps that can be run. `measure` reports the other sweeps when it reaches
    them.
    """
    missing, slow = [], run.slowness(options)
    table = options.published.beside(run_table.read(options.results))
    for sweep in sweeps:
        with contextlib.suppress(RunError):
            missing.append(run.missing(sweep, probe, options, table, slow))
    if missing:
        say(needs.headline_of_set(missing, options.results))


def draw(asked: Asked) -> int:
    """Draws the figures, and prints where they are and how many runs were left out. Returns the exit status."""
    paper, results = asked.the_paper, asked.options.results
    runs = PaperRuns(paper, results, asked.smoke, conditions(paper), asked.published_numbers, asked.published)
    with map_of_papers.drawing(asked.output) as output:
        drawn = papers_draw.draw(runs, output, asked.chosen)
    without = [each.figure for each in drawn if each.figure.sweeps and not each.used]
    # CLOCK=real is a separate command. Without it, a figure that compares the clocks may lack runs in real time.
    missing = [figure for figure in without if asked.clock == "real" or len(drawn) == 1 or not figure.compares_clocks]
    used = {label for each in drawn for label in each.used}
    left_out = {left.label for each in drawn for left in each.left_out}
    say(paper.citation)
    say(f"{counted(len(drawn), 'figure')} from {counted(len(used), 'run')} -> {asked.output}")
    if without:
        remedy = "; without DRAW=only the missing runs are done" if asked.draw else ""
        complain(f"no valid run for {', '.join(figure.name for figure in without)}{remedy}")
    lacking = runs.without_result()
    for name, number in lacking.items():
        complain(f"{name}: {counted(number, 'point')} without a result")
    if left_out:
        complain(f"{counted(len(left_out), 'run')} left out, not valid or without needed data; the figures list them")
    names = {label.split("/")[0] for label in used} | {sweep.name for sweep in sweeps_asked_for(asked)}
    # Imported runs have no sweep, published runs no directory.
    own = [results / name for name in sorted(names) if any(run_table.repetitions(results / name))]
    if pages := [path for sweep in own if (path := run.page(sweep, [paper]))]:
        shown = pages[0] if len(pages) == 1 else results / f"{paper.key}-*" / pages[0].name
        say(f"{counted(len(pages), 'sweep report')} -> {shown}")
    if asked.publish:
        files = publish.publish(drawn, runs, asked.output, DOCS)
        say(f"published {len(files)} files -> {DOCS}")
        if number := publish.lacking_answers(runs):
            say(f"{counted(number, 'run')} published without what figures need: these figures read whole tables")
    return 2 if missing or left_out or lacking else 0
