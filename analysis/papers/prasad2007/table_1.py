# SPDX-License-Identifier: MIT
"""Table 1: the paper's links and users, with our measurements of each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from analysis.arithmetic.statistics import Interval
from analysis.figures.common import Data
from analysis.papers import look
from analysis.papers.facts import Fact, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRuns
from analysis.papers.prasad2007.best_buffer import means
from analysis.papers.prasad2007.loss import coefficient, evidence
from analysis.papers.prasad2007.rows import FULL, OF_USERS, ROWS, STEMS, Measured, Row
from analysis.papers.prasad2007.testbed import best
from analysis.theory.capacity_ratio import S_SEGMENTS, slow_start_rtts

CAPTION = (
    "links and users of Table 1: utilization with the largest buffer, with our think times and with 1 s; which form of "
    "loss fits, f of the delay, and the buffers with the fastest transfers."
)
ONE_SECOND = "one-second"
HEADS = ("N/U/Γ", "used", "used (1 s)", "form", "b", "R²", "f", "best, S", "best, L")


def prepare(runs: PaperRuns) -> Data:
    """For each row with runs: its cells, utilization (the paper calls every link saturated), and the fits of loss and
    delay.
    """
    slow = {
        (run["users"], run["rate_bps"], run["access_links"]): run["utilization_mean"]
        for run in runs.select(ONE_SECOND, repetition=1, **OF_USERS)
    }
    cells: list[list[str]] = []
    rows: list[Fact] = []
    for row in ROWS:
        measured = Measured.of(runs, row)
        if measured is None:
            continue
        run, used = measured.runs[0], measured.used[max(measured.used)]
        used_slow = slow.get((run["users"], run["rate_bps"], run["access_links"]))
        tops = {kind: best(of) if of else None for kind, of in means(measured.by_buffer()).by_events.items()}
        fits, delay = measured.forms, measured.delay_fit
        fit = fits.better if fits else None
        cells.append([
            row.name, f"{used.value:.3f}", "–" if used_slow is None else f"{used_slow:.3f}", fit.form if fit else "–",
            f"{fit.b:.3g}" if fit else "–", f"{fit.r_squared:.3f}" if fit else "–", f"{delay.f:.2f}" if delay else "–",
            *map(_range, tops.values()),
        ])  # fmt: skip
        think = f"think times of {(run.experiment.finite[0].mean_think_ns or 0.0) / 1e9:g} s"
        what = f"{row.name}: utilization with the largest buffer, {think} (saturated: {FULL:g} or more)"
        rows.append(Fact(what, "saturated", None, used, ""))
        if used_slow is not None:
            what = f"{row.name}: the same, think times of 1 s"
            rows.append(Fact(what, "saturated", None, exactly(used_slow), ""))
        rows += _fitted(row, measured, tops)
    return {"cells": cells, "facts": rows}


def _fitted(row: Row, measured: Measured, tops: Mapping[str, Interval | None]) -> list[Fact]:
    """The evidence for the paper's form of the loss and the form's b, f and cutoff of the delay, and the best buffers;
    with the EX-form also the values on which the models' best buffers depend.
    """
    name, fits, delay, of = row.name, measured.forms, measured.delay_fit, measured.key(row.gamma)
    form, rows, fact = "PL" if row.gamma < 1 else "EX", [], partial(Fact, over_points=True)
    if fits:
        fit = fits.power_law if form == "PL" else fits.exponential
        rows += [evidence(name, of, fits, form)._replace(headline=False), coefficient(name, of, fit)]
    if delay:
        what = f"{name}: f of d = f B / C (R² {delay.r_squared:.3f}, {delay.points} buffers)"
        rows.append(fact(what, "typically 0.4", None, exactly(delay.f), ""))
        cutoff, predicted = exactly(delay.cutoff), measured.predicted_cutoff()
        rows.append(fact(f"{name}: cutoff of the delay", "", predicted, cutoff, "packets"))
    printed = "0 (by the models)" if form == "EX" else ""
    for kind, top in tops.items():
        if top is not None:
            rows.append(fact(f"{name}: best buffer of {kind}-flows", printed, None, top, "packets"))
    if form == "EX" and fits and delay and fits.exponential.b > 0:
        a, slope = fits.exponential.a, fits.exponential.b * measured.pipe
        what = f"{name}, L-model: b C T_o / 2f (the model's best buffer is 0 below 1)"
        rows.append(fact(what, "below 1", None, exactly(slope / (2 * delay.f)), ""))
        what = f"{name}, S-model: a M (b C T_o - f) / f D (the model's throughput falls from 0 on below 1)"
        ratio = a * S_SEGMENTS * (slope - delay.f) / (delay.f * slow_start_rtts(S_SEGMENTS))
        rows.append(fact(what, "below 1", None, exactly(ratio), ""))
    return rows


def draw(data: Data) -> look.Figure:
    """A table of text."""
    cells = data["cells"]
    figure, ax = look.new_panel(look.PAGE_IN, 0.5 + 0.22 * (len(cells) + 1))
    ax.set_axis_off()
    if not cells:
        return look.absent(ax)
    widths = [0.13, 0.09, 0.1, 0.07, 0.09, 0.09, 0.08, 0.17, 0.18]
    drawn = ax.table(cellText=cells, colLabels=HEADS, loc="center", cellLoc="right", colWidths=widths)
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(look.LABEL_POINTS)
    for cell in drawn.get_celld().values():
        cell.set_linewidth(0.3)
    return figure


def _range(top: Interval | None) -> str:
    """The best buffer and the range of buffers that count as best. If the range has no upper end, only the range."""
    if top is None or top.low is None or top.high is None:
        return "–"
    if math.isinf(top.high):
        return f"{top.low:.0f} or more" if top.low else "any"
    return f"{top.value:.0f} ({top.low:.0f} to {top.high:.0f})"


def table(data: Data) -> str:
    """The table of `draw` in Markdown."""
    lines = [f"| {' | '.join(HEADS)} |", "|---" * len(HEADS) + "|"]
    return "\n".join(lines + [f"| {' | '.join(cells)} |" for cells in data["cells"]])


TABLE_1 = PaperFigure("table_1", CAPTION, (*STEMS, ONE_SECOND), prepare, draw, table=table)
