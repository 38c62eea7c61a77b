# SPDX-License-Identifier: MIT
"""Figure 2: how far one flow of each algorithm drains the queue.

The dashed line is the least depth by the algorithm's rule (section 3.5). By the rule the queue falls below its maximum
by (1 - beta) (BDP + B), for BBR by BDP / 4, and never by more than B. If packets are lost, the maximum is B. Each pixel
column shows its least and largest depth, so no packet is left out. The paper's notebook has B = 20000 cells (175
packets) instead of B = BDP, and computes no number. Runs with the notebook's buffer are listed as facts; they have no
panel.
"""

from __future__ import annotations

import numpy as np

from analysis.arithmetic.statistics import Interval, mean_interval
from analysis.figures import algorithms
from analysis.figures.common import BLACK, GREY, Data, envelope
from analysis.papers import look
from analysis.papers.facts import Fact
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import IS_ONE_BDP, bdp
from analysis.theory.single_flow import drained_packets

CAPTION = (
    "the queue over time of a single Reno, Cubic, BBR or Scalable flow, B = BDP, and the share of a BDP that it drains."
)
SWEEPS = ("single-flow", "single-flow-notebook")
NEEDS = ("utilization_p01",)  # null in runs without packets
COLUMNS = 700  # pixels of an axis in a figure that is COLUMN_IN wide, at PNG_DPI
PAPER = {  # section 3.6
    "reno": "a full BDP, (almost) empty", "cubic": "60-70 %", "bbr": "about 25 %", "scalable_50": "11-25 %",
}  # fmt: skip


def prepare(runs: PaperRuns) -> Data:
    """For each algorithm: the first run's queue, and the fall of the queue as a share of the BDP: medians over each
    run's losses (for BBR over its probing cycles), intervals over runs; then with the notebook's buffer.
    """
    panels: list[Data] = []
    rows = []
    for cc, said in PAPER.items():
        who, selected = algorithms.name(cc), runs.select(SWEEPS[0], IS_ONE_BDP, needs=NEEDS, cc=cc, flows=1)
        if not selected:
            panels.append({"cc": cc, "absent": runs.absence(SWEEPS[0], cc)})
            rows.append(Fact(f"{who} drains", said, None, None, "BDP", panels[-1]["absent"]))
            continue
        queue: Data = selected[0].measure("queue of Figure 2", Data, _queue_of_packets)
        drained, mean_over_rtt = (_drained(selected, to) for to in ("of_bdp", "of_bdp_mean_over_rtt"))
        line = np.array(queue["line"])
        panels.append({"cc": cc, "absent": "", **queue, "line": line, "drained": drained})
        rule = _rule(cc, queue["buffer"], queue["bdp"])
        why = _of_probes(selected, queue["rtt_us"]) if cc == "bbr" else ""
        rows.append(Fact(f"{who} drains", said, rule, drained, "BDP", why))
        if cc != "bbr":  # BBR's probe lasts one RTT: a mean over one RTT flattens it
            rows.append(Fact(f"{who}, to the least mean over one RTT", said, rule, mean_over_rtt, "BDP"))
    for cc in PAPER:
        selected = runs.select(SWEEPS[1], imported=False, cc=cc, flows=1)
        rule = _rule(cc, selected[0]["buffer_packets"], bdp(selected[0])) if selected else None
        what = f"notebook (B = 175 packets): {algorithms.name(cc)} drains"
        rows.append(Fact(what, "", rule, _drained(selected, "of_bdp"), "BDP"))
    return {"panels": panels, "facts": rows}


def _rule(cc: str, buffer: float, exact: float) -> float | None:
    """The share of the BDP that the algorithm's rule lets the queue fall."""
    falls = drained_packets(cc, buffer, exact)
    return None if falls is None else falls / exact


def _drained(runs: list[PaperRun], to: str) -> Interval | None:
    """The mean over runs of each run's median fall, to the least depth or to the least mean over one RTT."""
    return mean_interval(run.value("drained_fraction", to, "median") for run in runs)


