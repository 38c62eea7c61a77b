# SPDX-License-Identifier: MIT
"""Beyond the paper: the capacity ratio at which the power law of loss gives way to the exponential.

The paper says that the forms change at a ratio of 1. It has rows at 0.1 and 10, and one case at 0.8.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from analysis.figures.common import BLACK, BLUE, GREY, ORANGE, Data
from analysis.papers import look
from analysis.papers.facts import Fact, absent, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.prasad2007.rows import BY_NAME, OF_USERS, Measured
from analysis.papers.series import Series
from analysis.papers.stored_runs import StoredRun, StoredRuns
from analysis.published_numbers import LOSS_EVIDENCE, Key
from analysis.statistics import Interval
from analysis.theory.loss_fits import CLEAR

CAPTION = (
    "left: loss against the buffer for capacity ratios from 0.1 to 10; dark curves have slow input links. Right: the "
    "evidence for the power law, from fits between 10 packets and the cutoff of the delay. Above the grey band the "
    "power law fits better by a factor of 10 or more, below it the exponential. The paper says that the form changes "
    "at 1 (dotted)."
)
STEM, FAST = "ratios", BY_NAME["20/100/0.1"]
PRINTED = 1.0


class RatioCurve(NamedTuple):
    """Loss by buffer at one capacity ratio, and the decimal logarithm of the evidence for the power law."""

    loss: Series
    evidence: float | None  # None: too few buffers with loss
    of: Key


def prepare(runs: StoredRuns) -> Data:
    """Curves by capacity ratio."""
    by_ratio: dict[float, list[StoredRun]] = {}
    for run in [*runs.select(FAST.stem, **OF_USERS), *runs.select(STEM, **OF_USERS)]:
        ratio = round(run["rate_bps"] / run.experiment.access_bps, 2)
        by_ratio.setdefault(ratio, []).append(run)
    curves = {ratio: _curve(ratio, Measured(of)) for ratio, of in sorted(by_ratio.items())}
    return {"provenance": runs.provenance(), "curves": curves, "crossing": crossing(curves)}


def _curve(ratio: float, measured: Measured) -> RatioCurve:
    fits = measured.forms
    return RatioCurve(measured.loss, fits.log_evidence_for_power_law if fits else None, measured.key(ratio))


def crossing(curves: dict[float, RatioCurve]) -> Interval | None:
    """The ratio at which the evidence turns from the power law to the exponential, interpolated between logarithms of
    ratios. The interval begins at the largest lower ratio with clear evidence for the power law, and ends at the least
    higher ratio with clear evidence for the exponential; an end without such a ratio is open. None unless the evidence
    turns exactly once, and in this direction.
    """
    known = [(ratio, curve.evidence) for ratio, curve in sorted(curves.items()) if curve.evidence is not None]
    changes = [at for at in range(1, len(known)) if (known[at - 1][1] > 0) != (known[at][1] > 0)]
    if len(changes) != 1 or known[0][1] <= 0:
        return None
    (below, before), (above, after) = known[changes[0] - 1 : changes[0] + 1]
    share = before / (before - after)
    middle = math.exp(math.log(below) + share * (math.log(above) - math.log(below)))
    low = max((ratio for ratio, evidence in known if ratio <= below and evidence >= CLEAR), default=0.0)
    high = min((ratio for ratio, evidence in known if ratio >= above and evidence <= -CLEAR), default=math.inf)
    return Interval(middle, low, high, 1)


def draw(data: Data) -> look.Figure:
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
    for number, (ratio, curve) in enumerate(data["curves"].items()):
        lossy = {buffer: point.value for buffer, point in curve.loss.items() if point.value > 0}
        shade = shades(0.15 + 0.85 * number / max(len(data["curves"]) - 1, 1))
        left.plot(
            list(lossy), list(lossy.values()), "o-", color=shade, markersize=2.5, linewidth=0.8, label=f"{ratio:g}"
        )
    left.set_xlabel("buffer B (packets)")
    left.set_ylabel("dropped share p")
    left.legend(title="capacity ratio Γ", loc="lower left", frameon=False, ncols=2)
    look.log_axis(right.xaxis)
    right.margins(0.05)
    right.axhspan(-CLEAR, CLEAR, color=GREY, alpha=0.2, linewidth=0)
    right.axvline(PRINTED, color=BLACK, linestyle=":", linewidth=0.8)
    known = {ratio: curve.evidence for ratio, curve in data["curves"].items() if curve.evidence is not None}
    right.plot(list(known), list(known.values()), "o-", color=BLUE, linewidth=0.8)
    if data["crossing"]:
        right.axvline(data["crossing"].value, color=ORANGE, linewidth=0.8)
        look.note(right, f"{data['crossing'].value:.2g}", (data["crossing"].value, max(known.values())), (4, 0),
                  color=ORANGE)  # fmt: skip
    right.set_xlabel("capacity ratio Γ")
    right.set_ylabel("log10 of the evidence, PL : EX")
    return figure


def facts(data: Data) -> list[Fact]:
    """The ratio at which the forms change, and the evidence at each ratio."""
    if not data["curves"]:
        return [absent("no valid run")]
    what = "capacity ratio at which the power law gives way to the exponential (interval: clear evidence at its ends)"
    rows = [Fact(what, "1", None, data["crossing"], "", none="not found", headline=True, over_points=True)]
    for ratio, curve in data["curves"].items():
        measured = None if curve.evidence is None else exactly(curve.evidence)
        form = "PL" if ratio < PRINTED else "EX" if ratio > PRINTED else ""
        what = f"Γ = {ratio:g}: evidence ratio PL : EX, its logarithm"
        key = {"quantity": LOSS_EVIDENCE, **curve.of, "form": "PL"}
        rows.append(Fact(what, form, None, measured, "", over_points=True, key=key))
    return rows


FIGURE = PaperFigure("ratios", CAPTION, (FAST.stem, STEM), prepare, draw, facts)
