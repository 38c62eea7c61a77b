# SPDX-License-Identifier: MIT
"""Every joined row against the simulation's ground truth of that packet. And the join of all flows of a batch at once
against the join flow by flow (join_flow_by_flow.py) of random packets and records: losses, retransmissions, reordering,
overlaps, wrap-around; flows with one packet, without trace or without packets.
"""

import bisect
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from analysis.join import join as join_module
from analysis.join.in_flight import knows_cwnd, window_known
from analysis.join.join import NONE, join
from analysis.judge.analyse import analyse
from analysis.read.documents import Documents
from analysis.read.flows import FiveTuple, Flows
from analysis.read.link_rate import LinkRate
from analysis.read.load import Run
from analysis.read.raw import IN_FLIGHT
from analysis.results.summary import MAX_FLOWS, summarize
from analysis.results.tables import joined_columns, write_joined, write_raw_tables
from analysis.tests import simulate
from analysis.tests.join_flow_by_flow import join_flow_by_flow
from analysis.tests.simulate import CARD, EVENT
from analysis.tests.synthesize import write_big
from model.experiment import Experiment
from wire import wire

MSS = 1000
SPAN_NS, TICK_NS = 10_000_000, 1000  # with ticks, packets come at the time of a record
UNKNOWN_BITS = {name: np.uint64(1 << bit) for bit, (name, _) in enumerate(wire.TCP_RECORD.fields)}
DROPPED = CARD["POSTCARD_DROPPED"]


def _rows(known):
    """(position, flow, segment, card) of each packet."""
    truth = known.truth
    return list(zip(range(len(truth.cards)), truth.arrival_flow, truth.arrival_segment, truth.cards, strict=True))


def test_join__gives_each_packet_the_latest_record_and_the_ack_that_covered_it(known):
    a, truth = known.analysis, known.truth
    by_flow: dict[int, list] = {}
    for record in sorted(truth.records, key=lambda record: record["mono_ns"]):
        by_flow.setdefault(record["flow"], []).append(record)
    times = {flow: [record["mono_ns"] for record in records] for flow, records in by_flow.items()}
    last_probe = {record["flow"]: record["mono_ns"] for record in truth.records if record["event"] == 1}
    columns = pl.DataFrame(joined_columns(a.run, a.queue, a.segments, a.in_flight))
    names = ("cwnd_packets", "in_flight_packets", "trace_age_ns", "packet_rtt_ns")
    cwnd, in_flight, age, rtt = (columns[name].to_list() for name in names)
    covered = 0
    for position, flow, segment, card in _rows(known):
        before = bisect.bisect_right(times.get(flow, []), card["enqueue_ns"])
        if before:
            last = by_flow[flow][before - 1]
            flight = last["packets_out"] - last["sacked_out"] - last["lost_out"] + last["retrans_out"]
            expected = (last["cwnd_packets"], flight, card["enqueue_ns"] - last["mono_ns"])
            assert (cwnd[position], in_flight[position], age[position]) == expected
        else:
            assert cwnd[position] is None
        acked = truth.ack_ns.get((flow, segment))
        if segment < 0 or card["flags"] & DROPPED or a.segments.retransmission[position] or acked is None:
            assert rtt[position] is None
        elif acked == last_probe[flow]:
            assert rtt[position] is None  # no later record shows the effect of that ACK
        elif acked >= card["enqueue_ns"]:
            assert rtt[position] == acked - card["enqueue_ns"]
            covered += 1
    assert covered > 500


