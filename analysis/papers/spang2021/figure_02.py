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

from analysis.figures import algorithms
from analysis.figures.common import BLACK, GREY, Data, envelope
from analysis.papers import look
from analysis.papers.columns import IS_ONE_BDP
from analysis.papers.facts import Fact
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.paper import PaperFigure
from analysis.papers.series import bdp
from analysis.papers.stored_runs import StoredRun, StoredRuns
from analysis.statistics import Interval, mean_interval
from analysis.theory.single_flow import drained_packets

CAPTION = (
    "the queue over time of a single Reno, Cubic, BBR or Scalable flow, B = BDP, and the share of a BDP that it drains."
)
SWEEPS = ("single-flow", "single-flow-notebook")
NEEDS = ("utilization_p01",)  # null in runs without packets
CCS = ("reno", "cubic", "bbr", "scalable_50")
COLUMNS = 700  # pixels of an axis in a figure that is COLUMN_IN wide, at PNG_DPI
PAPER = {  # section 3.6
    "reno": "a full BDP, (almost) empty", "cubic": "60-70 %", "bbr": "about 25 %", "scalable_50": "11-25 %",
}  # fmt: skip


def prepare(runs: StoredRuns) -> Data:
    """For each algorithm: the first run's queue, and the drained share of every run."""
    panels = []
    for cc in CCS:
        selected = runs.select(SWEEPS[0], IS_ONE_BDP, needs=NEEDS, cc=cc, flows=1)
        if selected:
            panels.append({"cc": cc, "absent": ""} | _queue(selected[0]) | _drained(selected))
        else:
            panels.append({"cc": cc, "absent": runs.absence(SWEEPS[0], cc)})
    return {"panels": panels, "notebook": {cc: _by_the_notebook(runs, cc) for cc in CCS},
            "provenance": runs.provenance()}  # fmt: skip


def _by_the_notebook(runs: StoredRuns, cc: str) -> Data:
    """With the notebook's buffer: how far the queue falls, as a share of the BDP, measured and by the rule."""
    selected = runs.select(SWEEPS[1], imported=False, cc=cc, flows=1)
    return {
        "drained": mean_interval(run.value("drained_fraction", "of_bdp", "median") for run in selected),
        "rule": None if not selected else _rule(cc, selected[0]["buffer_packets"], bdp(selected[0])),
    }


def _rule(cc: str, buffer: float, exact: float) -> float | None:
    """The share of the BDP that the algorithm's rule lets the queue fall."""
    falls = drained_packets(cc, buffer, exact)
    return None if falls is None else falls / exact


def _queue(run: StoredRun) -> Data:
    queue: Data = run.measure("queue of Figure 2", Data, _queue_of_packets)
    return queue | {"line": np.array(queue["line"])}


def _queue_of_packets(run: StoredRun) -> Data:
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


def _drained(runs: list[StoredRun]) -> Data:
    """The fall of the queue as a share of the BDP: the mean over runs of each run's median. `drained` is the fall to
    the least depth, `drained_mean` the fall to the least mean over one RTT. Also drops, depths and the least RTT, for
    `facts`.
    """
    return {
        "drained": mean_interval(run.value("drained_fraction", "of_bdp", "median") for run in runs),
        "drained_mean": mean_interval(
            run.value("drained_fraction", "of_bdp_mean_over_rtt", "median") for run in runs
        ),
        "drops": sum(run["drops"] or 0 for run in runs),
        "depths": [mean_interval(run[f"depth_{name}_packets"] for run in runs) for name in ("p01", "p50", "max")],
        "rtt_min_us": min(filter(None, (run.measure("least RTT, us", float | None, _least_rtt_us) for run in runs)),
                          default=None),
    }  # fmt: skip


def _least_rtt_us(run: StoredRun) -> float | None:
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


def facts(data: Data) -> list[Fact]:
    """Medians over each run's losses (for BBR over its probing cycles); intervals over runs."""
    rows = []
    for panel in data["panels"]:
        cc = panel["cc"]
        if panel["absent"]:
            rows.append(Fact(f"{algorithms.name(cc)} drains", PAPER[cc], None, None, "BDP", panel["absent"]))
            continue
        rule = _rule(cc, panel["buffer"], panel["bdp"])
        why = _of_probes(panel) if cc == "bbr" else ""
        rows.append(Fact(f"{algorithms.name(cc)} drains", PAPER[cc], rule, panel["drained"], "BDP", why))
        if cc != "bbr":  # BBR's probe lasts one RTT: a mean over one RTT flattens it
            what = f"{algorithms.name(cc)}, to the least mean over one RTT"
            rows.append(Fact(what, PAPER[cc], rule, panel["drained_mean"], "BDP"))
    for cc, numbers in data["notebook"].items():
        what = f"notebook (B = 175 packets): {algorithms.name(cc)} drains"
        rows.append(Fact(what, "", numbers["rule"], numbers["drained"], "BDP"))
    return rows


def _depths(depths: list[Interval | None]) -> str:
    """A clause with the queue's depths: 1st percentile, median and maximum."""
    if None in depths:
        return ""
    low, middle, most = (f"{depth.value:.3g}" for depth in depths if depth)
    return f": the queue has {low} packets at its 1st percentile, {middle} at its median, {most} at most"


def _of_probes(panel: Data) -> str:
    """Why BBR's probes may differ from the rule, which assumes that probes lose packets."""
    reasons = []
    if not panel["drops"]:
        reasons.append(
            "the rule assumes probes that lose packets, but no packet is lost here" + _depths(panel["depths"])
        )
    if panel["rtt_min_us"] and panel["rtt_min_us"] < 0.99 * panel["rtt_us"]:
        reasons.append(
            f"the kernel takes {panel['rtt_min_us'] / 1e3:.3g} ms for the least RTT (a sample from timestamps, which "
            "count ms), so a probe is shorter than an RTT"
        )
    return "; ".join(reasons)


FIGURE = PaperFigure("figure_02", CAPTION, SWEEPS, prepare, draw, facts)
