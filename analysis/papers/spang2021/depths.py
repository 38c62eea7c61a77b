# SPDX-License-Identifier: MIT
"""Distributions of the queue's depth for more and more flows: Reno with three buffers (Figure 4), other algorithms with
one (Figure 6).

The square root of n rule says that the queue falls at most BDP/√n below full. Every version of the notebook shades
depths more than twice as far below full in both figures.
"""

from __future__ import annotations

import textwrap
from functools import partial

import numpy as np

from analysis.arithmetic.statistics import mean_interval
from analysis.figures import algorithms
from analysis.figures.common import BLACK, GREY, RED, Data
from analysis.papers import look
from analysis.papers.facts import Fact, by_algorithm
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import bdp, grouped, pooled
from analysis.papers.spang2021 import notebook
from analysis.papers.spang2021.artifact import Published
from analysis.theory import many_flows

NEEDS = ("depth_p01_packets",)
TIMES = notebook.SHADED  # x BDP/sqrt(n)
SHADE = "#DEDEDE"
ROOM = 0.92  # share of a row's height for its highest bin
COLUMN = 16  # characters that fit into a panel's width
MOST_BINS = 48  # of a distribution: narrower bins would not be visible


def panel(runs: list[PaperRun], beside: Published | None = None) -> Data:
    """A row for each number of flows, from runs with one buffer. `beside` has the published numbers."""
    exact, buffer, cc = bdp(runs[0]), runs[0]["buffer_packets"], runs[0]["cc"]
    width = buffer // MOST_BINS + 1
    published = {} if beside is None else {
        row["flows"]: row for row in notebook.near(beside.depths.filter(cc=cc), buffer).iter_rows(named=True)
    }  # fmt: skip
    rows = []
    for flows, same_flows in grouped(runs, "flows").items():
        values, counts = pooled(same_flows, "queue_depth_packets")
        floor = buffer - TIMES * many_flows.sqrt_rule(exact, flows)
        rows.append(
            {
                "flows": flows, "floor": floor, "published": published.get(flows),
                "density": np.bincount(values // width, weights=counts) / counts.sum() / width,
                "below": mean_interval(_share_below(run, floor) for run in same_flows),
                "used": mean_interval(buffer - run["depth_p01_packets"] for run in same_flows),
                "p01": mean_interval(run["depth_p01_packets"] for run in same_flows),
            }
        )  # fmt: skip
    return {"cc": cc, "buffer": buffer, "bdp": exact, "width": width, "rows": rows}


def _share_below(run: PaperRun, floor: float) -> float:
    values, counts = run.distribution("queue_depth_packets")
    return float(counts[values < floor].sum() / counts.sum())


def draw_panel(ax: look.Axes, panel: Data) -> None:
    """The rows, fewest flows on top as in the paper; each row is scaled to its own largest bin."""
    width, buffer, rows = panel["width"], panel["buffer"], panel["rows"][::-1]
    for at, row in enumerate(rows):
        if row["floor"] > 0:
            ax.fill([0, row["floor"], row["floor"], 0], [at, at, at + 1, at + 1], color=SHADE, linewidth=0, zorder=0)
        height = row["density"] / row["density"].max() * ROOM
        edges = np.arange(len(height) + 1) * width - 0.5
        shade = algorithms.color(panel["cc"])
        ax.stairs(height + at, edges, baseline=at, fill=True, color=shade, alpha=0.9, linewidth=0, zorder=2)
        ax.plot([row["p01"].value] * 2, [at, at + 0.32], color=BLACK, linewidth=1.0, zorder=3, solid_capstyle="butt")
        ax.axhline(at, color="#C8C8C8", linewidth=0.4, zorder=1)
        if row["published"]:
            quantiles = [row["published"][name] for name in ("p01", "p50", "p99")]
            for shade_of, size, width_of in (("white", 4.2, 2.2), (RED, 3, 0.8)):  # outlined, for contrast
                ax.plot(quantiles, [at + 0.5] * 3, "x", color=shade_of, markersize=size, markeredgewidth=width_of,
                        zorder=4)  # fmt: skip
    ax.axvline(buffer, color=BLACK, linewidth=0.8, linestyle=":")
    ax.set_xlim(-0.5, buffer * 1.03 + 1)
    ax.set_ylim(0, len(rows))
    ax.grid(visible=False)
    ax.set_yticks(np.arange(len(rows)) + 0.5, [str(row["flows"]) for row in rows])
    ax.tick_params(axis="y", length=0)


def _legend(figure: look.Figure, panels: list[Data]) -> None:
    """Writes the meaning of crosses, shade, dotted line and ticks above the panels, once for all panels."""
    text = "red crosses: published p1, p50 and p99; " * any(row["published"] for of in panels for row in of["rows"])
    text += (
        f"grey: below B − {TIMES:g} BDP/√n; dotted line: B; tick: 1st percentile; each row as high as its largest bin"
    )
    figure.suptitle(text, fontsize=look.LABEL_POINTS - 0.5, color=GREY, x=0.01, ha="left")


def draw(data: Data, y_label: str, x_label: str, sharey: bool) -> look.Figure:
    """Panels side by side."""
    panels, known = data["panels"], [each for each in data["panels"].values() if "absent" not in each]
    figure, axes = look.new_figure(look.PAGE_IN, 2.9, 1, max(len(panels), 1), sharey=sharey and len(panels) > 1)
    if not panels:
        look.absent(axes[0, 0])
    for ax, (name, each) in zip(axes[0], panels.items(), strict=False):
        if sharey:
            ax.set_title(f"{name} ({each['buffer']} packets)", loc="left", pad=3)
        else:
            ax.set_title(algorithms.name(name), color=algorithms.color(name), loc="left", pad=3)
        if "absent" in each:
            look.absent(ax, text=textwrap.fill(each["absent"], COLUMN))
            ax.set_xticks([])
            ax.set_yticks([])
            continue
        draw_panel(ax, each)
        ax.set_xlabel(x_label)
    axes[0, 0].set_ylabel(y_label)
    if panels:
        _legend(figure, known)
    return figure


def facts(data: Data, paper: str) -> list[Fact]:
    """Of each panel: how much of the buffer the queue used, and the share of packets in the shaded region."""
    rows: list[Fact] = []
    for name, who, each in by_algorithm(data["panels"], rows):
        what = f"B = {each['buffer'] / each['bdp']:.2g} BDP"
        what = what if name == what else f"{who}, {what}"
        for row in each["rows"]:
            shaded_from, published = min(each["buffer"] - row["floor"], each["buffer"]), row["published"]
            where = f"{what}, n = {row['flows']}"
            said = f"published: {published['buffer_packets'] - published['p01']} packets" if published else paper
            rows.append(Fact(f"{where}: B less the 1st percentile of depth", said, shaded_from, row["used"], "packets"))
            if row["floor"] > 0:
                rows.append(Fact(f"{where}: share of packets in the shaded region", "", 0.0, row["below"], ""))
    return rows


# Figures --------------------------------------------------------------------------------------------------------------

CAPTION_4 = (
    "distributions of the queue's depth for more and more Reno flows and three buffers. The square root of n rule "
    "says that the queue falls at most BDP/sqrt(n) below full. Shaded, as in the paper's notebook: more than twice as "
    "far below full."
)
SWEEPS_4 = ("reno-depth",)


def _by_buffer(runs: PaperRuns) -> Data:
    """One panel for each buffer by its share of the BDP, the largest first."""
    by_buffer = grouped(runs.select(SWEEPS_4[0], needs=NEEDS, cc="reno"), "buffer_packets")
    panels = [panel(same, runs.beside) for _, same in sorted(by_buffer.items(), reverse=True)]
    return {"panels": {f"B = {each['buffer'] / each['bdp']:.2g} BDP": each for each in panels}}


# The paper's caption: "As the number of flows increases, the queue stays close to its maximum value ... they are a good
# estimate"
FIGURE_4 = PaperFigure(
    "figure_04", CAPTION_4, SWEEPS_4, _by_buffer,
    partial(draw, y_label="Reno flows", x_label="queue depth (packets)", sharey=True),
    partial(facts, paper="BDP/√n is a good estimate"),
)  # fmt: skip

CAPTION_6 = (
    "distributions of the queue's depth for more and more flows of algorithms other than Reno, B = 0.8 BDP. Shaded, as "
    "in the paper: more than 2 BDP/sqrt(n) below full."
)
SWEEPS_6 = ("others-depth",)


def _by_algorithm(runs: PaperRuns) -> Data:
    """One panel for each algorithm; for an algorithm without runs, the reason."""
    others = [cc for cc in runs.paper.algorithms if cc != "reno"]
    return {"panels": runs.by_algorithm(SWEEPS_6[0], partial(panel, beside=runs.beside), ccs=others, needs=NEEDS)}


# The paper's caption: "2BDP/sqrt(n), which tends to overestimate the required buffer"
FIGURE_6 = PaperFigure(
    "figure_06", CAPTION_6, SWEEPS_6, _by_algorithm,
    partial(draw, y_label="flows", x_label="depth (packets)", sharey=False),
    partial(facts, paper="2 BDP/√n tends to overestimate it"),
)  # fmt: skip
