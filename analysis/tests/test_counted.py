# SPDX-License-Identifier: MIT
"""Percentiles by counting against NumPy's of all values."""

from typing import Any

import numpy as np
import pytest

from analysis.arithmetic.counted import Counted, percentiles

PERCENTS = (0, 0.1, 1, 25, 50, 72.3, 99, 99.9, 100)


@pytest.mark.parametrize("most", [3, 5000, 1 << 40])
@pytest.mark.parametrize("size", [1, 2, 10, 9999])
def test_counted__has_numpys_percentiles(most: int, size: int) -> None:
    values = np.random.default_rng(size).integers(-(most // 3), most, size)
    by_count = Counted()
    for part in np.array_split(values, 3):
        by_count.add(part)
    expected = np.percentile(values, PERCENTS, method="inverted_cdf").tolist()
    assert list(by_count.percentiles(**{str(p): p for p in PERCENTS}).values()) == expected
    assert percentiles(lambda: np.array_split(values, 3), PERCENTS) == expected
    assert [by_count.percentile(p) for p in PERCENTS] == np.percentile(values, PERCENTS).tolist()
    assert (by_count.mean(), by_count.max, len(by_count)) == (values.mean(), values.max(), size)


def test_counted__without_values_knows_nothing() -> None:
    by_count = Counted()
    by_count.add(np.empty(0, dtype=np.uint32))
    assert by_count.percentiles(p50=50) == {"p50": None}
    assert (by_count.mean(), by_count.max, percentiles(lambda: [], [50])) == (None, None, [])


def test_counted__sorts_many_different_values_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the windows of very many flows, of which each slab has other ones."""
    unique: Any = np.unique
    rows: list[int] = []

    def counting(values: np.ndarray, **options: bool) -> Any:
        rows.append(len(values))
        return unique(values, **options)

    monkeypatch.setattr(np, "unique", counting)
    by_count = Counted.of((np.arange(1000) + slab * 900) << 32 for slab in range(300))
    assert by_count.values.tolist() == [value << 32 for value in range(300 * 900 + 100)]
    assert (len(by_count), by_count.counts.max()) == (300_000, 2)
    assert sum(rows) < 6 * 300_000
