# SPDX-License-Identifier: MIT
"""`make figures PAPER=spang2021`: does the missing runs of a paper's sweeps, then draws the paper's figures. If the
command is stopped, the same command resumes.

Exit status: 0 drawn from valid runs only; 1 nothing drawn; 2 drawn, but some runs are missing or not valid (the
figures say which); 128 + the signal's number when it was stopped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from analysis.papers import draw as papers_draw
from analysis.papers import publish, registry
from analysis.papers.imported_runs import SweepConditions
from analysis.papers.paper import NS3, REAL, Paper, PaperFigure
from analysis.papers.paper import sweeps as sweeps_of
from analysis.papers.published import PublishedRuns
from analysis.papers.stored_runs import StoredRuns
from controlplane.policy import MARKING_MODES
from experiments import host, whole_map
from experiments.spec import Spec
from experiments.sweep import needs, plan, run, spec
from experiments.sweep.command import LIMITS, engine_of, prober, whole
from experiments.sweep.engines import ENGINES, PARALLEL, SLURM
from experiments.sweep.published import Published
from lib import units
from lib.errors import BadValue, RunError, SpecError, fail
from lib.terminal import complain, counted, say
from lib.words import PATHS, SWITCH, Key
from runs import run_table

DOCS = host.CHECKOUT / "docs/results"
KEYS = {
    "paper": Key(f"whose figures: {', '.join(registry.packages())}, or a folder that has a PAPER; {whole_map.WORD}: "
                 "the map of all published runs", values=(*registry.packages(), whole_map.WORD)),
    "figure": Key("the figures to draw: 5a, all parts of a figure (5), or several (3,8,table1) (default: all)"),
    "smoke": Key("1: short runs", "0", SWITCH),
    "results": Key("the directory of the sweeps and figures", "results", PATHS),
    "reps": Key("most repetitions of each point (default: as many as the specs say)"),
    "engine": Key(f"what runs the jobs: {' or '.join(ENGINES)}", PARALLEL, ENGINES),
    "jobs": Key("runs at once (default: as many as the machine has room for)"),
    "attempts": Key("how often a run is tried, in total, until it is valid (default in virtual time: a run that is not "
                    "valid is not repeated)", "3"),
    "clock": Key("real: run the sweeps' real-time versions, for the figure that compares the clocks; or virtual",
                 "virtual", ("virtual", "real")),
    "switch": Key("ns3: simulate the sweeps' versions for ns-3, to stand beside the other runs", values=("ns3",)),
    "mode": Key("for a paper with a second set of runs, in another MODE: run this set, into directories of its own"),
    "beside": Key("a checkout of the paper's published data, which figures then show beside the runs", values=PATHS),
    "runs": Key("published: use the runs of docs/results/, and do only the missing runs", values=("published",)),
    "show": Key("1: say what would be run, and run and draw nothing", "0", SWITCH),
    "draw": Key("only: draw from what is stored, and run nothing", values=("only",)),
    "publish": Key("1: copy figures, page and runs to docs/results/; implies RUNS=published", "0", SWITCH),
}  # fmt: skip
STOPPED = 128
MOST_REPS = 1000
DEFAULT_MODE = Spec.model_fields["mode"].default


class Asked(NamedTuple):
    """The parsed parameters of the command."""

    paper: Paper
    figures: tuple[PaperFigure, ...]
    smoke: bool
    options: run.Options
    only_draw: bool
    publish: bool
    published: PublishedRuns | None  # runs that need not be done
    real: bool  # run the sweeps' real-time versions
    second: bool = False  # run the paper's second set
    beside: Any = None  # published numbers, as paper.read_beside returns them
    reps: int | None = None  # most repetitions of each point
    only_show: bool = False
    ns3: bool = False  # run the sweeps' versions for ns-3

    @property
    def output(self) -> Path:
        return self.options.results / "figures" / self.paper.output_name(self.smoke)


def run_command(given: dict[str, Any], errors: list[BadValue]) -> int:
    """Returns the exit status. Raises SpecError, RunError, InputError, OSError."""
    if given.get("paper") == whole_map.WORD:
        return whole_map.run_command(given, errors)
    asked = read(given, errors)
    if asked.only_show:
        probe = prober(build=False, ns3=asked.ns3)
        say_what_is_missing(sweeps_to_run(asked, probe), probe, asked.options)
        return 0
    status = 0 if asked.only_draw else measure(asked)
    return status if status >= STOPPED else max(status, draw(asked))


def read(given: dict[str, Any], errors: list[BadValue]) -> Asked:
    """Raises SpecError with all errors."""
    paper = _paper(given, errors)
    draws, clock = given.get("draw", ""), given.get("clock", "virtual")
    if draws not in ("", "only"):
        errors.append(BadValue("DRAW", draws, "is not known; allowed: only"))
    if clock not in ("virtual", "real"):
        errors.append(BadValue("CLOCK", clock, "is not known; allowed: virtual, real"))
    numbers = {key: whole(given, key, errors, most) for key, most in (LIMITS | {"reps": MOST_REPS}).items()}
    smoke, is_published, only_show = (given.get(key) == "1" for key in ("smoke", "publish", "show"))
    if is_published and "figure" in given:
        errors.append(BadValue("PUBLISH", "1", "publishes all figures; leave FIGURE out"))
    figures = _figures(paper, given, errors) if paper else ()
    ns3 = _ns3(paper, figures, given, errors) if paper else False
    second, beside = (_second(paper, given, errors), _beside(paper, given, errors)) if paper else (False, None)
    results = Path(str(given.get("results") or "results")).absolute()
    if draws == "only" and "runs" not in given and not results.is_dir():
        errors.append(BadValue("RESULTS", None, f"{results} is not a directory; allowed with DRAW=only: one with runs"))
    published = _published(paper, given, errors)
    engine = engine_of(given, errors, "")
    if errors or paper is None:
        raise SpecError(errors)
    done = Published(published.table if published else None)
    chosen = run.Options(results, numbers["jobs"], numbers["attempts"], engine=engine, published=done)
    return Asked(
        paper, figures, smoke, chosen, draws == "only", is_published, published, clock == "real", second, beside,
        numbers["reps"], only_show, ns3,
    )  # fmt: skip


def _published(paper: Paper | None, given: dict[str, object], errors: list[BadValue]) -> PublishedRuns | None:
    """The published runs, if RUNS= or PUBLISH= asks for them. Raises InputError."""
    if paper is None or not ("runs" in given or given.get("publish") == "1"):
        return None
    directory = DOCS / paper.published_name
    problem = ""
    if given.get("runs", "published") != "published":
        problem = "is not known; allowed: published"
    elif given.get("smoke") == "1":
        problem = "has no short runs; leave SMOKE out"
    elif not directory.is_dir():
        problem = f"has no runs of this paper: {directory} is missing; leave RUNS out"
    if problem and "runs" in given:
        errors.append(BadValue("RUNS", given["runs"], problem))
    return None if problem else PublishedRuns(directory)


def _second(paper: Paper, given: dict[str, object], errors: list[BadValue]) -> bool:
    """Whether MODE= asks for the paper's second set."""
    if "mode" not in given:
        return False
    if paper.second is None or paper.second.key != "mode":
        errors.append(BadValue("MODE", given["mode"], "is in the specs of this paper; leave it out"))
    elif given["mode"] != paper.second.value:
        allowed = f"{paper.second.value}, or no MODE"
        errors.append(BadValue("MODE", given["mode"], f"is not a set of this paper; allowed: {allowed}"))
    elif given.get("clock") == "real":
        errors.append(BadValue("MODE", given["mode"], "has no runs in real time; leave CLOCK out"))
    return True


