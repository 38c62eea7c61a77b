# SPDX-License-Identifier: MIT
"""Fits loss and delay as functions of the buffer, and compares the two forms for loss (Prasad et al., section 6).

Loss spans orders of magnitude, so the fit is least squares on ln p: a line over ln B (PL-form) or over B (EX-form).
Buffers are packets. Points without loss have no logarithm: they are left out and counted.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import stats

from analysis.theory.checks import Numbers, check_at_least, check_positive

LEAST_POINTS = 3
CLEAR = 1.0  # least decimal logarithm of the evidence ratio that accepts a form: 10 to 1


class LossFit(NamedTuple):
    """p(B) = a B^-b (`form` "PL") or a e^(-b B) ("EX")."""

    form: str
    a: float
    b: float
    b_low: float  # 95 % interval of b (Student's t)
    b_high: float
    r_squared: float  # explained share of the variance of ln p
    deviation: float  # standard deviation of the residuals of ln p: p is off by a factor of e^deviation
    points: int  # used
    left_out: int  # without loss

    def loss(self, buffer: float) -> float:
        """p(B) of the fit. ValueError for B < 0, and in the PL-form for B = 0."""
        check_at_least("a buffer", buffer, 0)
        if self.form == "PL":
            check_positive("a buffer", buffer)
        return self.a * (buffer**-self.b if self.form == "PL" else math.exp(-self.b * buffer))


def fit_power_law(buffers: Numbers, losses: Numbers) -> LossFit:
    """The PL-form, p = a B^-b (Prasad et al., equation 5). ValueError for fewer than three usable points, for
    points that all have one buffer, for buffers that are not above 0, for losses that are not from 0 to 1.
    """
    return _fit("PL", buffers, losses)


def fit_exponential(buffers: Numbers, losses: Numbers) -> LossFit:
    """The EX-form, p = a e^(-b B) (Prasad et al., equation 9). ValueError as for fit_power_law."""
    return _fit("EX", buffers, losses)


class Comparison(NamedTuple):
    """Both fits, and the factor of evidence for the PL-form: exp(dAIC / 2); below 1 it favours the EX-form.

    Both forms have two parameters, so the factor is the ratio of residual sums of squares to the power n / 2.
    """

    power_law: LossFit
    exponential: LossFit
    evidence_for_power_law: float

    @property
    def log_evidence_for_power_law(self) -> float:
        """The decimal logarithm of the evidence, from -300 to 304: `compare` limits the evidence to e^700."""
        return math.log10(max(self.evidence_for_power_law, 1e-300))

    @property
    def better(self) -> LossFit:
        """The fit with the smaller residuals."""
        return self.power_law if self.evidence_for_power_law >= 1 else self.exponential


def compare(buffers: Numbers, losses: Numbers) -> Comparison:
    """Compares both forms for these losses. Both fits can be bad, as r_squared shows (in Prasad et al., 6.2, they are
    bad if the capacity ratio C_out / C_in is slightly below 1). ValueError as for fit_power_law.
    """
    power_law, exponential = fit_power_law(buffers, losses), fit_exponential(buffers, losses)
    tiny = 1e-12  # residuals of exact data are rounding errors
    ratio = max(exponential.deviation, tiny) / max(power_law.deviation, tiny)
    return Comparison(power_law, exponential, math.exp(min(power_law.points * math.log(ratio), 700.0)))


class DelayFit(NamedTuple):
    """d(B) = f B / C (equation 6)."""

    f: float
    r_squared: float  # of the points used; the total sum of squares is about 0, not about the mean
    points: int  # used
    cutoff: float  # largest buffer used, packets


def fit_delay(buffers: Numbers, delays_s: Numbers, capacity: float, tolerance: float = 0.2) -> DelayFit:
    """Fits f of d(B) = f B / C by least squares through the origin, up to the cutoff beyond which delay no longer grows
    (Prasad et al., 6.1).

    The fit grows by one buffer at a time, from the three smallest. It stops if the fit with the next buffer
    would miss any delay by more than the share `tolerance`. The cutoff is the last buffer used. ValueError for fewer
    than three points, and unless buffers, delays, capacity and tolerance are above 0.
    """
    check_positive("a capacity", capacity)
    check_positive("a tolerance", tolerance)
    sizes, delays = _points(buffers, delays_s)
    if not (delays > 0).all():
        raise ValueError("delays that are not above 0 cannot be fitted; allowed: above 0")
    used, f = 0, 0.0
    for count in range(LEAST_POINTS, len(sizes) + 1):
        x, y = sizes[:count], delays[:count]
        fitted = capacity * float(x @ y) / float(x @ x)
        if count > LEAST_POINTS and (np.abs(y / (fitted * x / capacity) - 1) > tolerance).any():
            break
        used, f = count, fitted
    x, y = sizes[:used], delays[:used]
    residual = float(((y - f * x / capacity) ** 2).sum())
    return DelayFit(f, 1 - residual / float((y**2).sum()), used, float(x[-1]))


def _points(buffers: Numbers, values: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """Buffers and values as arrays, sorted by buffer."""
    sizes, measured = np.asarray(buffers, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if sizes.shape != measured.shape or sizes.ndim != 1 or len(sizes) < LEAST_POINTS:
        raise ValueError(
            f"{len(sizes)} buffers and {len(measured)} values; allowed: as many of each, {LEAST_POINTS} or more"
        )
    if not (sizes > 0).all() or not np.isfinite(measured).all():
        raise ValueError(
            "a buffer or value that cannot be fitted; allowed: buffers above 0, values that are finite numbers"
        )
    order = np.argsort(sizes, kind="stable")
    return sizes[order], measured[order]


def _fit(form: str, buffers: Numbers, losses: Numbers) -> LossFit:
    sizes, loss = _points(buffers, losses)
    if (loss < 0).any() or (loss > 1).any():
        raise ValueError("a loss rate that is not between 0 and 1 cannot be fitted; allowed: 0 to 1")
    lossy = loss > 0
    x, y = (np.log(sizes[lossy]) if form == "PL" else sizes[lossy]), np.log(loss[lossy])
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
