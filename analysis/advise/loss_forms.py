# SPDX-License-Identifier: MIT
"""The form in which loss falls with the buffer, by capacity ratio, from our published figures of Prasad et al.

For Pareto sizes, the rows of Table 1 and the figure Ratios have the evidence for each form. For exponential sizes,
Figure 10 has fits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from analysis.map.ratio import PAPER
from analysis.papers import published_numbers
from analysis.papers.published_numbers import LOSS_EVIDENCE, LOSS_FIT, PublishedNumber
from analysis.theory.loss_fits import CLEAR
from lib.errors import InputError
from lib.terminal import one_line

TEXTS = {
    "PL": "loss falls as a power of the buffer: more always helps a little",
    "EX": "loss falls exponentially with the buffer: small buffers end it",
    "": "whether loss falls as a power of the buffer or exponentially is not decided",
}


class LossForm(NamedTuple):
    """`form`: PL, EX, or "" if neither is accepted."""

    gamma: float
    form: str
    evidence: str
    exponential_sizes: bool = False  # else Pareto sizes

    @property
    def text(self) -> str:
        return TEXTS[self.form]


def read(docs: Path) -> list[LossForm]:
    """Raises InputError if a figure's numbers are missing."""
    return [
        *_accepted(_numbers(docs, "table_1", LOSS_EVIDENCE)),
        *_of_ratios(_numbers(docs, "ratios", LOSS_EVIDENCE)),
        *_fitted(_numbers(docs, "figure_10", LOSS_FIT)),
    ]


def nearest(forms: Sequence[LossForm], gamma: float, exponential_sizes: bool = False) -> LossForm:
    """The form measured at the capacity ratio nearest to `gamma` on a logarithmic scale, with sizes of this kind if any
    form has them.
    """
    alike = [form for form in forms if form.exponential_sizes == exponential_sizes]
    return min(alike or forms, key=lambda form: abs(math.log(form.gamma / gamma)))


def _numbers(docs: Path, name: str, quantity: str) -> list[PublishedNumber]:
    path = docs / PAPER / f"{name}.csv"
    try:
        return published_numbers.read(path, quantity)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{path}: {one_line(error)}; publish {PAPER} again") from None


def _accepted(numbers: list[PublishedNumber]) -> list[LossForm]:
    """One result per capacity ratio and form: the form is accepted if more than half of its rows accept it."""
    rows: dict[tuple[float, str], list[float]] = {}
    for key, value, *_ in numbers:
        rows.setdefault((float(key["gamma"]), str(key["form"])), []).append(value)
    forms = []
    for (gamma, form), values in rows.items():
        accepted = sum(value >= CLEAR for value in values)
        kept = form if 2 * accepted > len(values) else ""
        forms.append(LossForm(gamma, kept, f"{accepted} of {len(values)} rows of Table 1 accept it"))
    return forms


def _of_ratios(numbers: list[PublishedNumber]) -> list[LossForm]:
    """One result per capacity ratio of the figure Ratios."""
    forms = []
    for key, value, *_ in numbers:
        form = "PL" if value >= CLEAR else "EX" if value <= -CLEAR else ""
        forms.append(LossForm(float(key["gamma"]), form, f"Ratios: evidence 10^{abs(value):.2g} to 1"))
    return forms


def _fitted(numbers: list[PublishedNumber]) -> list[LossForm]:
    """The fits of Figure 10 by capacity ratio. The paper says that neither form fits there, so neither is accepted."""
    fits: dict[float, list[str]] = {}
    for number in numbers:
        key = number.key
        if str(key["sizes"]).startswith("exponential:"):
            name = "power" if key["form"] == "PL" else "exponential"
            fits.setdefault(float(key["gamma"]), []).append(f"{name} R² {key['r_squared']:.3f}")
    return [LossForm(gamma, "", f"Figure 10: {', '.join(texts)}", True) for gamma, texts in fits.items()]