def _ns3(paper: Paper, figures: tuple[PaperFigure, ...], given: dict[str, object], errors: list[BadValue]) -> bool:
    """Whether SWITCH= asks for the versions for ns-3."""
    if "switch" not in given:
        return False
    also = [key.upper() for key in ("mode", "clock") if key in given]
    problem = ""
    if given["switch"] != "ns3":
        problem = "is not known; allowed: ns3"
    elif also:
        problem = f"has its own sweeps; leave {' and '.join(also)} out"
    elif figures and not _for_ns3(paper, sweeps_of(figures)):
        problem = (
            "needs sweeps with a version for ns-3, and these have none; allowed: sweeps with `ns3:` in their specs"
        )
    if problem:
        errors.append(BadValue("SWITCH", given["switch"], problem))
    return not problem


def _for_ns3(paper: Paper, stems: Iterable[str]) -> tuple[str, ...]:
    """The sweeps that have a version for ns-3."""
    return tuple(stem for stem in stems if spec.has_version(paper.specs / f"{stem}.yaml", "ns3"))


def _beside(paper: Paper, given: dict[str, object], errors: list[BadValue]) -> Any:
    """The published numbers of a checkout; None without one."""
    if "beside" not in given:
        return None
    path = Path(str(given["beside"])).absolute()
    if paper.read_beside is None:
        errors.append(
            BadValue("BESIDE", None, "is of no use: no published data of this paper can be read; leave it out")
        )
        return None
    try:
        return paper.read_beside(path)
    except ValueError as error:
        errors.append(BadValue("BESIDE", None, str(error)))
        return None


