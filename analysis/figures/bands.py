# SPDX-License-Identifier: MIT
"""Draws many flows as bands of percentiles over flows, because thousands of lines would hide each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analysis.figures import canvas, common
from analysis.figures.common import DISTINCT, GREY, Data

PERCENTILES = (1, 10, 25, 50, 75, 90, 99)
# (lower, upper) row of PERCENTILES, opacity. With several algorithms the widest bands, which overlap, are left out.
SHADES = ((0, 6, 0.15), (1, 5, 0.25), (2, 4, 0.4))
MEDIAN = 3
KEY = "median flow; half, 80 % and 98 % of flows"
KEY_OF_SEVERAL = "median flow; half and 80 % of flows"


def over_flows(values: np.ndarray) -> np.ndarray:
    """Percentiles over the rows (flows) of `values`: PERCENTILES x columns. Columns without a value are NaN."""
    known = ~np.isnan(values).all(axis=0)
    result = np.full((len(PERCENTILES), values.shape[1]), np.nan)
    if known.any():
        result[:, known] = np.nanpercentile(values[:, known], PERCENTILES, axis=0)
    return result


def by_algorithm(ccs: Sequence[str], values: np.ndarray) -> Data:
    """{algorithm: bands of its flows}, in the order of first appearance."""
    kinds, of = list(dict.fromkeys(ccs)), np.array(ccs)
    return {kind: over_flows(values[of == kind]) for kind in kinds}


def draw(ax: common.Axes, x: np.ndarray, bands: np.ndarray, color: str, several: bool, label: str = "") -> None:
    """The bands and the median of one algorithm's flows."""
    for low, high, opacity in SHADES[1 if several else 0 :]:
        ax.fill_between(x, bands[low], bands[high], color=color, alpha=opacity, linewidth=0, step="post")
    ax.step(x, bands[MEDIAN], where="post", color=color, linewidth=1, label=label)


def legend(ax: common.Axes, several: bool) -> None:
    """The meaning of the bands, above the axes, and a legend of the algorithms if there are several."""
    text = KEY_OF_SEVERAL if several else KEY
    if several and canvas.is_phone(ax.figure):
        canvas.legend(ax, title=text, title_fontsize=8, alignment="left")
        return
    if several:
        canvas.legend(ax, "beside")
    ax.text(1, 1, text, transform=ax.transAxes, ha="right", va="bottom", fontsize=8, color=GREY)


def color_of(number: int) -> str:
    return DISTINCT[number % len(DISTINCT)]