def test_join__knows_bytes_retransmissions_and_reordering(known):
    """Sequence numbers beyond the wrap, headers, payload; new bytes count once, when the segment first leaves."""
    segments, size = known.analysis.segments, simulate.MSS
    header = simulate.HEADERS_IPV4 + (20 if known.scenario.ipv6 else 0)
    assert set(segments.header_bytes.tolist()) == {header, 0}  # 0: the entry of flows without a number
    came: set[tuple[int, int]] = set()
    left: set[tuple[int, int]] = set()
    high: dict[int, int] = {}
    for position, flow, segment, card in _rows(known):
        data, again, late = segment >= 0, (flow, segment) in came, segment < high.get(flow, -1)
        new = data and not card["flags"] & DROPPED and (flow, segment) not in left
        assert segments.seq[position] == (1 << 32) - 40_000 * (flow + 1) + (1 + segment * size if data else 0)
        assert segments.payload_bytes[position] == (size if data else 0)
        assert segments.retransmission[position] == (again and data)
        assert segments.reordered[position] == (late and not again)
        assert segments.new_bytes[position] == (size if new else 0)
        came.add((flow, segment))
        high[flow] = max(high.get(flow, -1), segment)
        if new:
            left.add((flow, segment))
    assert segments.seq.max() > 1 << 32


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
        "enqueue_mono_ns": np.sort(random.integers(0, SPAN_NS // TICK_NS, packets)) * TICK_NS,
        "flow": flow.astype(np.uint16),
        "flags": np.where(has_tcp, CARD["POSTCARD_HAS_TCP"], 0) | np.where(dropped, CARD["POSTCARD_DROPPED"], 0),
        "tcp_seq": ((first[flow] + segment * MSS) % (1 << 32)).astype(np.uint32),
        "tcp_flags": tcp_flags.astype(np.uint8),
        "packet_bytes": (payload + random.choice([66, 54], flows)[flow]).astype(np.uint16),
    }
    of_record = random.choice(flows, records, p=weights / weights.sum())
    una = first[of_record] + MSS * np.maximum(number_in_flow(of_record) + random.integers(-2, 3, records), -1)
    tcp: dict[str, np.ndarray] = {
        name: np.zeros(records, dtype=np.uint32) for name in (*IN_FLIGHT, "mss_bytes", "data_bytes")
    }
    tcp |= {
        "mono_ns": np.sort(random.integers(-SPAN_NS // 10 // TICK_NS, SPAN_NS // TICK_NS, records)) * TICK_NS,
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
    spec = Experiment.model_construct(rtt_ns=SPAN_NS // 20, mtu_bytes=1500)
    return Run(Path(), spec, LinkRate(1), Documents(), [], {}, {}, tcp, words), queue


def _compare(run: Run, queue: Any) -> None:
    segments, in_flight = join(run, queue)
    expected = join_flow_by_flow(run, queue)
    for name, values in vars(expected.segments).items():
        got = getattr(segments, name)
        assert np.array_equal(got, values), (name, np.flatnonzero(np.asarray(got) != values)[:5])
    rows = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *expected.windows.values()]))
    assert np.array_equal(np.flatnonzero(window_known(run.tcp, knows_cwnd(run))), rows)
    assert np.array_equal(in_flight.packets[rows], expected.in_flight[rows])


def test_join__of_all_flows_at_once_is_the_join_of_each(monkeypatch):
    for seed in range(8):
        run, queue = _run(seed, flows=[1, 3, 40, 400][seed % 4], packets=2000, records=1200)
        _compare(run, queue)
        if seed == 1:  # makes sure that the random input has each of these cases
            got, _ = join(run, queue)
            for mask in (got.retransmission, got.reordered, got.ack_row >= 0, got.retransmit_row >= 0):
                assert np.count_nonzero(mask) > 5
            assert got.seq.max() > 1 << 32
    for packets, records in ((0, 0), (0, 50), (50, 0), (1, 1)):
        _compare(*_run(3, flows=5, packets=packets, records=records))
    for unknown in (("snd_una",), ("packets_out",), ("packets_out", "mss_bytes"), ("cwnd_packets",)):
        _compare(*_run(7, flows=30, packets=1500, records=900, unknown=unknown))
    monkeypatch.setattr(join_module, "SLAB_PACKETS", 50)
    for seed in range(100, 103):
        _compare(*_run(seed, flows=60, packets=1500, records=900))


def test_join__takes_few_records_at_once_where_packets_are_missing(monkeypatch):
    monkeypatch.setattr(join_module, "SLAB_PACKETS", 50)
    _compare(*_run(5, flows=20, packets=30, records=900))
    some, many = np.array([0, 10, 500]), np.arange(1000)
    for packets, records in ((some, many), (many, some), (some[:0], many)):
        slabs = [*join_module.time_slabs(packets, records)]
        assert max(part.stop - part.start for slab in slabs for part in slab) <= 50
        for times, of_slabs in zip((packets, records), zip(*slabs, strict=True), strict=True):
            assert np.concatenate([times[part] for part in of_slabs]).tolist() == times.tolist()


# More flows than 16 bits can number, from raw files to tables and summary; each flow has four packets ----------------

FLOWS, PACKETS = 66_000, 4


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    directory = tmp_path_factory.mktemp("many") / "rep-1"
    write_big(directory, PACKETS * FLOWS, PACKETS * FLOWS, FLOWS, active=1000)
    return analyse(directory)


def test_many_connections__have_numbers_of_32_bits_and_packets_and_records_of_their_own(many):
    run = many.run
    assert run.postcards["flow"].dtype == run.tcp["flow"].dtype == np.uint32
    assert np.bincount(many.queue["flow"]).tolist() == [PACKETS] * FLOWS
    assert all(run.flows[entry.number] == entry.five_tuple for entry in run.traffic)
    summary = summarize(many)
    assert (len(summary["flows"]), summary["flows_not_listed"]) == (MAX_FLOWS, FLOWS - MAX_FLOWS)
    seconds = many.window.length_ns / 1e9
    assert summary["goodput_bps"] == pytest.approx(float(many.good.bits_per_flow.sum()) / seconds)
    assert {flow["packets"] for flow in summary["flows"]} <= set(range(PACKETS + 1))
    for rows in (many.segments.trace_row, many.segments.ack_row):
        joined = np.flatnonzero(rows != NONE)
        assert (many.queue["flow"][joined] > 1 << 16).any()
        assert (many.run.tcp["flow"][rows[joined]] == many.queue["flow"][joined]).all()


def test_many_connections__have_their_5_tuples_in_the_tables(many, tmp_path):
    write_raw_tables(tmp_path, many.run)
    write_joined(tmp_path, many.run, many.queue, many.segments, many.in_flight)
    for name in ("postcards", "tcp", "joined"):
        table = pl.read_parquet(tmp_path / f"{name}.parquet")
        assert table.schema["flow"] == pl.UInt32
        number, text = table.select("flow", "five_tuple").row(-1)
        assert text == str(many.run.flows[number])
        assert table["five_tuple"].n_unique() == table["flow"].n_unique()
