# SPDX-License-Identifier: MIT
"""Figure 8: drops against marks with 16 Reno flows; for the notebook's 32 flows only facts, no panel.

According to section 5.4, a queue that drops never exceeds its threshold. A queue that marks overshoots its threshold,
and then marks packets of more flows. These flows slow down together. Theorem 5 allows n^2 / (Delta BDP) + sqrt(n) flows
to lose in an RTT, with the run's Delta.

The published program marks by the depth at departure. The bottom row has marks by the depth on arrival, for comparison.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from analysis.arithmetic.statistics import mean_interval
from analysis.figures import algorithms
from analysis.figures.common import BLACK, GREY, ORANGE, Data, envelope
from analysis.measure.metrics import Window
from analysis.papers import look
from analysis.papers.facts import Fact
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import IS_MARKED, IS_ONE_BDP, bdp
from analysis.results.distributions import signalled
from analysis.theory.many_flows import flows_seeing_loss
from controlplane.policy import EGRESS_ECN, MARKING_MODES

CAPTION = (
    "16 Reno flows whose packets are marked, or dropped, when the queue exceeds one BDP: the queue over time, and "
    "how many flows had a packet dropped or marked in each excursion to that threshold. An excursion ends when no "
    "packet was dropped or marked for a base RTT. ECN: marks at departure, as in the published program."
)
SWEEPS = ("ecn",)
CC, FLOWS = "reno", 16
NEEDS = ("utilization_p01",)  # null in runs without packets
NO_MARKS = "these captures record no marks"  # the published artifact's captures have none
MODES = {"drop": "drop", "departure": "ECN", "arrival": "ECN on arrival"}
AT_DEPARTURE = (pl.col("mode") == EGRESS_ECN) | pl.col("imported")  # imported: captures of the published program
OF_MODE = {"drop": ~IS_MARKED, "departure": IS_MARKED & AT_DEPARTURE, "arrival": IS_MARKED & ~AT_DEPARTURE}
COLORS = {"drop": algorithms.color(CC), "departure": ORANGE, "arrival": GREY}
NOTEBOOK_FLOWS, NOTEBOOK_SPAN_NS = 32, 500_000_000  # "Figure 8 - ecn synchronization trace"
NOTEBOOK = f"notebook ({NOTEBOOK_FLOWS} flows, {NOTEBOOK_SPAN_NS / 1e6:.0f} ms)"
QUANTILES = {"spread": "1st to 99th percentile of the queue", "p01": "1st percentile", "p50": "median",
             "p99": "99th percentile"}  # fmt: skip
SPAN_RTTS = 150  # base RTTs, in the middle of the measurement
COLUMNS = 900


def prepare(runs: PaperRuns) -> Data:
    """For each mode: the queue of the first run, and means over its runs: the distribution of signalled flows and the
    spread of the queue; then the quantiles of the depths that the notebook draws. The notebook computes no quantile.
    """
    modes: dict[str, Data] = {}
    rows, of_notebook, absent = [], [], ""
    for mode, word in MODES.items():
        same: dict[str, Any] = {"needs": NEEDS, "cc": CC}
        selected = runs.select(SWEEPS[0], OF_MODE[mode], IS_ONE_BDP, flows=FLOWS, **same)
        more = runs.select(SWEEPS[0], OF_MODE[mode], IS_ONE_BDP, flows=NOTEBOOK_FLOWS, **same)
        depths = [run.measure("queue of the notebook", dict[str, float], _shown) for run in more]
        for key, name in QUANTILES.items():
            measured = mean_interval(of[key] for of in depths)
            of_notebook.append(Fact(f"{NOTEBOOK}, {word}: {name}", "", None, measured, "packets"))
        if not selected:
            absent = runs.absence(SWEEPS[0], CC)
            rows.append(Fact(f"{word}: flows signalled in an excursion", "", None, None, "flows", absent))
            continue
        queue: Data = selected[0].measure("queue of Figure 8", Data, _queue_of_packets)
        each = [_run(run) for run in selected]
        modes[mode] = {**queue, "line": np.array(queue["line"]), "runs": each}
        for key, fact in (_facts_of_drops(each) if mode == "drop" else FACTS_OF_MARKS).items():
            is_told = key not in ("flows_mean", "all_flows") or all(run["tells"] for run in each)
            measured, why = mean_interval(run[key] for run in each), fact.reason if is_told else NO_MARKS
            headline = fact.headline and mode != "arrival"
            rows.append(fact._replace(what=f"{word}: {fact.what}", measured=measured, reason=why, headline=headline))
    return {"modes": modes, "absent": absent, "facts": rows + of_notebook}


def _queue_of_packets(run: PaperRun) -> Data:
    """The depth on arrival of each packet; times in ms since the span's start."""
    trace = PacketTrace(run)
    middle = (trace.start_ns + trace.end_ns) // 2
    start = max(middle - SPAN_RTTS * trace.rtt_ns // 2, trace.start_ns)
    end = min(start + SPAN_RTTS * trace.rtt_ns, trace.end_ns)
    rows = trace.arrivals(start, end)
    ms = (trace.queue["enqueue_mono_ns"][rows] - start) / 1e6
    span_ms = (end - start) / 1e6
    depth = trace.queue["depth_packets"][rows].astype(np.int64)
    return {"line": envelope(ms, depth, 0, span_ms, COLUMNS), "span_ms": span_ms}


def _shown(run: PaperRun) -> dict[str, float]:
    """The part of a run that the notebook shows: depths on arrival in the first half second of the measurement."""
    trace = PacketTrace(run)
    rows = trace.arrivals(trace.start_ns, min(trace.start_ns + NOTEBOOK_SPAN_NS, trace.end_ns))
    low, middle, high = np.percentile(trace.queue["depth_packets"][rows], (1, 50, 99), method="inverted_cdf")
    return {"spread": float(high - low), "p01": float(low), "p50": float(middle), "p99": float(high)}


def _run(run: PaperRun) -> Data:
    """One run: excursions by number of signalled flows, quantiles of the queue, the flows that Theorem 5 allows."""
    measured = run.measure("excursions by signalled flows", tuple[list[int], list[int]], _excursions)
    flows, excursions = (np.array(each, dtype=np.int64) for each in measured)
    depth, packets = run.distribution("queue_depth_packets")
    upto = np.cumsum(packets) / packets.sum()
    low, high = (float(depth[np.searchsorted(upto, share)]) for share in (0.01, 0.99))
    threshold = run["ecn_threshold_packets"] if run["mode"] == "ecn" else run["buffer_packets"]
    allowed = flows_seeing_loss(bdp(run), run["flows"], run["delta"]) if run["delta"] else None
    tells = run["mode"] not in MARKING_MODES or run["marks"] is not None
    some = excursions.sum() if tells else 0
    return {
        "excursions": np.bincount(flows, weights=excursions, minlength=run["flows"] + 1) / max(some, 1),
        "flows_mean": float(np.average(flows, weights=excursions)) if some else None,
        "all_flows": float(excursions[flows == run["flows"]].sum() / some) if some else None,
        "threshold": threshold, "tells": tells, "allowed": allowed, "low": low, "spread": high - low,
        "overshoot": float(depth[-1] - threshold), "utilization_p01": run["utilization_p01"],
        "losing": run["flows_losing_per_rtt"],
    }  # fmt: skip


def _excursions(run: PaperRun) -> tuple[np.ndarray, np.ndarray]:
    """(numbers of signalled flows, excursions that signalled so many)."""
    trace = PacketTrace(run)
    # Computed anew: earlier versions cut the excursions in distributions.parquet after a fixed time
    flows_signalled = signalled(trace.queue, Window(trace.traffic_ns, trace.start_ns, trace.end_ns, 0), trace.rtt_ns)
    return np.unique(flows_signalled, return_counts=True)


def draw(data: Data) -> look.Figure:
    """Left: the queue of each mode, on one scale. Right: the number of flows that one excursion signalled."""
    figure, axes = look.new_figure(look.PAGE_IN, 4.2, len(MODES), 2, width_ratios=(1.9, 1), sharex="col", sharey="col")
    modes = data["modes"]
    deepest = max((mode["line"][1].max(initial=0) for mode in modes.values()), default=1)
    for (mode, word), (left, right) in zip(MODES.items(), axes, strict=True):
        if mode not in modes:
            look.absent(left, right, text=data["absent"])
            continue
        _draw_queue(left, modes[mode], mode, word)
        _draw_excursions(right, modes[mode]["runs"], mode, word)
        left.set_ylim(0, deepest * 1.1)
        left.set_xlim(0, modes[mode]["span_ms"])
    axes[-1, 0].set_xlabel("time (ms)")
    axes[-1, 1].set_xlabel("flows signalled in one excursion")
    for row in axes:
        row[0].set_ylabel("queue depth\n(packets)")
        row[1].set_ylabel("share of\nexcursions (%)")
    figure.align_ylabels()
    return figure


def _draw_queue(ax: look.Axes, mode: Data, name: str, word: str) -> None:
    threshold = mode["runs"][0]["threshold"]
    ax.plot(*mode["line"], color=COLORS[name], linewidth=0.6)
    ax.axhline(threshold, color=GREY, linewidth=0.7, linestyle=":")
    spread = mean_interval(run["spread"] for run in mode["runs"])
    range_packets = "unknown" if spread is None else spread.text(3)
    ax.set_title(f"{word} at {threshold} packets: 98 % of depths within {range_packets} packets", loc="left", pad=2)


def _draw_excursions(ax: look.Axes, runs: list[Data], name: str, word: str) -> None:
    if not all(run["tells"] for run in runs):
        look.absent(ax, text=f"{word}:\n{NO_MARKS}")
        return
    share = np.mean([run["excursions"] for run in runs], axis=0) * 100
    ax.bar(np.arange(len(share)), share, width=0.8, color=COLORS[name])
    for at in range(1, len(share)):
        each = [run["excursions"][at] * 100 for run in runs]
        if len(each) > 1:
            ax.plot([at, at], [min(each), max(each)], color=BLACK, linewidth=0.7)
    allowed = [run["allowed"] for run in runs if run["allowed"]]
    if allowed:
        ax.axvline(np.mean(allowed), color=BLACK, linewidth=0.8, linestyle="--")
        ax.text(
            np.mean(allowed) + 0.3, 0.97, "Theorem 5\nallows", transform=ax.get_xaxis_transform(), va="top",
            fontsize=look.LABEL_POINTS,
        )  # fmt: skip
    ax.set_xlim(0.3, len(share) - 0.3)
    ax.set_xticks([1, 4, 8, 12, 16] if len(share) == FLOWS + 1 else [1, len(share) - 1])
    mean = mean_interval(run["flows_mean"] for run in runs)
    ax.set_title(f"{word}: mean {mean.value:.1f} of {len(share) - 1}" if mean else f"{word}: none", loc="left", pad=2)


TOGETHER = (
    "every flow grows by a packet an RTT, so before flows notice the first drop or mark, most have a packet too many"
)
UNDERSHOOT = "all recover together, and just before recovery ends PRR has fewer packets in flight than the new window"
BUNCHED = "marks come back an RTT late; flows that are in step add their packets in one part of an RTT"


def _facts_of_drops(runs: list[Data]) -> dict[str, Fact]:
    """Facts of the mode with drops, by their key in a run's data."""
    each = [run["allowed"] for run in runs if run["allowed"]]
    allowed = float(np.mean(each)) if each else None
    return {
        "losing": Fact("flows that lose in a base RTT with a loss", "about sqrt(n)", allowed, None, "flows"),
        "flows_mean": Fact("flows signalled in an excursion", "about sqrt(n)", allowed, None, "flows", TOGETHER),
        "all_flows": Fact("excursions that signal all flows", "", 0.0, None, "of excursions"),
        "spread": Fact("1st to 99th percentile of the queue", "", None, None, "packets", headline=True),
        "low": Fact("1st percentile of the queue", "", None, None, "packets"),
        "overshoot": Fact("deepest queue above the threshold", "never", 0.0, None, "packets"),
        "utilization_p01": Fact("utilization, 1st percentile", "", 1.0, None, ""),
    }


# If all flows halve together, one flow's rule holds: with B = BDP the queue falls to 0, and no further
FACTS_OF_MARKS = {
    "flows_mean": Fact(
        "flows signalled in an excursion", "more than with drops", float(FLOWS), None, "flows", TOGETHER
    ),
    "all_flows": Fact("excursions that signal all flows", "", 1.0, None, "of excursions"),
    "spread": Fact("1st to 99th percentile of the queue", "fluctuates much more", None, None, "packets", headline=True),
    "low": Fact("1st percentile of the queue", "", 0.0, None, "packets"),
    "overshoot": Fact(
        "deepest queue above the threshold", "regularly overshot", float(FLOWS), None, "packets", BUNCHED
    ),
    "utilization_p01": Fact("utilization, 1st percentile", "", 1.0, None, "", UNDERSHOOT),
}


FIGURE = PaperFigure("figure_08", CAPTION, SWEEPS, prepare, draw)
