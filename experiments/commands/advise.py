# SPDX-License-Identifier: MIT
"""The command `advise`. MEASURE=1 first measures the least buffer, by a search in virtual time (sweep/) on the
operator's link. If that search would take too long, it runs on a scaled link: the result is carried over to the
operator's link with the error of scaling that our runs show (analysis/advise/estimates.py), and advise_link.py runs
the operator's link, in the time that is left of BUDGET.

BUDGET is time on the idle reference machine, so the machine's load does not decide what is measured. A scaled link
keeps the RTT, the MTU and, as far as possible, the number of flows. First the rate is lowered, at most until a flow's
share of the BDP is LEAST_WINDOW packets. Then the rate and the number of flows are lowered together.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from analysis.advise import command
from analysis.advise.parameters import DEFAULT_BUDGET_S, LEAST_BUDGET_S, MOST_BUDGET_S, UNKNOWN, Question
from analysis.advise.parameters import Asked as AdviseKeys
from analysis.wording.formats import duration, si
from experiments.plan import cost
from lib import units
from lib.errors import BadValue, Interrupted, RunError
from lib.frames import ETHERNET_BYTES
from lib.keys import Wrong

if TYPE_CHECKING:
    from analysis.advise.brief import Answer, Measurement
    from analysis.advise.link import Link
    from experiments.sweep.spec import Sweep

# The share of BUDGET for one run of the search. A search has about 15 runs (7 steps, 8 more seeds). Most runs depend on
# earlier runs, so on two processors a search takes as long as 10 runs in sequence: a third of BUDGET. If seeds
# disagree, the search can take twice as long (28 runs were observed).
RUN_SHARE = 1 / 30
SEEDS = 5  # runs of each bound; with fewer, the interval of their mean is too wide to decide most bounds
LEAST_WINDOW = 10.0  # BDP/n in packets: with smaller windows timeouts replace fast recovery
WIDTH = 0.25  # most width of the interval that holds the least buffer, relative to the interval's lower end
LOW, HIGH = 0.01, 1.5  # BDP: the range of the search
LEAST_BDP, MOST_FLOWS = 4.0, 10_000
# Of a scaled link: fewer packets in few windows of less than a packet say nothing about many.
SMALLEST_BDP, SMALLEST_FLOWS = 20.0, 25
LEAST_RTT_NS, MOST_RTT_NS = 100_000, 10 * 10**9
LEAST_MTU, MOST_MTU = 576, 9000
MOST_RATE_BPS = 100 * 10**9


class Scaled(NamedTuple):
    """The measured link: a share of the rate and of the flows of the operator's link."""

    rate_bps: int
    flows: int
    bdp: float
    warmup_rtts: int
    duration_rtts: int

    @property
    def window(self) -> float:
        return self.bdp / self.flows


class Asked(AdviseKeys):
    def check(self, wrong: Wrong) -> None:
        super().check(wrong)
        if self.json_ and self.from_:
            wrong("json", "cannot show the table of FROM; allowed: JSON=1 without FROM")
        if not self.measure:
            for name in ("results", "budget"):
                if name in self.model_fields_set:
                    wrong(name, "has no meaning here; allowed: with MEASURE=1")
            return
        if self.json_:
            wrong("json", "cannot show a measurement; allowed: JSON=1 without MEASURE=1")
        for name, problem in unmeasurable(self).items():
            wrong(name, problem)


def run(asked: Asked) -> int:
    """Returns the exit status. Raises SpecError, RunError, Interrupted."""
    if not asked.measure:
        return command.run(asked, _check)
    return command.run(
        asked, _check_measured, lambda answer: measure(answer, asked.results.absolute(), asked.budget.ns / 1e9)
    )


def _check(question: Question, measured: Measurement | None) -> str:
    """The line with a command that checks the answer by a measurement, which is not refused."""
    from analysis.advise.brief import words_of

    for name, problem in unmeasurable(question).items():
        value = str(getattr(question, name) or UNKNOWN[0])
        return f"Check: no command measures this link, because {BadValue(name.upper(), value, problem)}."
    least_s = run_cost_s(scaled(question.link, RUN_SHARE * LEAST_BUDGET_S), question.link) / RUN_SHARE
    if least_s > MOST_BUDGET_S:
        return f"Check: no command measures this link, because its RTT makes a search longer than {MOST_BUDGET_S} s."
    budget = f" BUDGET={math.ceil(least_s)}s" if least_s > DEFAULT_BUDGET_S else ""
    return (
        f"Check it: make advise {words_of(question)} MEASURE=1{budget} (in virtual time; it says first how many "
        f"minutes it takes{_scaled_text(question.link)})."
    )


def _scaled_text(link: Link) -> str:
    if link.flows <= MOST_FLOWS and link.rate_bps <= MOST_RATE_BPS:
        return ""
    return f"; on a scaled link, because a run has at most {MOST_FLOWS} flows and {si(MOST_RATE_BPS, 'b/s')}"