def _queue_of_packets(run: PaperRun) -> Data:
    """The depth on arrival of each packet of the measurement window; times in s since its start."""
    trace = PacketTrace(run)
    rows = trace.arrivals(trace.start_ns, trace.end_ns)
    seconds = (trace.queue["enqueue_mono_ns"][rows] - trace.start_ns) / 1e9
    end_s = (trace.end_ns - trace.start_ns) / 1e9
    return {
        "line": envelope(seconds, trace.queue["depth_packets"][rows].astype(np.int64), 0, end_s, COLUMNS),
        "deepest": int(trace.queue["depth_packets"][rows].max(initial=0)), "rtt_us": trace.rtt_ns / 1e3,
        "end_s": end_s, "bdp": trace.bdp, "buffer": trace.buffer,
    }  # fmt: skip


def _least_rtt_us(run: PaperRun) -> float | None:
    return min((flow["rtt_min_us"] for flow in run.summary["flows"] if flow["rtt_min_us"]), default=None)


def draw(data: Data) -> look.Figure:
    """One panel per algorithm, on one time axis."""
    panels = data["panels"]
    figure, axes = look.new_figure(look.COLUMN_IN, 4.2, len(panels), sharex=True, sharey=True)
    shown = [panel for panel in panels if not panel["absent"]]
    if shown:
        axes[0, 0].set_xlim(0, max(panel["end_s"] for panel in shown))
        axes[0, 0].set_ylim(0, max(panel["buffer"] for panel in shown) * 1.25)
    for ax, panel in zip(axes[:, 0], panels, strict=True):
        if panel["absent"]:
            look.absent(ax, text=panel["absent"])
        else:
            _draw_panel(ax, panel)
    axes[-1, 0].set_xlabel("time (s)")
    axes[len(panels) // 2, 0].set_ylabel("queue depth (packets)", y=1.15)
    return figure


def _draw_panel(ax: look.Axes, panel: Data) -> None:
    cc, buffer, bdp = panel["cc"], panel["buffer"], panel["bdp"]
    ax.plot(*panel["line"], color=algorithms.color(cc), linewidth=0.5)
    ax.axhline(buffer, color=GREY, linewidth=0.7, linestyle=":")
    falls = drained_packets(cc, buffer, bdp)
    labels = [(buffer, "B = BDP", GREY)]
    title = f"{algorithms.name(cc)} drains {_percent(panel['drained'])}"
    if falls is not None:
        floor = max(panel["deepest"] - falls, 0)
        ax.axhline(floor, color=BLACK, linewidth=0.8, linestyle="--", clip_on=False)
        labels.append((floor, "rule", BLACK))
        title += f"; rule {falls / bdp:.0%}"
    look.label_right(ax, labels)
    ax.set_title(title, loc="left", pad=2)


def _percent(share: Interval | None) -> str:
    if share is None:
        return "an unknown share"
    value, low, high = (f"{end:.0%}" for end in (share.value, *share.ends))
    return value if value == low == high else f"{value} ({low} to {high})"


def _of_probes(runs: list[PaperRun], rtt_us: float) -> str:
    """Why BBR's probes may differ from the rule, which assumes that probes lose packets."""
    reasons = []
    if not any(run["drops"] for run in runs):
        reasons.append("the rule assumes probes that lose packets, but no packet is lost here")
        depths = [mean_interval(run[f"depth_{name}_packets"] for run in runs) for name in ("p01", "p50", "max")]
        if None not in depths:
            low, middle, most = (f"{depth.value:.3g}" for depth in depths if depth)
            of_depths = f"{low} packets at its 1st percentile, {middle} at its median, {most} at most"
            reasons[0] += f": the queue has {of_depths}"
    each = (run.measure("least RTT, us", float | None, _least_rtt_us) for run in runs)
    least_us = min(filter(None, each), default=None)
    if least_us and least_us < 0.99 * rtt_us:
        reasons.append(
            f"the kernel takes {least_us / 1e3:.3g} ms for the least RTT (a sample from timestamps, which count ms), "
            "so a probe is shorter than an RTT"
        )
    return "; ".join(reasons)


FIGURE = PaperFigure("figure_02", CAPTION, SWEEPS, prepare, draw)
