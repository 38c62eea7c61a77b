# SPDX-License-Identifier: MIT
"""Figure 2: the topology, with the values of a run that Figures 1, 3 and 4 show."""

from __future__ import annotations

from analysis.figures.common import BLACK, GREY, Data
from analysis.papers import look
from analysis.papers.appenzeller2004 import sawteeth
from analysis.papers.appenzeller2004.profiles import PROFILES
from analysis.papers.facts import Fact, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.stored_runs import StoredRuns

CAPTION = "one sender, one receiver, and a router with one buffer before the slow link. Values are those of our runs."
BUFFER = 142
BOXES = (("sender", 0.02, 0.14), ("router", 0.42, 0.16), ("receiver", 0.84, 0.14))  # name, left, width
MIDDLE, HEIGHT = 0.55, 0.3


def prepare(runs: StoredRuns) -> Data:
    """The link of the run."""
    traces = (sawteeth.trace_of(runs, BUFFER, profile) for profile in PROFILES)  # both senders have the same link
    trace = next((trace for trace in traces if trace is not None), None)
    data: Data = {"provenance": runs.provenance(), "link": None}
    if trace is None:
        return data
    idle_ns = trace.run.value("idle_rtt_ns", "median")
    link = {"packets_per_s": 1e9 / trace.packet_ns, "rtt_s": trace.rtt_ns / 1e9, "idle_rtt_s": idle_ns / 1e9}
    return data | {"link": link | {"bdp": trace.bdp, "buffer": trace.buffer}}


def draw(data: Data) -> look.Figure:
    """Boxes and arrows."""
    figure, ax = look.new_panel(look.COLUMN_IN, 1.3)
    link = data["link"]
    if link is None:
        return look.absent(ax)
    ax.set_axis_off()
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    centred = {"ha": "center", "va": "center", "fontsize": look.LABEL_POINTS}
    for name, left, width in BOXES:
        ax.add_patch(_box(left, MIDDLE - HEIGHT / 2, width, HEIGHT))
        ax.text(left + width / 2, MIDDLE, name, **centred)
    for (_, left, width), (_, right, _), text in (
        (BOXES[0], BOXES[1], "no limit\nof rate"),
        (BOXES[1], BOXES[2], f"C = {link['packets_per_s']:.4g}\npackets/s"),
    ):
        ax.annotate("", (right, MIDDLE), (left + width, MIDDLE), arrowprops={"arrowstyle": "->", "linewidth": 0.8})
        ax.text((left + width + right) / 2, MIDDLE + 0.2, text, **centred)
    ax.text(0.5, MIDDLE - 0.27, f"B = {link['buffer']} packets", **centred)
    ax.text(
        0.5, 0.08, f"two-way delay {1e3 * link['rtt_s']:.4g} ms: BDP {link['bdp']:.4g} packets", color=GREY, **centred
    )
    return figure


def _box(left: float, bottom: float, width: float, height: float) -> look.Artist:
    from matplotlib.patches import Rectangle

    return Rectangle((left, bottom), width, height, fill=False, edgecolor=BLACK, linewidth=0.8)


def facts(data: Data) -> list[Fact]:
    """The measured idle RTT, beside the configured RTT."""
    link = data["link"]
    if link is None:
        return []
    return [Fact("idle RTT", "", link["rtt_s"], exactly(link["idle_rtt_s"]), "s")]


FIGURE = PaperFigure("figure_02", CAPTION, (sawteeth.STEM,), prepare, draw, facts)
