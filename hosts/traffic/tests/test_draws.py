# SPDX-License-Identifier: MIT
"""Distributions: draws follow them for several seeds (Kolmogorov-Smirnov), means are as requested, faults are named."""

import math
from random import Random

import pytest

from hosts.traffic.draws import DrawError, distribution

CASES = (
    {"name": "exponential", "mean": 80_000},
    {"name": "pareto", "mean": 80_000, "shape": 1.5},
    {"name": "lognormal", "mean": 80_000, "sigma": 1.2},
    {"name": "empirical", "points": [[1000, 0.25], [5000, 0.5], [80_000, 0.9], [1_000_000, 1]]},
)
DRAWS = 4000
# For 999 of 1000 seeds the distance of 4000 draws is below this limit (Kolmogorov's distribution).
LIMIT = 1.95 / math.sqrt(DRAWS)


def distance(values: list[float], cdf) -> float:
    """Kolmogorov's distance, compared once per distinct value, at the rank of its last copy. So ties at an atom of the
    distribution are no error.
    """
    values = sorted(values)
    last = {value: rank for rank, value in enumerate(values, 1)}
    return max(abs(rank / len(values) - cdf(value)) for value, rank in last.items())


def test_draws__follow_their_distribution_for_each_seed():
    for case in CASES:
        drawn_from = distribution(case)
        for seed in range(1, 6):
            random = Random(seed)
            values = [drawn_from.quantile(random.random()) for _ in range(DRAWS)]
            assert distance(values, drawn_from.cdf) < LIMIT, (case, seed)


def test_draws__another_parameter_is_another_distribution():
    """The distance tells a shape of 1.5 from 1.4: the test above can fail."""
    random = Random(1)
    drawn_from = distribution({"name": "pareto", "mean": 80_000, "shape": 1.4})
    values = [drawn_from.quantile(random.random()) for _ in range(DRAWS)]
    assert distance(values, distribution(CASES[1]).cdf) > 2 * LIMIT


def test_mean__is_the_integral_of_the_quantiles():
    for case in (*CASES, {"name": "fixed", "value": 7}, {"name": "bimodal", "low": 10, "high": 60, "high_share": 0.3}):
        drawn_from = distribution(case)
        parts = 200_000
        mean = sum(drawn_from.quantile((part + 0.5) / parts) for part in range(parts)) / parts
        assert mean == pytest.approx(drawn_from.mean, rel=0.02), case  # Pareto's tail ends at the last midpoint


def test_mean_pieces__is_exact_for_few_sizes_and_else_assumes_a_half_full_last_piece():
    assert distribution({"name": "fixed", "value": 3000}).mean_pieces(1448) == 3
    rare = {"name": "bimodal", "low": 2 * 1448, "high": 2000 * 1448, "high_share": 0.0001}
    assert distribution(rare).mean_pieces(1448) == pytest.approx(2.1998)
    random, drawn_from = Random(1), distribution(CASES[0])
    drawn = [math.ceil(drawn_from.quantile(random.random()) / 1448) for _ in range(20_000)]
    assert drawn_from.mean_pieces(1448) == pytest.approx(sum(drawn) / len(drawn), rel=0.02)


def test_drawn_share__is_small_for_a_tail_that_no_run_draws():
    def share(**values):
        return distribution(values).drawn_share()

    assert share(name="pareto", mean=1, shape=1.5) > 0.95
    assert share(name="pareto", mean=1, shape=1.05) < 0.5
    assert share(name="lognormal", mean=1, sigma=2) > 0.9
    assert share(name="lognormal", mean=1, sigma=5) < 0.5
    assert share(name="exponential", mean=1) == pytest.approx(1, abs=0.001)


def test_distribution__names_the_fault():
    for values, named in (
        (7, "7"),
        ({"name": "zipf"}, "name"),
        ({"name": "pareto", "mean": 5}, "parameters"),
        ({"name": "pareto", "mean": 5, "shape": 1}, "shape"),
        ({"name": "exponential", "mean": 0}, "mean"),
        ({"name": "fixed", "value": 2**61}, "value"),
        ({"name": "exponential", "mean": True}, "mean"),
        ({"name": "exponential", "mean": math.inf}, "mean"),
        ({"name": "lognormal", "mean": 5, "sigma": -1}, "sigma"),
        ({"name": "bimodal", "low": 5, "high": 5, "high_share": 0.5}, "low < high"),
        ({"name": "empirical", "points": []}, "points"),
        ({"name": "empirical", "points": [[1, 0.5], [2]]}, "point 2"),
        ({"name": "empirical", "points": [[1, 0.5], [2, 0.5]]}, "point 2"),
        ({"name": "empirical", "points": [[1, 0.5], [2, 1.5]]}, "point 2"),
        ({"name": "empirical", "points": [[1, 0.5], [2, 0.9]]}, "the last probability"),
    ):
        with pytest.raises(DrawError, match=named):
            distribution(values)
