# SPDX-License-Identifier: MIT
"""Figures 10 and 12: loss against the buffer, with the power law (PL-form) and the exponential (EX-form)."""

from __future__ import annotations

from functools import partial

import numpy as np

from analysis.figures.common import BLUE, GREEN, ORANGE, Data
from analysis.papers import look
from analysis.papers.facts import Fact, absent
from analysis.papers.paper import PaperFigure
from analysis.papers.prasad2007.rows import BY_NAME, Measured
from analysis.papers.stored_runs import StoredRuns
from analysis.statistics import Interval

FORMS = {"PL": "PL-form a B^−b", "EX": "EX-form a e^(−b B)"}


def figure(name: str, row: str, form: str, caption: str, more: tuple[str, ...] = ()) -> PaperFigure:
    """The figure of one row of Table 1; `form` is the one that the paper finds. `more` are sweeps like a row's."""
    stems = (BY_NAME[row].stem, *more)
    return PaperFigure(name, caption, stems, partial(prepare, row, form, more), draw, facts)


def prepare(row: str, form: str, more: tuple[str, ...], runs: StoredRuns) -> Data:
    """Loss by buffer, and both fits."""
    found = {row: Measured.of(runs, BY_NAME[row])}
    for stem in more:
        selected = runs.select(stem)
        found[stem] = Measured(selected) if selected else None
    curves = {name: {"loss": each.loss, "fits": each.loss_fits} for name, each in found.items() if each is not None}
    return {"provenance": runs.provenance(), "curves": curves, "form": form}


def draw(data: Data) -> look.Figure:
    """The axes in which the paper's form is a straight line."""
    figure, axes = look.new_figure(look.COLUMN_IN, 2.7)
    ax = axes[0, 0]
    if not data["curves"]:
        look.absent(ax, "no valid run")
        return figure
    ax.set_yscale("log")
    if data["form"] == "PL":
        ax.set_xscale("log")
    for (name, curve), shade in zip(data["curves"].items(), (BLUE, GREEN), strict=False):
        points = {buffer: point for buffer, point in curve["loss"].items() if point.value > 0}
        look.interval_bars(ax, points, points.values(), shade)
        ax.plot([], [], "o", color=shade, label=name.replace("-", " "))
        if curve["fits"] is None or not points:
            continue
        buffers = np.geomspace(min(points), max(points), 60)
        for fit, style in ((curve["fits"].power_law, "--"), (curve["fits"].exponential, ":")):
            ax.plot(buffers, [fit.loss(buffer) for buffer in buffers], style, color=ORANGE if shade == BLUE else shade,
                    linewidth=0.8, label=FORMS[fit.form] if shade == BLUE else None)  # fmt: skip
        low = min(point.value for point in points.values())
        ax.set_ylim(low / 2, 1)
    ax.set_xlabel("buffer B (packets)")
    ax.set_ylabel("dropped share p")
    ax.legend(loc="lower left", frameon=False)
    return figure


def facts(data: Data) -> list[Fact]:
    """Which form fits, by how much, and its exponent."""
    rows = []
    for name, curve in data["curves"].items():
        fits = curve["fits"]
        if fits is None:
            rows.append(absent(f"{name}: too few buffers with loss"))
            continue
        evidence = fits.evidence_for_power_law if data["form"] == "PL" else 1 / max(fits.evidence_for_power_law, 1e-300)
        what = f"{name}: evidence for the {data['form']}-form over the other (asked 10)"
        rows.append(Fact(what, data["form"], None, Interval(min(evidence, 1e6), None, None, 1), "", headline=True))
        for fit in (fits.power_law, fits.exponential):
            unit = "" if fit.form == "PL" else "a packet"
            what = f"{name}, {fit.form}-form: b (R² {fit.r_squared:.3f}, a = {fit.a:.3g}, {fit.points} buffers)"
            rows.append(Fact(what, "", None, Interval(fit.b, fit.b_low, fit.b_high, fit.points), unit))
    return rows
