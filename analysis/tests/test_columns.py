# SPDX-License-Identifier: MIT
"""Columns in files against arrays in memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.read import columns
from analysis.read.columns import ColumnFile, kinds, order, sort, sort_file


def _in_file(directory: Path, arrays: dict[str, np.ndarray], step: int) -> columns.Columns:
    rows = len(arrays["ns"])
    file = ColumnFile(directory, kinds(arrays))
    for part in columns.slabs(rows, step):
        file.append(columns.rows_of(arrays, part))
    return file.columns()


def test_column__acts_like_an_array(tmp_path: Path) -> None:
    values = np.arange(1000, dtype=np.uint32)[::-1].copy()
    (column,) = _in_file(tmp_path, {"ns": values}, 300).values()
    rows = np.array([3, 999, 3])
    for same in (lambda a: a[10:20], lambda a: a[::-7], lambda a: a[rows], lambda a: a[a > 990], lambda a: a[-1],
                 lambda a: a & 3, lambda a: 2 * a, lambda a: np.diff(a), lambda a: a.max(), lambda a: a == values,
                 lambda a: np.searchsorted(-1 * a.astype(np.int64), -rows)):  # fmt: skip
        assert np.array_equal(same(column), same(values))
        assert np.asarray(same(column)).dtype == np.asarray(same(values)).dtype
    column[rows] = values[rows] = np.array([1, 2, 3])
    assert np.array_equal(column, values)
    assert (list(tmp_path.iterdir()), len(column)) == ([], 1000)


@pytest.mark.parametrize("most_apart", [0, 3, 40, 5000], ids="{} rows apart".format)
def test_sort__in_a_file_is_the_sort_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_apart: int
) -> None:
    """Times ascend, but for rows that are up to so many rows out of place, and some are equal."""
    monkeypatch.setattr(columns, "SLAB_ROWS", 64)
    random = np.random.default_rng(most_apart)
    for rows in (0, 1, 200, 3000):
        ns = (np.arange(rows) + random.integers(0, most_apart + 1, rows)) // 3
        arrays = {"ns": ns, "depth": random.integers(0, 4, rows).astype(np.uint16), "row": np.arange(rows)}
        for then in (None, "depth"):
            expected = sort(dict(arrays), "ns", then)
            assert (expected["ns"][1:] >= expected["ns"][:-1]).all()
            found = _in_file(tmp_path, arrays, 100)
            sort_file(tmp_path, found, "ns", then)
            assert all(np.array_equal(found[name], expected[name]) for name in arrays)


def test_column__is_searched_and_taken_as_an_array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "STEP", 16)
    random = np.random.default_rng(7)
    for size in (0, 1, 16, 17, 500):
        values = np.sort(random.integers(0, 200, size))
        column = _in_file(tmp_path, {"ns": values}, 100)["ns"]
        for wanted in (np.arange(-1, 202), random.integers(-1, 202, (40, 2)), 7):
            for side in ("left", "right"):
                assert np.array_equal(np.searchsorted(column, wanted, side), np.searchsorted(values, wanted, side))
        if size:
            for rows in (random.integers(-size, size, (30, 3)), np.arange(size), size - 1, -1, values > 100):
                assert np.array_equal(column[rows], values[rows])


def test_slabs__of_many_small_parts_look_at_each_part_once() -> None:
    """A slow run has a block for each half second, with a few rows."""
    looks = []

    class Part(dict[str, np.ndarray]):
        def values(self) -> Any:
            looks.append(self)
            return super().values()

    slabs = list(columns.in_slabs(Part(ns=np.array([number])) for number in range(300)))
    assert [slab["ns"].tolist() for slab in slabs] == [list(range(300))]
    assert len(looks) == 300


def test_sort__of_many_equal_times_takes_few_rows_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the RTTs of a paced flow without a queue."""
    monkeypatch.setattr(columns, "SLAB_ROWS", 64)
    arrays = {"ns": np.random.default_rng(1).integers(0, 2, 5000), "row": np.arange(5000)}
    found, sorted_rows = _in_file(tmp_path, arrays, 100), []

    def counting(rows: columns.Columns, *by: str) -> np.ndarray | None:
        sorted_rows.append(len(rows["ns"]))
        return order(rows, *by)

    monkeypatch.setattr(columns, "order", counting)
    sort_file(tmp_path, found, "ns")
    assert max(sorted_rows) <= 4 * 64
    assert all(np.array_equal(found[name], expected) for name, expected in sort(arrays, "ns").items())
