# SPDX-License-Identifier: MIT
"""Columns of tables that may be larger than memory: in a file without a name, each column in a place of its own.

A `Column` stands wherever an array does: `column[first:last]` reads these rows; arithmetic, comparisons and functions
of NumPy read the whole column. So code that goes through a table in slabs takes the memory of a slab, and other code
takes the memory of the columns that it names, while it uses them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

SLAB_ROWS = 1 << 19  # a slab of postcards takes about 40 MB
SAMPLE_ROWS = 1 << 12  # a sorted piece is cut at such steps only
Columns = dict[str, np.ndarray]  # or Column, which acts like an array


class Column(np.lib.mixins.NDArrayOperatorsMixin):
    """One column of a file."""

    def __init__(self, file: IO[bytes], offset: int, dtype: np.dtype, rows: int) -> None:
        self._file, self._offset, self._rows = file, offset, rows
        self.dtype, self.shape = dtype, (rows,)

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, slice):
            return self._mapped()[key]
        first, last, step = key.indices(self._rows)
        return self._read(first, last) if step == 1 else self._read(0, self._rows)[key]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self[:] if dtype is None else self[:].astype(dtype, copy=False)

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if any(isinstance(out, Column) for out in options.get("out", ())):
            del options["out"]  # `columns[name] += 1` puts an array in the column's place
        return getattr(function, method)(*(np.asarray(v) if isinstance(v, Column) else v for v in inputs), **options)

    def __getattr__(self, name: str) -> Any:
        """The methods of arrays, of the whole column."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self[:], name)

    def searchsorted(self, values: Any, side: Any = "left") -> Any:
        """As of an array, without reading the column. np.searchsorted calls it."""
        return self._mapped().searchsorted(values, side)

    def write(self, first: int, values: np.ndarray) -> None:
        """Writes rows from `first` on. Raises OSError, for example if the disk is full."""
        data = np.ascontiguousarray(values, dtype=self.dtype).view(np.uint8).data
        at = self._offset + first * self.dtype.itemsize
        while len(data):
            written = os.pwrite(self._file.fileno(), data, at)
            data, at = data[written:], at + written

    def __setitem__(self, rows: Any, values: Any) -> None:
        """Writes rows that were written before, so that the disk has room for them."""
        self._mapped()[rows] = values

    def _read(self, first: int, last: int) -> np.ndarray:
        result = np.empty(max(last - first, 0), dtype=self.dtype)
        data, at = result.view(np.uint8).data, self._offset + first * self.dtype.itemsize
        while len(data):
            read = os.preadv(self._file.fileno(), [data], at)
            if not read:
                raise OSError(f"a file of columns ends at byte {at}")
            data, at = data[read:], at + read
        return result

    def _mapped(self) -> np.ndarray:
        """The rows as a map of the file. Its pages count as this process's memory until the map is no more used."""
        if not self._rows:
            return np.empty(0, dtype=self.dtype)
        # Not np.memmap, whose results of indexing are maps, too.
        return np.asarray(np.memmap(self._file, self.dtype, "r+", self._offset, (self._rows,)))


class ColumnFile:
    """Columns that grow at their ends, up to `capacity` rows, in a file that vanishes with them. The file is in
    `directory`, or where temporary files are if `directory` cannot be written to. Raises OSError, for example if the
    disk is full.
    """

    def __init__(self, directory: Path, kinds: Mapping[str, np.dtype], capacity: int) -> None:
        place = directory if os.access(directory, os.W_OK) else None
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=place)  # noqa: SIM115 (the columns close it)
        self._kinds, self._capacity, self.rows = dict(kinds), capacity, 0

    def columns(self) -> Columns:
        """All rows so far."""
        result, offset = {}, 0
        for name, kind in self._kinds.items():
            result[name] = cast(np.ndarray, Column(self._file, offset, kind, self.rows))
            offset += self._capacity * kind.itemsize
        return result

    def append(self, columns: Columns) -> None:
        """Adds rows; a value of each column."""
        first = self.rows
        self.rows += len(next(iter(columns.values())))
        for name, column in self.columns().items():
            cast(Column, column).write(first, columns[name])


