# SPDX-License-Identifier: MIT
"""Loss and delay against the buffer: the power law of loss (PL-form) and the exponential (EX-form) of Figures 10 and
12, the delay of Figure 11, and, beyond the paper, the capacity ratio at which the power law gives way to the
exponential. The paper says that the forms change at a ratio of 1; it has rows at 0.1 and 10, and one case at 0.8.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from analysis.arithmetic.statistics import Interval
from analysis.figures.common import BLACK, BLUE, GREEN, GREY, ORANGE, Data
from analysis.papers import curves, look
from analysis.papers.curves import Curve, Line, Panel, Shape
from analysis.papers.facts import Fact, absent, each, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.prasad2007.rows import BY_NAME, OF_USERS, Measured, capacity
from analysis.papers.published_numbers import LOSS_EVIDENCE, LOSS_FIT, Key
from analysis.theory.loss_fits import CLEAR, Comparison, LossFit

SLOW, FAST = BY_NAME["20/100/0.1"], BY_NAME["1000/25/10"]  # the link, compared with its inputs

# Figures 10 and 12 ----------------------------------------------------------------------------------------------------

FORMS = {"PL": ("PL-form a B^−b", "--"), "EX": ("EX-form a e^(−b B)", ":")}


def _losses(row: str, form: str, neither: dict[str, float], runs: PaperRuns) -> Data:
    """The evidence for the paper's form, and both fits; then the loss with the buffers of ns-3's runs."""
    measured = {row: (BY_NAME[row].gamma, Measured.of(runs, BY_NAME[row]))}
    for stem, gamma in neither.items():
        selected = runs.select(stem, **OF_USERS)
        measured[f"Γ = {gamma:g}"] = gamma, Measured(selected) if selected else None
    known = {name: (gamma, of) for name, (gamma, of) in measured.items() if of is not None}
    drawn, rows = {}, []
    for (name, (gamma, of)), shade in zip(known.items(), (BLUE, GREEN), strict=False):
        points, fits, key = {at: point for at, point in of.loss.items() if point.value > 0}, of.forms, of.key(gamma)
        drawn[name] = Curve(points, shade, beside=_fits(fits, list(points), shade) if fits and points else [])
        if fits is None:
            rows.append(absent(f"{name}: too few buffers with loss below the cutoff"))
            continue
        printed = "neither form is good"
        if name == row:
            rows.append(evidence(name, key, fits, form))
            printed = ""
        rows += [coefficient(name, key, fit, printed) for fit in (fits.power_law, fits.exponential)]
    for name, (_, of) in known.items():
        beside = BY_NAME[name].beside_ns3 if name in BY_NAME else ()
        rows += each({at: of.loss[at] for at in beside if at in of.loss}, f"{name}, B = {{}}: dropped share")
    return {"panels": {"": Panel(drawn)} if drawn else {}, "form": form, "facts": rows}


def _fits(fits: Comparison, buffers: list[float], shade: str) -> list[Line]:
    """Both forms; those of the first curve are in the legend."""
    at, is_first = np.geomspace(min(buffers), max(buffers), 60), shade == BLUE
    lines = []
    for fit in (fits.power_law, fits.exponential):
        text, style = FORMS[fit.form]
        values = [fit.loss(buffer) for buffer in at]
        lines.append(Line(at, values, text if is_first else None, style, ORANGE if is_first else shade, 0.8))
    return lines


def _straight(ax: look.Axes, panel: Panel, data: Data) -> None:
    """Axes on which the paper's form is a straight line."""
    if data["form"] == "PL":
        ax.set_xscale("log")
    ns3 = look.of_ns3(data, "panels").get("", Panel({}))
    lossy = [point.value for each in (panel, ns3) for curve in each.curves.values() for point in curve.points.values()]
    ax.set_ylim(min(lossy, default=0.1) / 2, 1)


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


