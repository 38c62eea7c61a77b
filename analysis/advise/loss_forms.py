# SPDX-License-Identifier: MIT
"""The form in which loss falls with the buffer, by capacity ratio, from our published figures of Prasad et al.

The rows of Table 1 and the figure Ratios say which form was accepted, for Pareto sizes. Figure 10 has fits for
exponential sizes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from analysis.map.ratio import PAPER
from analysis.theory.loss_fits import CLEAR
from lib.errors import InputError

ROW = re.compile(r"^\d+/\d+/([0-9.]+): evidence ratio (PL|EX) : (?:PL|EX), its logarithm")
RATIO = re.compile(r"^Γ = ([0-9.]+): evidence ratio PL : EX, its logarithm")
FIT = re.compile(r"^Γ = ([0-9.]+), (PL|EX)-form: b \(R² ([0-9.]+)")
TEXTS = {
    "PL": "loss falls as a power of the buffer: more always helps a little",
    "EX": "loss falls exponentially with the buffer: small buffers end it",
    "": "neither a power nor an exponential is sure for the loss",
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
    of_table = _accepted(_numbers(docs, "table_1"))
    return [*of_table, *_of_ratios(_numbers(docs, "ratios")), *_fitted(_numbers(docs, "figure_10"))]


def nearest(forms: Sequence[LossForm], gamma: float, exponential_sizes: bool = False) -> LossForm:
    """The form measured at the capacity ratio nearest to `gamma` on a logarithmic scale, with sizes of this kind if any
    form has them.
    """
    alike = [form for form in forms if form.exponential_sizes == exponential_sizes]
    return min(alike or forms, key=lambda form: abs(math.log(form.gamma / gamma)))


def _numbers(docs: Path, name: str) -> list[tuple[str, float]]:
    path = docs / PAPER / f"{name}.csv"
    try:
        table = pl.read_csv(path, infer_schema_length=None).filter(pl.col("measured").is_not_null())
        return list(zip(table["what"], table["measured"], strict=True))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{path}: {str(error).splitlines()[0]}; publish {PAPER} again") from None


def _accepted(numbers: list[tuple[str, float]]) -> list[LossForm]:
    """One result per capacity ratio and form: the form is accepted if more than half of its rows accept it."""
    rows: dict[tuple[float, str], list[float]] = {}
    for what, value in numbers:
        if match := ROW.match(what):
            rows.setdefault((float(match[1]), match[2]), []).append(value)
    forms = []
    for (gamma, form), values in rows.items():
        accepted = sum(value >= CLEAR for value in values)
        kept = form if 2 * accepted > len(values) else ""
        forms.append(LossForm(gamma, kept, f"{accepted} of {len(values)} rows of Table 1 accept it"))
    return forms


def _of_ratios(numbers: list[tuple[str, float]]) -> list[LossForm]:
    """One result per capacity ratio of the figure Ratios."""
    forms = []
    for what, value in numbers:
        if match := RATIO.match(what):
            form = "PL" if value >= CLEAR else "EX" if value <= -CLEAR else ""
            forms.append(LossForm(float(match[1]), form, f"Ratios: evidence of 10 to the {abs(value):.2g}"))
    return forms


def _fitted(numbers: list[tuple[str, float]]) -> list[LossForm]:
    """The fits of Figure 10 by capacity ratio. The paper says that neither form fits there, so neither is accepted."""
    fits: dict[float, list[str]] = {}
    for what, _ in numbers:
        if match := FIT.match(what):
            name = "power" if match[2] == "PL" else "exponential"
            fits.setdefault(float(match[1]), []).append(f"{name} R² {match[3]}")
    return [LossForm(gamma, "", f"Figure 10: {', '.join(texts)}", True) for gamma, texts in fits.items()]
