# SPDX-License-Identifier: MIT
"""Raw files as columns.

Memory-mapped blocks of postcards and of trace records are decoded one by one into a file of columns (columns.py), and
decoded pages are given back to the kernel: these two files cost the memory of some blocks. Damage is counted and never
raises: all records before the damage are used. A file of an unknown version raises InputError.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from analysis.arithmetic.unwrap import switch_time
from analysis.read.columns import ColumnFile, Columns, filed, in_slabs, slabs, sort, sort_file
from analysis.read.flows import PROTOCOL_NUMBERS, FlowTable, flow_type, flow_words
from lib.errors import InputError
from wire import wire

# Postcards by arrival; those of the same ns by depth: a later packet finds more.
BY_ARRIVAL = ("enqueue_mono_ns", "depth_packets")
_GOODPUT: dict[str, np.dtype] = {
    "interval_mono_ns": np.dtype(np.int64), "payload_bytes": np.dtype(np.uint64), "src_port": np.dtype(np.uint16),
    "dst_port": np.dtype(np.uint16),
}  # fmt: skip
FORGET_BYTES = 16 << 20  # decoded pages are given back to the kernel in steps of this size


@dataclass
class RawFile:
    """The state of one raw file, as far as it could be read."""

    name: str
    present: bool = False
    size_bytes: int = 0
    blocks: int = 0
    records: int = 0
    damaged_bytes: int = 0  # from the first short block or wrong checksum to the end of the file
    missing_records: int = 0  # gaps between the blocks' record numbers
    lost_records: int = 0  # counted by the writer
    bad_records: int = 0  # whose version is not the one in their block's header
    clock_step_max_ns: int = 0  # largest change of CLOCK_REALTIME - CLOCK_MONOTONIC between two blocks

    @classmethod
    def at(cls, path: Path) -> RawFile:
        """The file, before anything of it is read."""
        return cls(path.name, path.is_file(), path.stat().st_size if path.is_file() else 0)

    def damage(self) -> str | None:
        """One line if the file could not be read to its end, else None."""
        if not self.damaged_bytes:
            return None
        return (
            f"{self.name}: damaged or cut off at byte {self.size_bytes - self.damaged_bytes} of {self.size_bytes}: "
            f"the {self.records} records before this byte can be read, the rest cannot; run the experiment again"
        )


def _overlay(stored: np.dtype, fields: tuple[tuple[str, int], ...], order: str) -> np.dtype:
    """A dtype that reads a stored record as integers. NumPy has no integers of 48 or 128 bits. A 48-bit field becomes
    the low part of a 64-bit integer that starts 2 bytes earlier. A 128-bit field becomes two 64-bit halves.
    """
    names, formats, offsets = [], [], []
    if "rx_mono_ns" in (stored.fields or {}):
        names, formats, offsets = ["rx_mono_ns"], ["<u8"], [0]
    for name, bits in fields:
        offset = stored.fields[name][1]  # type: ignore[index]
        size = bits // 8
        if size == 16:
            names += [f"{name}_hi", f"{name}_lo"]
            formats += [f"{order}u8"] * 2
            offsets += [offset, offset + 8]
            continue
        narrow = size in (1, 2, 4, 8)
        if not narrow and (order != ">" or offset + size < 8):
            raise TypeError(f"{name}: no integer of 64 bits ends where its {bits} bits do")
        names.append(name)
        formats.append(f"{order}u{size}" if narrow else f"{order}u8")
        offsets.append(offset if narrow else offset + size - 8)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": stored.itemsize})


_POSTCARD = _overlay(wire.STORED_POSTCARD, wire.POSTCARD.fields, ">")
_TCP = _overlay(wire.STORED_TCP_RECORD, wire.TCP_RECORD.fields, "<")
_UNKNOWN_BIT = {name: np.uint64(1 << index) for index, (name, _) in enumerate(wire.TCP_RECORD.fields)}
IN_FLIGHT = ("packets_out", "retrans_out", "sacked_out", "lost_out")
_WIDE = {name: np.uint64((1 << bits) - 1) for name, bits in wire.POSTCARD.fields if bits == 48}

# Fields that become no column: they identify the flow, or have the same value in every record.
_POSTCARD_NOT_COLUMNS = {
    "version", "ip_protocol", "src_addr_hi", "src_addr_lo", "dst_addr_hi", "dst_addr_lo", "src_port", "dst_port",
}  # fmt: skip
_TCP_NOT_COLUMNS = {"netns_inode", "src_addr_hi", "src_addr_lo", "dst_addr_hi", "dst_addr_lo", "src_port", "dst_port"}


def read_postcards(path: Path) -> tuple[Columns, FlowTable, RawFile]:
    """Postcards by rx_mono_ns (the file has blocks of several receivers); integer columns as in wire/postcard.def, and
    `flow`. Raises InputError for an unknown version.
    """
    raw = RawFile.at(path)
    columns, flows = _read_postcards(path, raw, lambda columns: sort(columns, "rx_mono_ns"))
    sort_file(path.parent, columns, "rx_mono_ns")
    return columns, flows, raw


def load_postcards(path: Path, clock_offset_ns: int = 0) -> tuple[Columns, FlowTable, RawFile]:
    """Postcards as `read_postcards` has them, sorted by enqueue_mono_ns (int64, CLOCK_MONOTONIC), which replaces
    enqueue_switch_ns. `clock_offset_ns` is CLOCK_MONOTONIC minus the switch's clock.
    """

    def placed(columns: Columns) -> Columns:
        times = switch_time(columns.pop("enqueue_switch_ns"), columns["rx_mono_ns"], clock_offset_ns)
        return columns | {"enqueue_mono_ns": times}

    raw = RawFile.at(path)
    columns, flows = _read_postcards(path, raw, lambda columns: sort(placed(columns), *BY_ARRIVAL))
    sort_file(path.parent, columns, *BY_ARRIVAL)
    return columns, flows, raw


def _read_postcards(path: Path, raw: RawFile, derive: Callable[[Columns], Columns]) -> tuple[Columns, FlowTable]:
    def signed(columns: Columns) -> Columns:
        return derive(columns | {name: columns[name].view(np.int64) for name in ("rx_mono_ns", "sojourn_ns")})

    names = [name for name in _POSTCARD.names or () if name not in _POSTCARD_NOT_COLUMNS]
    return _read(path, wire.BLOCK.const["BLOCK_POSTCARDS"], _POSTCARD, names, raw, signed)


def load_tcp(path: Path) -> tuple[Columns, FlowTable, RawFile]:
    """Trace records sorted by mono_ns (int64); columns as in wire/tcp_record.def, `flow` and `in_flight_packets`
    (int32). Empty if there is no file. A column is meaningful in the records where `known` is true.

    In flight = packets_out - sacked_out - lost_out + retrans_out (include/net/tcp.h, tcp_packets_in_flight).
    Raises InputError for an unknown version.
    """

    def with_flight(columns: Columns) -> Columns:
        in_flight = columns["packets_out"].view(np.int32) + columns["retrans_out"].view(np.int32)
        in_flight -= columns["sacked_out"].view(np.int32)
        in_flight -= columns["lost_out"].view(np.int32)
        columns |= {"mono_ns": columns["mono_ns"].view(np.int64), "in_flight_packets": in_flight}
        return sort(columns, "mono_ns")

    raw = RawFile.at(path)
    names = [name for name in _TCP.names or () if name not in _TCP_NOT_COLUMNS]
    columns, flows = _read(path, wire.BLOCK.const["BLOCK_TCP"], _TCP, names, raw, with_flight)
    sort_file(path.parent, columns, "mono_ns")
    return columns, flows, raw


def load_goodput(path: Path) -> tuple[Columns, RawFile]:
    """Bytes that the sink received per flow and interval; columns as in wire/goodput_record.def, sorted by
    interval_mono_ns.
    """
    raw, layout = RawFile.at(path), wire.STORED_GOODPUT_RECORD
    file = ColumnFile(path.parent, _GOODPUT)
    for block in blocks(path, wire.BLOCK.const["BLOCK_GOODPUT"], raw):
        records = np.frombuffer(block.payload, layout)
        file.append({name: records[name].astype(kind) for name, kind in _GOODPUT.items()})
    raw.records, columns = file.rows, file.columns()
    sort_file(path.parent, columns, "interval_mono_ns")
    return columns, raw


def load_flows(path: Path, flows: FlowTable) -> tuple[Columns, RawFile]:
    """Records of the sending program, sorted by syn_mono_ns; columns as in wire/flow_record.def, times and bytes
    as int64, and `flow`, the number in `flows` (int64; -1: no packet of the flow came to a watched queue).
    """
    raw = RawFile.at(path)
    parts = [
        np.frombuffer(bytes(block.payload), wire.STORED_FLOW_RECORD)
        for block in blocks(path, wire.BLOCK.const["BLOCK_FLOWS"], raw)
    ]
    records = np.concatenate([np.empty(0, wire.STORED_FLOW_RECORD), *parts])
    raw.records = len(records)
    columns = {name: np.ascontiguousarray(records[name]) for name in records.dtype.names or ()}
    for name in columns:
        if name.endswith(("_ns", "_bytes", "_us")) and columns[name].dtype == np.uint64:
            columns[name] = columns[name].view(np.int64)
    columns["flow"] = flows.find(_flow_words(records)).astype(np.int64)
    return sort(columns, "syn_mono_ns"), raw


def known(tcp: Columns, *names: str) -> np.ndarray:
    """Mask of the trace records (columns of `load_tcp`) that know all of `names`; elsewhere these columns are 0."""
    fields = [part for name in names for part in (IN_FLIGHT if name == "in_flight_packets" else (name,))]
    bits = np.bitwise_or.reduce([_UNKNOWN_BIT.get(name, np.uint64(0)) for name in fields])
    return (tcp["unknown_fields"] & bits) == 0


def _flow_words(records: np.ndarray) -> np.ndarray:
    """Records without the field ip_protocol (trace, flows) are of TCP."""
    has_protocol = "ip_protocol" in (records.dtype.names or ())
    return flow_words(records, records["ip_protocol"] if has_protocol else PROTOCOL_NUMBERS["tcp"])


def _read(
    path: Path, kind: int, layout: np.dtype, names: list[str], raw: RawFile, derive: Callable[[Columns], Columns]
) -> tuple[Columns, FlowTable]:
    """Decodes a raw file to a file of columns. `derive` gets the columns of each slab of the file, which is then the
    same part of the result. Fills `raw`.
    """
    flows = FlowTable()
    columns = filed(path.parent, map(derive, in_slabs(_decoded(path, kind, layout, names, raw, flows))))
    raw.records = len(columns["flow"])
    return columns | {"flow": numbered(columns["flow"], None, flow_type(len(flows)), path.parent)}, flows


def _decoded(
    path: Path, kind: int, layout: np.dtype, names: list[str], raw: RawFile, flows: FlowTable
) -> Iterator[Columns]:
    """The columns of each block, after those of no record."""
    nothing = np.empty(0, dtype=layout)
    for block in chain((None,), blocks(path, kind, raw)):
        records = np.frombuffer(block.payload, dtype=layout) if block else nothing
        if block and "version" in (layout.names or ()):
            readable = records["version"] == block.header["record_version"]
            if not readable.all():
                raw.bad_records += len(records) - int(readable.sum())
                records = records[readable]
        decoded = {name: records[name].astype(layout[name].newbyteorder("=")) for name in names}
        for name in decoded.keys() & _WIDE.keys():
            decoded[name] &= _WIDE[name]
        yield decoded | {"flow": flows.numbers(_flow_words(records))}


def numbered(flow: np.ndarray, numbers: np.ndarray | None, kind: type, directory: Path) -> np.ndarray:
    """A column of flow numbers as another type, after replacing each number by the one at its place in `numbers`."""
    file = ColumnFile(directory, {"flow": np.dtype(kind)})
    for rows in slabs(len(flow)):
        values = flow[rows] if numbers is None else numbers[np.minimum(flow[rows], len(numbers) - 1)]
        file.append({"flow": values.astype(kind)})
    return file.columns()["flow"]


def blocks(path: Path, kind: int, raw: RawFile) -> Iterator[wire.Block]:
    """Yields the blocks of a file before the first damage, and counts damage in `raw`, which is RawFile.at(path).
    Raises InputError for an unknown version.
    """
    if not raw.size_bytes:
        return
    at = forgotten = expected = 0
    offset_ns: int | None = None
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), raw.size_bytes, access=mmap.ACCESS_READ)
    try:
        for block in wire.read_blocks(memoryview(mapped), kind):
            header = block.header
            at += wire.BLOCK.length + header["payload_bytes"]
            raw.blocks += 1
            raw.missing_records += max(0, header["first_record"] - expected)
            expected = header["first_record"] + header["record_count"]
            raw.lost_records = max(raw.lost_records, header["lost_records"])
            block_offset_ns = header["realtime_minus_mono_ns"]
            if offset_ns is not None:
                raw.clock_step_max_ns = max(raw.clock_step_max_ns, abs(_signed(block_offset_ns - offset_ns)))
            offset_ns = block_offset_ns
            yield block
            if at - forgotten >= FORGET_BYTES:
                page = at // mmap.PAGESIZE * mmap.PAGESIZE
                mapped.madvise(mmap.MADV_DONTNEED, forgotten, page - forgotten)
                forgotten = page
    except wire.RawFileError as error:
        raise InputError(f"{path}: {error}; analyse it with the version that wrote it") from error
    raw.damaged_bytes = raw.size_bytes - at


def _signed(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value