def _figure(name: str, row: str, form: str, caption: str, neither: dict[str, float]) -> PaperFigure:
    """The figure of one row of Table 1; `form` is the paper's form of the loss. `neither` has the capacity ratios of
    sweeps, by stem, for which the paper finds that neither form fits.
    """
    shape = Shape(
        "buffer B (packets)", "dropped share p", (look.COLUMN_IN, 2.7), log="y", y={}, margin=0.04, ns3="each",
        more=_straight, legend={"loc": "lower left"},
    )  # fmt: skip
    stems = (BY_NAME[row].stem, *neither)
    return curves.figure(name, caption, stems, partial(_losses, row, form, neither), shape)


FIGURE_10 = _figure(
    "figure_10", SLOW.name, "PL",
    "loss against the buffer for a capacity ratio of 0.1 (20 inputs, 100 users), and for 0.8 with "
    "exponential sizes (section 6.2). Lines: both forms, fitted from 10 packets to the cutoff of the delay.",
    {"slightly-slower": 0.8},
)  # fmt: skip
FIGURE_12 = _figure(
    "figure_12", FAST.name, "EX",
    "loss against the buffer for a capacity ratio of 10 (1,000 inputs, 25 users). Lines: "
    "both forms, fitted from 10 packets to the cutoff of the delay.",
    {},
)  # fmt: skip

# Figure 11 ------------------------------------------------------------------------------------------------------------

CAPTION_11 = "mean queueing delay against the buffer for a capacity ratio of 0.1 (20 inputs, 100 users). Line: f B / C."


def _delays(runs: PaperRuns) -> Data:
    """Delay by buffer; f with the quality of the fit, and the cutoff by two definitions."""
    measured = Measured.of(runs, SLOW)
    if measured is None:
        return {"panels": {}, "facts": [absent("too few buffers")]}
    fit, link, delays = measured.delay_fit, capacity(measured.runs[0]), measured.delay_s
    lines, rows = [], [absent("too few buffers")]
    if fit:
        lines = [Line([0.0, fit.cutoff], [0.0, 1e3 * fit.f * fit.cutoff / link], None, "--", width=0.8)]
        meeting = exactly(delays[max(delays)].value * link / fit.f)
        cutoffs = {"largest buffer of the linear part": exactly(fit.cutoff),
                   "f B / C is the delay of the largest buffer": meeting}  # fmt: skip
        what = f"f of d = f B / C (R² {fit.r_squared:.3f}, {fit.points} buffers)"
        rows = [Fact(what, "typically 0.4", None, exactly(fit.f), "", headline=True)]
        rows += each(cutoffs, "cutoff: {}", predicted=measured.predicted_cutoff(), unit="packets")
    points = {buffer: point.scaled(1e3) for buffer, point in delays.items()}
    return {"panels": {"": Panel({"": Curve(points)}, lines)}, "facts": rows}


FIGURE_11 = curves.figure(
    "figure_11", CAPTION_11, (SLOW.stem,), _delays,
    Shape("buffer B (packets)", "mean queueing delay (ms)", (look.COLUMN_IN, 2.5), log="", margin=0, ns3="",
          x={"left": 0}, y={"bottom": 0}),
)  # fmt: skip

# Beyond the paper -----------------------------------------------------------------------------------------------------

CAPTION = (
    "left: loss against the buffer for capacity ratios from 0.1 to 10; dark curves have slow input links. Right: the "
    "evidence for the power law, from fits between 10 packets and the cutoff of the delay. Above the grey band the "
    "power law fits better by a factor of 10 or more, below it the exponential. The paper says that the form changes "
    "at 1 (dotted)."
)
STEM = "ratios"
PRINTED = 1.0


