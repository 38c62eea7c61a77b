# SPDX-License-Identifier: MIT
"""Figures 4, 5 and 6: window and queue of one flow over time beside the fluid model, with B equal to, below and above
the BDP.
"""

from __future__ import annotations

from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

from analysis.figures.common import BLACK, Data
from analysis.papers import look
from analysis.papers.appenzeller2004 import sawteeth, two_panels
from analysis.papers.appenzeller2004.profiles import NAMES, PAPER, PROFILES
from analysis.papers.facts import Fact, absent, exactly
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.paper import PaperFigure
from analysis.papers.stored_runs import StoredRun, StoredRuns

SPAN_S = 92.0  # longest drawn time; the axes of the paper's Figure 5 span 90 s


def figure(name: str, buffer_packets: int, caption: str, printed: dict[str, str]) -> PaperFigure:
    """The figure of one buffer. `printed` maps a name in `facts` ("period", "empty") to the paper's words."""
    return PaperFigure(
        name, caption, (sawteeth.STEM,), partial(prepare, buffer_packets), draw, partial(facts, printed=printed)
    )


def prepare(buffer_packets: int, runs: StoredRuns) -> Data:
    """The curves of both senders from a loss on, and all sawteeth of each."""
    senders = {profile: _sender(runs, buffer_packets, profile) for profile in PROFILES}
    return {"provenance": runs.provenance(), "senders": senders, "buffer": buffer_packets}


def _sender(runs: StoredRuns, buffer_packets: int, profile: str) -> Data:
    trace = sawteeth.trace_of(runs, buffer_packets, profile)
    if trace is None:
        return {"absent": f"{NAMES[profile]}: no valid run"}
    measured = trace.run.measure("sawteeth", Teeth, _teeth)
    if not measured.teeth or measured.curves is None:
        return {"absent": f"{NAMES[profile]}: no whole sawtooth in the measurement window"}
    span_s = _span_ns(trace, measured.teeth[0].start_ns) / 1e9
    return measured._asdict() | {
        "model": sawteeth.model(trace, trace.longest_rtt_ns / 1e9, span_s),
        "utilization": trace.run["utilization_mean"],
        "bdp": trace.bdp,
        "end_s": span_s,
    }


class Teeth(NamedTuple):
    """The sawteeth of one flow, the curves from the first of them on, and the share of time without a queue."""

    teeth: list[sawteeth.Sawtooth]
    curves: sawteeth.Curves | None
    without_queue: float


def _teeth(run: StoredRun) -> Teeth:
    """Reads tables of the run."""
    trace = PacketTrace(run)
    teeth = sawteeth.sawteeth(trace)
    start_ns = teeth[0].start_ns if teeth else 0
    curves = sawteeth.curves(trace, start_ns, start_ns + _span_ns(trace, start_ns)) if teeth else None
    return Teeth(teeth, curves, sawteeth.share_without_queue(trace))


def _span_ns(trace: PacketTrace, start_ns: int) -> int:
    """The drawn time from a loss on."""
    return min(trace.end_ns - start_ns, round(SPAN_S * 1e9))


def draw(data: Data) -> look.Figure:
    """Windows above, queues beneath. The model starts one longest RTT after the loss, when the sender learns of it."""
    legend: dict[str, Any] = {"loc": "lower right", "ncols": 3}
    figure, upper, lower, sender = two_panels.draw(data, look.PAGE_IN, legend, height_ratios=(1.3, 1))
    if sender is None:
        return figure
    fluid = sender["model"]
    upper.plot(fluid["times_s"], fluid["window"], "--", color=BLACK, linewidth=0.7, label="fluid model")
    lower.plot(fluid["times_s"], fluid["queue"], "--", color=BLACK, linewidth=0.7)
    upper.legend(frameon=False, **legend)
    lower.set_xlim(0, max(sender["end_s"] for sender in look.split(data["senders"])[0].values()))
    lower.set_xlabel("time since a loss (s)")
    return figure


def facts(data: Data, printed: dict[str, str]) -> list[Fact]:
    """Means over a run's sawteeth, nearly equal ones. Utilization and the time without a queue are of the window."""
    rows = []
    for profile, sender in data["senders"].items():
        if "absent" in sender:
            rows.append(absent(sender["absent"]))
            continue
        fluid, teeth, who = sender["model"], sender["teeth"], NAMES[profile]
        shallowest = max(fluid["lowest"] - sender["bdp"], 0.0)
        pairs = (
            ("period", fluid["period_s"], [tooth.period_s for tooth in teeth], "s"),
            ("largest window", fluid["highest"], [tooth.peak_packets for tooth in teeth], "packets"),
            ("least window", fluid["lowest"], [tooth.trough_packets for tooth in teeth], "packets"),
            ("least queue depth", shallowest, [tooth.shallowest_packets for tooth in teeth], "packets"),
        )
        rows += [
            Fact(f"{who}: {what}", printed.get(what, ""), predicted, exactly(fmean(values)), unit)
            for what, predicted, values, unit in pairs
        ]
        text, used = printed.get("utilization", ""), exactly(sender["utilization"])
        rows.append(Fact(f"{who}: utilization", text, fluid["utilization"], used, "", headline=profile == PAPER))
        share, predicted = exactly(100 * sender["without_queue"]), 100 * fluid["without_queue"]
        what = f"{who}: time with at most two packets in the queue"
        rows.append(Fact(what, printed.get("empty", ""), predicted, share, "%"))
    return rows
