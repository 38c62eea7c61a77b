# SPDX-License-Identifier: MIT
"""Reads what a repetition left behind: raw blocks as columns, JSON and YAML files as dictionaries.

Raw files are memory-mapped and decoded block by block, columns straight into their final arrays; what was decoded is
given back to the kernel, so a file of any size costs the memory of its columns alone. The two raw files are read by two
threads, whose work (checksums, strided copies) runs without the interpreter's lock. Damage never raises: it is counted,
and what stands before it is used.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from analysis.flows import WORDS, FiveTuple, FlowTable
from analysis.unwrap import switch_time
from wire import wire

POSTCARDS_FILE = "postcards.bsp"
TCP_FILE = "tcp.bst"
SPEC_VERSION = 1
FORGET_BYTES = 64 << 20  # decoded bytes of a raw file that may stay mapped

# Keys of spec.yaml that the analysis computes with; all positive.
REQUIRED_SPEC = {
    "rate_bps": int, "rtt_ns": int, "mtu_bytes": int, "wire_bytes": int, "buffer_packets": int, "bdp_packets": int,
    "duration_ns": int, "warmup_ns": int, "mode": str, "groups": list,
}  # fmt: skip


Columns = dict[str, np.ndarray]


class InputError(Exception):
    """A repetition that cannot be analysed at all; the text is one line: what, where, what to do."""


@dataclass
class RawFile:
    """What was found in one raw file."""

    name: str
    present: bool = False
    size_bytes: int = 0
    blocks: int = 0
    records: int = 0
    damaged_bytes: int = 0  # from the first block that is short or whose checksum is wrong to the end
    missing_records: int = 0  # by the numbers of the blocks' first records
    lost_records: int = 0  # by the writer's own account
    bad_records: int = 0  # of a version this reader does not know
    clock_step_max_ns: int = 0  # largest change of CLOCK_REALTIME - CLOCK_MONOTONIC between two blocks

    def damage(self) -> str | None:
        """One line if not every byte could be read."""
        if not self.damaged_bytes:
            return None
        return (
            f"{self.name}: damaged or cut off at byte {self.size_bytes - self.damaged_bytes} of {self.size_bytes}: "
            f"{self.records} records before it are used, the rest is not; run the experiment again"
        )


@dataclass
class Run:
    """One repetition as it was recorded. `postcards` and `tcp` are columns of equal length, by time."""

    directory: Path
    spec: dict[str, Any]
    documents: dict[str, dict[str, Any]]  # by file name without .json; empty where the file is missing
    problems: list[str]  # unreadable documents, one line each
    raw: dict[str, RawFile]
    postcards: dict[str, np.ndarray]  # by enqueue_mono_ns
    tcp: dict[str, np.ndarray]  # by mono_ns
    flows: list[FiveTuple]  # by number; the columns "flow" refer to it
    traffic: list[dict[str, Any]] = field(default_factory=list)  # the flows of traffic.json, with "flow" numbers


def load(directory: Path) -> Run:
    """Everything of one repetition. Raises InputError if there is no usable spec.yaml or no postcards.bsp."""
    spec = _spec(directory / "spec.yaml")
    if not (directory / POSTCARDS_FILE).is_file():
        raise InputError(f"{directory / POSTCARDS_FILE}: missing; give the directory of a repetition (rep-<k>)")
    problems: list[str] = []
    documents = {
        name: _document(directory / f"{name}.json", problems)
        for name in ("environment", "collector", "tracer", "switch", "traffic", "idle_rtt")
    }
    with ThreadPoolExecutor(1) as second:
        tcp_job = second.submit(load_tcp, directory / TCP_FILE)
        postcards, postcard_flows, postcards_raw = load_postcards(directory / POSTCARDS_FILE)
        tcp, tcp_flows, tcp_raw = tcp_job.result()
    flows, renumber = _merge(postcard_flows.tuples(), tcp_flows.tuples())
    tcp["flow"] = renumber[tcp["flow"]]
    if not tcp_raw.present:
        problems.append(f"{TCP_FILE}: missing, so no windows are known; run the experiment again")
    run = Run(directory, spec, documents, problems, {"postcards": postcards_raw, "tcp": tcp_raw}, postcards, tcp, flows)
    run.traffic = _traffic(run)
    return run


# Raw files ------------------------------------------------------------------------------------------------------------


def _overlay(stored: np.dtype, fields: tuple[tuple[str, int], ...], order: str) -> np.dtype:
    """A stored record in integers only: 48 bits as the low part of 64 that start earlier, 128 as two halves."""
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
_WIDE = {name: np.uint64((1 << bits) - 1) for name, bits in wire.POSTCARD.fields if bits == 48}

# What becomes of the fields that are no columns: parts of the flow, or the same in every record.
_POSTCARD_NOT_COLUMNS = {
    "version", "ip_protocol", "src_addr_hi", "src_addr_lo", "dst_addr_hi", "dst_addr_lo", "src_port", "dst_port",
}  # fmt: skip
_TCP_NOT_COLUMNS = {"netns_inode", "src_addr_hi", "src_addr_lo", "dst_addr_hi", "dst_addr_lo", "src_port", "dst_port"}


def load_postcards(path: Path) -> tuple[dict[str, np.ndarray], FlowTable, RawFile]:
    """Postcards by enqueue_mono_ns (int64, CLOCK_MONOTONIC); integer columns as in wire/postcard.def, and `flow`."""
    raw = RawFile(path.name)
    names = [name for name in _POSTCARD.names or () if name not in _POSTCARD_NOT_COLUMNS]
    columns, flows = _read(path, wire.BLOCK.const["BLOCK_POSTCARDS"], _POSTCARD, names, _postcard_words, raw)
    columns["enqueue_mono_ns"] = switch_time(columns.pop("enqueue_switch_ns"), columns["rx_mono_ns"])
    columns["rx_mono_ns"] = columns["rx_mono_ns"].view(np.int64)
    columns["sojourn_ns"] = columns["sojourn_ns"].view(np.int64)
    _sort(columns, "enqueue_mono_ns", "depth_packets")  # those that came at once found each other in the queue
    return columns, flows, raw


def load_tcp(path: Path) -> tuple[dict[str, np.ndarray], FlowTable, RawFile]:
    """Trace records by mono_ns (int64); columns as in wire/tcp_record.def, `flow` and `in_flight_packets` (int32).

    In flight = packets_out - sacked_out - lost_out + retrans_out (include/net/tcp.h, tcp_packets_in_flight). Empty if
    there is no file.
    """
    raw = RawFile(path.name)
    names = [name for name in _TCP.names or () if name not in _TCP_NOT_COLUMNS]
    columns, flows = _read(path, wire.BLOCK.const["BLOCK_TCP"], _TCP, names, _tcp_words, raw)
    columns["mono_ns"] = columns["mono_ns"].view(np.int64)
    in_flight = columns["packets_out"].view(np.int32) + columns["retrans_out"].view(np.int32)
    in_flight -= columns["sacked_out"].view(np.int32)
    in_flight -= columns["lost_out"].view(np.int32)
    columns["in_flight_packets"] = in_flight
    _sort(columns, "mono_ns")
    return columns, flows, raw


def _postcard_words(records: np.ndarray) -> np.ndarray:
    words = np.empty((WORDS, len(records)), dtype=np.uint64)
    for row, name in enumerate(("src_addr_hi", "src_addr_lo", "dst_addr_hi", "dst_addr_lo")):
        words[row] = records[name]
    return _ports(words, records, records["ip_protocol"].astype(np.uint64))


def _tcp_words(records: np.ndarray) -> np.ndarray:
    words = np.empty((WORDS, len(records)), dtype=np.uint64)
    for row, name in enumerate(("src_addr_hi", "src_addr_lo", "dst_addr_hi", "dst_addr_lo")):
        words[row] = records[name]
    return _ports(words, records, np.full(len(records), 6, dtype=np.uint64))


def _ports(words: np.ndarray, records: np.ndarray, protocol: np.ndarray) -> np.ndarray:
    ports = records["src_port"].astype(np.uint64) << np.uint64(16) | records["dst_port"]
    words[4] = protocol << np.uint64(32) | ports
    return words


def _read(
    path: Path, kind: int, layout: np.dtype, names: list[str], flow_words: Any, raw: RawFile
) -> tuple[dict[str, np.ndarray], FlowTable]:
    """Decodes a raw file into one array a column, in the file's order. Fills `raw`."""
    flows = FlowTable()
    raw.present = path.is_file()
    raw.size_bytes = path.stat().st_size if raw.present else 0
    capacity = raw.size_bytes // layout.itemsize  # more than there are: pages never written to cost nothing
    columns = {name: np.empty(capacity, dtype=layout[name].newbyteorder("=")) for name in names}
    columns["flow"] = np.empty(capacity, dtype=np.uint16)
    end = 0
    for payload in _payloads(path, kind, raw):
        records = np.frombuffer(payload, dtype=layout)
        if "version" in (layout.names or ()):
            known = records["version"] == wire.POSTCARD.const["POSTCARD_VERSION"]
            if not known.all():
                raw.bad_records += len(records) - int(known.sum())
                records = records[known]
        start, end = end, end + len(records)
        for name in names:
            columns[name][start:end] = records[name]
            if name in _WIDE:
                columns[name][start:end] &= _WIDE[name]
        columns["flow"][start:end] = flows.numbers(flow_words(records))
    raw.records = end
    return {name: column[:end] for name, column in columns.items()}, flows


