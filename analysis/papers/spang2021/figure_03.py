# SPDX-License-Identifier: MIT
"""Figure 3: utilization of one flow against the buffer, and the bursts that explain the cliff at small buffers."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from analysis.arithmetic.statistics import mean_interval
from analysis.figures import algorithms
from analysis.figures.common import BLACK, GREY, Data
from analysis.papers import look
from analysis.papers.facts import Fact, by_algorithm
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import bdp, grouped, nearest, pooled, series
from analysis.theory import single_flow

CAPTION = (
    "utilization of one flow against the size of the buffer, with the model's line (section 3.5); and the bursts in "
    "which the flow's packets come, for buffers of 10 to 20 packets, near the cliff. The model has no bursts, but "
    "packets of a burst that do not fit into the buffer are lost."
)
SWEEPS = ("single-flow-buffers",)
CLIFF_PACKETS = 20  # section 3.6
NOTEBOOK_PERCENT = 10  # percentile in the notebook "Figures 3 and 5"; the text has the 1st percentile
TEXT, NOTEBOOK = "1st percentile (text)", "10th percentile (notebook)"
BURSTS_AT = (CLIFF_PACKETS / 2, CLIFF_PACKETS)  # least and largest buffer (packets) whose bursts are shown
COLUMN = 16  # characters that fit into a column
TICKS = (2, 20, 200)  # packets; far enough apart for labels not to touch
# 3.6: "well-predicted by our models above a queue depth of about twenty packets. Below ... falls off quickly"; for BBR
# "no utilization 'cliff' below 20 packets".
PAPER = "as the model above about 20 packets, falls off quickly below"
PAPERS = {"bbr": "as the model, no cliff below 20 packets", "bbr3": ""}  # BBRv3 is younger than the paper


def prepare(runs: PaperRuns) -> Data:
    """For each algorithm: utilization at some buffers, its largest distance from the model above the cliff, and the
    bursts near the cliff.
    """
    panels = runs.by_algorithm(SWEEPS[0], _panel, needs=("utilization_p01",), flows=1)
    rows: list[Fact] = []
    for cc, who, panel in by_algorithm(panels, rows, "drawn in the paper"):
        paper = PAPERS.get(cc, PAPER)
        wanted = (5, CLIFF_PACKETS, 0.25 * panel["bdp"], panel["bdp"])
        for buffer in dict.fromkeys(nearest(panel["measured"], value) for value in wanted):
            what = f"utilization with B = {buffer} packets ({buffer / panel['bdp']:.2f} BDP)"
            model = panel["model"][buffer]
            for name, said, estimates in ((TEXT, paper, panel["measured"]), (NOTEBOOK, "", panel["notebook"])):
                rows.append(Fact(f"{who}: {what}, {name}", said, model, estimates.get(buffer), ""))
        for name, said, estimates in ((TEXT, "well-predicted", panel["measured"]), (NOTEBOOK, "", panel["notebook"])):
            off = [
                abs(share.value - panel["model"][buffer])
                for buffer, share in estimates.items()
                if buffer >= CLIFF_PACKETS and panel["model"][buffer] is not None
            ]
            if off:
                what = f"{who}: largest distance from the model, B of {CLIFF_PACKETS} packets or more, {name}"
                rows.append(Fact(what, said, 0.0, mean_interval([max(off)]), ""))
        where, paper = f"(B = {panel['bursts_at']} packets)", "bursts vary the queue by about 20 packets; BBR paces"
        what = f"{who}: size of a burst, 99th percentile over packets {where}"
        rows.append(Fact(what, paper, None, panel["burst_p99"], "packets"))
        rows.append(Fact(f"{who}: largest burst {where}", paper, None, panel["burst_max"], "packets"))
    return {"panels": panels, "facts": rows}


def _panel(selected: list[PaperRun]) -> Data:
    cc, exact = selected[0]["cc"], bdp(selected[0])
    measured = series(selected, "buffer_packets", "utilization_p01")
    of_buffer = grouped(selected, "buffer_packets")
    near = [buffer for buffer in of_buffer if BURSTS_AT[0] <= buffer <= BURSTS_AT[1]]
    shown = near or [int(nearest(of_buffer, CLIFF_PACKETS))]
    of_shown = [run for buffer in shown for run in of_buffer[buffer]]
    sizes, counts = pooled(of_shown, "burst_packets")
    packets = sizes * counts
    buffers = np.geomspace(min(measured), max(measured), 400)
    line = [single_flow.min_utilization(cc, buffer, exact) for buffer in buffers]
    return {
        "bdp": exact,
        "measured": measured,
        "notebook": series(selected, "buffer_packets", _by_the_notebook),
        "model": {buffer: single_flow.min_utilization(cc, buffer, exact) for buffer in measured},
        "line": None if None in line else np.array([buffers, line]),  # the paper has no model of BBRv2 and BBRv3
        "bursts_at": f"{shown[0]} to {shown[-1]}" if len(shown) > 1 else f"{shown[0]}",
        # Share of packets that came in a burst of at least this size
        "bursts": np.array([sizes, packets[::-1].cumsum()[::-1] / packets.sum()]),
        "burst_p99": mean_interval(_burst_percentile(run, 99) for run in of_shown),
        "burst_max": mean_interval(_burst_percentile(run, 100) for run in of_shown),
    }


def _by_the_notebook(run: PaperRun) -> float | None:
    """The notebook's percentile over the text's windows of 10 RTTs (12 ms). The notebook's own windows are pairs of
    iperf's intervals of 10 ms; utilization spreads a little less over 20 ms than over 12 ms.
    """
    values, counts = run.distribution("utilization_ppm_10rtt")
    if not len(values):
        return None
    return float(values[np.searchsorted(counts.cumsum(), NOTEBOOK_PERCENT / 100 * counts.sum())] / 1e6)


def _burst_percentile(run: Any, percent: float) -> float:
    """The smallest size such that bursts up to this size hold `percent` of all packets."""
    sizes, counts = run.distribution("burst_packets")
    share = (sizes * counts).cumsum() / (sizes * counts).sum()
    return float(sizes[min(np.searchsorted(share, percent / 100), len(sizes) - 1)])


def draw(data: Data) -> look.Figure:
    """A column for each algorithm: utilization above, bursts below."""
    figure, axes = look.new_figure(look.PAGE_IN, 3.5, 2, len(data["panels"]), height_ratios=(1.6, 1))
    present = [panel for panel in data["panels"].values() if "absent" not in panel]
    least = min((value.low or value.value for panel in present for value in panel["measured"].values()), default=0.5)
    bottom = max(np.floor(least * 10 - 0.5) / 10, 0) * 100
    largest = max((panel["bursts"][0].max() for panel in present), default=10)
    rarest = min((panel["bursts"][1].min() for panel in present), default=0.1) * 100
    for (cc, panel), upper, lower in zip(data["panels"].items(), axes[0], axes[1], strict=True):
        upper.set_title(algorithms.name(cc).replace(" (", "\n("), color=algorithms.color(cc), loc="left", pad=3)
        for ax in (upper, lower):
            if ax is not axes[0, 0] and ax is not axes[1, 0]:
                ax.tick_params(labelleft=False)
        if "absent" in panel:
            look.absent(upper, text=textwrap.fill(panel["absent"], COLUMN))
            lower.set_visible(False)
            upper.set_xticks([])
            upper.set_yticks([])
            continue
        _draw_utilization(upper, cc, panel, bottom)
        _draw_bursts(lower, cc, panel, largest, rarest)
    axes[0, 0].set_ylabel("utilization, p1 of\n10-RTT windows (%)")
    axes[1, 0].set_ylabel("packets in bursts\nof k or more (%)")
    return figure


def _draw_utilization(ax: look.Axes, cc: str, panel: Data, bottom: float) -> None:
    if panel["line"] is not None:
        buffers, utilization = panel["line"]
        ax.plot(buffers, utilization * 100, "--", color=BLACK, linewidth=0.8, zorder=1)
    measured = {buffer: share.scaled(100) for buffer, share in panel["measured"].items()}
    ax.plot(list(measured), [share.value for share in measured.values()], color=algorithms.color(cc), linewidth=0.5)
    look.interval_bars(ax, measured, measured.values(), algorithms.color(cc), algorithms.marker(cc))
    left, right = min(measured) / 1.25, max(measured) * 1.25
    ax.set_xscale("log")
    ax.axvspan(left, CLIFF_PACKETS, color="#F0F0F0", linewidth=0, zorder=0)
    ticks = [tick for tick in TICKS if left <= tick <= right]
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()
    ax.set_xlim(left, right)
    ax.set_ylim(bottom, 101.5)
    ax.set_xlabel("B (packets)")
    ax.axvline(panel["bdp"], color=GREY, linewidth=0.6, linestyle=":")
    small = {"va": "baseline", "ha": "right", "fontsize": look.FOOTER_POINTS + 1, "color": GREY}
    look.note(ax, "BDP", (panel["bdp"], 0.02), (-2, 0), xycoords=("data", "axes fraction"), **small)
    if cc == "reno":
        look.note(ax, "model", (buffers[0], utilization[0] * 100), (0, 4), va="baseline", color=BLACK)


def _draw_bursts(ax: look.Axes, cc: str, panel: Data, largest: float, rarest: float) -> None:
    sizes, share = panel["bursts"]
    # a size k that did not occur has the share of the next larger size; beyond the largest size the share is 0
    ax.step([1, *sizes, sizes[-1]], [100, *share * 100, rarest / 10], where="pre", color=algorithms.color(cc))
    ax.axvline(CLIFF_PACKETS, color=GREY, linewidth=0.6, linestyle=":")
    ax.set_yscale("log")
    ax.set_xlim(0, largest * 1.08 + 1)
    ax.set_ylim(rarest / 2, 200)
    ax.minorticks_off()
    ax.set_xlabel(f"k (packets)\nB = {panel['bursts_at']}")


FIGURE = PaperFigure("figure_03", CAPTION, SWEEPS, prepare, draw)
