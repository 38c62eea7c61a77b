# SPDX-License-Identifier: MIT
"""Ordinary kriging: estimates a quantity at a place from its values at other places, and the error of the estimate.

The error is measured on the values themselves. Half the squared difference of two values is, in the mean, the nugget
(values of one place differ by that much) plus a slope times the distance in each coordinate. Between places an estimate
is nearly linear; beyond them it stays, and its error grows. Source: Cressie, Statistics for Spatial Data (1993), 2.4
and 3.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import optimize

LEAST_NUGGET, LEAST_SLOPE = 0.05**2, 0.01  # no two values are taken to be more alike than that
NOISE, NOISE_OF_DISTANCE = 0.2, 0.1  # variance of a squared difference: pairs that are far apart weigh less


class Samples(NamedTuple):
    """`values` at `places` (values x coordinates), with the variance to which each value is known."""

    places: np.ndarray
    values: np.ndarray
    variances: np.ndarray


class Variogram(NamedTuple):
    """Half the mean squared difference of two values: `nugget` + the sum of `slopes` x distances."""

    nugget: float
    slopes: np.ndarray


class Estimate(NamedTuple):
    """A value, and the standard deviation of its error for a new value at the same place."""

    value: float
    deviation: float


def variogram(groups: Sequence[Samples]) -> Variogram:
    """The variogram of all groups, from the pairs within each group, by least squares without negative terms."""
    rows, differences = [], []
    for samples in groups:
        first, second = np.triu_indices(len(samples.values), 1)
        distances = np.abs(samples.places[first] - samples.places[second])
        known = samples.variances[first] + samples.variances[second]
        weights = 1 / (NOISE + known + NOISE_OF_DISTANCE * distances.sum(axis=1))
        rows.append(np.column_stack((np.ones(len(first)), distances)) * weights[:, None])
        differences.append(((samples.values[first] - samples.values[second]) ** 2 - known) / 2 * weights)
    fit, _ = optimize.nnls(np.concatenate(rows), np.concatenate(differences))
    return Variogram(max(float(fit[0]), LEAST_NUGGET), np.maximum(fit[1:], LEAST_SLOPE))


def estimate(samples: Samples, measured: Variogram, place: np.ndarray) -> Estimate:
    """The best linear unbiased estimate at `place`. ValueError without samples."""
    count = len(samples.values)
    if not count:
        raise ValueError("no samples to estimate from; allowed: one or more")
    matrix = np.ones((count + 1, count + 1))
    matrix[:count, :count] = -np.abs(samples.places[:, None] - samples.places) @ measured.slopes
    matrix[:count, :count] += np.diag(samples.variances + measured.nugget)
    matrix[count, count] = 0
    to_place = np.append(-np.abs(samples.places - place) @ measured.slopes, 1.0)
    weights = np.linalg.solve(matrix, to_place)
    variance = max(-float(weights @ to_place), 0.0) + measured.nugget
    return Estimate(float(weights[:count] @ samples.values), math.sqrt(variance))