def _paper(given: dict[str, object], errors: list[BadValue]) -> Paper | None:
    text = str(given.get("paper", ""))
    try:
        return registry.find(text)
    except ValueError as error:
        errors.append(BadValue("PAPER", text or None, str(error)))
        return None


def _figures(paper: Paper, given: dict[str, object], errors: list[BadValue]) -> tuple[PaperFigure, ...]:
    """The figures that FIGURE= selects. With CLOCK=real, only figures that compare clocks are allowed."""
    wanted = given.get("figure")
    try:
        figures = paper.choose(None if wanted is None else str(wanted))
    except ValueError as error:
        errors.append(BadValue("FIGURE", wanted, str(error)))
        return ()
    if given.get("clock") == "real":
        words = ", ".join(figure.word for figure in paper.comparing_clocks)
        if not words:
            errors.append(BadValue("CLOCK", "real", "is compared by no figure of this paper; leave it out"))
        elif wanted is not None and figures != paper.comparing_clocks:
            problem = f"is drawn from runs in virtual time; with CLOCK=real leave FIGURE out, or say {words}"
            errors.append(BadValue("FIGURE", wanted, problem))
    return figures


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


def sweeps_to_run(asked: Asked, probe: Callable[[str], host.Host]) -> list[spec.Sweep]:
    """The sweeps of the figures, searches last, without points for which the kernel lacks an optional congestion
    control. Raises SpecError.
    """
    figures, words = (asked.paper.comparing_clocks, {"clock": "real"}) if asked.real else (asked.figures, {})
    stems = sweeps_of(figures)
    if asked.second and asked.paper.second:
        words = {asked.paper.second.key: asked.paper.second.value}
        stems = _that_can_change(asked.paper, stems, asked.paper.second.key)
    if asked.ns3:
        words, stems = {"switch": "ns3"}, _for_ns3(asked.paper, stems)
    by_stem = read_sweeps(asked.paper, stems, words, asked.smoke)
    most = asked.reps or MOST_REPS
    sweeps = [plan.offered(sweep.limited(most), probe) for sweep in by_stem.values()]
    return sorted(sweeps, key=lambda sweep: bool(sweep.search))


def measure(asked: Asked, probe: Callable[[str], host.Host] | None = None) -> int:
    """Does the missing runs. The order gives the most figures if the command is stopped early: all sweeps' first
    repetitions come before the second ones, and searches, which take longest, come last in each round. A sweep that
    cannot be run does not stop the others. Returns the worst status of a sweep.
    """
    run.check(asked.options)
    probe = probe or prober(build=True, ns3=asked.ns3)
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
                status = run.run(sweep.limited(repetitions), probe, asked.options, say_page=False)
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
    paper, results = asked.paper, asked.options.results
    runs = StoredRuns(paper, results, asked.smoke, conditions(paper), asked.beside, asked.published)
    with whole_map.drawing(asked.output) as output:
        drawn = papers_draw.draw(runs, output, asked.figures)
    without = [each.figure for each in drawn if each.figure.sweeps and not each.used]
    # CLOCK=real is a separate command. Without it, a figure that compares the clocks may lack runs in real time.
    missing = [figure for figure in without if asked.real or len(drawn) == 1 or not figure.compares_clocks]
    used = {label for each in drawn for label in each.used}
    left_out = {left.label for each in drawn for left in each.left_out}
    say(asked.paper.citation)
    say(f"{counted(len(drawn), 'figure')} from {counted(len(used), 'run')} -> {asked.output}")
    if without:
        remedy = "; without DRAW=only the missing runs are done" if asked.only_draw else ""
        complain(f"no valid run for {', '.join(figure.name for figure in without)}{remedy}")
    lacking = runs.without_result()
    for name, number in lacking.items():
        complain(f"{name}: {counted(number, 'point')} without a result")
    if left_out:
        complain(f"{counted(len(left_out), 'run')} left out, not valid or without needed data; the figures list them")
    sweeps = [results / name for name in sorted({label.split("/")[0] for label in used})]
    # Imported runs have no sweep, published runs no directory.
    own = [sweep for sweep in sweeps if any(run_table.repetitions(sweep))]
    if pages := [path for sweep in own if (path := run.page(sweep, [asked.paper]))]:
        shown = pages[0] if len(pages) == 1 else results / f"{asked.paper.key}-*" / pages[0].name
        say(f"{counted(len(pages), 'sweep report')} -> {shown}")
    if asked.publish:
        files = publish.publish(drawn, runs, asked.output, DOCS)
        say(f"published {len(files)} files -> {DOCS}")
        if number := publish.lacking_answers(runs):
            say(f"{counted(number, 'run')} published without what figures need: these figures read whole tables")
    return 2 if missing or left_out or lacking else 0