def sums_before(column: np.ndarray, directory: Path) -> np.ndarray:
    """For each row the sum (int64) of the rows before it, and last the sum of all."""
    file = ColumnFile(directory, {"sum": np.dtype(np.int64)}, len(column) + 1)
    total = 0
    file.append({"sum": np.zeros(1, dtype=np.int64)})
    for rows in slabs(len(column)):
        sums = total + np.cumsum(column[rows], dtype=np.int64)
        file.append({"sum": sums})
        total = int(sums[-1])
    return file.columns()["sum"]


def until(times: np.ndarray, first: int, ns: int) -> int:
    """The first row from `first` on whose time is after `ns`; `times` ascend from there."""
    for rows in slabs(len(times), first=first):
        later = int(np.searchsorted(times[rows], ns, side="right"))
        if later < rows.stop - rows.start:
            return rows.start + later
    return len(times)


def kinds(columns: Columns) -> dict[str, np.dtype]:
    return {name: column.dtype for name, column in columns.items()}


def slabs(rows: int, most: int = SLAB_ROWS, first: int = 0) -> Iterator[slice]:
    """Slices of at most `most` of so many rows, from `first` on."""
    return (slice(at, min(at + most, rows)) for at in range(first, rows, most))


def rows_of(columns: Columns, rows: slice) -> Columns:
    """These rows, in memory."""
    return {name: column[rows] for name, column in columns.items()}


def sort(columns: Columns, by: str, then: str | None = None) -> Columns:
    """All columns, in memory, sorted by column `by`, ties by column `then`, else in their order."""
    times = columns[by]
    step = np.diff(times)
    if (step < 0).any():
        order = np.argsort(times, kind="stable")
        columns = {name: column[order] for name, column in columns.items()}
        step = np.diff(columns[by])
    if then is None or not (step == 0).any():
        return columns
    tied = np.flatnonzero(np.append(step == 0, False) | np.append(False, step == 0))
    order = np.arange(len(times))
    order[tied] = tied[np.lexsort((columns[then][tied], columns[by][tied]))]
    return {name: column[order] for name, column in columns.items()}


def sort_file(directory: Path, columns: Columns, by: str, then: str | None = None) -> Columns:
    """Columns of a ColumnFile as `sort` has them, in the memory of some slabs: pieces are sorted where they are, then
    merged into a new file.
    """
    rows = len(columns[by])
    pieces = list(slabs(rows, SLAB_ROWS))
    for piece in pieces:
        unsorted = rows_of(columns, piece)
        is_sorted = sort(unsorted, by, then)
        if is_sorted is not unsorted:
            for name, values in is_sorted.items():
                cast(Column, columns[name]).write(piece.start, values)
    ends = [(int(columns[by][piece.start]), int(columns[by][piece.stop - 1])) for piece in pieces]
    if all(last < first for (_, last), (first, _) in pairwise(ends)):
        return columns
    samples = np.sort(np.concatenate([columns[by][piece][::SAMPLE_ROWS] for piece in pieces]))
    cuts = np.unique(samples[SLAB_ROWS // SAMPLE_ROWS :: SLAB_ROWS // SAMPLE_ROWS])
    merged = ColumnFile(directory, kinds(columns), rows)
    bounds = np.array([piece.start + np.searchsorted(columns[by][piece], cuts) for piece in pieces])
    bounds = np.column_stack(([piece.start for piece in pieces], bounds, [piece.stop for piece in pieces]))
    for first, last in pairwise(bounds.T.tolist()):
        parts = [rows_of(columns, slice(*part)) for part in zip(first, last, strict=True) if part[0] < part[1]]
        if parts:
            merged.append(sort({name: np.concatenate([part[name] for part in parts]) for name in columns}, by, then))
    return merged.columns()
