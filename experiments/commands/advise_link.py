# SPDX-License-Identifier: MIT
"""The last step of advise MEASURE=1 if the search ran on a scaled link: runs of the link itself. The first run has the
most likely least buffer, the others the upper end of its interval and the BDP, if these are larger. Runs are done in
parallel, one per processor. The next runs start only if no buffer so far is enough. All runs together fit into the rest
of BUDGET.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars

from analysis.advise.brief import CHECK_WORDS, Measurement, upper, words
from analysis.advise.estimates import Estimate
from analysis.wording.formats import duration, round_up, si
from experiments.machine.host import Host
from experiments.plan import cost
from experiments.run import cost_question
from experiments.spec import disk
from experiments.sweep import run as sweep_run
from experiments.sweep.spec import Sweep
from lib import units
from lib.errors import Interrupted, RunError, SpecError

if TYPE_CHECKING:
    from analysis.advise.link import Link

KEPT = "summary"  # the files that stay of a run after its analysis
BUDGET_OVER_LEFT = 1.5  # BUDGET divided by the part that the search leaves
MOST_RUNS = 3  # the most likely buffer, the upper end, the BDP


class Limits(NamedTuple):
    """The most runs of the link, how many of them run at once, and their time on the idle reference machine. `text`
    announces the runs; for 0 runs `text` gives the reason. `refused`: why no run is possible; `needs_yes`: whether an
    experiment on the link needs YES=1.
    """

    runs: int
    at_once: int
    most_s: float
    text: str
    refused: str = ""
    needs_yes: bool = False

    @classmethod
    def of(cls, link: Link, probe: Callable[[str], Host], left_s: float) -> Limits:
        """`left_s` is the part of BUDGET that the search leaves."""
        from experiments.spec.resolve import resolve

        given = {key: value for key, value in base(link).items() if key != "name"}
        try:
            spec = resolve({**given, "buf": "1bdp"}, probe("virtual"))
        except SpecError as failure:
            refused = str(failure.errors[0])
            return cls(0, 1, 0.0, f"no run of your link, which cannot be run: {refused}", refused)
        run_s, size = cost.repetition_s(spec, keep=KEPT), disk.estimate_bytes(spec)
        needs_yes = cost.repetition_s(spec) > cost_question.ASK_S or size > cost_question.ASK_BYTES
        at_once = min(len(os.sched_getaffinity(0)), MOST_RUNS)
        rounds = int(left_s / run_s)
        if not rounds or size > cost_question.ASK_BYTES:
            takes = f"about {duration(run_s)} of an idle machine and {si(float(size), 'B')} of disk"
            more = "" if rounds else f": BUDGET={math.ceil(BUDGET_OVER_LEFT * run_s)}s has the time for it"
            return cls(0, 1, 0.0, f"no run of your link itself, which would take {takes}{more}", "", needs_yes)
        runs = min(rounds * at_once, MOST_RUNS)
        return cls(runs, at_once, -(-runs // at_once) * run_s, f"up to {runs} runs of your link itself", "", needs_yes)


def base(link: Link) -> dict[str, str]:
    """The parameters of an experiment on the link, without a buffer."""
    given = dict(word.split("=", 1) for word in f"{words(link)} {CHECK_WORDS}".split())
    return {"clock": "virtual", **{key.lower(): value for key, value in given.items()}}


def try_on_link(
    link: Link, measurement: Measurement, limits: Limits, results: Path, probe: Callable[[str], Host]
) -> Measurement:
    """The measurement, extended by the runs of the link. Raises Interrupted."""
    assert measurement.interval is not None
    lines, interval = list(measurement.lines), measurement.interval
    measurement = measurement._replace(refused=limits.refused, needs_yes=limits.needs_yes)
    if not limits.runs:
        return measurement._replace(lines=[*lines, f"There is {limits.text}: the answer is not measured."])
    first = max(math.ceil(interval.value), 1)
    tried = [first, *(each for each in sorted({upper(interval), round_up(link.bdp)}) if each > first)][: limits.runs]
    too_small = 0
    for start in range(0, len(tried), limits.at_once):
        together = tried[start : start + limits.at_once]
        try:
            used = _utilizations(link, together, results, probe)
        except (RunError, SpecError) as problem:
            text = problem.lines[0] if isinstance(problem, RunError) else str(problem.errors[0])
            return measurement._replace(lines=[*lines, f"Your link itself could not be run: {text}"])
        lines += [_said(link, packets, used[packets]) for packets in together]
        for packets in together:
            if (of := used[packets]) is not None and of >= link.utilization:
                return measurement._replace(
                    lines=lines, interval=Estimate(packets, too_small, packets), carried_over=False
                )
            too_small = packets if of is not None else too_small
    lines.append(
        "No buffer was enough in a run of your link: take more than the buffer below, or ask for a lower UTIL."
    )
    most = max(upper(interval), too_small)
    return measurement._replace(lines=lines, interval=Estimate(most, too_small, most))


def _said(link: Link, packets: int, used: float | None) -> str:
    if used is None:
        return f"A run of your link with {packets}p is not valid."
    return (
        f"A run of your link with {packets}p had a 1st percentile of utilization over 10 RTTs of {100 * used:.4g} % "
        f"({CHECK_WORDS}, one seed): {'enough' if used >= link.utilization else 'not enough'}."
    )


def _utilizations(
    link: Link, buffers: list[int], results: Path, probe: Callable[[str], Host]
) -> dict[int, float | None]:
    """The 1st percentile of utilization over 10 RTTs in a run of the link, by buffer in packets; None if the run is not
    valid. Raises SpecError, RunError, Interrupted.
    """
    rate, rtt = units.show(link.rate_bps, "rate"), units.show(link.rtt_ns, "time")
    name = "-".join(["advise-link", link.cc, f"n{link.flows}", rate, rtt]).replace(".", "_")
    sweep = Sweep(
        name=name, about="runs of the link itself (advise MEASURE=1)", keep=KEPT, reps=1, seed=1,
        base=dict(base(link)), points=tuple({"buf": f"{packets}p"} for packets in buffers), search=None,
        file="MEASURE=1",
    )  # fmt: skip
    status = sweep_run.run(sweep, probe, sweep_run.Options(results), with_page=False)
    if status >= 128:
        raise Interrupted(status - 128)
    return {packets: _stored(results, name, packets) for packets in buffers}


def _stored(results: Path, name: str, packets: int) -> float | None:
    from runs import run_table

    is_asked = (polars.col("sweep") == name) & (polars.col("buffer_packets") == packets) & polars.col("valid")
    rows: list[Any] = run_table.read(results).filter(is_asked)["utilization_p01"].to_list()
    return rows[0] if rows else None
