# SPDX-License-Identifier: MIT
"""Panels of queue-depth distributions with one row for each number of flows (Figures 4 and 6).

The square root of n rule says that the queue falls at most BDP/√n below full. As in the notebook, depths more than
`times` BDP/√n below full are shaded; both figures have `times` = 2.
"""

from __future__ import annotations

import numpy as np

from analysis.figures.common import BLACK, GREY, RED, Data
from analysis.papers import look
from analysis.papers.facts import Fact
from analysis.papers.series import bdp, grouped, pooled
from analysis.papers.spang2021 import notebook
from analysis.papers.spang2021.artifact import Published
from analysis.papers.stored_runs import StoredRun
from analysis.statistics import mean_interval
from analysis.theory import many_flows

NEEDS = ("depth_p01_packets",)
SHADE = "#DEDEDE"
PUBLISHED = RED
ROOM = 0.92  # share of a row's height for its highest bin
MOST_BINS = 48  # of a distribution: narrower bins would not be visible


def panel(runs: list[StoredRun], times: float, beside: Published | None = None) -> Data:
    """A row for each number of flows, from runs with one buffer. The region more than `times` BDP / sqrt(n) below
    full is shaded. `beside` has the published numbers.
    """
    exact, buffer = bdp(runs[0]), runs[0]["buffer_packets"]
    width = buffer // MOST_BINS + 1
    cc = runs[0]["cc"]
    published = {} if beside is None else {
        row["flows"]: row for row in notebook.near(beside.depths.filter(cc=cc), buffer).iter_rows(named=True)
    }  # fmt: skip
    rows = []
    for flows, same_flows in grouped(runs, "flows").items():
        values, counts = pooled(same_flows, "queue_depth_packets")
        bins = np.bincount(values // width, weights=counts)
        floor = buffer - times * many_flows.sqrt_rule(exact, flows)
        rows.append(
            {
                "flows": flows,
                "density": bins / counts.sum() / width,
                "floor": floor,
                "published": published.get(flows),
                "below": mean_interval(_share_below(run, floor) for run in same_flows),
                "used": mean_interval(buffer - run["depth_p01_packets"] for run in same_flows),
                "p01": mean_interval(run["depth_p01_packets"] for run in same_flows),
            }
        )
    return {"buffer": buffer, "bdp": exact, "width": width, "rows": rows}


def _share_below(run: StoredRun, floor: float) -> float:
    values, counts = run.distribution("queue_depth_packets")
    return float(counts[values < floor].sum() / counts.sum())


def draw(ax: look.Axes, panel: Data, shade: str) -> None:
    """The rows, fewest flows on top as in the paper; each row is scaled to its own largest bin."""
    width, buffer = panel["width"], panel["buffer"]
    for at, row in enumerate(reversed(panel["rows"])):
        if row["floor"] > 0:
            ax.fill([0, row["floor"], row["floor"], 0], [at, at, at + 1, at + 1], color=SHADE, linewidth=0, zorder=0)
        height = row["density"] / row["density"].max() * ROOM
        edges = np.arange(len(height) + 1) * width - 0.5
        ax.stairs(height + at, edges, baseline=at, fill=True, color=shade, alpha=0.9, linewidth=0, zorder=2)
        ax.plot([row["p01"].value] * 2, [at, at + 0.32], color=BLACK, linewidth=1.0, zorder=3, solid_capstyle="butt")
        ax.axhline(at, color="#C8C8C8", linewidth=0.4, zorder=1)
        if row["published"]:
            quantiles = [row["published"][name] for name in ("p01", "p50", "p99")]
            for shade_of, size, width_of in (("white", 4.2, 2.2), (PUBLISHED, 3, 0.8)):  # outlined, for contrast
                ax.plot(quantiles, [at + 0.5] * 3, "x", color=shade_of, markersize=size, markeredgewidth=width_of,
                        zorder=4)  # fmt: skip
    ax.axvline(buffer, color=BLACK, linewidth=0.8, linestyle=":")
    ax.set_xlim(-0.5, buffer * 1.03 + 1)
    ax.set_ylim(0, len(panel["rows"]))
    ax.grid(visible=False)
    ax.set_yticks(np.arange(len(panel["rows"])) + 0.5, [str(row["flows"]) for row in reversed(panel["rows"])])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("queue depth (packets)")


def legend(figure: look.Figure, times: float, panels: list[Data]) -> None:
    """Writes the meaning of crosses, shade, dotted line and ticks above the panels, once for all panels."""
    distance = "BDP/√n" if times == 1 else f"{times:g} BDP/√n"
    beside = any(row["published"] for panel in panels for row in panel["rows"])
    text = "red crosses: published p1, p50 and p99; " * beside
    text += f"grey: below B − {distance}; dotted line: B; tick: 1st percentile; each row as high as its largest bin"
    figure.suptitle(text, fontsize=look.LABEL_POINTS - 0.5, color=GREY, x=0.01, ha="left")


def facts(panel: Data, what: str, paper: str) -> list[Fact]:
    """How much of the buffer the queue used, and the share of packets in the shaded region."""
    rows = []
    for row in panel["rows"]:
        shaded_from = min(panel["buffer"] - row["floor"], panel["buffer"])
        where = f"{what}, n = {row['flows']}"
        rows.append(Fact(f"{where}: B less the 1st percentile of depth", paper, shaded_from, row["used"], "packets"))
        if row["published"]:
            said = f"published: {row['published']['buffer_packets'] - row['published']['p01']} packets"
            rows[-1] = rows[-1]._replace(paper=said)
        if row["floor"] > 0:
            rows.append(Fact(f"{where}: share of packets in the shaded region", "", 0.0, row["below"], ""))
    return rows
