# SPDX-License-Identifier: MIT
"""`make figures PAPER=spang2021`: runs what is missing of the paper's sweeps, then draws. Stopped at any time, the same
command goes on.

    python -m experiments.figures PAPER=NAME [FIGURE=5a] [SMOKE=1] [RESULTS=DIRECTORY] [JOBS=N] [ATTEMPTS=N]
    python -m experiments.figures ... CLOCK=real     runs the sweeps' real-time versions instead, which the figure that
                                                     compares the clocks is drawn from
    python -m experiments.figures ... DRAW=only      draws from what is stored, and runs nothing
    python -m experiments.figures ... PUBLISH=1      and copies figures, page and run table to docs/results/

Exit status: 0 drawn from valid runs alone; 1 nothing drawn; 2 drawn, but some runs are missing or not valid (the
figures say which); 128 + the signal's number when it was stopped.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from experiments import host
from experiments.sweep import needs, run, spec
from experiments.sweep.__main__ import prober, whole
from lib import owner
from lib.errors import BadValue, InputError, RunError, SpecError, fail
from lib.terminal import complain, say
from lib.words import made, read_words
from runs import run_table

PAPERS = ("spang2021",)
SPECS = host.CHECKOUT / "experiments/specs"
DOCS = host.CHECKOUT / "docs/results"
KEYS = ("paper", "figure", "smoke", "results", "jobs", "attempts", "clock", "draw", "publish")
STOPPED = 128


class Asked(NamedTuple):
    """What the words say."""

    paper: str
    figures: tuple[str, ...]
    smoke: bool
    options: run.Options
    only_draw: bool
    publish: bool
    real: bool  # run what is in real time

    @property
    def output(self) -> Path:
        return self.options.results / "figures" / (self.paper + ("-smoke" if self.smoke else ""))


def main(arguments: list[str]) -> int:
    """Returns the exit status."""
    if {"-h", "--help", "help"} & set(arguments):
        print(__doc__)
        return 0
    try:
        asked = read(made() if arguments == ["--make"] else arguments)
        status = 0 if asked.only_draw else measure(asked)
        return status if status >= STOPPED else max(status, draw(asked))
    except (SpecError, RunError, InputError, OSError) as error:
        lines = error.lines() if isinstance(error, SpecError) else getattr(error, "lines", [str(error)])
        return fail(lines)
    except KeyboardInterrupt:
        return STOPPED + 2


def read(words: list[str]) -> Asked:
    """Raises SpecError with all that is wrong."""
    from analysis.papers import draw as paper

    given, options, errors = read_words(words)
    given |= options
    for key in sorted(set(given) - set(KEYS)):
        allowed = ", ".join(name.upper() for name in KEYS)
        errors.append(BadValue(key.upper(), None, f"is no word of make figures; allowed: {allowed}"))
    name = str(given.get("paper", ""))
    if name not in PAPERS:
        errors.append(BadValue("PAPER", name or None, f"is not known; allowed: {', '.join(PAPERS)}"))
    draws, clock = given.get("draw", ""), given.get("clock", "virtual")
    if draws not in ("", "only"):
        errors.append(BadValue("DRAW", draws, "is not known; allowed: only"))
    if clock not in ("virtual", "real"):
        errors.append(BadValue("CLOCK", clock, "is not known; allowed: virtual, real"))
    figures = paper.NAMES
    try:
        figures = paper.choose(str(given["figure"]) if "figure" in given else None)
    except ValueError as error:
        errors.append(BadValue("FIGURE", given["figure"], str(error)))
    numbers = {key: whole(given, key, errors, most) for key, most in LIMITS.items()}
    if numbers["publish"] and "figure" in given:
        errors.append(BadValue("PUBLISH", "1", "publishes all figures; leave FIGURE out"))
    if clock == "real" and figures not in (paper.NAMES, (paper.CLOCKS,)):
        problem = f"is drawn from runs in virtual time; with CLOCK=real leave FIGURE out, or say {paper.CLOCKS}"
        errors.append(BadValue("FIGURE", given["figure"], problem))
    results = Path(str(given.get("results") or host.CHECKOUT / "results")).absolute()
    if draws == "only" and not results.is_dir():
        errors.append(BadValue("RESULTS", None, f"{results} is no directory; allowed with DRAW=only: one with runs"))
    if errors:
        raise SpecError(errors)
    chosen = run.Options(results, numbers["jobs"], numbers["attempts"])
    publish = bool(numbers["publish"])
    return Asked(name, figures, bool(numbers["smoke"]), chosen, draws == "only", publish, clock == "real")


LIMITS = {"smoke": 1, "publish": 1, "jobs": 1024, "attempts": 100}


def measure(asked: Asked, probe: Callable[[str], host.Host] | None = None) -> int:
    """Runs what is missing: the first repetitions of all sweeps before the second ones, and of these the searches last,
    which take longest: a set that was stopped early has most figures. Returns the worst status of a sweep; one that
    cannot be run keeps no other from it.
    """
    from analysis.papers import draw as paper

    names, words = ((paper.CLOCKS,), {"clock": "real"}) if asked.real else (asked.figures, {})
    files = [SPECS / asked.paper / f"{stem}.yaml" for stem in paper.sweeps(names)]
    whole_sweeps = sorted((spec.read(file, words, asked.smoke) for file in files), key=lambda one: bool(one.search))
    probe = probe or prober(build=True)
    say_what_is_missing(whole_sweeps, probe, asked.options)
    worst, refused = 0, {}
    for repetitions in range(1, max(sweep.reps for sweep in whole_sweeps) + 1):
        for sweep in whole_sweeps:
            if repetitions > sweep.reps or sweep.name in refused:
                continue
            say(f"repetition {repetitions} of {sweep.reps}: {sweep.about}")
            try:
                status = run.run(replace(sweep, reps=repetitions), probe, asked.options)
            except RunError as error:
                refused[sweep.name] = error.lines
                continue
            if status >= STOPPED:
                return status
            worst = max(worst, status)
    for lines in refused.values():
        fail(lines)
    return max(worst, 2) if refused else worst


def say_what_is_missing(sweeps: list[spec.Sweep], probe: Callable[[str], host.Host], options: run.Options) -> None:
    """Of those that can be run; what keeps one from it is said when its turn comes."""
    missing, table = [], run_table.read(options.results)
    for sweep in sweeps:
        with contextlib.suppress(RunError):
            missing.append(run.missing(sweep, probe, options, table))
    if missing:
        say(needs.headline_of_set(missing, options.results))


def draw(asked: Asked) -> int:
    """Draws, says where, and what was left out."""
    from analysis.papers import draw as paper
    from analysis.papers import publish

    run.claim(asked.output.parent)
    run.claim(asked.output)
    drawn = paper.draw(asked.options.results, asked.output, asked.figures, asked.smoke)
    owner.give(asked.output)
    without = [figure.name for figure in drawn if not figure.used]
    missing = set(without) - ({paper.CLOCKS} if not asked.real and len(drawn) > 1 else set())  # needs another command
    left_out = {run_name for figure in drawn for run_name, _ in figure.left_out}
    say(f"{len(drawn)} figures from {len({name for f in drawn for name in f.used})} runs -> {asked.output}")
    if without:
        complain(f"no valid run for {', '.join(without)}")
    if left_out:
        complain(f"{len(left_out)} runs were left out, not valid or telling too little; the figures list them")
    for name in sorted({name.split("/")[0] for figure in drawn for name in figure.used}):
        if (asked.options.results / name).is_dir():  # imported runs are of no sweep
            run.page(asked.options.results / name)
    if asked.publish:
        files = publish.publish(drawn, asked.options.results, asked.output, DOCS, asked.smoke)
        say(f"published {len(files)} files -> {DOCS}")
    return 2 if missing or left_out else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
