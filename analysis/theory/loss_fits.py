# SPDX-License-Identifier: MIT
"""How measured loss and delay depend on the buffer: the two forms of Prasad et al. (section 6), fitted and compared.

Least squares on ln p, since loss spans orders of magnitude: a line over ln B (PL-form) or over B (EX-form). Buffers are
packets. A buffer without loss says nothing about a logarithm: such points are left out, and counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from analysis.theory.checks import check_at_least, check_positive

LEAST_POINTS = 3


class LossFit(NamedTuple):
    """p(B) = a B^-b (`form` "PL") or a e^(-b B) ("EX").

    `b_low`, `b_high`: 95 % interval of b (Student's t). `r_squared`: share of the
    variance of ln p that is explained. `deviation`: standard deviation of the residuals of ln p, so that p is off by a
    factor of e^deviation. `points` were used, `left_out` had no loss.
    """

    form: str
    a: float
    b: float
    b_low: float
    b_high: float
    r_squared: float
    deviation: float
    points: int
    left_out: int

    def loss(self, buffer: float) -> float:
        """p(B) of the fit. ValueError for B < 0, and in the PL-form for B = 0."""
        check_at_least("a buffer", buffer, 0)
        if self.form == "PL":
            check_positive("a buffer", buffer)
        return self.a * (buffer**-self.b if self.form == "PL" else math.exp(-self.b * buffer))


def fit_power_law(buffers: Sequence[float] | np.ndarray, losses: Sequence[float] | np.ndarray) -> LossFit:
    """The PL-form, p = a B^-b (Prasad et al., equation 5). ValueError for fewer than three usable points, or all of one
    buffer, buffers that are not above 0, losses that are not from 0 to 1.
    """
    return _fit("PL", buffers, losses)


def fit_exponential(buffers: Sequence[float] | np.ndarray, losses: Sequence[float] | np.ndarray) -> LossFit:
    """The EX-form, p = a e^(-b B) (Prasad et al., equation 9). ValueError as above."""
    return _fit("EX", buffers, losses)


class Comparison(NamedTuple):
    """Both fits, and by which factor the evidence is for the PL-form: exp(dAIC / 2), below 1 for the EX-form.

    Both have two parameters, so that it is the ratio of residual sums of squares to the power n / 2.
    """

    power_law: LossFit
    exponential: LossFit
    evidence_for_power_law: float

    @property
    def better(self) -> LossFit:
        """The fit that leaves less."""
        return self.power_law if self.evidence_for_power_law >= 1 else self.exponential


def compare(buffers: Sequence[float] | np.ndarray, losses: Sequence[float] | np.ndarray) -> Comparison:
    """Which of the two forms do these losses have? Neither need be good: look at r_squared (Prasad et al., 6.2: for
    Gamma below but near 1 neither is). ValueError as above.
    """
    power_law, exponential = fit_power_law(buffers, losses), fit_exponential(buffers, losses)
    tiny = 1e-12  # residuals of exact data are rounding
    ratio = max(exponential.deviation, tiny) / max(power_law.deviation, tiny)
    return Comparison(power_law, exponential, math.exp(min(power_law.points * math.log(ratio), 700.0)))


class DelayFit(NamedTuple):
    """d(B) = f B / C (equation 6): `f`, and r_squared about 0 of the points used, `points`, up to `cutoff` packets."""

    f: float
    r_squared: float
    points: int
    cutoff: float


def fit_delay(
    buffers: Sequence[float] | np.ndarray,
    delays_s: Sequence[float] | np.ndarray,
    capacity: float,
    tolerance: float = 0.2,
) -> DelayFit:
    """f of d(B) = f B / C by least squares through the origin, up to the cutoff beyond which delay no longer grows
    (Prasad et al., 6.1).

    The cutoff is the largest buffer up to which each delay is within `tolerance` of the fit to all smaller ones and
    itself. ValueError for fewer than three points, or buffers, delays, a capacity or a tolerance not above 0.
    """
    check_positive("a capacity", capacity)
    check_positive("a tolerance", tolerance)
    sizes, delays = _points(buffers, delays_s)
    if not (delays > 0).all():
        raise ValueError("delays that are not above 0 cannot be fitted; allowed: above 0")
    used, f = 0, 0.0
    for count in range(LEAST_POINTS, len(sizes) + 1):
        some, their = sizes[:count], delays[:count]
        fitted = capacity * float(some @ their) / float(some @ some)
        if count > LEAST_POINTS and (np.abs(their / (fitted * some / capacity) - 1) > tolerance).any():
            break
        used, f = count, fitted
    some, their = sizes[:used], delays[:used]
    left = float(((their - f * some / capacity) ** 2).sum())
    return DelayFit(f, 1 - left / float((their**2).sum()), used, float(some[-1]))


def _points(
    buffers: Sequence[float] | np.ndarray, values: Sequence[float] | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Both as arrays in the order of the buffers."""
    sizes, found = np.asarray(buffers, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if sizes.shape != found.shape or sizes.ndim != 1 or len(sizes) < LEAST_POINTS:
        raise ValueError(
            f"{len(sizes)} buffers and {len(found)} values; allowed: as many of each, {LEAST_POINTS} or more"
        )
    if not (sizes > 0).all() or not np.isfinite(found).all():
        raise ValueError(
            "a buffer or value that cannot be fitted; allowed: buffers above 0, values that are finite numbers"
        )
    order = np.argsort(sizes, kind="stable")
    return sizes[order], found[order]


def _fit(form: str, buffers: Sequence[float] | np.ndarray, losses: Sequence[float] | np.ndarray) -> LossFit:
    sizes, found = _points(buffers, losses)
    if (found < 0).any() or (found > 1).any():
        raise ValueError("a loss rate that is not between 0 and 1 cannot be fitted; allowed: 0 to 1")
    lossy = found > 0
    x, y = (np.log(sizes[lossy]) if form == "PL" else sizes[lossy]), np.log(found[lossy])
    if len(x) < LEAST_POINTS or np.ptp(x) == 0:
        raise ValueError(f"{len(x)} buffers with loss; allowed: {LEAST_POINTS} or more, not all of one size")
    line = stats.linregress(x, y)
    residuals = y - (line.intercept + line.slope * x)
    free = len(x) - 2
    deviation = math.sqrt(float(residuals @ residuals) / free)
    spread = float(((y - y.mean()) ** 2).sum())
    half = float(stats.t.ppf(0.975, free) * line.stderr)
    return LossFit(
        form=form,
        a=math.exp(line.intercept),
        b=-float(line.slope),
        b_low=-float(line.slope) - half,
        b_high=-float(line.slope) + half,
        r_squared=1 - float(residuals @ residuals) / spread if spread else 1.0,
        deviation=deviation,
        points=len(x),
        left_out=int((~lossy).sum()),
    )
