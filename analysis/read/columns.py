# SPDX-License-Identifier: MIT
"""Columns of tables that may be larger than memory: in a file without a name, each column in a place of its own.

A `Column` stands wherever an array does: `column[first:last]` reads these rows; arithmetic, comparisons and functions
of NumPy read the whole column. So code that goes through a table in slabs takes the memory of a slab, and other code
takes the memory of the columns that it names, while it uses them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np

from lib import files

SLAB_ROWS = 1 << 18  # a slab of postcards takes about 20 MB
GROUP_ROWS = 1 << 18  # in a file, each column of so many rows is one stretch of bytes
STEP = 1 << 14  # rows between two that a search looks at first
NEAR_STEPS = 4  # so many are read at once
HELD_ROWS = 1 << 17  # after a read of fewer rows so many stay in memory: the next read is often of the same
Columns = dict[str, np.ndarray]  # or Column, which acts like an array


class _Spill:
    """A file without a name, closed when the last of its columns goes."""

    def __init__(self, place: Path | None) -> None:
        self._descriptor = files.without_name(place or Path(tempfile.gettempdir()))

    def fileno(self) -> int:
        return self._descriptor

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)


class Column(np.lib.mixins.NDArrayOperatorsMixin):
    """One column of a file."""

    def __init__(self, file: _Spill, before: int, dtype: np.dtype, row_bytes: int, rows: int) -> None:
        """`before`: bytes of a row before this column."""
        self._file, self._before, self._row_bytes, self._rows = file, before, row_bytes, rows
        self.dtype, self.shape = dtype, (rows,)
        self._every: np.ndarray | None = None  # each STEP-th row
        self._held = 0, np.empty(0, dtype)  # the rows of the last small read, from the first of them on

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            first, last, step = key.indices(self._rows)
            return self._read(first, last) if step == 1 else self._read(0, self._rows)[key]
        rows = np.asarray(key)
        if rows.dtype == np.bool_:
            return self[:][rows]
        return self._taken(np.where(rows < 0, rows + self._rows, rows) if rows.min(initial=0) < 0 else rows)

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

    def searchsorted(self, values: Any, side: Any = "left", sorter: None = None) -> Any:
        """As of an array: reads each STEP-th row, once, and the rows between two of these. np.searchsorted calls it."""
        if self._every is None:
            self._every = self._taken(np.arange(0, self._rows, STEP))
        wanted = np.asarray(values)
        steps = np.searchsorted(self._every, wanted, side)  # 0: before all rows
        result = np.zeros(wanted.shape, dtype=np.int64)
        for first, last, inside in _near(steps.ravel(), NEAR_STEPS):
            begin = max(first - 1, 0) * STEP
            rows = self._read(begin, min(last * STEP, self._rows))
            result.reshape(-1)[inside] = begin + np.searchsorted(rows, wanted.reshape(-1)[inside], side)
        return result[()]

    def write(self, first: int, values: np.ndarray) -> None:
        """Writes rows from `first` on. Raises OSError, for example if the disk is full."""
        self._every, self._held = None, (0, np.empty(0, self.dtype))
        rows = np.ascontiguousarray(values, dtype=self.dtype)
        for part, at in self._places(first, first + len(rows)):
            data = rows[part].view(np.uint8).data
            while len(data):
                written = os.pwrite(self._file.fileno(), data, at)
                data, at = data[written:], at + written

    def __setitem__(self, rows: np.ndarray, values: Any) -> None:
        """Writes single rows, or those of a mask. Not through a map, where a full disk would end the process."""
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        order = np.argsort(rows, kind="stable")
        rows, values = rows[order], np.broadcast_to(values, rows.shape)[order]
        for first in np.unique(rows // SLAB_ROWS) * SLAB_ROWS:
            part = slice(*np.searchsorted(rows, (first, first + SLAB_ROWS)))
            changed = self._read(int(rows[part][0]), int(rows[part][-1]) + 1)
            changed[rows[part] - rows[part][0]] = values[part]
            self.write(int(rows[part][0]), changed)

    def _read(self, first: int, last: int) -> np.ndarray:
        if last - first >= HELD_ROWS:
            return self._from_file(first, last)
        start, held = self._held
        if not start <= first <= last <= start + len(held):
            start, held = self._held = first, self._from_file(first, min(first + HELD_ROWS, self._rows))
        return held[first - start : max(last, first) - start].copy()

    def _from_file(self, first: int, last: int) -> np.ndarray:
        result = np.empty(max(last - first, 0), dtype=self.dtype)
        for part, at in self._places(first, last):
            data = result[part].view(np.uint8).data
            while len(data):
                read = os.preadv(self._file.fileno(), [data], at)
                if not read:
                    raise OSError(f"a file of columns ends at byte {at}")
                data, at = data[read:], at + read
        return result

    def _places(self, first: int, last: int) -> Iterator[tuple[slice, int]]:
        """Where these rows are in the file: groups of GROUP_ROWS rows have their columns one after the other."""
        for begin in range(first // GROUP_ROWS * GROUP_ROWS, last, GROUP_ROWS):
            start, stop = max(first, begin), min(last, begin + GROUP_ROWS)
            at = begin * self._row_bytes + GROUP_ROWS * self._before + (start - begin) * self.dtype.itemsize
            yield slice(start - first, stop - first), at

    def _taken(self, rows: np.ndarray) -> np.ndarray:
        """Single rows, in any order."""
        result, flat = np.empty(rows.size, dtype=self.dtype), rows.ravel()
        for first, last, inside in _near(flat, max(NEAR_STEPS * STEP, 2 * rows.size)):
            result[inside] = self._read(first, last + 1)[flat[inside] - first]
        return result.reshape(rows.shape)[()]


def _near(numbers: np.ndarray, apart: int) -> Iterator[tuple[int, int, np.ndarray | slice]]:
    """Numbers from 0 in groups, none wider than `apart`: the least and the largest of each group, and where it is."""
    if not len(numbers):
        return
    least, most = int(numbers.min()), int(numbers.max())
    if most - least < apart:
        yield least, most, slice(None)
        return
    order = np.argsort(numbers, kind="stable")
    ascending = numbers[order]
    starts = np.flatnonzero(np.diff(ascending // apart, prepend=-1))
    for first, last in pairwise([*starts.tolist(), len(numbers)]):
        yield int(ascending[first]), int(ascending[last - 1]), order[first:last]


class ColumnFile:
    """Columns that grow at their ends, in a file that vanishes with them. The file is in `directory`, or where
    temporary files are if `directory` cannot be written to. Raises OSError, for example if the disk is full.
    """

    def __init__(self, directory: Path, kinds: Mapping[str, np.dtype] | None = None) -> None:
        """Without `kinds` the columns are those of the first rows."""
        place = directory if os.access(directory, os.W_OK) else None
        self._file = _Spill(place)
        self._kinds, self.rows = dict(kinds or {}), 0

    def columns(self) -> Columns:
        """All rows so far."""
        result, before, row_bytes = {}, 0, sum(kind.itemsize for kind in self._kinds.values())
        for name, kind in self._kinds.items():
            result[name] = cast(np.ndarray, Column(self._file, before, kind, row_bytes, self.rows))
            before += kind.itemsize
        return result

    def append(self, columns: Columns) -> None:
        """Adds rows; a value of each column."""
        self._kinds, first = self._kinds or kinds(columns), self.rows
        self.rows += len(next(iter(columns.values())))
        for name, column in self.columns().items():
            cast(Column, column).write(first, columns[name])


def filed(directory: Path, parts: Iterable[Columns]) -> Columns:
    """The rows of parts, of which there is at least one, as columns of a new file."""
    file = ColumnFile(directory)
    for part in parts:
        file.append(part)
    return file.columns()


def sums_before(column: np.ndarray, directory: Path) -> np.ndarray:
    """For each row the sum (int64) of the rows before it, and last the sum of all."""
    file = ColumnFile(directory, {"sum": np.dtype(np.int64)})
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


def slabs(rows: int, most: int = 0, first: int = 0) -> Iterator[slice]:
    """Slices of at most `most` (0: SLAB_ROWS) of so many rows, from `first` on."""
    most = most or SLAB_ROWS
    return (slice(at, min(at + most, rows)) for at in range(first, rows, most))


def parts(columns: Columns, *names: str, rows: slice = slice(None)) -> Iterator[Columns]:
    """The named columns of these rows, slab by slab, in memory."""
    first, last, _ = rows.indices(len(columns[names[0]]))
    for part in slabs(last, first=first):
        yield {name: columns[name][part] for name in names}


def in_slabs(parts: Iterable[Columns], most: int = 0) -> Iterator[Columns]:
    """The rows of parts in slabs of `most` rows (0: SLAB_ROWS); the last slab has the rest."""
    waiting: list[Columns] = []
    rows, most = 0, most or SLAB_ROWS  # rows of these; a slow run has thousands of parts of a few rows
    for part in parts:
        waiting.append(part)
        rows += len(next(iter(part.values())))
        if rows > most:
            whole, ready = joined(*waiting), (rows - 1) // most * most
            yield from (rows_of(whole, slab) for slab in slabs(ready, most))
            waiting, rows = [rows_of(whole, slice(ready, None))], rows - ready
    if waiting:
        yield joined(*waiting)


def in_order(parts: Iterable[Columns], by: str, bound: str, then: str | None = None) -> Iterator[Columns]:
    """The rows of slabs as `sort` has them. Column `bound` ascends from slab to slab, and no row has a value of `by`
    below its own `bound`: rows below the last bound need not wait.
    """
    waiting: Columns = {}
    for part in parts:
        if not len(part[bound]):
            continue
        known = int(part[bound][-1])
        waiting = sort(joined(waiting, part) if waiting else part, by, then)
        ready = int(np.searchsorted(waiting[by], known))
        yield rows_of(waiting, slice(ready))
        waiting = rows_of(waiting, slice(ready, None))
    if waiting:
        yield waiting


def joined(*slabs: Columns) -> Columns:
    """The rows of slabs, at least one, with the columns of the last."""
    return {name: np.concatenate([slab[name] for slab in slabs]) for name in slabs[-1]}


def rows_of(columns: Columns, rows: slice | np.ndarray) -> Columns:
    """These rows, in memory."""
    return {name: column[rows] for name, column in columns.items()}


def order(columns: Columns, by: str, then: str | None = None) -> np.ndarray | None:
    """The rows in the order of column `by`, ties in that of `then`, else as they are. None: they are in that order."""
    times, result = columns[by], None
    if (times[1:] < times[:-1]).any():
        result = np.argsort(times, kind="stable")
        times = times[result]
    if then is None or not (same := times[1:] == times[:-1]).any():
        return result
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    depths = columns[then][tied] if result is None else columns[then][result[tied]]
    of_tied = np.lexsort((depths, times[tied]))
    if result is None and (np.diff(of_tied) == 1).all():
        return None
    result = np.arange(len(times)) if result is None else result
    result[tied] = result[tied[of_tied]]
    return result


def sort(columns: Columns, by: str, then: str | None = None) -> Columns:
    """All columns, in memory, in that order."""
    if len(columns) == 1:
        return {by: np.sort(columns[by])}
    rows = order(columns, by, then)
    return columns if rows is None else {name: column[rows] for name, column in columns.items()}


def sort_file(directory: Path, columns: Columns, by: str, then: str | None = None) -> None:
    """Sorts columns of a ColumnFile in place, in the memory of some slabs: first pieces, then the stretches in which
    rows of several pieces mix.
    """
    keys = {name: columns[name] for name in (by, then) if name}
    pieces = list(slabs(len(columns[by])))
    for piece in pieces:
        if (rows := order(rows_of(keys, piece), by, then)) is not None:
            _write(columns, piece.start, {name: column[piece][rows] for name, column in columns.items()})
    for mixed in _mixed(columns[by], pieces):
        parts = [slice(max(p.start, mixed.start), min(p.stop, mixed.stop)) for p in pieces]
        parts = [part for part in parts if part.start < part.stop]
        if mixed.stop - mixed.start <= 2 * SLAB_ROWS:
            _write(columns, mixed.start, sort(rows_of(columns, mixed), by, then))
            continue
        merged = _merged(directory, columns, parts, by, then)
        for part in slabs(mixed.stop - mixed.start):
            _write(columns, mixed.start + part.start, rows_of(merged, part))


def _write(columns: Columns, first: int, values: Columns) -> None:
    for name, column in columns.items():
        cast(Column, column).write(first, values[name])


def _mixed(times: np.ndarray, pieces: list[slice]) -> list[slice]:
    """The stretches of rows outside of which sorted pieces are in order with each other."""
    result: list[slice] = []
    firsts, lasts = np.array([times[p.start] for p in pieces]), np.array([times[p.stop - 1] for p in pieces])
    latest, earliest = np.maximum.accumulate(lasts), np.minimum.accumulate(firsts[::-1])[::-1]
    for border in range(1, len(pieces)):
        if latest[border - 1] < earliest[border]:
            continue
        before = pieces[int(np.flatnonzero(lasts[:border] >= earliest[border])[0])]
        after = pieces[border + int(np.flatnonzero(firsts[border:] <= latest[border - 1])[-1])]
        start = before.start + int(np.searchsorted(times[before], earliest[border], side="left"))
        stop = after.start + int(np.searchsorted(times[after], latest[border - 1], side="right"))
        if result and start < result[-1].stop:
            last = result.pop()
            start, stop = min(start, last.start), max(stop, last.stop)
        result.append(slice(start, stop))
    return result


def _merged(directory: Path, columns: Columns, pieces: list[slice], by: str, then: str | None) -> Columns:
    """The rows of sorted pieces in order, in a new file: at a time those between two times, of all pieces. Of rows with
    one time, without `then`, those of one piece: any number of rows may have it.
    """
    step = max(SLAB_ROWS // (4 * len(pieces)), 1)  # so that rows between two samples add a quarter of a slab at most
    samples = np.sort(np.concatenate([columns[by][piece][::step] for piece in pieces]))
    cuts = samples[SLAB_ROWS // step :: max(SLAB_ROWS // step, 1)]
    cuts = np.unique(np.append(cuts, cuts + 1))
    of_one_time = [False, *(np.diff(cuts) == 1).tolist(), False]
    merged = ColumnFile(directory, kinds(columns))
    bounds = np.array([piece.start + np.searchsorted(columns[by][piece], cuts) for piece in pieces])
    bounds = np.column_stack(([piece.start for piece in pieces], bounds, [piece.stop for piece in pieces]))
    for (first, last), is_one_time in zip(pairwise(bounds.T), of_one_time, strict=True):
        parts = [slice(*part) for part in zip(first.tolist(), last.tolist(), strict=True) if part[0] < part[1]]
        if is_one_time and then is None:
            for part in parts:
                merged.append(rows_of(columns, part))
        elif parts:
            merged.append(sort(joined(*(rows_of(columns, part) for part in parts)), by, then))
    return merged.columns()