def _check_measured(question: Question, measured: Measurement | None) -> str:
    if measured is None or measured.interval is None or not measured.carried_over:
        return "Check: measured as above; other values of UTIL or FLOWS need a measurement of their own."
    from analysis.advise.brief import CHECK_WORDS, upper, words

    if measured.refused:
        return f"Check: this link itself cannot be run here: {measured.refused}."
    return (
        f"Check it on the link itself: make experiment CLOCK=virtual {words(question.link)} "
        f"BUF={upper(measured.interval)}p {CHECK_WORDS}{' YES=1' * measured.needs_yes} (it announces its time)."
    )


def unmeasurable(asked: Question) -> dict[str, str]:
    """The problem of each key whose value the rules accept and a run refuses."""
    link = asked.link
    problems = {
        name: f"cannot be measured; allowed with MEASURE=1: {form}"
        for name, value, low, high, form in (
            ("rtt", link.rtt_ns, LEAST_RTT_NS, MOST_RTT_NS, "100us to 10s"),
            ("mtu", link.mtu_bytes, LEAST_MTU, MOST_MTU, f"{LEAST_MTU} to {MOST_MTU}"),
        )
        if not low <= value <= high
    }
    if link.bdp < LEAST_BDP and not problems:
        problems["rate"] = f"x RTT is {link.bdp:.2g} packets; allowed with MEASURE=1: {LEAST_BDP:g} or more"
    if asked.flows is None:
        problems["flows"] = "cannot be measured; allowed with MEASURE=1: a number"
    only_long = "is not measured: the search has only long flows; allowed: without MEASURE=1"
    return problems | {
        name: only_long
        for name in ("load", "flow_sizes", "window", "input", "losing")
        if getattr(asked, name) is not None
    }


def scaled(link: Link, run_s: float) -> Scaled:
    """The largest link whose run takes at most `run_s` on the idle reference machine. Rate and flows are lowered in the
    order that the head of this file gives. If even the smallest link takes longer, the result is the smallest link.
    """
    bdp, flows, rate_bps = link.bdp, link.flows, link.rate_bps

    def of(share_bdp: float, n: int) -> Scaled:
        warmup, duration = _rtts(share_bdp / n)
        return Scaled(max(1000 * round(rate_bps * share_bdp / bdp / 1000), 64_000), n, share_bdp, warmup, duration)

    def fits(share_bdp: float, n: int) -> bool:
        return run_cost_s(of(share_bdp, n), link) <= run_s and n <= MOST_FLOWS

    window = bdp / flows
    if fits(bdp, flows) and rate_bps <= MOST_RATE_BPS:
        return of(bdp, flows)
    least = min(window, LEAST_WINDOW)
    if fits(least * flows, flows):  # a lower rate is enough: the largest that fits, by bisection
        low, high = least, window
        for _ in range(50):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if fits(middle * flows, flows) else (low, middle)
        return of(low * flows, flows)
    few = min(math.ceil(SMALLEST_BDP / least), SMALLEST_FLOWS, flows)
    while few < flows and fits(least * (few + 1), few + 1):
        few += 1
    return of(least * few, few)


def run_cost_s(share: Scaled, link: Link) -> float:
    """The expected time of a run of the search on the idle reference machine."""
    rtts = share.warmup_rtts + share.duration_rtts
    packets, virtual_s = share.bdp * rtts, rtts * link.rtt_ns / 1e9
    traffic_s = cost.driver_traffic_s(packets, link.mtu_bytes + ETHERNET_BYTES, share.flows, virtual_s)
    return cost.SETUP_S + traffic_s + cost.SUMMARY_S + cost.SUMMARY_PACKET_S * packets


def _rtts(window: float) -> tuple[int, int]:
    """Warm-up and duration in RTTs: several sawteeth, each of about `window` RTTs or less."""
    return 100 + math.ceil(2 * window), max(200, math.ceil(4 * window))


