# SPDX-License-Identifier: MIT
"""Unpaced Reno of Figure 1 with one property of hosts or path changed at a time: what its least buffer depends on."""

from __future__ import annotations

from analysis.amounts import si
from analysis.figures.common import GREY, Data, level
from analysis.papers import brackets, look
from analysis.papers.enachescu2006 import panel
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.series import series
from analysis.papers.stored_runs import StoredRun, StoredRuns

CAPTION = (
    "utilization of 40 unpaced Reno flows against the buffer, as in Figure 1, with one property of the hosts or of the "
    "path changed at a time."
)
STEM = "hosts"
ENOUGH = 0.8
AS_FIGURE_1 = "as Figure 1"


def change(run: StoredRun) -> str:
    """What is changed in a run, in words. Raises InputError."""
    spec = run.summary["spec"]
    spread_s, rtt_s = spec["rtt_spread_ns"] / 1e9, spec["rtt_ns"] / 1e9
    words = []
    if run["profile"] == "linux":
        words.append("TCP as Linux has it")
    else:
        words += ["delayed ACKs"] if run["acks"] == "delayed" else []
        words += ["SACK"] if run["sack"] == "on" else []
    if run["access_bps"]:
        words.append(f"behind links of {si(run['access_bps'], 'b/s')}")
    if not spread_s:
        words.append(f"RTTs of {si(rtt_s, 's')}")
    elif spread_s > 0.05:
        words.append(f"RTTs of {si(rtt_s, 's')} to {si(rtt_s + spread_s, 's')}")
    return ", ".join(words) or AS_FIGURE_1


def prepare(runs: StoredRuns) -> Data:
    """Estimates by change and buffer, and the least buffer of each."""
    changes: dict[str, list[StoredRun]] = {}
    for run in runs.select(STEM):
        changes.setdefault(change(run), []).append(run)
    ordered = dict(sorted(changes.items(), key=lambda item: item[0] != AS_FIGURE_1))
    return {
        "provenance": runs.provenance(),
        "curves": {name: series(of, "buffer_packets", "utilization_mean") for name, of in ordered.items()},
        "brackets": {name: brackets.of_utilization(of, ENOUGH) for name, of in ordered.items()},
    }


def draw(data: Data) -> look.Figure:
    """One panel, buffers logarithmic."""
    figure, axes = look.new_figure(look.PAGE_IN, 2.8)
    ax = axes[0, 0]
    if panel.draw(ax, panel.numbered(data["curves"]), "buffer B (packets)"):
        level(ax, ENOUGH, "", GREY, ":", look.LABEL_POINTS)
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


def facts(data: Data) -> list[Fact]:
    """The least buffer of each change, and u with 10 packets."""
    rows = []
    for name, edges in data["brackets"].items():
        what = f"{name}: least buffer for u of {ENOUGH:g} or more"
        printed = "about 100" if name == AS_FIGURE_1 else ""
        rows.append(Fact(what, printed, None, edges.interval(), "packets", none=edges.open_text()))
    for name, points in data["curves"].items():
        if 10 in points:
            rows.append(Fact(f"{name}, B = 10: u", "", None, points[10], ""))
    return rows


FIGURE = PaperFigure("hosts", CAPTION, (STEM,), prepare, draw, facts)
