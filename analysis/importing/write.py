# SPDX-License-Identifier: MIT
"""Writes an imported experiment as a run directory: raw files of our formats with only the source's facts, spec.yaml
with the known conditions, traffic.json with the inferred flows, and environment.json with the provenance.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import yaml

from analysis.arithmetic.unwrap import SWITCH_TIME_BITS
from analysis.importing import traffic
from analysis.importing.fields import Cards, Depths, Events, Rows
from analysis.read.columns import Columns, in_slabs, slabs
from analysis.read.flows import PROTOCOL_NAMES, FiveTuple, address_text
from analysis.read.imported import DEPTHS_FILE
from analysis.read.postcards import admitted
from lib import regular
from lib.errors import InputError
from lib.frames import wire_bytes_of_ip
from lib.terminal import counted
from model.experiment import IMPORTED, SPEC_VERSION, Experiment, Imported, Link, Taps
from model.groups import Long
from runs import record
from runs.names import ENVIRONMENT, POSTCARDS_FILE, SPEC_FILE, TCP_FILE
from wire import wire

ROWS_PER_BLOCK = 5_000  # a block has room for so many postcards or trace records
TURN = 1 << SWITCH_TIME_BITS
MOST_RTTS = 10_000_000  # limit of the measurement window: 3 h at 1 ms
LEAST_RTTS, MOST_RTTS_PER_ROW = 100_000, 10  # a smaller limit for a small source
MODES = {"drop": "egress-threshold", "ecn": "ecn"}  # artifact's action -> mode; the artifact drops at departure


@dataclass
class Conditions:
    """Parameters of the experiment. Rate, RTT and MTU are the published data's unless user or source gives them."""

    rate_bps: int
    rtt_ns: int
    mtu_bytes: int
    cc: str
    flows: int | None  # None: all flows in the source
    mode: str
    threshold_packets: int | None  # depth at which the switch dropped, or marked in mode ecn
    buffer_packets: int | None  # None: the threshold if the switch dropped there, else the largest depth
    threshold_bytes: int | None = None  # the buffer, if the switch's policy is in bytes
    warmup_ns: int | None = None  # None: the first third
    duration_ns: int | None = None  # None: a third of the traffic; Spang et al.'s notebooks take the second third
    window_switch_ns: tuple[int, int] | None = None  # (start on the switch's clock, length): in place of both


@dataclass
class Provenance:
    """The origin of an imported experiment, for environment.json."""

    what: str  # kind of source
    files: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # faults of the source
    remarks: list[str] = field(default_factory=list)  # ignored parts of the source, and assumptions about it
    document: dict[str, Any] = field(default_factory=dict)  # the source's description of the experiment


def digest(path: Path) -> dict[str, Any]:
    """A file's name, size and SHA-256."""
    with regular.opened(path) as file:
        return {
            "name": path.name,
            "bytes": path.stat().st_size,
            "sha256": hashlib.file_digest(file, "sha256").hexdigest(),
        }


def write(
    directory: Path,
    cards: Cards | None,
    events: Events | None,
    depths: Depths | None,
    conditions: Conditions,
    source: Provenance,
) -> None:
    """Writes all but derived files into an empty `directory`. Raises InputError, OSError."""
    version = wire.POSTCARD.const["POSTCARD_VERSION"]
    _write_raw(directory / POSTCARDS_FILE, cards, _stored_cards, "BLOCK_POSTCARDS", version)
    version = wire.TCP_RECORD.const["TCP_RECORD_VERSION"]
    known = events.known if events else {}
    _write_raw(directory / TCP_FILE, events, lambda rows: stored_events(rows, known), "BLOCK_TCP", version)
    if depths is not None:
        depths.rows.write_csv(directory / DEPTHS_FILE)
    queue = cards and cards.queue()
    found = traffic.find(queue, events, conditions.flows)
    source.notes += found.notes
    source.remarks += found.remarks
    has_depths = depths or (cards and "depth_packets" not in cards.unknown)
    has = {"postcards": cards, "trace": events, "depths": has_depths, "times": cards or events}
    lacks = [name for name, there in has.items() if not there]
    rows = sum(part.rows for part in (cards, events) if part)
    describe(directory, found, conditions, source, queue, depths, lacks, rows)


