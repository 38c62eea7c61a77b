# SPDX-License-Identifier: MIT
"""A repetition of any size, fast: a link that is always busy, flows that take turns, windows of constant size.

For measuring the analysis; tests that need known answers use simulate.py.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import yaml

from analysis.tests import simulate
from wire import wire

PER_BLOCK = 10_000


def write_big(directory: Path, postcards: int, records: int, flows: int = 16, drop_every: int = 1000) -> None:
    """Writes a directory with so many postcards and trace records. One packet in `drop_every` is dropped."""
    scenario = simulate.Scenario(flows=flows, rate_bps=200_000_000, threshold=163, warmup_ns=0)
    gap_ns = 61_520  # 1538 bytes at 200 Mb/s
    scenario.duration_ns = postcards * gap_ns
    directory.mkdir(parents=True, exist_ok=True)
    _postcards(directory / "postcards.bsp", scenario, postcards, gap_ns, drop_every)
    _records(directory / "tcp.bst", scenario, records, postcards * gap_ns // records)
    for name, document in simulate.documents(scenario, simulate.Truth()).items():
        (directory / f"{name}.json").write_text(json.dumps(document))
    (directory / "spec.yaml").write_text(yaml.safe_dump(simulate.spec(scenario)))


def _address(rows: np.ndarray, name: str, number: int) -> None:
    rows[name] = np.frombuffer(number.to_bytes(16, "big"), dtype=np.uint8)


def _be48(values: np.ndarray) -> np.ndarray:
    return values.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 2:]


def _postcards(path: Path, scenario: simulate.Scenario, count: int, gap_ns: int, drop_every: int) -> None:
    src, dst = (simulate.address(text) for text in scenario.addresses())
    randomness = np.random.default_rng(scenario.seed)
    with path.open("wb") as file:
        for at in range(0, count, PER_BLOCK):
            index = np.arange(at, min(at + PER_BLOCK, count), dtype=np.uint64)
            rows = np.zeros(len(index), dtype=wire.STORED_POSTCARD)
            swing = np.abs(index.astype(np.int64) // 100 % 160 - 80).astype(np.uint64)  # slow, as a sawtooth is
            depth = np.uint64(60) + swing + randomness.integers(0, 2, len(index)).astype(np.uint64)
            left = simulate.START_NS + index * np.uint64(gap_ns)
            came = left - depth * np.uint64(gap_ns) + randomness.integers(0, gap_ns, len(index)).astype(np.uint64)
            dropped = index % np.uint64(drop_every) == 0
            flow = index % np.uint64(scenario.flows)
            rows["rx_mono_ns"] = (
                left + np.uint64(30_000) + randomness.integers(0, 100_000, len(index)).astype(np.uint64)
            )
            rows["version"] = simulate.CARD["POSTCARD_VERSION"]
            rows["flags"] = 0x70 | np.where(dropped, 0x09, 0)
            rows["switch_id"], rows["ingress_port"], rows["egress_port"], rows["policy"] = 1, 1, 2, 1
            earlier = index // np.uint64(drop_every)  # drops have numbers of their own
            rows["card_seq"] = np.where(dropped, earlier, index - earlier)
            rows["enqueue_switch_ns"], rows["sojourn_ns"] = _be48(came), _be48(np.where(dropped, 0, left - came))
            rows["depth_packets"], rows["depth_bytes"], rows["threshold"] = depth, depth * np.uint64(1514), 163
            rows["packet_bytes"], rows["ip_protocol"], rows["tcp_flags"] = 1514, 6, 0x10
            _address(rows, "src_addr", src)
            _address(rows, "dst_addr", dst)
            rows["src_port"], rows["dst_port"] = 30_000 + flow, 5201
            segment = index // np.uint64(scenario.flows)
            late = (index % np.uint64(drop_every)) == np.uint64(
                drop_every - 4 * scenario.flows
            )  # its lost packet again
            rows["tcp_seq"] = (segment - late.astype(np.uint64)) * np.uint64(1448) & np.uint64(0xFFFFFFFF)
            file.write(_block("BLOCK_POSTCARDS", simulate.CARD["POSTCARD_VERSION"], rows, at))


def _records(path: Path, scenario: simulate.Scenario, count: int, gap_ns: int) -> None:
    src, dst = (simulate.address(text) for text in scenario.addresses())
    randomness = np.random.default_rng(scenario.seed)
    with path.open("wb") as file:
        for at in range(0, count, PER_BLOCK):
            index = np.arange(at, min(at + PER_BLOCK, count), dtype=np.uint64)
            rows = np.zeros(len(index), dtype=wire.STORED_TCP_RECORD)
            rows["mono_ns"] = simulate.START_NS + 10_000_000 + index * np.uint64(gap_ns)
            rows["event"] = np.where(index % np.uint64(2000) == 7, 2, 1)
            segment = 2 * (index // np.uint64(scenario.flows))
            rows["snd_una"] = segment * np.uint64(1448) & np.uint64(0xFFFFFFFF)
            rows["snd_nxt"] = (segment + np.uint64(20)) * np.uint64(1448) & np.uint64(0xFFFFFFFF)
            rows["event_seq"] = rows["snd_una"]
            for name in ("cwnd_packets", "packets_out", "ssthresh_packets"):
                rows[name] = 20 + randomness.integers(0, 4, len(index))
            rows["srtt_us"], rows["rtt_min_us"], rows["mss_bytes"] = (
                randomness.integers(10_000, 20_000, len(index)),
                10_000,
                1448,
            )
            rows["delivered_packets"] = segment
            rows["src_port"], rows["dst_port"] = 30_000 + index % np.uint64(scenario.flows), 5201
            rows["src_addr_lo"], rows["dst_addr_lo"] = src, dst
            file.write(_block("BLOCK_TCP", simulate.EVENT["TCP_RECORD_VERSION"], rows, at))


def _block(kind: str, version: int, rows: np.ndarray, first: int) -> bytes:
    # 10 000 records of 99 or 144 bytes: the second kind passes the limit of a block, so it is cut
    parts = []
    step = simulate.BLOCK["BLOCK_MAX_PAYLOAD_BYTES"] // rows.itemsize
    for at in range(0, len(rows), step):
        parts.append(
            wire.encode_block(
                simulate.BLOCK[kind],
                version,
                rows.itemsize,
                rows[at : at + step].tobytes(),
                first_record=first + at,
                realtime_minus_mono_ns=simulate.REALTIME_MINUS_MONO_NS,
            )
        )
    return b"".join(parts)


if __name__ == "__main__":
    write_big(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
