# SPDX-License-Identifier: MIT
"""Table 1: the paper's links and users, with our measurements of each."""

from __future__ import annotations

import math
from typing import Any

from analysis.figures.common import Data
from analysis.papers import look
from analysis.papers.facts import Fact, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.prasad2007.flow_classes import means
from analysis.papers.prasad2007.loss_figure import coefficient, evidence
from analysis.papers.prasad2007.rows import FULL, OF_USERS, ROWS, STEMS, Measured, Row
from analysis.papers.prasad2007.throughput_figure import best
from analysis.papers.stored_runs import StoredRuns
from analysis.statistics import Interval
from analysis.theory.capacity_ratio import S_SEGMENTS, slow_start_rtts

CAPTION = (
    "links and users of Table 1: utilization with the largest buffer, with our think times and with 1 s; which form of "
    "loss fits, f of the delay, and the buffers with the fastest transfers."
)
ONE_SECOND = "one-second"
HEADS = ("N/U/Γ", "used", "used (1 s)", "form", "b", "R²", "f", "best, S", "best, L")


def prepare(runs: StoredRuns) -> Data:
    """The numbers of the table's rows, without rows that have no runs."""
    slow = {
        (run["users"], run["rate_bps"], run["access_links"]): run["utilization_mean"]
        for run in runs.select(ONE_SECOND, repetition=1, **OF_USERS)
    }
    rows: dict[str, dict[str, Any]] = {}
    for row in ROWS:
        measured = Measured.of(runs, row)
        if measured is not None:
            run = measured.runs[0]
            rows[row.name] = _numbers(row, measured) | {
                "used_one_second": slow.get((run["users"], run["rate_bps"], run["access_links"]))
            }
    return {"provenance": runs.provenance(), "rows": rows}


def _numbers(row: Row, measured: Measured) -> dict[str, Any]:
    class_means = means(measured.by_buffer())
    tops: dict[str, Interval | None] = {name: best(points) for name, points in class_means.best_known.items()}
    return {
        "think_s": (measured.runs[0].experiment.finite[0].mean_think_ns or 0.0) / 1e9,
        "gamma": row.gamma, "of": measured.key(row.gamma), "used": measured.used[max(measured.used)],
        "fits": measured.forms,
        "delay": measured.delay_fit, "best": tops, "pipe": measured.pipe,
        "predicted_cutoff": measured.predicted_cutoff(), "counted": class_means.by_events is not None,
    }  # fmt: skip


def draw(data: Data) -> look.Figure:
    """A table of text."""
    figure, ax = look.new_panel(look.PAGE_IN, 0.5 + 0.22 * (len(data["rows"]) + 1))
    ax.set_axis_off()
    if not data["rows"]:
        return look.absent(ax)
    cells = [_cells(name, row) for name, row in data["rows"].items()]
    widths = [0.13, 0.09, 0.1, 0.07, 0.09, 0.09, 0.08, 0.17, 0.18]
    drawn = ax.table(cellText=cells, colLabels=HEADS, loc="center", cellLoc="right", colWidths=widths)
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(look.LABEL_POINTS)
    for cell in drawn.get_celld().values():
        cell.set_linewidth(0.3)
    return figure


def _cells(name: str, row: dict[str, Any]) -> list[str]:
    fits, delay, slow = row["fits"], row["delay"], row["used_one_second"]
    fit = fits.better if fits else None
    return [
        name, f"{row['used'].value:.3f}", "–" if slow is None else f"{slow:.3f}", fit.form if fit else "–",
        f"{fit.b:.3g}" if fit else "–", f"{fit.r_squared:.3f}" if fit else "–", f"{delay.f:.2f}" if delay else "–",
        *(_range(top) for top in row["best"].values()),
    ]  # fmt: skip


def _range(top: Interval | None) -> str:
    """The best buffer and the range of buffers that count as best. If the range has no upper end, only the range."""
    if top is None or top.low is None or top.high is None:
        return "–"
    if math.isinf(top.high):
        return f"{top.low:.0f} or more" if top.low else "any"
    return f"{top.value:.0f} ({top.low:.0f} to {top.high:.0f})"


def facts(data: Data) -> list[Fact]:
    """For each row: utilization (the paper calls every link saturated), then the fits of loss and delay."""
    rows = []
    for name, row in data["rows"].items():
        think = f"think times of {row['think_s']:g} s"
        what = f"{name}: utilization with the largest buffer, {think} (saturated: {FULL:g} or more)"
        rows.append(Fact(what, "saturated", None, row["used"], ""))
        if row["used_one_second"] is not None:
            used = exactly(row["used_one_second"])
            rows.append(Fact(f"{name}: the same, think times of 1 s", "saturated", None, used, ""))
        rows += _fitted(name, row)
    return rows


def _fitted(name: str, row: dict[str, Any]) -> list[Fact]:
    """The evidence for the paper's form of the loss and the form's b, f and cutoff of the delay, and the best buffers;
    with the EX-form also the values on which the models' best buffers depend.
    """
    fits, delay, rows = row["fits"], row["delay"], []
    form = "PL" if row["gamma"] < 1 else "EX"
    if fits:
        fit = fits.power_law if form == "PL" else fits.exponential
        rows += [evidence(name, row["of"], fits, form)._replace(headline=False), coefficient(name, row["of"], fit)]
    if delay:
        what = f"{name}: f of d = f B / C (R² {delay.r_squared:.3f}, {delay.points} buffers)"
        rows.append(Fact(what, "typically 0.4", None, exactly(delay.f), "", over_points=True))
        cutoff = exactly(delay.cutoff)
        rows.append(
            Fact(f"{name}: cutoff of the delay", "", row["predicted_cutoff"], cutoff, "packets", over_points=True)
        )
    for kind, top in row["best"].items():
        if top is not None:
            what = f"{name}: best buffer of {kind}-flows{'' if row['counted'] else ' by size'}"
            printed = "0 (by the models)" if form == "EX" else ""
            rows.append(Fact(what, printed, None, top, "packets", over_points=True))
    if form == "EX" and fits and delay and fits.exponential.b > 0:
        a, slope = fits.exponential.a, fits.exponential.b * row["pipe"]
        large = f"{name}, L-model: b C T_o / 2f (the model's best buffer is 0 below 1)"
        rows.append(Fact(large, "below 1", None, exactly(slope / (2 * delay.f)), "", over_points=True))
        small = f"{name}, S-model: a M (b C T_o - f) / f D (the model's throughput falls from 0 on below 1)"
        ratio = a * S_SEGMENTS * (slope - delay.f) / (delay.f * slow_start_rtts(S_SEGMENTS))
        rows.append(Fact(small, "below 1", None, exactly(ratio), "", over_points=True))
    return rows


def table(data: Data) -> str:
    """The table of `draw` in Markdown."""
    lines = [f"| {' | '.join(HEADS)} |", "|---" * len(HEADS) + "|"]
    lines += [f"| {' | '.join(_cells(name, row))} |" for name, row in data["rows"].items()]
    return "\n".join(lines)


FIGURE = PaperFigure("table_1", CAPTION, (*STEMS, ONE_SECOND), prepare, draw, facts, table)