def describe(
    directory: Path, found: traffic.Traffic, conditions: Conditions, source: Provenance, queue: Cards | None,
    depths: Depths | None, lacks: list[str], rows: int, taps: Taps | None = None, link: Link | None = None,
) -> None:  # fmt: skip
    """Writes spec.yaml, traffic.json and environment.json. `rows`: of postcards and trace records."""
    start, end = found.start_ns, found.end_ns
    flows = [_flow(number, flow, conditions.cc) for number, flow in enumerate(found.flows)]
    if conditions.window_switch_ns:
        begin, length = conditions.window_switch_ns
        warmup = (begin - start + TURN // 2) % TURN - TURN // 2
        start, warmup = start + min(warmup, 0), max(warmup, 0)  # the traffic began before its first full packet
        conditions = replace(conditions, warmup_ns=warmup, duration_ns=length)
        end = max(end, start + warmup + length)  # and ended up to an RTT after its last packet
    spec = _spec(queue, conditions, source, (start, end), conditions.flows or len(flows), depths, lacks, taps, link)
    _check_length(spec, end - start, rows)
    (directory / SPEC_FILE).write_text(yaml.safe_dump(spec.dump(), sort_keys=False))
    document = {"start_mono_ns": start, "end_mono_ns": end, "flows": flows, "errors": [], "groups": []}
    (directory / "traffic.json").write_text(json.dumps(document, indent=1) + "\n")
    described = {key: _as_json(value) for key, value in source.document.items()}
    environment = {
        "imported": {"what": source.what, "files": source.files, "experiment": described},
        record.MARK: True,
    }
    data = (json.dumps(environment, indent=1, allow_nan=False, default=str) + "\n").encode()
    record.write_raw(directory, {ENVIRONMENT: data})
    (directory / ENVIRONMENT).write_bytes(data)


def _as_json(value: Any) -> Any:
    """A value of the source. NaN and infinity, which JSON cannot represent, become text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _spec(
    cards: Cards | None,
    conditions: Conditions,
    source: Provenance,
    span_ns: tuple[int, int],
    flows: int,
    depths: Depths | None,
    lacks: list[str],
    taps: Taps | None,
    link: Link | None,
) -> Experiment:
    wire_bytes = wire_bytes_of_ip(conditions.mtu_bytes)
    length = span_ns[1] - span_ns[0]
    warmup = length // 3 if conditions.warmup_ns is None else conditions.warmup_ns
    marks = conditions.mode == "ecn"
    buffer = conditions.buffer_packets or (None if marks else conditions.threshold_packets)
    if buffer is None:
        buffer = max(1, _deepest(cards, depths, conditions.mtu_bytes))
        source.notes.append(
            f"the source states no buffer: {counted(buffer, 'packet')} (its deepest queue) is assumed; set BUF= if it "
            "differs"
        )
    return Experiment(
        spec_version=SPEC_VERSION, name=IMPORTED, target=IMPORTED, clock="real", mode=conditions.mode,
        groups=(Long(cc=conditions.cc, flows=flows),),
        rate_bps=conditions.rate_bps, rtt_ns=conditions.rtt_ns, mtu_bytes=conditions.mtu_bytes, wire_bytes=wire_bytes,
        bdp_packets=max(1, round(conditions.rate_bps * conditions.rtt_ns / (8e9 * wire_bytes))),
        buffer_packets=buffer,
        threshold_bytes=conditions.threshold_bytes,
        ecn_threshold_packets=conditions.threshold_packets if marks else None,
        warmup_ns=warmup,
        duration_ns=conditions.duration_ns or max(min(length // 3, length - warmup), 1),
        imported=Imported(
            what=source.what,
            notes=tuple(source.notes),
            unknown_postcard_fields=tuple(sorted(cards.unknown)) if cards else (),
            cell_bytes=cards.cell_bytes if cards else None,
            lacks=tuple(lacks),
            taps=taps,
            link=link,
        ),
    )  # fmt: skip


def _check_length(spec: Experiment, span_ns: int, rows: int) -> None:
    """Raises InputError if the measurement window has too many RTTs for the memory of the analysis, which the size of
    the source bounds.
    """
    rtts = min(spec.duration_ns, max(span_ns - spec.warmup_ns, 0)) // spec.rtt_ns
    most = min(LEAST_RTTS + MOST_RTTS_PER_ROW * rows, MOST_RTTS)
    if rtts > most:
        raise InputError(
            f"the source lasts {span_ns / 1e9:.3f} s, its measured part {rtts} RTTs; allowed: at most "
            f"{most} for {rows} packets and records: check RTT, the first and last time in the source, or set WARMUP "
            "and DURATION"
        )


def _deepest(cards: Cards | None, depths: Depths | None, mtu_bytes: int) -> int:
    if depths is not None:
        return round(float(depths.packets[depths.counts > 0].max(initial=0)))
    if cards is None:
        return 1
    names = ("depth_cells", "depth_packets", "flags")
    if cards.cell_bytes:
        cells = max((int(part["depth_cells"].max(initial=0)) for part in cards.parts(*names)), default=0)
        return round(cells * cards.cell_bytes / mtu_bytes)
    # An admitted packet adds itself to the depth that it found. A queue that drops at its limit admitted one below it.
    return (
        max((int(part["depth_packets"][admitted(part)].max(initial=0)) for part in cards.parts(*names)), default=0) + 1
    )


def _flow(number: int, flow: FiveTuple, cc: str) -> dict[str, Any]:
    """The entry of a flow in traffic.json."""
    return {
        "id": number, "cc": cc, "protocol": PROTOCOL_NAMES[flow.protocol],
        "src_addr": address_text(flow.src), "dst_addr": address_text(flow.dst),
        "src_port": flow.src_port, "dst_port": flow.dst_port,
    }  # fmt: skip


def _stored_cards(columns: Columns) -> np.ndarray:
    rows = np.zeros(len(columns["mono_ns"]), dtype=wire.STORED_POSTCARD)
    rows["version"], rows["rx_mono_ns"] = wire.POSTCARD.const["POSTCARD_VERSION"], columns["mono_ns"]
    for name in rows.dtype.names or ():
        if name.endswith("_addr"):
            halves = np.column_stack([columns[f"{name}_{half}"] for half in ("hi", "lo")])
            rows[name] = halves.astype(">u8").view(np.uint8).reshape(-1, 16)
        elif name in columns and rows.dtype[name].subdtype is None:
            rows[name] = columns[name]
        elif name in columns:  # 48 bits
            count = rows.dtype[name].shape[0]
            rows[name] = columns[name].astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - count :]
    return rows


def stored_events(columns: Columns, known: dict[int, set[str]]) -> np.ndarray:
    """Trace records; `known`: the columns that events of a kind have."""
    rows = np.zeros(len(columns["mono_ns"]), dtype=wire.STORED_TCP_RECORD)
    for name in columns.keys() & set(rows.dtype.names or ()):
        rows[name] = columns[name]
    for event, names in known.items():
        rows["unknown_fields"][rows["event"] == event] = unknown_fields(names)
    return rows


def unknown_fields(known: set[str]) -> int:
    """The value of this field in trace records with these fields."""
    return sum(
        1 << bit for bit, (name, _) in enumerate(wire.TCP_RECORD.fields) if name not in known | {"unknown_fields"}
    )


def append(file: BinaryIO, rows: np.ndarray, kind: str, version: int, first: int) -> int:
    """Appends records to a raw file that has `first`. Returns how many it has then."""
    for block in slabs(len(rows), ROWS_PER_BLOCK):
        data = rows[block].tobytes()
        number = first + block.start
        file.write(wire.encode_block(wire.BLOCK.const[kind], version, rows.itemsize, data, first_record=number))
    return first + len(rows)


def _write_raw(path: Path, part: Rows | None, stored: Callable[[Columns], np.ndarray], kind: str, version: int) -> None:
    """Writes the rows of a part, block by block; an empty file without a part."""
    with path.open("wb") as file:
        first = 0
        for block in in_slabs(part.parts(), ROWS_PER_BLOCK) if part else ():
            first = append(file, stored(block), kind, version, first)
