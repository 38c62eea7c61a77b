# SPDX-License-Identifier: MIT
"""The formats of this directory, read from their .def files: constants and fields.

A `Format` is the content of a .def file. Nothing here repeats a field: a field added to the .def reaches every reader.
Only functions for many records import NumPy: importing it takes too long in a virtual-time machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

HERE = Path(__file__).resolve().parent

_CONST = re.compile(r"^CONST\((\w+), *(\w+)\)", re.M)
_FIELD = re.compile(r"^FIELD\( *(\d+), *(\w+)\)", re.M)
_EIGHT_BUCKETS = re.compile(r"^EIGHT_BUCKETS\((\d+), (\d+), (\d+)\)", re.M)


@dataclass(frozen=True)
class Format:
    """One .def file. `fields` is (name, bits) in wire order; `byte_order` is "big" or "little".

    Fields of our own formats are whole bytes. Big-endian third-party formats may have bit fields.
    """

    name: str
    byte_order: str
    const: dict[str, int]
    fields: tuple[tuple[str, int], ...]

    @classmethod
    def load(cls, path: Path, byte_order: str) -> Format:
        text = path.read_text()
        return cls(
            name=path.stem,
            byte_order=byte_order,
            const={name: int(value, 0) for name, value in _CONST.findall(text)},
            fields=tuple((name, int(bits)) for bits, name in _FIELD.findall(text)),
        )

    @property
    def length(self) -> int:
        """Bytes of one record."""
        return sum(bits for _, bits in self.fields) // 8

    def decode(self, data: bytes | memoryview) -> dict[str, int]:
        """The fields of one record: the first `length` bytes of `data`. ValueError: `data` is shorter."""
        if len(data) < self.length:
            raise ValueError(f"{self.name}: {len(data)} bytes, a record has {self.length}")
        number = int.from_bytes(data[: self.length], self.byte_order)  # type: ignore[arg-type]
        return {name: number >> at & (1 << bits) - 1 for name, bits, at in self._shifts()}

    def encode(self, **values: int) -> bytes:
        """One record. Missing fields are 0; an unknown field, or a value too wide, is an error."""
        unknown = values.keys() - dict(self.fields).keys()
        if unknown:
            raise ValueError(f"{self.name} has no field {', '.join(sorted(unknown))}")
        number = 0
        for name, bits, at in self._shifts():
            value = int(values.get(name, 0))
            if not 0 <= value < 1 << bits:
                raise OverflowError(f"{self.name}: {name} has {bits} bits, {value} does not fit")
            number |= value << at
        return number.to_bytes(self.length, self.byte_order)  # type: ignore[arg-type]

    def columns(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Decodes many big-endian records: `rows` is uint8, records x at least `length`; each field becomes uint64, a
        field of 128 bits two (`<name>_hi` and `<name>_lo`).

        Raises TypeError for little-endian formats, and for formats with a field that overlaps more than eight bytes.
        """
        import numpy as np

        result = {}
        halves = (
            part
            for name, bits, at in self._shifts()
            for part in (((f"{name}_hi", 64, at + 64), (f"{name}_lo", 64, at)) if bits == 128 else ((name, bits, at),))
        )
        for name, bits, at in halves:
            first, last = (8 * self.length - at - bits) // 8, (8 * self.length - at - 1) // 8
            if self.byte_order != "big" or last - first >= 8:
                raise TypeError(f"{self.name}: {name} is not a column of 64 bits")
            result[name] = wide(rows[:, first : last + 1]) >> np.uint64(at % 8) & np.uint64((1 << bits) - 1)
        return result

    def rows(self, count: int, **values: np.ndarray | int) -> np.ndarray:
        """The inverse of `columns`: `count` big-endian records as uint8, records x `length`. Missing fields are 0; an
        unknown field, or a value too wide, is an error.
        """
        import numpy as np

        unknown = values.keys() - dict(self.fields).keys()
        if unknown:
            raise ValueError(f"{self.name} has no field {', '.join(sorted(unknown))}")
        result = np.zeros((count, self.length), dtype=np.uint8)
        for name, bits, at in self._shifts():
            if name not in values:
                continue
            column = np.broadcast_to(np.asarray(values[name], dtype=np.uint64), (count,))
            if bits < 64 and (column >> np.uint64(bits)).any():
                raise OverflowError(f"{self.name}: {name} has {bits} bits, {column.max()} does not fit")
            for byte in range((8 * self.length - at - bits) // 8, (8 * self.length - at - 1) // 8 + 1):
                shift = 8 * (self.length - 1 - byte) - at
                part = column >> np.uint64(shift) if shift >= 0 else column << np.uint64(-shift)
                result[:, byte] |= (part & np.uint64(0xFF)).astype(np.uint8)
        return result

    def _shifts(self) -> Iterator[tuple[str, int, int]]:
        """(name, bits, offset of its lowest bit in the record as one integer) of each field."""
        at = 8 * self.length if self.byte_order == "big" else 0
        for name, bits in self.fields:
            at -= bits if self.byte_order == "big" else 0
            yield name, bits, at
            at += bits if self.byte_order == "little" else 0

    def dtype(self, stamp_bytes: int = 0) -> np.dtype:
        """NumPy layout of one record, preceded by `rx_mono_ns` (little-endian, `stamp_bytes` long; 0: without it).

        Fields of 48 and 128 bits, for which NumPy has no integer, are rows of bytes; `wide` converts 48 bits to uint64.
        """
        import numpy as np

        if any(bits % 8 for _, bits in self.fields):
            raise TypeError(f"{self.name} has fields that are not whole bytes: use columns()")
        order = ">" if self.byte_order == "big" else "<"
        columns: list[tuple] = [("rx_mono_ns", f"<u{stamp_bytes}")] if stamp_bytes else []
        for name, bits in self.fields:
            size = bits // 8
            columns.append((name, f"{order}u{size}") if size in (1, 2, 4, 8) else (name, "u1", (size,)))
        return np.dtype(columns)


def wide(column: np.ndarray) -> np.ndarray:
    """Converts rows of up to 8 big-endian bytes to uint64."""
    import numpy as np

    value = np.zeros(len(column), dtype=np.uint64)
    for index in range(column.shape[1]):
        value = (value << np.uint64(8)) | column[:, index]
    return value


POSTCARD = Format.load(HERE / "postcard.def", "big")
BLOCK = Format.load(HERE / "block.def", "little")
TCP_RECORD = Format.load(HERE / "tcp_record.def", "little")
GOODPUT_RECORD = Format.load(HERE / "goodput_record.def", "little")
FLOW_RECORD = Format.load(HERE / "flow_record.def", "little")
ARTIFACT_POSTCARD = Format.load(HERE / "artifact_postcard.def", "big")
TELEMETRY_REPORT = Format.load(HERE / "telemetry_report.def", "big")
DATAGRAM = Format.load(HERE / "datagram.def", "big")
PACKET_HEADERS = Format.load(HERE / "packet_headers.def", "big")
CAPTURED_PACKET = Format.load(HERE / "captured_packet.def", "little")
CONNECTION = Format.load(HERE / "connection.def", "little")
PCAPNG_PACKET = Format.load(HERE / "pcapng_packet.def", "little")
_SHARED = HERE.parent / "p4src/shared"
POLICY = {
    name: code
    for file in ("policy.def", "own_policy.def")
    for name, code in Format.load(_SHARED / file, "big").const.items()
}

# The lowest depth of each bucket of the switch's depth histogram, in the switch's unit of depth.
DEPTH_BUCKETS = tuple(
    lowest + index * width
    for _, lowest, width in (
        tuple(map(int, line)) for line in _EIGHT_BUCKETS.findall((_SHARED / "depth_buckets.def").read_text())
    )
    for index in range(8)
)
