# SPDX-License-Identifier: MIT
"""Parses columns of text to columns of numbers. A wrong value is an error with file, line and the allowed values:
values are neither guessed nor dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import polars as pl

from analysis.read.flows import FiveTuple
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
    parts = column.str.extract_groups(r"^([0-9]{1,9})(?:\.([0-9]{1,12}))?$")
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
class Cards:
    """Postcards of a source: columns as in wire/postcard.def, and `mono_ns`, the receive time."""

    columns: dict[str, np.ndarray]
    addresses: Addresses
    unknown: set[str] = field(default_factory=set)  # columns that the source does not have
    cell_bytes: int | None = None  # size of a cell, if depths are in cells of a buffer
    turn_ns: int | None = None  # times are known up to a multiple of this

    def only(self, rows: np.ndarray | slice) -> Cards:
        """Some of the postcards: a mask, row numbers, or a slice; these postcards if the mask has all."""
        if isinstance(rows, np.ndarray) and rows.dtype == np.bool_ and rows.all():
            return self
        columns = {name: values[rows] for name, values in self.columns.items()}
        return replace(self, columns=columns, addresses=self.addresses.only(rows))


def joined_cards(parts: list[Cards]) -> Cards:
    """The postcards of several files, such as those of a rotated capture, in the order of the files' first times.
    Raises InputError if the files are of different kinds.
    """
    if len({(*sorted(part.columns), part.cell_bytes) for part in parts}) > 1:
        raise InputError("FROM names postcards of two kinds; allowed: files of one kind, such as a rotated capture")
    if len(parts) == 1:
        return parts[0]
    parts = sorted(parts, key=lambda part: part.columns["mono_ns"][0])
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
    return replace(parts[0], columns=columns, addresses=Addresses.joined([part.addresses for part in parts]))


@dataclass
class Depths:
    """A source's histogram of the depth at departure."""

    rows: pl.DataFrame  # the source's columns queue_depth_packets and count, as text
    packets: np.ndarray  # depth of each row, not rounded
    counts: np.ndarray


@dataclass
class Events:
    """TCP events of a source: columns as in wire/tcp_record.def."""

    columns: dict[str, np.ndarray]
    addresses: Addresses
    known: dict[int, set[str]]  # TCP_EVENT_* -> columns that the source has for such events
    digests: np.ndarray  # uint64, of each event's text: copies of an event have the same
    lost: int = 0  # events that the source reports as lost
    losses: int = 0  # losses whose number of events the source does not report
    others: int = 0  # lines of other events
    cut: int = 0  # incomplete last lines
    back_ns: int = 0  # the longest step back between two lines

    def only(self, rows: np.ndarray | slice) -> Events:
        """Some of the events: a mask, row numbers, or a slice."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        return replace(self, columns=columns, addresses=self.addresses.only(rows), digests=self.digests[rows])


@dataclass
class Addresses:
    """Addresses (pairs of 64-bit halves) and ports of each row."""

    src: np.ndarray  # rows x 2, uint64
    dst: np.ndarray
    src_port: np.ndarray
    dst_port: np.ndarray

    @classmethod
    def joined(cls, parts: list[Addresses]) -> Addresses:
        return cls(*map(np.concatenate, zip(*(vars(part).values() for part in parts), strict=True)))

    def only(self, rows: np.ndarray | slice) -> Addresses:
        """Those of some rows: a mask, row numbers, or a slice."""
        return Addresses(*(values[rows] for values in vars(self).values()))


def addresses(
    src: pl.Series, dst: pl.Series, ports: tuple[np.ndarray, np.ndarray], where: str, lines: pl.Series
) -> Addresses:
    """Addresses from text; `lines` has the line of each row. Raises InputError for text that is not an address."""
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

    return Addresses(halves(src), halves(dst), *(np.asarray(port).astype(np.uint16) for port in ports))
