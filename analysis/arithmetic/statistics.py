# SPDX-License-Identifier: MIT
"""Statistics over repetitions. The unit is the run: packets of one run depend on each other, runs do not.

Intervals of means are Student's t. Power laws are fitted by maximum likelihood, because a search returns intervals
and limits instead of numbers. All results are deterministic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, stats

CONFIDENCE = 0.95
LEAST_DEVIATION = 1e-4  # least fitted standard deviation of ln y: no buffer is known better than to 0.01 %
LEAST_START = 0.02  # least standard deviation of ln y with which a fit starts
ALIKE = 1e-6  # log-likelihoods that differ by less are equal
MOST_TURN = 5.0  # largest difference between the fitted slope and the slope through the points' middles


class Interval(NamedTuple):
    """An estimate from `runs` repetitions and its interval. An end that is not known, as for a single run, is None."""

    value: float
    low: float | None
    high: float | None
    runs: int

    @property
    def ends(self) -> tuple[float, float]:
        """(low, high), with the value in place of an end that is not known."""
        return self.value if self.low is None else self.low, self.value if self.high is None else self.high

    def scaled(self, factor: float) -> Interval:
        """The interval in another unit."""
        low, high = (None if end is None else factor * end for end in (self.low, self.high))
        return Interval(factor * self.value, low, high, self.runs)

    def text(self, digits: int = 4) -> str:
        """The estimate, with its interval if the interval is visible with this number of digits. If the interval is
        open above, only its lower end.
        """
        if self.low is None or self.high is None:
            return f"{self.value:.{digits}g}"
        value, low, high = (f"{number:.{digits}g}" for number in (self.value, self.low, self.high))
        if math.isinf(self.high):
            return f"more than {low}"
        return value if value == low == high else f"{value} ({low} to {high})"

    def __str__(self) -> str:
        return self.text()


@cache
def t_quantile(freedom: float) -> float:
    """Half the width of a 95 % Student's t interval, in standard errors. Cached: SciPy takes 0.1 ms each time."""
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom))


def mean_interval(values: Iterable[float | None]) -> Interval | None:
    """The mean over repetitions and its Student's t interval. `values` has one number per run; None, NaN and
    infinities are left out. Returns None if no number remains.

    The interval covers the true mean in 19 of 20 cases if the runs' numbers are normally distributed. Two runs give an
    interval of 6.4 times their distance to either side of their mean. The interval may exceed the possible range of the
    quantity: an interval of a share that reaches above 1 shows that the runs are too few.
    """
    kept = np.array([value for value in values if value is not None and math.isfinite(value)], dtype=np.float64)
    count = len(kept)
    if not count:
        return None
    value = float(kept.mean())
    if count == 1:
        return Interval(value, None, None, 1)
    if kept.min() == kept.max():  # rounding could put the mean and the deviation off in the last bit
        return Interval(float(kept[0]), float(kept[0]), float(kept[0]), count)
    half = float(t_quantile(count - 1) * kept.std(ddof=1)) / math.sqrt(count)
    return Interval(value, value - half, value + half, count)


def difference_interval(before: Iterable[float | None], after: Iterable[float | None]) -> Interval | None:
    """The mean of `after` minus the mean of `before`, and Welch's t interval, which allows different variances. A
    single run on either side gives no interval. Returns None if a side has no number.
    """
    first, second = mean_interval(before), mean_interval(after)
    if first is None or second is None:
        return None
    value, runs = second.value - first.value, min(first.runs, second.runs)
    if runs == 1:
        return Interval(value, None, None, 1)
    # From the half width of a mean's interval back to the variance of the mean.
    variances = [((side.ends[1] - side.value) / t_quantile(side.runs - 1)) ** 2 for side in (first, second)]
    variance = sum(variances)
    if not variance:
        return Interval(value, value, value, runs)
    freedom = variance**2 / sum(
        part**2 / (side.runs - 1) for part, side in zip(variances, (first, second), strict=True)
    )
    half = t_quantile(freedom) * math.sqrt(variance)
    return Interval(value, value - half, value + half, runs)


class Bounds(NamedTuple):
    """y at x lies between `low` (0: no lower bound) and `high` (math.inf: no upper bound)."""

    x: float
    low: float
    high: float

    @property
    def censored(self) -> bool:
        """Whether only one bound is known."""
        return self.low <= 0 or math.isinf(self.high)

    @property
    def middle(self) -> float:
        """The geometric mean of the bounds; if y is censored, its only bound."""
        if self.low <= 0 or math.isinf(self.high):
            return self.high if self.low <= 0 else self.low
        return math.sqrt(self.low * self.high)


class PowerLaw(NamedTuple):
    """y = factor x^exponent with the standard `deviation` of ln y about the law. What was fitted, the exponent or, with
    a given exponent, the factor, has its 95 % interval; an end is None with too few points, or if it was not found.
    `points` counts the points with two bounds, `censored` those with one.
    """

    factor: Interval
    exponent: Interval
    deviation: float
    points: int
    censored: int

    def at(self, x: float) -> float:
        """y of the law at x."""
        return float(self.factor.value * x**self.exponent.value)


