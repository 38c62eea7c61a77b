# SPDX-License-Identifier: MIT
"""Every joined row against the simulation's ground truth of that packet."""

import bisect

import numpy as np
import polars as pl

from analysis.join import NONE
from analysis.retransmits import pieces
from analysis.sequence import header_bytes, new_bytes, order
from analysis.tables import joined_columns
from analysis.tests import simulate

DROPPED = simulate.CARD["POSTCARD_DROPPED"]


def _rows(known):
    """(position, flow, segment, card) of each packet."""
    truth = known.truth
    return list(zip(range(len(truth.cards)), truth.arrival_flow, truth.arrival_segment, truth.cards, strict=True))


def test_join__takes_the_latest_record_of_the_flow(known):
    a, truth = known.analysis, known.truth
    by_flow: dict[int, list] = {}
    for record in sorted(truth.records, key=lambda record: record["mono_ns"]):
        by_flow.setdefault(record["flow"], []).append(record)
    columns = pl.DataFrame(joined_columns(a.run, a.queue, a.segments, a.trace))
    cwnd, in_flight, age = (columns[name].to_list() for name in ("cwnd_packets", "in_flight_packets", "trace_age_ns"))
    times = {flow: [record["mono_ns"] for record in records] for flow, records in by_flow.items()}
    for position, flow, _, card in _rows(known):
        before = bisect.bisect_right(times.get(flow, []), card["enqueue_ns"])
        if not before:
            assert cwnd[position] is None
            continue
        last = by_flow[flow][before - 1]
        assert cwnd[position] == last["cwnd_packets"]
        assert age[position] == card["enqueue_ns"] - last["mono_ns"]
        assert in_flight[position] == (
            last["packets_out"] - last["sacked_out"] - last["lost_out"] + last["retrans_out"]
        )  # fmt: skip


def test_join__finds_the_ack_that_first_covered_a_packet(known):
    a, truth = known.analysis, known.truth
    rtt = pl.DataFrame(joined_columns(a.run, a.queue, a.segments, a.trace))["packet_rtt_ns"].to_list()
    covered = 0
    last_record = {record["flow"]: record["mono_ns"] for record in truth.records if record["event"] == 1}
    for position, flow, segment, card in _rows(known):
        acked = truth.ack_ns.get((flow, segment))
        if segment < 0 or card["flags"] & DROPPED or a.segments.retransmission[position] or acked is None:
            assert rtt[position] is None
        elif acked == last_record[flow]:
            assert rtt[position] is None  # no later record shows the effect of that ACK
        elif acked >= card["enqueue_ns"]:
            assert rtt[position] == acked - card["enqueue_ns"]
            covered += 1
    assert covered > 500


def test_join__knows_sequence_numbers_beyond_the_wrap(known):
    a = known.analysis
    first = known.scenario.flows
    assert first
    for position, flow, segment, _ in _rows(known):
        expected = (1 << 32) - 40_000 * (flow + 1) + (1 + segment * simulate.MSS if segment >= 0 else 0)
        assert a.segments.seq[position] == expected
    assert a.segments.seq.max() > 1 << 32


def test_join__infers_header_and_payload(known):
    a = known.analysis
    header = simulate.HEADERS_IPV4 + (20 if known.scenario.ipv6 else 0)
    assert set(a.segments.header_bytes.tolist()) == {header, 0}  # 0: the entry of flows without a number
    data = np.array(known.truth.arrival_segment) >= 0
    assert (a.segments.payload_bytes == np.where(data, simulate.MSS, 0)).all()


def test_join__tells_retransmissions_from_reordering(known):
    a = known.analysis
    earlier: set[tuple[int, int]] = set()
    high: dict[int, int] = {}
    for position, flow, segment, _ in _rows(known):
        again, late = (flow, segment) in earlier, segment < high.get(flow, -1)
        assert a.segments.retransmission[position] == (again and segment >= 0)
        assert a.segments.reordered[position] == (late and not again)
        earlier.add((flow, segment))
        high[flow] = max(high.get(flow, -1), segment)


