# SPDX-License-Identifier: MIT
"""Parses columns of text to columns of numbers. A wrong value is an error with file, line and the allowed values:
values are neither guessed nor dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import polars as pl

from analysis.read.columns import SLAB_ROWS, Column, ColumnFile, Columns, filed, rows_of, slabs, sort_file
from analysis.read.flows import FiveTuple
from analysis.read.postcards import busiest, queue_keys
from lib.errors import InputError

LINE = "line"  # the column with each row's line in its file
SHOWN_CHARACTERS = 60


class InputColumn(NamedTuple):
    """One column: its name, the allowed values, and the expression that reads it (null: a wrong value)."""

    name: str
    allowed: str
    read: Callable[[pl.Expr], pl.Expr]


def integer(name: str, bits: int) -> InputColumn:
    """An integer from 0."""
    return InputColumn(name, f"a whole number from 0 to {(1 << bits) - 1}", lambda text: _bounded(text, 10, bits))


def hexadecimal(name: str, bits: int) -> InputColumn:
    """An integer from 0 in hexadecimal digits, with or without 0x."""
    return InputColumn(name, f"a hexadecimal number of at most {bits} bits", lambda text: _bounded(text, 16, bits))


def prefixed(name: str, bits: int) -> InputColumn:
    """An integer from 0 in hexadecimal digits with 0x, as the kernel prints it: 0 is without."""
    allowed, read = f"a hexadecimal number of at most {bits} bits, with 0x", hexadecimal(name, bits).read
    return InputColumn(name, allowed, lambda text: pl.when(text.str.contains("^0x|^0$")).then(read(text)))


def seconds(name: str) -> InputColumn:
    """A time in s as integer ns, without rounding: digits beyond the ns are cut off."""
    return InputColumn(name, "a time in seconds, as 1892945.576997", _nanoseconds)


def decimal(name: str) -> InputColumn:
    """A number from 0, with digits after the point or without."""
    pattern = r"^[0-9]{1,9}(\.[0-9]{1,20})?$"
    return InputColumn(
        name,
        "a number from 0, as 166.67",
        lambda text: pl.when(text.str.contains(pattern)).then(text).cast(pl.Float64, strict=False),
    )


def text(name: str, pattern: str, allowed: str) -> InputColumn:
    """Text that matches a regular expression."""
    return InputColumn(name, allowed, lambda column: pl.when(column.str.contains(f"^(?:{pattern})$")).then(column))


def _bounded(column: pl.Expr, base: int, bits: int) -> pl.Expr:
    digits = column.str.strip_prefix("0x") if base == 16 else column
    pattern = "^[0-9a-fA-F]{1,16}$" if base == 16 else r"^[0-9]{1,18}(\.0+)?$"  # pandas sometimes writes 1.0 for 1
    digits = pl.when(digits.str.contains(pattern)).then(digits.str.replace(r"\.0+$", ""))
    if bits == 64:  # socket cookies: may exceed Int64, and nothing computes with them
        return digits.str.to_integer(base=base, dtype=pl.UInt64, strict=False)
    value = digits.str.to_integer(base=base, dtype=pl.Int64, strict=False)
    return pl.when(value < (1 << bits)).then(value)


def _nanoseconds(column: pl.Expr) -> pl.Expr:
    parts = column.str.extract_groups(r"^([0-8]?[0-9]{1,9})(?:\.([0-9]{1,12}))?$")
    fraction = parts.struct.field("2").fill_null("").str.slice(0, 9).str.pad_end(9, "0")
    return parts.struct.field("1").cast(pl.Int64) * 1_000_000_000 + fraction.str.to_integer(
        dtype=pl.Int64, strict=False
    )


def typed(frame: pl.DataFrame, fields: Iterable[InputColumn], where: str) -> dict[str, np.ndarray | pl.Series]:
    """The columns by name, as numbers (NumPy) or text (Series). Raises InputError for the first missing column or wrong
    value.
    """
    result: dict[str, np.ndarray | pl.Series] = {}
    for part in fields:
        if part.name not in frame.columns:
            raise InputError(f"{where}: has no column {part.name}; allowed: files with this column, {part.allowed}")
        values = frame.select(part.read(pl.col(part.name)).alias(part.name))[part.name]
        wrong = values.is_null()
        if wrong.any():
            row = int(wrong.arg_max() or 0)
            value = frame[part.name][row]
            shown = "empty" if value is None else ascii(value[:SHOWN_CHARACTERS])
            raise InputError(f"{where}, line {frame[LINE][row]}: {part.name} is {shown}; allowed: {part.allowed}")
        result[part.name] = values if values.dtype == pl.String else values.to_numpy()
    return result


@dataclass
class Rows:
    """Rows of a source, in files of columns: those of wire/postcard.def or wire/tcp_record.def, `mono_ns` (int64), and
    `digest` (uint64) of the rest of each row. Its times are not in the digest of a postcard.
    """

    pieces: list[Columns]  # one after the other; a column that a piece lacks is 0 there

    @property
    def rows(self) -> int:
        return sum(len(piece["mono_ns"]) for piece in self.pieces)

    def parts(self, *names: str) -> Iterator[Columns]:
        """These columns, or all, slab by slab, in memory."""
        names = names or tuple(dict.fromkeys(name for piece in self.pieces for name in piece))
        for piece in self.pieces:
            for rows in slabs(len(piece["mono_ns"])):
                zeros = np.zeros(rows.stop - rows.start, dtype=np.int64)
                yield {name: piece[name][rows] if name in piece else zeros for name in names}

    def times(self) -> tuple[int, int, int]:
        """The first, the last and about the median of `mono_ns`."""
        ends, step = [], max(self.rows // SLAB_ROWS, 1)
        sample = []
        for part in self.parts("mono_ns"):
            ends += [int(part["mono_ns"].min()), int(part["mono_ns"].max())]
            sample.append(part["mono_ns"][::step])
        return min(ends), max(ends), int(np.median(np.concatenate(sample)))

    def again(self, directory: Path, time: str, within_ns: int) -> Columns:
        """`row`, ascending, in a file: the numbers of the rows that equal another less than `within_ns` before them."""
        first = 0

        def keys() -> Iterator[Columns]:
            nonlocal first
            for part in self.parts("digest", time):
                row = np.arange(first, first := first + len(part["digest"]))
                yield {"digest": part["digest"], "ns": part[time].astype(np.int64), "row": row}

        found = ColumnFile(directory, {"row": np.dtype(np.int64)})
        if self.rows:
            sort_file(directory, columns := filed(directory, keys()), "digest", "ns")
            for rows in slabs(self.rows - 1):
                part = rows_of(columns, slice(rows.start, rows.stop + 1))
                same = (np.diff(part["digest"]) == 0) & (np.diff(part["ns"]) < within_ns)
                found.append({"row": part["row"][1:][same]})
        sort_file(directory, result := found.columns(), "row")
        return result

    def leave_out(self, directory: Path, numbers: np.ndarray) -> None:
        """Leaves out the rows of these numbers, which ascend."""
        first = 0

        def left() -> Iterator[Columns]:
            nonlocal first
            for part in self.parts():
                last = first + len(part["mono_ns"])
                without = numbers[slice(*np.searchsorted(numbers, (first, last)))] - first
                yield {name: np.delete(column, without) for name, column in part.items()}
                first = last

        self.pieces = [filed(directory, left())]


QUEUE = ("switch_id", "egress_port", "queue_id")


@dataclass
class Cards(Rows):
    """Postcards of a source."""

    unknown: set[str] = field(default_factory=set)  # columns that the source does not have
    cell_bytes: int | None = None  # size of a cell, if depths are in cells of a buffer
    turn_ns: int | None = None  # times are known up to a multiple of this
    key: int | None = None  # only the postcards of this queue

    def parts(self, *names: str) -> Iterator[Columns]:
        if self.key is None:
            yield from super().parts(*names)
            return
        for part in super().parts(*names, *QUEUE):
            yield rows_of(part, queue_keys(part) == self.key)

    def queue(self) -> Cards:
        """The postcards of the queue with the most postcards."""
        key, counts = busiest(queue_keys(part) for part in self.parts(*QUEUE))
        return replace(self, key=key) if len(counts) > 1 else self

    def shift(self, ns: int, switch: int | None = None) -> None:
        """Adds to the times of the postcards, of one switch if it is given."""
        for piece in self.pieces if ns else ():
            for rows in slabs(len(piece["mono_ns"])):
                more = ns if switch is None else ns * (piece["switch_id"][rows] == switch)
                cast(Column, piece["mono_ns"]).write(rows.start, piece["mono_ns"][rows] + more)


def joined_cards(parts: list[Cards]) -> Cards:
    """The postcards of several files, such as those of a rotated capture, in the order of the files' first times.
    Raises InputError if the files are of different kinds.
    """
    if len({(*sorted(part.pieces[0]), part.cell_bytes) for part in parts}) > 1:
        raise InputError("FROM names postcards of two kinds; allowed: files of one kind, such as a rotated capture")
    parts = sorted(
        [part for part in parts if part.rows] or parts[:1], key=lambda part: part.pieces[0]["mono_ns"][:1].tolist()
    )
    return replace(parts[0], pieces=[piece for part in parts for piece in part.pieces])


@dataclass
class Depths:
    """A source's histogram of the depth at departure."""

    rows: pl.DataFrame  # the source's columns queue_depth_packets and count, as text
    packets: np.ndarray  # depth of each row, not rounded
    counts: np.ndarray