def measure(before: Answer, directory: Path, budget_s: float) -> Measurement:
    """Searches for the least buffer of the link, or of a scaled link. After a search on a scaled link, runs the link
    itself with the result. `before` is the answer without the measurement. Raises SpecError, RunError, Interrupted.
    """
    import polars

    from experiments.commands.advise_link import Limits, try_on_link
    from experiments.machine import machine_speed
    from experiments.sweep import run as sweep_run
    from experiments.sweep.command import prober
    from lib.terminal import say
    from runs import run_table
    from runs.stored_sweep import SEARCHED

    question, link = before.question, before.question.link
    share = scaled(link, RUN_SHARE * budget_s)
    sweep = search(question, share)
    probe = prober(build=True)
    options = sweep_run.Options(directory)
    search_s = sweep_run.missing(sweep, probe, options, run_table.read(directory).clear()).duration_s
    if search_s > budget_s:
        raise RunError(
            f"the search needs about {duration(search_s)} of an idle machine, and BUDGET is {duration(budget_s)}; "
            f"allowed: BUDGET={math.ceil(search_s)}s or more"
        )
    limits = None if is_whole(question, share) else Limits.of(link, probe, budget_s - search_s)
    left_s = sweep_run.missing(sweep, probe, options, run_table.read(directory)).duration_s
    slow = machine_speed.slowness(len(os.sched_getaffinity(0)))
    expected = duration(slow * (left_s + (limits.most_s if limits else 0)))
    say(
        f"Measuring, about {expected}{machine_speed.explained(slow)}, longer if seeds disagree: a bisection with one "
        f"seed, then {SEEDS} seeds of each of the two bounds of the answer, "
        f"{f'then {limits.text}' if limits else 'all on your link'}; Ctrl-C stops it, the same command resumes it."
    )
    status = sweep_run.run(sweep, probe, options, with_page=False)
    if status >= 128:
        raise Interrupted(status - 128)
    table = directory / sweep.name / SEARCHED
    if status == 1 or not table.exists():
        raise RunError(f"{directory / sweep.name}: no run is valid, so nothing was measured")
    (row,) = polars.read_parquet(table).iter_rows(named=True)
    measurement = answer(before, share, row)
    if limits is None or measurement.interval is None:
        return measurement
    return try_on_link(link, measurement, limits, directory, probe)


def search(question: Question, share: Scaled) -> Sweep:
    """The search as a sweep."""
    from experiments.sweep.spec import Search, Sweep

    link = question.link
    low, high = (max(1, round(part * share.bdp)) for part in (LOW, HIGH))
    base = {
        "clock": "virtual", "cc": link.cc, "flows": str(share.flows), "rate": units.show(share.rate_bps, "rate"),
        "rtt": units.show(link.rtt_ns, "time"), "mtu": str(link.mtu_bytes),
        "warmup": f"{share.warmup_rtts}rtt", "duration": f"{share.duration_rtts}rtt",
    }  # fmt: skip
    name = "-".join(["advise", link.cc, f"n{share.flows}", base["rate"], base["rtt"], f"util{link.utilization:g}"])
    return Sweep(
        name=name.replace(".", "_"), about="the least buffer of a link (advise MEASURE=1)", keep="summary", reps=1,
        seed=1, base=base, points=({},), file="MEASURE=1",
        search=Search(
            criterion="utilization", least=link.utilization, low=f"{low}p", high=f"{high}p", width=WIDTH,
            most_reps=SEEDS, edge_reps=SEEDS,
        ),
    )  # fmt: skip


def is_whole(question: Question, share: Scaled) -> bool:
    """Whether the measured link is the operator's link."""
    return (share.rate_bps, share.flows) == (question.link.rate_bps, question.link.flows)


def answer(before: Answer, share: Scaled, row: dict[str, Any]) -> Measurement:
    """The answer from a search's row of least_buffer.parquet."""
    from analysis.advise import brief
    from analysis.advise.estimates import Estimate, Least

    question, link = before.question, before.question.link
    low, high, runs = row["low_packets"], row["high_packets"], row["runs"]
    keep = f"keep the 1st percentile of utilization over 10 RTTs at {100 * link.utilization:g} % or more"
    if high is None and is_whole(question, share):
        text = f"Measured: even {low} packets ({low / share.bdp:.3g} BDP) were not enough to {keep} in {runs} runs: "
        return brief.Measurement([f"{text}ask for a lower UTIL."], None, False)
    tried = high or low
    span = f"more than {low}" if low else ""
    span += f"{' and ' * bool(low)}at most {high}" if high else ""
    size = f"{share.flows} {link.cc} flows at {si(share.rate_bps, 'b/s')}, RTT {units.show(link.rtt_ns, 'time')}"
    how = f"{runs} runs; the bounds with {SEEDS} seeds each{'; ' * bool(row['note'])}{row['note']}"
    if is_whole(question, share):
        text = f"Measured on your link, not scaled: {span} packets {keep} ({how})."
        return brief.Measurement([text], Estimate(high, low or 0, high), False)
    interval = brief.carried_over(before, Least(link.cc, share.flows, share.bdp, low or 0, high or math.inf))
    carried = [
        f"Measured, scaled to {size} (a window of {share.window:.3g} packets per flow; yours: "
        f"{link.fair_window:.3g}): {span} packets, {tried / share.bdp:.3g} BDP, {keep} ({how}).",
        f"Carried over to your link, with the error that scaling has among our own links: "
        f"{max(math.floor(interval.low), 1)} to {brief.upper(interval)} packets, most likely {round(interval.value)}.",
    ]
    return brief.Measurement(carried, interval, True)