def test_join__counts_new_bytes_once(known):
    a, left = known.analysis, set()
    new = np.zeros(len(known.truth.cards), dtype=int)
    total: dict[int, int] = {}
    for position, flow, segment, card in _rows(known):
        if segment >= 0 and not card["flags"] & DROPPED:
            new[position] = simulate.MSS if (flow, segment) not in left else 0
            left.add((flow, segment))
            total[flow] = total.get(flow, 0) + new[position]
    assert (a.segments.new_bytes == new).all()
    assert sum(total.values()) == simulate.MSS * len(left)


def test_join__matches_retransmissions_with_their_records(known):
    a = known.analysis
    events = [record for record in known.truth.records if record["event"] == 2]
    matched = a.segments.retransmit_row[a.segments.retransmit_row != NONE]
    assert len(set(matched.tolist())) == len(matched)
    assert a.segments.retransmits_unmatched == len(events) - len(matched)
    for position in np.flatnonzero(a.segments.retransmit_row != NONE):
        row = a.segments.retransmit_row[position]
        assert a.run.tcp["event"][row] == 2
        assert a.run.tcp["event_seq"][row] == a.queue["tcp_seq"][position]
        assert a.run.tcp["flow"][row] == a.queue["flow"][position]
        assert abs(a.run.tcp["mono_ns"][row] - a.queue["enqueue_mono_ns"][position]) <= known.scenario.rtt_ns
    if known.scenario.swap_every == 0 and len(events):
        assert len(matched) >= 0.9 * len(events)  # the last ones may not have arrived when the simulation ended


def test_pieces__of_a_record_are_its_segments():
    tcp: dict[str, np.ndarray] = {
        "mss_bytes": np.array([1448, 1448, 1448, 0], dtype=np.uint32),
        "data_bytes": np.array([1448, 4344, 2000, 0], dtype=np.uint16),
        "mono_ns": np.array([10, 20, 30, 40]),
    }
    seq, ns, row = pieces(tcp, np.arange(4), np.array([0, 5000, 20_000, 7]))
    assert seq.tolist() == [0, 5000, 6448, 7896, 20_000, 21_448, 7]
    assert ns.tolist() == [10, 20, 20, 20, 30, 30, 40]
    assert row.tolist() == [0, 1, 1, 1, 2, 2, 3]


def test_new_bytes__of_packets_with_other_bounds_sum_to_their_union():
    random = np.random.default_rng(2)
    for _ in range(200):
        seq = random.integers(0, 60, 12)
        payload = random.integers(1, 20, 12).astype(np.int32)
        union = set()
        for start, size in zip(seq, payload, strict=True):
            union |= set(range(start, start + size))
        assert new_bytes(seq, payload).sum() == len(union)


def test_order__against_sets_of_bytes():
    random = np.random.default_rng(3)
    for _ in range(200):
        segment = random.integers(0, 15, 20)
        seq, seq_end = segment * 10, segment * 10 + 10
        retransmission, reordered, _ = order(seq, seq_end, np.zeros(1, dtype=np.int64))
        earlier: set[int] = set()
        for position, value in enumerate(segment.tolist()):
            assert retransmission[position] == (value in earlier)
            assert reordered[position] == (value not in earlier and any(other > value for other in earlier))
            earlier.add(value)


def test_header_bytes__without_two_packets_is_that_of_linux():
    single = np.array([1500], dtype=np.int32)
    first, no_flags = np.zeros(1, dtype=np.int64), np.array([0], dtype=np.uint8)
    assert header_bytes(single, np.array([7]), no_flags, first, np.array([True])).tolist() == [66]
    assert header_bytes(single, np.array([7]), no_flags, first, np.array([False])).tolist() == [86]