@dataclass
class Events(Rows):
    """TCP events of a source."""

    known: dict[int, set[str]]  # TCP_EVENT_* -> columns that the source has for such events
    lost: int = 0  # events that the source reports as lost
    losses: int = 0  # losses whose number of events the source does not report
    others: int = 0  # lines of other events
    cut: int = 0  # incomplete last lines
    back_ns: int = 0  # the longest step back between two lines


def addresses(
    src: pl.Series, dst: pl.Series, ports: tuple[np.ndarray, np.ndarray], where: str, lines: pl.Series
) -> Columns:
    """Columns of addresses and ports from text; `lines` has the line of each row. Raises InputError for text that is
    not an address.
    """
    known: dict[str, tuple[int, int]] = {}

    def halves(series: pl.Series) -> np.ndarray:
        for text in series.unique():
            if text not in known:
                try:
                    number = FiveTuple.of("tcp", text.strip("[]"), "::", 0, 0).src
                except ValueError:
                    line = lines[(series == text).arg_max() or 0]
                    shown = ascii(text)[:SHOWN_CHARACTERS]
                    raise InputError(
                        f"{where}, line {line}: {shown} is not an IP address; allowed: IPv4 or IPv6, as 10.0.0.1"
                    ) from None
                known[text] = (number >> 64, number & ((1 << 64) - 1))
        table = pl.DataFrame(
            {"a": list(known), "hi": [v[0] for v in known.values()], "lo": [v[1] for v in known.values()]},
            schema={"a": pl.String, "hi": pl.UInt64, "lo": pl.UInt64},
        )
        joined = pl.DataFrame({"a": series}).join(table, on="a", how="left", maintain_order="left")
        return joined.select("hi", "lo").to_numpy()

    (src_hi, src_lo), (dst_hi, dst_lo) = halves(src).T, halves(dst).T
    src_port, dst_port = (np.asarray(port).astype(np.uint16) for port in ports)
    return {
        "src_addr_hi": src_hi, "src_addr_lo": src_lo, "dst_addr_hi": dst_hi, "dst_addr_lo": dst_lo,
        "src_port": src_port, "dst_port": dst_port,
    }  # fmt: skip
