# SPDX-License-Identifier: MIT
"""Figures 10 and 12: loss against the buffer, with the power law (PL-form) and the exponential (EX-form)."""

from __future__ import annotations

from functools import partial

import numpy as np

from analysis.figures.common import BLUE, GREEN, ORANGE, Data
from analysis.papers import look
from analysis.papers.facts import Fact, absent, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.prasad2007.rows import BY_NAME, OF_USERS, Measured
from analysis.papers.stored_runs import StoredRuns
from analysis.published_numbers import LOSS_EVIDENCE, LOSS_FIT, Key
from analysis.statistics import Interval
from analysis.theory.loss_fits import Comparison, LossFit

FORMS = {"PL": "PL-form a B^−b", "EX": "EX-form a e^(−b B)"}


def figure(name: str, row: str, form: str, caption: str, neither: dict[str, float] | None = None) -> PaperFigure:
    """The figure of one row of Table 1; `form` is the paper's form of the loss. `neither` has the capacity ratios of
    sweeps, by stem, for which the paper finds that neither form fits.
    """
    others = neither or {}
    stems = (BY_NAME[row].stem, *others)
    return PaperFigure(name, caption, stems, partial(prepare, row, form, others), draw, facts)


def prepare(row: str, form: str, neither: dict[str, float], runs: StoredRuns) -> Data:
    """Loss by buffer, and both fits."""
    measured = {row: Measured.of(runs, BY_NAME[row])}
    gammas = {row: BY_NAME[row].gamma} | {f"Γ = {gamma:g}": gamma for gamma in neither.values()}
    for stem, gamma in neither.items():
        selected = runs.select(stem, **OF_USERS)
        measured[f"Γ = {gamma:g}"] = Measured(selected) if selected else None
    curves = {
        name: {"loss": each.loss, "fits": each.forms, "of": each.key(gammas[name])}
        for name, each in measured.items()
        if each is not None
    }
    return {"provenance": runs.provenance(), "curves": curves, "form": form, "of_paper": row}


def draw(data: Data) -> look.Figure:
    """Loss against the buffer, on axes on which the paper's form is a straight line."""
    figure, ax = look.new_panel(look.COLUMN_IN, 2.7)
    if not data["curves"]:
        return look.absent(ax)
    ax.set_yscale("log")
    ax.margins(x=0.04)
    if data["form"] == "PL":
        ax.set_xscale("log")
    for (name, curve), shade in zip(data["curves"].items(), (BLUE, GREEN), strict=False):
        points = {buffer: point for buffer, point in curve["loss"].items() if point.value > 0}
        look.interval_bars(ax, points, points.values(), shade, label=name)
        simulated = data.get("ns3", {}).get("curves", {}).get(name, {}).get("loss", {})
        if simulated := {buffer: point for buffer, point in simulated.items() if point.value > 0}:
            look.ns3_points(ax, simulated, simulated.values(), shade)
        if curve["fits"] is None or not points:
            continue
        buffers = np.geomspace(min(points), max(points), 60)
        for fit, style in ((curve["fits"].power_law, "--"), (curve["fits"].exponential, ":")):
            ax.plot(buffers, [fit.loss(buffer) for buffer in buffers], style, color=ORANGE if shade == BLUE else shade,
                    linewidth=0.8, label=FORMS[fit.form] if shade == BLUE else None)  # fmt: skip
    drawn = [*data["curves"].values(), *data.get("ns3", {}).get("curves", {}).values()]
    lossy = [point.value for curve in drawn for point in curve["loss"].values() if point.value > 0]
    ax.set_ylim(min(lossy, default=0.1) / 2, 1)
    ax.set_xlabel("buffer B (packets)")
    ax.set_ylabel("dropped share p")
    ax.legend(loc="lower left", frameon=False)
    return figure


def facts(data: Data) -> list[Fact]:
    """The evidence for the paper's form, and both fits; then the loss with the buffers of ns-3's runs."""
    rows = []
    for name, curve in data["curves"].items():
        fits = curve["fits"]
        if fits is None:
            rows.append(absent(f"{name}: too few buffers with loss below the cutoff"))
            continue
        if name == data["of_paper"]:
            rows.append(evidence(name, curve["of"], fits, data["form"]))
        for fit in (fits.power_law, fits.exponential):
            printed = "" if name == data["of_paper"] else "neither form is good"
            rows.append(coefficient(name, curve["of"], fit, printed))
    for name, curve in data["curves"].items():
        beside = BY_NAME[name].beside_ns3 if name in BY_NAME else ()
        for buffer in beside:
            if buffer in curve["loss"]:
                rows.append(Fact(f"{name}, B = {buffer}: dropped share", "", None, curve["loss"][buffer], ""))
    return rows


def coefficient(name: str, of: Key, fit: LossFit, printed: str = "") -> Fact:
    """b of a fit, with its interval. `of` is Measured.key."""
    unit = "" if fit.form == "PL" else "a packet"
    what = f"{name}, {fit.form}-form: b (R² {fit.r_squared:.3f}, a = {fit.a:.3g}, {fit.points} buffers)"
    estimate = Interval(fit.b, fit.b_low, fit.b_high, 1)
    key = {"quantity": LOSS_FIT, **of, "form": fit.form, "r_squared": round(fit.r_squared, 3)}
    return Fact(what, printed, None, estimate, unit, over_points=True, key=key)


def evidence(name: str, of: Key, fits: Comparison, form: str) -> Fact:
    """The decimal logarithm of the evidence ratio for a form; the ratio itself can have hundreds of digits."""
    ratio = fits.log_evidence_for_power_law if form == "PL" else -fits.log_evidence_for_power_law
    other = "EX" if form == "PL" else "PL"
    what = f"{name}: evidence ratio {form} : {other}, its logarithm (accepted from 1 on)"
    key = {"quantity": LOSS_EVIDENCE, **of, "form": form}
    verdict = "accepted" if ratio >= 1 else "not accepted"
    return Fact(what, form, None, exactly(ratio), "", verdict, headline=True, over_points=True, key=key)