def _payloads(path: Path, kind: int, raw: RawFile) -> Iterator[memoryview]:
    """The payloads of the whole blocks; what cannot be read is put down in `raw`."""
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
            yield block.payload
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


def _sort(columns: Columns, by: str, then: str | None = None) -> None:
    """Rows by one column, in place; rows of equal time by another, else in the file's order."""
    times = columns[by]
    step = np.diff(times)
    if (step < 0).any():
        order = np.argsort(times, kind="stable")
        for name in columns:
            columns[name] = columns[name][order]
        step = np.diff(columns[by])
    if then is None or not (step == 0).any():
        return
    tied = np.flatnonzero(np.append(step == 0, False) | np.append(False, step == 0))
    order = tied[np.lexsort((columns[then][tied], columns[by][tied]))]
    for name in columns:
        columns[name][tied] = columns[name][order]


def _merge(first: list[FiveTuple], second: list[FiveTuple]) -> tuple[list[FiveTuple], np.ndarray]:
    """One numbering for two files: the first's, then what only the second has. Returns it, and second's new numbers."""
    numbers = {flow: number for number, flow in enumerate(first)}
    for flow in second:
        numbers.setdefault(flow, len(numbers))
    renumber = np.full(0x10000, 0xFFFF, dtype=np.uint32)
    renumber[: len(second)] = [numbers[flow] for flow in second]
    return list(numbers), np.minimum(renumber, 0xFFFF).astype(np.uint16)