def power_law(points: Sequence[Bounds], exponent: float | None = None) -> PowerLaw | None:
    """Fits y = c x^p by maximum likelihood: ln y is normal about the line, and each point is an interval that holds y.

    A point with low == high is a number. A point with one bound is censored: it contributes the probability of lying
    beyond its bound, so "no buffer up to 1.5 BDP was enough" is neither dropped nor taken for 1.5 BDP. Intervals come
    from the profile likelihood, with Student's t for few points; for numbers they equal those of least squares.
    With `exponent` only c is fitted. A point without a bound says nothing. None unless two points at different x (with
    `exponent` one point) have two bounds. ValueError unless every point has x > 0, 0 <= low <= high and high above 0.
    """
    free = 1 if exponent is not None else 2
    points = [point for point in points if point.low != 0 or not math.isinf(point.high)]
    line = _Line(points)
    whole = int(line.whole.sum())
    if len(np.unique(line.x[line.whole])) < free:
        return None
    slope = line.best_slope() if exponent is None else exponent
    fit = line.residuals(slope)
    ends: tuple[float | None, float | None] = (None, None)
    if whole > free:
        t = t_quantile(whole - free)
        level = fit.log_likelihood - len(points) / 2 * math.log1p(t * t / (whole - free))
        if exponent is None:
            ends = _ends(lambda p: line.residuals(p).log_likelihood, slope, level)
        else:
            low, high = _ends(lambda a: line.residuals(slope, a).log_likelihood, fit.mean, level)
            ends = (None if low is None else math.exp(low), None if high is None else math.exp(high))
    factor_ends, slope_ends = ((None, None), ends) if exponent is None else (ends, (None, None))
    factor, power = Interval(math.exp(fit.mean), *factor_ends, whole), Interval(float(slope), *slope_ends, whole)
    return PowerLaw(factor, power, fit.deviation, whole, len(points) - whole)


class _Normal(NamedTuple):
    """A fitted normal distribution."""

    mean: float
    deviation: float
    log_likelihood: float


class _Line:
    """A line ln y = a + p ln x through points with known bounds.

    scipy.stats fits distributions to censored data, but no regressions. For a given slope, though, the residuals
    ln y - p ln x are censored draws of one normal distribution, so only the slope must be searched. lifelines' AFT
    models have covariates, but no interval if a line meets all bounds (docs/dependencies.md).
    """

    def __init__(self, points: Sequence[Bounds]) -> None:
        for point in points:
            if not (point.x > 0 and 0 <= point.low <= point.high and point.high > 0 and point.low < math.inf):
                raise ValueError(f"{point} cannot be fitted; allowed: x and high above 0, 0 <= low <= high, low finite")
        self.x = np.log([point.x for point in points])
        with np.errstate(divide="ignore"):
            self.low, self.high, self.middle = (
                np.log([getattr(point, name) for point in points]) for name in ("low", "high", "middle")
            )
        self.whole = np.array([not point.censored for point in points], dtype=bool)

    def residuals(self, slope: float, mean: float | None = None) -> _Normal:
        """The most likely normal distribution of ln y - slope ln x, with the given `mean` if there is one."""
        low, high, middle = (values - slope * self.x for values in (self.low, self.high, self.middle))
        exact = low == high
        below, above = ~exact & np.isinf(low), ~exact & np.isinf(high)
        between = ~(exact | below | above)
        data = stats.CensoredData(
            low[exact], left=high[below], right=low[above], interval=np.column_stack((low, high))[between]
        )
        start = float(middle[self.whole].mean()) if mean is None else mean
        spread = max(float(np.sqrt(np.mean((middle[self.whole] - start) ** 2))), LEAST_START)
        least = math.inf

        def climb(function: Callable[..., float], first: Sequence[float], args: tuple[object, ...], disp: int) -> Any:
            nonlocal least
            simplex = np.vstack((first, first + np.eye(len(first)) * spread / 2))
            bounds = [(None, None)] * (len(first) - 1) + [(LEAST_DEVIATION, None)]
            fit = optimize.minimize(
                function, first, args=args, method="Nelder-Mead", bounds=bounds,
                options={"initial_simplex": simplex, "xatol": 1e-5, "fatol": ALIKE / 100},
            )  # fmt: skip
            # If the line meets all bounds, many means are equally likely: choose the mean of the points' middles.
            central = np.array([*first[:-1], LEAST_DEVIATION])
            best = central if function(central, *args) <= fit.fun + ALIKE else fit.x
            least = float(fit.fun)
            return best

        fixed = {} if mean is None else {"floc": mean}
        with np.errstate(divide="ignore"):  # a bound far from the mean has a probability of 0
            fitted = stats.rv_continuous.fit(stats.norm, data, loc=start, scale=spread, optimizer=climb, **fixed)
        return _Normal(float(fitted[0]), float(fitted[1]), -least)

    def best_slope(self) -> float:
        """The most likely slope; of equally likely slopes the one through the points' middles."""
        through_middles = round(float(np.polyfit(self.x[self.whole], self.middle[self.whole], 1)[0]), 12) + 0.0  # no -0
        fit = optimize.minimize_scalar(
            lambda slope: -self.residuals(slope).log_likelihood,
            method="bounded",
            bounds=(through_middles - MOST_TURN, through_middles + MOST_TURN),
            options={"xatol": 1e-5},
        )
        alike = self.residuals(through_middles).log_likelihood > -float(fit.fun) - ALIKE
        return through_middles if alike else float(fit.x)


def _ends(profile: Callable[[float], float], centre: float, level: float) -> tuple[float | None, float | None]:
    """Where a profile falls to `level` on either side of its maximum at `centre`; None if that is over 40.96 away."""
    ends: list[float | None] = []
    for sign in (-1, 1):
        step, inside, outside = 0.02, centre, centre + sign * 0.02
        while step < 50 and profile(outside) > level:
            step *= 2
            inside, outside = outside, centre + sign * step
        ends.append(
            None if step >= 50 else float(optimize.brentq(lambda v: profile(v) - level, inside, outside, xtol=1e-4))
        )
    return ends[0], ends[1]
