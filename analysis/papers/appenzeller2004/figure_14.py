# SPDX-License-Identifier: MIT
"""Figure 14: transfer times of short flows beside long ones, with B = BDP/sqrt(n) and with B = BDP."""

from __future__ import annotations

from analysis.figures.common import BLACK, BLUE, ORANGE, Data
from analysis.papers import look
from analysis.papers.appenzeller2004 import mixes, short_flows
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.series import grouped, nearest
from analysis.papers.stored_runs import StoredRun, StoredRuns
from analysis.statistics import Interval, mean_interval
from analysis.theory.many_flows import sqrt_rule

CAPTION = (
    "mean transfer time of short flows of 14 packets beside n long flows, with a buffer of BDP/√n and with one of BDP: "
    "the smaller buffer makes short flows faster."
)


def prepare(runs: StoredRuns) -> Data:
    """Transfer times and mean queues by flows and kind of buffer."""
    times: dict[int, Data] = {}
    for flows, of in grouped(runs.select(mixes.STEM), "flows").items():
        buffers = grouped(of, "buffer_packets")
        rule = sqrt_rule(mixes.BDP_PACKETS, flows)
        small, large = nearest(buffers, rule), max(buffers)
        if large < mixes.BDP_PACKETS * 0.9 or small > rule * 1.2:  # no run has a buffer near the BDP, or near the rule
            continue
        times[flows] = {"small": _estimates(buffers[small]), "large": _estimates(buffers[large])}
    return {"provenance": runs.provenance(), "times": times}


def _estimates(runs: list[StoredRun]) -> Data:
    packets_per_s = runs[0]["rate_bps"] / 8 / runs[0].experiment.wire_bytes
    return {
        "transfer_s": mean_interval(short_flows.transfer_s(run) for run in runs),
        "waiting_s": mean_interval(
            run.value("queue_depth_packets", "time_mean") / packets_per_s for run in runs
        ),
        "utilization": mean_interval(run["utilization_mean"] for run in runs),
    }  # fmt: skip


def draw(data: Data) -> look.Figure:
    """Two bars for each number of flows."""
    figure, ax = look.new_panel(look.COLUMN_IN, 2.4)
    times = data["times"]
    if not times:
        return look.absent(ax, text="no valid run with a buffer of a BDP")
    for at, (kind, text, shade) in enumerate((("large", "B = BDP", ORANGE), ("small", "B = BDP/√n", BLUE))):
        values = [1e3 * each[kind]["transfer_s"].value for each in times.values()]
        ax.bar([x + 0.4 * at - 0.2 for x in range(len(times))], values, 0.38, color=shade, label=text)
        for n, each in data.get("ns3", {}).get("times", {}).items():
            if n in times:
                x = list(times).index(n) + 0.4 * at - 0.2
                look.ns3_points(ax, [x], [_in_ms(each[kind]["transfer_s"])], BLACK)
    ax.set_xticks(range(len(times)), [str(n) for n in times])
    ax.set_xlabel("long flows n")
    ax.set_ylabel("mean transfer time (ms)")
    ax.legend(loc="lower right", framealpha=0.9)
    return figure


def _in_ms(seconds: Interval) -> Interval:
    low, high = (None if end is None else 1e3 * end for end in (seconds.low, seconds.high))
    return Interval(1e3 * seconds.value, low, high, seconds.runs)


def facts(data: Data) -> list[Fact]:
    """Measured ratios of transfer times beside predicted ratios, in which each round trip takes the RTT plus the mean
    queueing delay; then transfer times and utilizations.
    """
    rows = []
    for n, each in data["times"].items():
        small, large = each["small"], each["large"]
        predicted = (mixes.RTT_S + small["waiting_s"].value) / (mixes.RTT_S + large["waiting_s"].value)
        ratio = small["transfer_s"].value / large["transfer_s"].value
        what = f"n = {n}: transfer time with BDP/√n over that with BDP"
        rows.append(Fact(what, "shorter", predicted, Interval(ratio, None, None, 1), "", headline=True))
        for text, of in (("BDP/√n", small), ("BDP", large)):
            rows.append(Fact(f"n = {n}, {text}: transfer time", "", None, of["transfer_s"], "s"))
            rows.append(Fact(f"n = {n}, {text}: utilization", "", None, of["utilization"], ""))
    return rows


FIGURE = PaperFigure("figure_14", CAPTION, (mixes.STEM,), prepare, draw, facts)
