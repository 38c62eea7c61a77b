# SPDX-License-Identifier: MIT
"""Distributions of flow sizes (bytes) and think times (ns), drawn by inversion: one uniform number gives one value, so
a seed gives the same values on every machine and Python. Standard library only.

A distribution in a plan is an object with `name` and its parameters:

    fixed        value
    exponential  mean
    pareto       mean, shape > 1; the minimum is mean (shape - 1) / shape
    lognormal    mean, sigma > 0 (standard deviation of the logarithm)
    bimodal      low, high, high_share
    empirical    points: [[value, cumulative probability], ...]; linear in between
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

MOST_VALUE = 2.0**60
MOST_POINTS = 100_000
MIDPOINTS = 4096


class DrawError(ValueError):
    """A distribution that cannot be drawn from; the text is for the user."""


@dataclass(frozen=True)
class Distribution:
    """`quantile` maps (0, 1) to values, `cdf` is its inverse."""

    name: str
    mean: float
    quantile: Callable[[float], float]
    cdf: Callable[[float], float]

    steps: tuple[tuple[float, float], ...] = ()  # (value, probability) of each value; () if values are continuous

    def mean_pieces(self, piece: float) -> float:
        """Mean number of pieces if a value is cut into pieces of at most `piece`. For a continuous distribution the
        last piece is assumed to be half full on average.
        """
        if self.steps:
            return sum(share * math.ceil(value / piece) for value, share in self.steps)
        return max(1.0, self.mean / piece + 0.5)

    def drawn_share(self) -> float:
        """The share of the mean that a sample of some thousand draws reaches. The rest of the mean lies in values too
        rare to be drawn. Computed as the mean of the quantiles at MIDPOINTS equidistant midpoints, divided by the mean.
        """
        return sum(self.quantile((part + 0.5) / MIDPOINTS) for part in range(MIDPOINTS)) / MIDPOINTS / self.mean


def distribution(values: Any) -> Distribution:
    """The distribution that an object of a plan describes. Raises DrawError."""
    if not isinstance(values, dict):
        raise DrawError(f"{values!r} is not an object with name and parameters")
    name = values.get("name")
    if not isinstance(name, str) or name not in _MAKERS:
        raise DrawError(f"name {name!r} is not one of {', '.join(_MAKERS)}")
    maker, parameters = _MAKERS[name]
    unknown = values.keys() - {"name", *parameters}
    missing = [parameter for parameter in parameters if parameter not in values]
    if unknown or missing:
        given = ", ".join(sorted(values.keys() - {"name"})) or "none"
        raise DrawError(f"{name} has the parameters {', '.join(parameters)}, not {given}")
    return maker(*(values[parameter] for parameter in parameters))


def _positive(name: str, value: Any, above: float = 0.0) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not above < value <= MOST_VALUE:
        raise DrawError(f"{name} {value!r} is not a number above {above:g} and up to 2^60")
    return float(value)


def fixed(value: float) -> Distribution:
    mean = _positive("value", value)
    return Distribution("fixed", mean, lambda _: mean, lambda x: float(x >= mean), ((mean, 1.0),))


def exponential(mean: float) -> Distribution:
    scale = _positive("mean", mean)
    return Distribution(
        "exponential", scale, lambda u: -scale * math.log1p(-u), lambda x: -math.expm1(-max(x, 0.0) / scale)
    )


def pareto(mean: float, shape: float) -> Distribution:
    alpha = _positive("shape", shape, above=1.0)
    least = _positive("mean", mean) * (alpha - 1) / alpha
    return Distribution(
        "pareto",
        float(mean),
        lambda u: least * (1 - u) ** (-1 / alpha),
        lambda x: 1 - (least / x) ** alpha if x > least else 0.0,
    )


def lognormal(mean: float, sigma: float) -> Distribution:
    sigma = _positive("sigma", sigma)
    normal = NormalDist(math.log(_positive("mean", mean)) - sigma**2 / 2, sigma)
    return Distribution(
        "lognormal",
        float(mean),
        lambda u: math.exp(normal.inv_cdf(min(max(u, 2.0**-54), 1 - 2.0**-53))),
        lambda x: normal.cdf(math.log(x)) if x > 0 else 0.0,
    )


def bimodal(low: float, high: float, high_share: float) -> Distribution:
    low, high, share = _positive("low", low), _positive("high", high), _positive("high_share", high_share)
    if not (low < high and share < 1):
        raise DrawError(
            f"bimodal with low {low:g}, high {high:g}, high_share {share:g}; allowed: low < high, 0 < high_share < 1"
        )
    return Distribution(
        "bimodal",
        low * (1 - share) + high * share,
        lambda u: high if u >= 1 - share else low,
        lambda x: 0.0 if x < low else 1.0 if x >= high else 1 - share,
        ((low, 1 - share), (high, share)),
    )


def empirical(points: Any) -> Distribution:
    """Between two points the value grows linearly with the probability; the first point's probability is an atom."""
    pairs = checked_points(points)
    values, shares = [value for value, _ in pairs], [share for _, share in pairs]

    def quantile(u: float) -> float:
        at = bisect_left(shares, u)
        if at == 0:
            return values[0]
        part = (u - shares[at - 1]) / (shares[at] - shares[at - 1])
        return values[at - 1] + part * (values[at] - values[at - 1])

    def cdf(x: float) -> float:
        if x < values[0]:
            return 0.0
        if x >= values[-1]:
            return 1.0
        at = bisect_left(values, x)
        if values[at] == x:
            return shares[at]
        part = (x - values[at - 1]) / (values[at] - values[at - 1])
        return shares[at - 1] + part * (shares[at] - shares[at - 1])

    mean = values[0] * shares[0] + sum((b[1] - a[1]) * (a[0] + b[0]) / 2 for a, b in zip(pairs, pairs[1:]))
    return Distribution("empirical", mean, quantile, cdf)


def checked_points(points: Any) -> list[tuple[float, float]]:
    """The points, values and probabilities ascending, the last probability 1. Raises DrawError with the first fault."""
    if not isinstance(points, list) or not 1 <= len(points) <= MOST_POINTS:
        raise DrawError(f"points: give 1 to {MOST_POINTS} pairs of value and cumulative probability")
    pairs: list[tuple[float, float]] = []
    for number, point in enumerate(points, 1):
        if not isinstance(point, (list, tuple)) or len(point) != 2:
            raise DrawError(f"point {number} is not a pair of value and cumulative probability")
        value, share = _positive(f"point {number}: value", point[0]), point[1]
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
            raise DrawError(f"point {number}: {share!r} is not a probability from 0 to 1")
        if pairs and not (value > pairs[-1][0] and share > pairs[-1][1]):
            raise DrawError(f"point {number}: values and probabilities must ascend from point to point")
        pairs.append((value, float(share)))
    if pairs[-1][1] != 1:
        raise DrawError(f"the last probability is {pairs[-1][1]:g}; it must be 1")
    return pairs


_MAKERS: dict[str, tuple[Callable[..., Distribution], tuple[str, ...]]] = {
    "fixed": (fixed, ("value",)),
    "exponential": (exponential, ("mean",)),
    "pareto": (pareto, ("mean", "shape")),
    "lognormal": (lognormal, ("mean", "sigma")),
    "bimodal": (bimodal, ("low", "high", "high_share")),
    "empirical": (empirical, ("points",)),
}
