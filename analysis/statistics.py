# SPDX-License-Identifier: MIT
"""Statistics over repetitions. The unit is the run: packets of one run depend on each other, runs do not.

Intervals are Student's t, from the runs' own numbers; power laws are fitted by maximum likelihood, because a search
gives intervals and limits, not numbers. Everything here gives the same answer for the same data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import optimize, special, stats

CONFIDENCE = 0.95
LEAST_DEVIATION = 1e-4  # of ln y: nothing is known better than to 0.01 %
MOST_STEPS, TOLERANCE, RIDGE = 200, 1e-10, 1e-9  # of Newton's method
_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


class Interval(NamedTuple):
    """An estimate from `runs` repetitions with its interval; `low` and `high` are None where one run is all."""

    value: float
    low: float | None
    high: float | None
    runs: int

    def __str__(self) -> str:
        return f"{self.value:.4g}" + ("" if self.low is None else f" ({self.low:.4g} to {self.high:.4g})")


def mean_interval(values: Iterable[float | None], confidence: float = CONFIDENCE) -> Interval | None:
    """The mean over repetitions with its Student's t interval; None if no run has a number.

    One number a run: None and NaN are left out. The interval holds the truth in 19 of 20 cases if what differs between
    runs is normal, however few they are: of two runs it reaches 6.4 times their distance to either side of their mean.
    It may go beyond what the number can be: a share of more than 1 says that so few runs do not tell.
    """
    kept = np.array([value for value in values if value is not None and math.isfinite(value)], dtype=np.float64)
    count = len(kept)
    if not count:
        return None
    value = float(kept.mean())
    if count == 1:
        return Interval(value, None, None, 1)
    if kept.min() == kept.max():  # whose mean and deviation may be off in the last bit
        return Interval(float(kept[0]), float(kept[0]), float(kept[0]), count)
    half = float(stats.t.ppf((1 + confidence) / 2, count - 1) * kept.std(ddof=1)) / math.sqrt(count)
    return Interval(value, value - half, value + half, count)


class Bounds(NamedTuple):
    """What is known of y at x: it lies between `low` and `high`. 0 or math.inf where there is no such bound."""

    x: float
    low: float
    high: float

    @property
    def censored(self) -> bool:
        """Whether it is known from one side only."""
        return self.low <= 0 or math.isinf(self.high)

    @property
    def middle(self) -> float:
        """The geometric middle; the bound that there is where only one is."""
        if self.low <= 0 or math.isinf(self.high):
            return self.high if self.low <= 0 else self.low
        return math.sqrt(self.low * self.high)


class PowerLaw(NamedTuple):
    """y = factor x^exponent; 95 % intervals (None if too few points for one), `deviation` of ln y about the law.

    `points` have two bounds, `censored` one; `given` is whether the exponent was not fitted but asked for.
    """

    factor: float
    factor_low: float | None
    factor_high: float | None
    exponent: float
    exponent_low: float | None
    exponent_high: float | None
    deviation: float
    points: int
    censored: int
    given: bool

    def at(self, x: float) -> float:
        """y of the law."""
        return self.factor * x**self.exponent


def power_law(points: Sequence[Bounds], exponent: float | None = None) -> PowerLaw:
    """y = c x^p by maximum likelihood: ln y is normal about the line, and each point says in which interval it fell.

    A point with low == high is a number, one with a single bound is censored: it counts with the probability of lying
    beyond its bound, so that "no buffer up to 1.5 BDP was enough" is neither dropped nor taken for 1.5 BDP. Intervals
    are those of the profile likelihood, with Student's t for so few points: for numbers they are exactly those of least
    squares. With `exponent` only c is fitted. ValueError unless there are enough points of different x with two bounds
    (two; one for a given exponent), all positive.
    """
    free = 1 if exponent is not None else 2
    model = _Model(points, exponent)
    whole = int(model.whole.sum())
    if len(np.unique(model.x[model.whole])) < free:
        raise ValueError(f"{whole} points with two bounds cannot be fitted; allowed: {free} or more, apart")
    intercept, slope, sigma, most = model.best()
    factor: tuple[float | None, float | None] = (None, None)
    slopes: tuple[float | None, float | None] = (None, None)
    if whole > free:
        t = float(stats.t.ppf((1 + CONFIDENCE) / 2, whole - free))
        level = most - len(points) / 2 * math.log1p(t * t / (whole - free))
        low, high = _ends(model.with_factor, intercept, level)
        factor = (None if low is None else math.exp(low), None if high is None else math.exp(high))
        if exponent is None:
            slopes = _ends(model.with_exponent, slope, level)
    return PowerLaw(
        math.exp(intercept), *factor, float(slope), *slopes, sigma, whole, len(points) - whole, exponent is not None
    )


class _Model:
    """The likelihood of a line y = a + p x in logarithms with deviation sigma.

    In 1 / sigma, a / sigma and p / sigma it is concave (Burridge 1981), so that Newton's method finds its top.
    """

    def __init__(self, points: Sequence[Bounds], exponent: float | None) -> None:
        for point in points:
            if not (point.x > 0 and 0 <= point.low <= point.high and point.high > 0 and point.low < math.inf):
                raise ValueError(f"{point} cannot be fitted; allowed: x above 0, 0 <= low <= high")
            if point.low == 0 and math.isinf(point.high):
                raise ValueError(f"{point} cannot be fitted: it has no bound")
        self.x = np.log([point.x for point in points])
        with np.errstate(divide="ignore"):
            self.low, self.high, self.middle = (
                np.log([getattr(point, name) for point in points]) for name in ("low", "high", "middle")
            )
        self.exact = self.low == self.high
        self.whole = np.array([not point.censored for point in points], dtype=bool)
        self.given = exponent

    def best(self) -> tuple[float, float, float, float]:
        """The most likely (a, p, sigma), and the log-likelihood there."""
        ones = np.ones_like(self.x)
        if self.given is not None:
            (intercept,), sigma, value = self._climb(self.given * self.x, ones[:, None])
            return intercept, self.given, sigma, value
        middle = self.x.mean()  # far from 0 both parameters would pull together
        (height, slope), sigma, value = self._climb(0 * ones, np.column_stack((ones, self.x - middle)))
        return height - slope * middle, slope, sigma, value

    def with_factor(self, intercept: float) -> float:
        """The largest log-likelihood of all lines with this a."""
        offset = np.full_like(self.x, intercept)
        if self.given is not None:
            return self._climb(offset + self.given * self.x, np.empty((len(self.x), 0)))[2]
        return self._climb(offset, self.x[:, None])[2]

    def with_exponent(self, slope: float) -> float:
        """The largest log-likelihood of all lines with this p."""
        return self._climb(slope * self.x, np.ones((len(self.x), 1)))[2]

    def _climb(self, offset: np.ndarray, design: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Of all lines offset + design @ theta: the most likely (theta, sigma, log-likelihood).

        Not by scipy.optimize: L-BFGS-B took ten times as long and stopped up to 5e-4 short of the top, and trust-exact
        tries points at which the likelihood overflows.
        """
        start, *_ = np.linalg.lstsq(design[self.whole], (self.middle - offset)[self.whole], rcond=None)
        base = offset + design @ start
        low, high = self.low - base, self.high - base
        unit = max(float(np.sqrt(np.mean((self.middle - base)[self.whole] ** 2))), 0.02)
        values = np.zeros(1 + design.shape[1])  # unit / sigma, theta / sigma
        values[0] = 1.0
        best, gradient, curvature = self._log_likelihood(low, high, design, unit, values)
        for _ in range(MOST_STEPS):
            step = np.linalg.solve(curvature + RIDGE * np.eye(len(values)), gradient)
            if float(step @ gradient) < TOLERANCE:
                break
            if step[0] < 0:
                step *= min(1.0, 0.9 * values[0] / -step[0])
            while (trial := self._log_likelihood(low, high, design, unit, values + step))[0] < best:
                step /= 2
                if not (np.abs(step) > 1e-14).any():
                    break
            else:
                values, (best, gradient, curvature) = values + step, trial
                continue
            break
        sigma = unit / float(values[0])
        return start + values[1:] * sigma, sigma, best

    def _log_likelihood(
        self, low: np.ndarray, high: np.ndarray, design: np.ndarray, unit: float, values: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """It, its gradient and its negative curvature at (unit / sigma, theta / sigma)."""
        scale, shift = values[0] / unit, design @ values[1:]
        a, b = low * scale - shift, high * scale - shift
        exact, below, above = self.exact, np.isinf(low), np.isinf(high)
        # ln(Phi(b) - Phi(a)), taken in the lower tail, where it does not cancel
        flip = a > 0
        upper, lower = special.log_ndtr(np.where(flip, -a, b)), special.log_ndtr(np.where(flip, -b, a))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            between = upper + np.log(-np.expm1(np.minimum(lower - upper, -1e-300)))
            by_a = np.where(below | exact, 0, -np.exp(-0.5 * a**2 - _LOG_ROOT_2PI - between))
            by_b = np.where(above | exact, 0, np.exp(-0.5 * b**2 - _LOG_ROOT_2PI - between))
        a, b = np.where(below, 0, a), np.where(above, 0, b)
        aa, bb, ab = -a * by_a - by_a**2, -b * by_b - by_b**2, -by_a * by_b
        number = -0.5 * a**2 - _LOG_ROOT_2PI + math.log(scale)
        value = float(np.where(exact, number, between).sum()) - 0.5 * (LEAST_DEVIATION * scale) ** 2
        by_a, by_b = np.where(exact, -a, by_a), np.where(exact, 0, by_b)
        aa, bb, ab = np.where(exact, -1, aa), np.where(exact, 0, bb), np.where(exact, 0, ab)
        # d(a, b) / d(values) of each point
        da = np.column_stack((np.where(below, 0, low) / unit, -design))
        db = np.column_stack((np.where(above, 0, high) / unit, -design))
        gradient = by_a @ da + by_b @ db
        gradient[0] += exact.sum() / values[0] - LEAST_DEVIATION**2 * scale / unit
        cross = (da * ab[:, None]).T @ db
        curvature = -((da * aa[:, None]).T @ da + (db * bb[:, None]).T @ db + cross + cross.T)
        curvature[0, 0] += exact.sum() / values[0] ** 2 + (LEAST_DEVIATION / unit) ** 2
        return value, gradient, curvature


def _ends(profile: Callable[[float], float], centre: float, level: float) -> tuple[float | None, float | None]:
    """Where a profile falls to `level` on either side of its top; None where it does not within 50."""
    ends: list[float | None] = []
    for sign in (-1, 1):
        step, inside, outside = 0.02, centre, centre + sign * 0.02
        while step < 50 and profile(outside) > level:
            step *= 2
            inside, outside = outside, centre + sign * step
        ends.append(
            None if step >= 50 else float(optimize.brentq(lambda v: profile(v) - level, inside, outside, xtol=1e-5))
        )
    return ends[0], ends[1]