# Documents ------------------------------------------------------------------------------------------------------------


def _spec(path: Path) -> dict[str, Any]:
    try:
        spec = yaml.load(path.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except FileNotFoundError:
        raise InputError(f"{path}: missing; give the directory of a repetition (results/<run>/rep-<k>)") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path}: not readable as YAML: {_one_line(error)}; restore it, it is a raw file") from None
    if not isinstance(spec, dict):
        raise InputError(f"{path}: holds no keys; restore it, it is a raw file")
    version = spec.get("spec_version")
    if version != SPEC_VERSION:
        raise InputError(f"{path}: spec_version is {version!r}, this version reads {SPEC_VERSION}; use the newer one")
    wrong = [
        f"{key} must be {'a positive integer' if kind is int else 'a ' + kind.__name__}, is {spec.get(key)!r}"
        for key, kind in REQUIRED_SPEC.items()
        if not isinstance(spec.get(key), kind) or (kind is int and spec[key] <= 0 and key != "warmup_ns")
    ]
    if not wrong and not all(isinstance(g, dict) and isinstance(g.get("cc"), str) for g in spec["groups"]):
        wrong.append("groups must be a list of {cc, flows}")
    if wrong:
        raise InputError(f"{path}: {'; '.join(wrong)}; restore it, it is a raw file")
    return spec


def _document(path: Path, problems: list[str]) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text())
    except FileNotFoundError:
        problems.append(f"{path.name}: missing, so what it accounts for is unknown; run the experiment again")
        return {}
    except (OSError, ValueError, RecursionError) as error:
        problems.append(f"{path.name}: not readable as JSON: {_one_line(error)}; run the experiment again")
        return {}
    if not isinstance(document, dict):
        problems.append(f"{path.name}: is no JSON object; run the experiment again")
        return {}
    return document


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _traffic(run: Run) -> list[dict[str, Any]]:
    """The experiment's flows by id. Without traffic.json: every TCP flow that the tracer saw send data, cc unknown."""
    numbers = {flow: number for number, flow in enumerate(run.flows)}
    result = []
    for entry in _list(run.documents["traffic"].get("flows")):
        try:
            flow = FiveTuple.tcp(entry["src_addr"], entry["dst_addr"], entry["src_port"], entry["dst_port"])
            result.append(
                {"id": int(entry["id"]), "cc": str(entry["cc"]), "tuple": flow, "flow": numbers.get(flow, -1)}
            )
        except (KeyError, TypeError, ValueError) as error:
            run.problems.append(f"traffic.json: a flow is not as it should be ({_one_line(error)}); it is left out")
    if not result:
        for number in np.unique(run.tcp["flow"]).tolist():
            if number < len(run.flows):
                result.append({"id": len(result), "cc": "unknown", "tuple": run.flows[number], "flow": number})
    return sorted(result, key=lambda entry: entry["id"])


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
