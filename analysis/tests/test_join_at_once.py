# SPDX-License-Identifier: MIT
"""The join of all flows of a batch at once equals the join flow by flow (join_flow_by_flow.py) of the same random
packets and records: losses, retransmissions, reordering, overlaps, wrap-around; flows with one packet, without trace or
without packets.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis import join as join_module
from analysis.flows import FiveTuple, Flows
from analysis.join import join
from analysis.load import Run
from analysis.raw import IN_FLIGHT
from analysis.tests.join_flow_by_flow import join_flow_by_flow
from analysis.tests.simulate import CARD, EVENT
from wire import wire

MSS = 1000
SPAN_NS = 10_000_000
UNKNOWN_BITS = {name: np.uint64(1 << bit) for bit, (name, _) in enumerate(wire.TCP_RECORD.fields)}


def _run(seed: int, flows: int, packets: int, records: int, unknown: tuple[str, ...] = ()) -> tuple[Run, Any]:
    """A random (run, postcards) that looks like TCP: segments mostly ascend; some are retransmitted, late, or of other
    sizes.
    """
    random = np.random.default_rng(seed)
    first = np.where(random.random(flows) < 0.5, (1 << 32) - 5 * MSS, random.integers(0, 1 << 32, flows))
    weights = random.pareto(1.0, flows) + 0.01
    flow = random.choice(flows, packets, p=weights / weights.sum())

    def number_in_flow(of_row: np.ndarray) -> np.ndarray:
        order = np.argsort(of_row, kind="stable")
        starts = np.flatnonzero(np.diff(of_row[order], prepend=-1))
        result = np.empty(len(of_row), dtype=np.int64)
        result[order] = np.arange(len(of_row)) - np.repeat(starts, np.diff(starts, append=len(of_row)))
        return result

    segment = np.maximum(number_in_flow(flow) + random.choice([0, 0, 0, 0, -1, -3, 1, 2], packets), 0)
    odd = random.random(packets) < 0.1
    payload = np.where(odd, random.integers(0, 2 * MSS, packets), MSS)
    tcp_flags = random.choice([0x10, 0x02, 0x11], packets, p=[0.96, 0.02, 0.02])
    has_tcp = random.random(packets) < 0.97
    dropped = random.random(packets) < 0.05
    queue = {
        "enqueue_mono_ns": np.sort(random.integers(0, SPAN_NS, packets)),
        "flow": flow.astype(np.uint16),
        "flags": np.where(has_tcp, CARD["POSTCARD_HAS_TCP"], 0) | np.where(dropped, CARD["POSTCARD_DROPPED"], 0),
        "tcp_seq": ((first[flow] + segment * MSS) % (1 << 32)).astype(np.uint32),
        "tcp_flags": tcp_flags.astype(np.uint8),
        "packet_bytes": (payload + random.choice([66, 54], flows)[flow]).astype(np.uint16),
    }
    of_record = random.choice(flows, records, p=weights / weights.sum())
    una = first[of_record] + MSS * np.maximum(number_in_flow(of_record) + random.integers(-2, 3, records), -1)
    tcp = {name: np.zeros(records, dtype=np.uint32) for name in (*IN_FLIGHT, "mss_bytes", "data_bytes")}
    tcp |= {
        "mono_ns": np.sort(random.integers(-SPAN_NS // 10, SPAN_NS, records)),
        "flow": of_record.astype(np.uint16),
        "event": random.choice([EVENT["TCP_EVENT_PROBE"], EVENT["TCP_EVENT_RETRANSMIT"]], records, p=[0.8, 0.2]),
        "snd_una": (una % (1 << 32)).astype(np.uint32),
        "event_seq": ((una + MSS * random.integers(0, 3, records)) % (1 << 32)).astype(np.uint32),
        "snd_nxt": ((una + random.integers(0, 9 * MSS, records)) % (1 << 32)).astype(np.uint32),
        "in_flight_packets": random.integers(0, 9, records).astype(np.int32),
    }
    tcp["mss_bytes"][:], tcp["data_bytes"][:] = MSS, random.choice([MSS, 3 * MSS], records)
    tcp["unknown_fields"] = np.zeros(records, dtype=np.uint64)
    for name in unknown:
        tcp["unknown_fields"][random.random(records) < 0.5] |= UNKNOWN_BITS[name]
    ends = [("10.0.0.1", "10.0.0.2") if number % 2 else ("fd77::1", "fd77::2") for number in range(flows)]
    tuples = [FiveTuple.tcp(*pair, number, 5201) for number, pair in enumerate(ends)]
    words = Flows(np.array([flow.words() for flow in tuples], dtype=np.uint64).T)
    spec = {"rtt_ns": SPAN_NS // 20, "mtu_bytes": 1500}
    return Run(Path(), spec, {}, [], set(), {}, {}, tcp, words), queue


def _compare(run: Run, queue: Any) -> None:
    segments, trace = join(run, queue)
    expected = join_flow_by_flow(run, queue)
    for name, values in vars(expected.segments).items():
        got = getattr(segments, name)
        assert np.array_equal(got, values), (name, np.flatnonzero(np.asarray(got) != values)[:5])
    assert {flow: rows.tolist() for flow, rows in enumerate(trace.windows) if len(rows)} == {
        flow: rows.tolist() for flow, rows in expected.windows.items()
    }
    for rows in expected.windows.values():
        assert np.array_equal(trace.in_flight[rows], expected.in_flight[rows])


@pytest.mark.parametrize("seed", range(12))
def test_join__of_all_flows_at_once_is_the_join_of_each(seed):
    run, queue = _run(seed, flows=[1, 3, 40, 400][seed % 4], packets=2000, records=1200)
    _compare(run, queue)
    if seed == 1:  # makes sure that the random input has each of these cases
        segments, _ = join(run, queue)
        for mask in (segments.retransmission, segments.reordered, segments.ack_row >= 0, segments.retransmit_row >= 0):
            assert np.count_nonzero(mask) > 5
        assert segments.seq.max() > 1 << 32


@pytest.mark.parametrize("seed", range(4))
def test_join__in_batches_gives_the_same(seed, monkeypatch):
    monkeypatch.setattr(join_module, "BATCH_ROWS", 50)
    monkeypatch.setattr(join_module, "BATCH_FLOWS", 7)
    _compare(*_run(100 + seed, flows=60, packets=1500, records=900))


@pytest.mark.parametrize("unknown", [("snd_una",), ("packets_out",), ("packets_out", "mss_bytes"), ("cwnd_packets",)])
def test_join__of_a_trace_that_leaves_fields_unknown_gives_the_same(unknown):
    _compare(*_run(7, flows=30, packets=1500, records=900, unknown=unknown))


@pytest.mark.parametrize(("packets", "records"), [(0, 0), (0, 50), (50, 0), (1, 1)])
def test_join__of_little_gives_the_same(packets, records):
    _compare(*_run(3, flows=5, packets=packets, records=records))
