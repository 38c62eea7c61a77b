# SPDX-License-Identifier: MIT
"""Writes a repetition of any size fast: the link is always busy, flows take turns, windows hardly vary.

Either all flows last as long as the run, or each flow has a few packets and then another flow begins. Benchmarks and
tests of many connections use such repetitions; tests that need known answers use simulate.py.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from analysis.tests import simulate
from wire import wire

PER_BLOCK = 10_000
FIRST_PORT, PORTS = 30_000, 30_000  # source ports per source address
GAP_NS = 61_520  # 1538 bytes at 200 Mb/s
Fill = Callable[[np.ndarray, np.ndarray], None]  # fills rows, given their numbers
Turns = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def write_big(
    directory: Path, postcards: int, records: int, flows: int = 16, drop_every: int = 1000, active: int | None = None
) -> None:
    """Writes a directory with this number of postcards and of trace records. One packet in `drop_every` is dropped.
    Without `active`, all flows last as long as the run; otherwise flows are short, and `active` of them are open at a
    time.
    """
    scenario = simulate.Scenario(flows=flows, rate_bps=200_000_000, threshold=163, warmup_ns=0)
    scenario.duration_ns = postcards * GAP_NS
    each = np.uint64(max(postcards // flows, 1) if active else postcards)  # packets of a flow
    at_once = np.uint64(active or flows)

    def turns(index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The flow and the segment of each packet: the open flows take turns."""
        flow = (index // (each * at_once) * at_once + index % at_once) % np.uint64(flows)
        return flow, index // at_once % each

    directory.mkdir(parents=True, exist_ok=True)
    card, record = simulate.CARD["POSTCARD_VERSION"], simulate.EVENT["TCP_RECORD_VERSION"]
    fill = _postcards(scenario, turns, drop_every)
    _write(directory / "postcards.bsp", "BLOCK_POSTCARDS", card, wire.STORED_POSTCARD, postcards, fill)
    fill = _records(scenario, turns, records, postcards)
    _write(directory / "tcp.bst", "BLOCK_TCP", record, wire.STORED_TCP_RECORD, records, fill)
    for name, document in simulate.documents(scenario, simulate.Truth()).items():
        if name == "traffic":  # each flow gets the 5-tuple that its packets have
            first = ipaddress.ip_address(scenario.addresses()[0])
            for number, flow in enumerate(document["flows"]):
                flow["src_addr"] = str(first + (number // PORTS << 8))
                flow["src_port"] = FIRST_PORT + number % PORTS
        (directory / f"{name}.json").write_text(json.dumps(document))
    (directory / "spec.yaml").write_text(yaml.safe_dump(simulate.spec(scenario)))


def _write(path: Path, kind: str, version: int, dtype: Any, count: int, fill: Fill) -> None:
    """Writes `count` rows in blocks: as many rows as fit into a block, at most PER_BLOCK."""
    with path.open("wb") as file:
        for at in range(0, count, PER_BLOCK):
            index = np.arange(at, min(at + PER_BLOCK, count), dtype=np.uint64)
            rows = np.zeros(len(index), dtype=dtype)
            fill(rows, index)
            step = simulate.BLOCK["BLOCK_MAX_PAYLOAD_BYTES"] // rows.itemsize
            for part in range(0, len(rows), step):
                payload = rows[part : part + step].tobytes()
                file.write(
                    wire.encode_block(
                        simulate.BLOCK[kind], version, rows.itemsize, payload, first_record=at + part,
                        realtime_minus_mono_ns=simulate.REALTIME_MINUS_MONO_NS,
                    )
                )  # fmt: skip


def _source(scenario: simulate.Scenario, flow: np.ndarray) -> np.ndarray:
    """The lower 64 bits of each packet's source address."""
    first = np.uint64(simulate.address(scenario.addresses()[0]) & ((1 << 64) - 1))
    return first + (flow // np.uint64(PORTS) << np.uint64(8))


def _be(values: np.ndarray, size: int) -> np.ndarray:
    return values.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - size :]


def _sequence(flow: np.ndarray, segment: np.ndarray) -> np.ndarray:
    """32-bit sequence numbers; each flow has its own initial number."""
    return (flow * np.uint64(0x9E3779B1) + segment * np.uint64(1448)).astype(np.uint32)


def _postcards(scenario: simulate.Scenario, turns: Turns, drop_every: int) -> Fill:
    dst = simulate.address(scenario.addresses()[1]).to_bytes(16, "big")
    randomness = np.random.default_rng(scenario.seed)

    def fill(rows: np.ndarray, index: np.ndarray) -> None:
        swing = np.abs(index.astype(np.int64) // 100 % 160 - 80).astype(np.uint64)  # slow triangle wave
        depth = np.uint64(60) + swing + randomness.integers(0, 2, len(index)).astype(np.uint64)
        left = simulate.START_NS + index * np.uint64(GAP_NS)
        came = left - depth * np.uint64(GAP_NS) + randomness.integers(0, GAP_NS, len(index)).astype(np.uint64)
        dropped = index % np.uint64(drop_every) == 0
        flow, segment = turns(index)
        rows["rx_mono_ns"] = left + np.uint64(30_000) + randomness.integers(0, 100_000, len(index)).astype(np.uint64)
        rows["version"] = simulate.CARD["POSTCARD_VERSION"]
        rows["flags"] = 0x70 | np.where(dropped, 0x09, 0)
        rows["switch_id"], rows["ingress_port"], rows["egress_port"], rows["policy"] = 1, 1, 2, 1
        earlier = index // np.uint64(drop_every)  # dropped packets are numbered separately
        rows["card_seq"] = np.where(dropped, earlier, index - earlier)
        rows["enqueue_switch_ns"], rows["sojourn_ns"] = _be(came, 6), _be(np.where(dropped, 0, left - came), 6)
        rows["depth_packets"], rows["depth_bytes"], rows["threshold"] = depth, depth * np.uint64(1514), 163
        rows["packet_bytes"], rows["ip_protocol"], rows["tcp_flags"] = 1514, 6, 0x10
        rows["src_addr"][:, 8:], rows["src_port"] = (
            _be(_source(scenario, flow), 8),
            FIRST_PORT + flow % np.uint64(PORTS),
        )
        rows["dst_addr"], rows["dst_port"] = np.frombuffer(dst, dtype=np.uint8), 5201
        again = (index % np.uint64(drop_every) == np.uint64(drop_every * 9 // 10)) & (segment > 0)
        rows["tcp_seq"] = _sequence(flow, segment - again.astype(np.uint64))

    return fill


def _records(scenario: simulate.Scenario, turns: Turns, count: int, postcards: int) -> Fill:
    src, dst = (simulate.address(text) for text in scenario.addresses())
    randomness = np.random.default_rng(scenario.seed)

    def fill(rows: np.ndarray, index: np.ndarray) -> None:
        packet = index * np.uint64(postcards) // np.uint64(count)
        flow, segment = turns(packet)
        rows["mono_ns"] = simulate.START_NS + 10_000_000 + index * np.uint64(postcards * GAP_NS // count)
        rows["event"] = np.where(index % np.uint64(2000) == 7, 2, 1)
        rows["snd_una"] = rows["event_seq"] = _sequence(flow, segment)
        rows["snd_nxt"] = _sequence(flow, segment + np.uint64(20))
        for name in ("cwnd_packets", "packets_out", "ssthresh_packets"):
            rows[name] = 20 + randomness.integers(0, 4, len(index))
        rows["srtt_us"] = randomness.integers(10_000, 20_000, len(index))
        rows["rtt_min_us"], rows["mss_bytes"], rows["delivered_packets"] = 10_000, 1448, segment
        rows["src_addr_lo"], rows["src_port"] = _source(scenario, flow), FIRST_PORT + flow % np.uint64(PORTS)
        rows["src_addr_hi"], rows["dst_addr_hi"], rows["dst_addr_lo"] = src >> 64, dst >> 64, dst & ((1 << 64) - 1)
        rows["dst_port"] = 5201

    return fill