def _by_ratio(runs: PaperRuns) -> Data:
    """The ratio at which the forms change, and the evidence at each ratio."""
    by_ratio: dict[float, list[PaperRun]] = {}
    for run in [*runs.select(SLOW.stem, **OF_USERS), *runs.select(STEM, **OF_USERS)]:
        ratio = round(run["rate_bps"] / (run.experiment.shared.access_bps or 1), 2)
        by_ratio.setdefault(ratio, []).append(run)
    if not by_ratio:
        return {"curves": {}, "facts": [absent("no valid run")]}
    measured = {ratio: Measured(of) for ratio, of in sorted(by_ratio.items())}
    evidences = {ratio: of.forms.log_evidence_for_power_law if of.forms else None for ratio, of in measured.items()}
    known = {ratio: evidence for ratio, evidence in evidences.items() if evidence is not None}
    change = crossing(known)
    what = "capacity ratio at which the power law gives way to the exponential (interval: clear evidence at its ends)"
    rows = [Fact(what, "1", None, change, "", none="not found", headline=True, over_points=True)]
    for ratio, evidence in evidences.items():
        form = "PL" if ratio < PRINTED else "EX" if ratio > PRINTED else ""
        what = f"Γ = {ratio:g}: evidence ratio PL : EX, its logarithm"
        key = {"quantity": LOSS_EVIDENCE, **measured[ratio].key(ratio), "form": "PL"}
        number = None if evidence is None else exactly(evidence)
        rows.append(Fact(what, form, None, number, "", over_points=True, key=key))
    losses = {ratio: of.loss for ratio, of in measured.items()}
    return {"curves": losses, "known": known, "crossing": change, "facts": rows}


def crossing(evidences: dict[float, float]) -> Interval | None:
    """The ratio at which the evidence turns from the power law to the exponential, interpolated between logarithms of
    ratios. The interval begins at the largest lower ratio with clear evidence for the power law, and ends at the least
    higher ratio with clear evidence for the exponential; an end without such a ratio is open. None unless the evidence
    turns exactly once, and in this direction.
    """
    known = sorted(evidences.items())
    changes = [at for at in range(1, len(known)) if (known[at - 1][1] > 0) != (known[at][1] > 0)]
    if len(changes) != 1 or known[0][1] <= 0:
        return None
    (below, before), (above, after) = known[changes[0] - 1 : changes[0] + 1]
    share = before / (before - after)
    middle = math.exp(math.log(below) + share * (math.log(above) - math.log(below)))
    low = max((ratio for ratio, evidence in known if ratio <= below and evidence >= CLEAR), default=0.0)
    high = min((ratio for ratio, evidence in known if ratio >= above and evidence <= -CLEAR), default=math.inf)
    return Interval(middle, low, high, 1)


def _draw_ratios(data: Data) -> look.Figure:
    """Loss on the left, evidence on the right."""
    figure, axes = look.new_figure(look.PAGE_IN, 2.8, 1, 2)
    left, right = axes[0]
    if not data["curves"]:
        return look.absent(left, right)
    from matplotlib import colormaps

    look.log_axis(left.xaxis)
    left.set_yscale("log")
    left.margins(0.05)
    shades = colormaps["viridis_r"]
    for number, (ratio, loss) in enumerate(data["curves"].items()):
        lossy = {buffer: point.value for buffer, point in loss.items() if point.value > 0}
        shade = shades(0.15 + 0.85 * number / max(len(data["curves"]) - 1, 1))
        style: dict[str, Any] = {"color": shade, "markersize": 2.5, "linewidth": 0.8}
        left.plot(list(lossy), list(lossy.values()), "o-", label=f"{ratio:g}", **style)
    left.set_xlabel("buffer B (packets)")
    left.set_ylabel("dropped share p")
    left.legend(title="capacity ratio Γ", loc="lower left", frameon=False, ncols=2)
    look.log_axis(right.xaxis)
    right.margins(0.05)
    right.axhspan(-CLEAR, CLEAR, color=GREY, alpha=0.2, linewidth=0)
    right.axvline(PRINTED, color=BLACK, linestyle=":", linewidth=0.8)
    known = data["known"]
    right.plot(list(known), list(known.values()), "o-", color=BLUE, linewidth=0.8)
    if data["crossing"]:
        right.axvline(data["crossing"].value, color=ORANGE, linewidth=0.8)
        look.note(right, f"{data['crossing'].value:.2g}", (data["crossing"].value, max(known.values())), (4, 0),
                  color=ORANGE)  # fmt: skip
    right.set_xlabel("capacity ratio Γ")
    right.set_ylabel("log10 of the evidence, PL : EX")
    return figure


RATIOS = PaperFigure("ratios", CAPTION, (SLOW.stem, STEM), _by_ratio, _draw_ratios)
