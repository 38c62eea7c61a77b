# SPDX-License-Identifier: MIT
"""A sweep of several kinds of runs: for each kind, utilization against the buffer, and the least buffer for 80 %."""

from __future__ import annotations

from collections.abc import Callable

from analysis.figures.common import GREY, Data, level
from analysis.papers import brackets, look
from analysis.papers.enachescu2006 import panel
from analysis.papers.facts import Fact
from analysis.papers.series import series
from analysis.papers.stored_runs import StoredRun, StoredRuns

ENOUGH = 0.8


def prepare(runs: StoredRuns, stem: str, kind: Callable[[StoredRun], str], first: str = "") -> Data:
    """Estimates by kind and buffer; one run's row and the least buffer of each kind. The kind `first` comes first."""
    kinds: dict[str, list[StoredRun]] = {}
    for run in runs.select(stem):
        kinds.setdefault(kind(run), []).append(run)
    ordered = dict(sorted(kinds.items(), key=lambda item: item[0] != first))
    return {
        "provenance": runs.provenance(),
        "curves": {name: series(same, "buffer_packets", "utilization_mean") for name, same in ordered.items()},
        "samples": {name: same[0].row for name, same in ordered.items()},
        "brackets": {name: brackets.of_utilization(same, ENOUGH) for name, same in ordered.items()},
    }


def draw(data: Data, curves: Callable[[Data], list[panel.Curve]] | None = None) -> look.Figure:
    """One panel, buffers logarithmic."""
    figure, ax = look.new_panel(look.PAGE_IN, 3.0)
    if panel.draw(ax, curves(data) if curves else panel.numbered(data["curves"]), "buffer B (packets)"):
        level(ax, ENOUGH, "", GREY, ":", look.LABEL_POINTS)
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


def facts(data: Data, printed: dict[str, str], most_packets: int) -> list[Fact]:
    """The least buffer of each kind, with the paper's words for it, and u with buffers of up to `most_packets`."""
    rows = []
    for name, edges in data["brackets"].items():
        what = f"{name}: least buffer for u of {ENOUGH:g} or more"
        least, words = edges.interval(), printed.get(name, "")
        rows.append(Fact(what, words, None, least, "packets", none=edges.open_text()))
    for name, points in data["curves"].items():
        few = {buffer: point for buffer, point in points.items() if buffer <= most_packets}
        rows += [Fact(f"{name}, B = {buffer}: u", "", None, point, "") for buffer, point in few.items()]
    return rows
