# SPDX-License-Identifier: MIT
"""Metrics computed again from the simulation's packets and trace records, by plain loops."""

import math
import tracemalloc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.figures import queue_and_windows, window_distribution, zoom_on_loss
from analysis.judge.analyse import analyse
from analysis.measure import metrics, over_time
from analysis.measure.loss import _least_utilization, flows_losing_per_rtt
from analysis.read import columns
from analysis.read.documents import Documents, Traffic
from analysis.read.link_rate import LinkRate
from analysis.read.postcards import misspaced
from analysis.results.distributions import distributions
from analysis.results.summary import summarize
from analysis.tests import simulate
from model.experiment import Experiment

DROPPED = simulate.CARD["POSTCARD_DROPPED"]


def _window(known):
    start = simulate.START_NS + known.scenario.warmup_ns
    return start, start + known.scenario.duration_ns


def _arrivals(known):
    """(card, flow, segment) of each packet that came in the measurement window."""
    start, end = _window(known)
    truth = known.truth
    every = zip(truth.cards, truth.arrival_flow, truth.arrival_segment, strict=True)
    return [(card, flow, segment) for card, flow, segment in every if start <= card["enqueue_ns"] < end]


def _wire(known):
    """A function: wire bits that left in [start, end). The bits of each packet are spread over its transmission."""
    sent = [card for card in known.truth.cards if not card["flags"] & DROPPED]
    stop = np.array([card["enqueue_ns"] + card["sojourn_ns"] for card in sent])
    bits = np.array([8 * (max(card["packet_bytes"], 60) + 24) for card in sent])
    took = bits * 1e9 / known.scenario.rate_bps

    def left(start, end):
        inside = took - np.maximum(stop - end, 0) - np.maximum(start - stop + took, 0)  # exact: differences of ints
        return float(bits @ np.clip(inside / took, 0, 1))

    return left


def _percentile(values, percent):
    ordered = sorted(values)
    return ordered[max(math.ceil(len(ordered) * percent / 100) - 1, 0)]


def _in_flight(record):
    return record["packets_out"] - record["sacked_out"] - record["lost_out"] + record["retrans_out"]


def test_utilization__is_wire_bits_over_rate_times_time(known):
    a, scenario = known.analysis, known.scenario
    (start, end), rtt_ns = _window(known), known.scenario.rtt_ns
    assert a.window.end_ns == pytest.approx(end, abs=2 * rtt_ns)
    end, width, wire = a.window.end_ns, 10 * rtt_ns, _wire(known)
    bits = [wire(at, at + width) for at in range(start, end - width + 1, rtt_ns)]
    values = [1e9 * value / (scenario.rate_bps * width) for value in bits]
    mean = wire(start, end) / (scenario.rate_bps * (end - start) / 1e9)
    found = [a.utilization[name] for name in ("mean", "p01", "min", "window_s")]
    assert found == pytest.approx([mean, np.percentile(values, 1), min(values), width / 1e9], abs=1e-9)
    assert a.utilization["max"] <= 1 + 1e-9


def test_queue_depth_and_counts__of_the_measurement_window(known):
    a = known.analysis
    cards = [card for card, _, _ in _arrivals(known) if card["enqueue_ns"] < a.window.end_ns]
    for column in ("depth_packets", "depth_bytes"):
        depth = [card[column] for card in cards]
        got = metrics.queue_depth(a.queue, a.window, column)
        assert (got["mean"], got["max"]) == (pytest.approx(sum(depth) / len(depth)), max(depth))
        assert [got[f"p{p:02}"] for p in (1, 50, 99)] == [_percentile(depth, p) for p in (1, 50, 99)]
    events = []
    for card in known.truth.cards:
        if not card["flags"] & DROPPED:
            events += [(card["enqueue_ns"], 1), (card["enqueue_ns"] + card["sojourn_ns"], -1)]
    area, level, before = 0, 0, a.window.start_ns
    for ns, step in sorted(events):
        at = min(max(ns, a.window.start_ns), a.window.end_ns)
        area += level * (at - before)
        level, before = level + step, at
    area += level * (a.window.end_ns - before)
    assert metrics.queue_depth(a.queue, a.window)["time_mean"] == pytest.approx(area / a.window.length_ns, rel=1e-9)
    drops = sum(bool(card["flags"] & DROPPED) for card in cards)
    marks = sum(bool(card["flags"] & simulate.CARD["POSTCARD_CE_MARKED"]) for card in cards)
    got = metrics.counts(a.queue, a.window)
    assert (got["arrivals"], got["drops"], got["marks"]) == (len(cards), drops, marks)
    assert got["drop_fraction"] == pytest.approx(drops / len(cards))
    busy = sum(card["depth_packets"] > 0 for card in cards)
    assert got["queue_nonempty_fraction"] == pytest.approx(busy / len(cards))


def test_goodput__is_new_payload_that_left(known):
    a = known.analysis
    first: dict[tuple[int, int], int] = {}
    for card, flow, segment in zip(
        known.truth.cards, known.truth.arrival_flow, known.truth.arrival_segment, strict=True
    ):
        if segment >= 0 and not card["flags"] & DROPPED:
            first.setdefault((flow, segment), card["enqueue_ns"] + card["sojourn_ns"])
    seconds = a.window.length_ns / 1e9
    per_flow = [0.0] * known.scenario.flows
    for (flow, _), ns in first.items():
        if a.window.start_ns <= ns < a.window.end_ns:
            per_flow[flow] += 8 * simulate.MSS / seconds
    summary = summarize(a)
    assert [flow["goodput_bps"] for flow in summary["flows"]] == pytest.approx(per_flow)
    assert summary["goodput_bps"] == pytest.approx(sum(per_flow))
    squares = sum(value**2 for value in per_flow)
    assert summary["jain_index"] == pytest.approx(sum(per_flow) ** 2 / (len(per_flow) * squares))
    width = 10 * known.scenario.rtt_ns
    windows = [
        8 * simulate.MSS * len([ns for ns in first.values() if at <= ns < at + width]) * 1e9 / width
        for at in range(a.window.start_ns, a.window.end_ns - width + 1, known.scenario.rtt_ns)
    ]
    assert summary["goodput_p01_bps"] == pytest.approx(np.percentile(windows, 1))


def test_flows__have_drops_and_windows_of_their_own(known):
    a, summary = known.analysis, summarize(known.analysis)
    assert [flow["id"] for flow in summary["flows"]] == list(range(known.scenario.flows))
    arrivals = [(card, flow) for card, flow, _ in _arrivals(known) if card["enqueue_ns"] < a.window.end_ns]
    for flow in summary["flows"][:4]:
        mine = [card for card, index in arrivals if index == flow["id"]]
        assert flow["packets"] == len(mine)
        assert flow["drops"] == sum(bool(card["flags"] & DROPPED) for card in mine)
        assert flow["marks"] == sum(bool(card["flags"] & simulate.CARD["POSTCARD_CE_MARKED"]) for card in mine)
        records = sorted((r for r in known.truth.records if r["flow"] == flow["id"]), key=lambda r: r["mono_ns"])
        inside = [r for r in records if a.window.start_ns <= r["mono_ns"] < a.window.end_ns]
        assert flow["retransmits"] == sum(r["event"] == 2 for r in inside)
        held = total = cwnd = 0
        for record, after in zip(records, [*records[1:], {"mono_ns": a.window.end_ns}], strict=True):
            span = min(after["mono_ns"], a.window.end_ns) - max(record["mono_ns"], a.window.start_ns)
            if span > 0:
                total += span
                cwnd += span * record["cwnd_packets"]
                held += span * _in_flight(record)
        assert flow["cwnd_packets_mean"] == pytest.approx(cwnd / total)
        assert flow["in_flight_packets_mean"] == pytest.approx(held / total)
        assert flow["srtt_us_mean"] == known.scenario.rtt_ns // 1000 + 5
        assert flow["rtt_min_us"] == known.scenario.rtt_ns // 1000
        least = (known.scenario.rtt_ns + 8e9 * 1538 / known.scenario.rate_bps) / 1e3
        assert flow["packet_rtt_us_p50"] is None or flow["packet_rtt_us_p50"] >= least


def test_windows__of_all_flows(known):
    """The aggregate window is the sum of the latest windows; Delta bounds the middle of all windows."""
    a, n, bdp = known.analysis, known.scenario.flows, known.analysis.run.experiment.bdp_packets
    latest: dict[int, tuple[int, int]] = {}
    sums, windows = [], []
    for record in sorted(known.truth.records, key=lambda record: record["mono_ns"]):
        flight = _in_flight(record)
        latest[record["flow"]] = (flight, record["cwnd_packets"])
        sums.append(tuple(map(sum, zip(*latest.values(), strict=True))))
        if record["event"] == 1 and a.window.start_ns <= record["mono_ns"] < a.window.end_ns:
            windows.append(flight)
    assert list(zip(a.windows.in_flight_packets.tolist(), a.windows.cwnd_packets.tolist(), strict=True)) == sums
    low, high = _percentile(windows, 1), _percentile(windows, 99)
    got = metrics.almost_fairness(a.run, a.windows, a.window, bdp)
    assert (got["window_p01_packets"], got["window_p99_packets"]) == (low, high)
    if low <= 0:
        assert got["delta"] is None
    else:
        assert got["delta"] == pytest.approx(max(bdp / n / low, high / (bdp / n)))


def test_windows__are_the_same_in_slabs_of_any_size(known, monkeypatch):
    """What later slabs need of each flow is kept: sums, windows that last, flows that end, counts, and figures."""
    a, modules = known.analysis, (queue_and_windows, window_distribution, zoom_on_loss)
    expected = summarize(a), [module.prepare(a) for module in modules], distributions(a)
    monkeypatch.setattr(columns, "SLAB_ROWS", 97)
    small = analyse(a.run.directory)
    got = summarize(small), [module.prepare(small) for module in modules], distributions(small)
    for summary in (got[0], expected[0]):  # a sum of fractions: its last digits depend on the order
        together = summary["aggregate_window_packets"]["synchronization"]
        summary["aggregate_window_packets"]["synchronization"] = together and round(together, 9)
    np.testing.assert_equal(got[:2], expected[:2])
    assert got[2].equals(expected[2])


def test_synchronization__of_windows_below_zero_is_that_of_their_changes():
    """A trace may count more packets as lost than it counts as sent. Where two windows are equal, it is 1."""
    flow, packets = np.array([0, 1] * 3, dtype=np.uint16), np.array([-2, -2, 3, 3, -1, -1], dtype=np.int32)
    together = np.array([-2, -4, 1, 6, 2, -2])
    windows = metrics.WindowSeries(
        np.array([0, 0, 40, 40, 70, 70]), flow, flow < 2, packets, packets.astype(np.uint32), together, together,
        np.array([4, 5, -1]),
    )  # fmt: skip
    assert over_time.synchronization(windows, metrics.Window(0, 10, 100, 0)) == pytest.approx(1)


def _peak_bytes(work: Callable[[], object]) -> int:
    """The most memory that some work takes at once."""
    tracemalloc.start()
    work()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_depth__in_bytes_takes_no_memory_for_each_different_value(monkeypatch):
    monkeypatch.setattr(columns, "SLAB_ROWS", 10_000)
    values = 97 * np.arange(300_000, dtype=np.uint32)
    queue: dict[str, np.ndarray] = {"enqueue_mono_ns": np.arange(300_000), "depth_bytes": values}
    found: list[dict[str, Any]] = []
    all_of_it = metrics.Window(0, 0, 300_000, 0)
    most = _peak_bytes(lambda: found.append(metrics.queue_depth(queue, all_of_it, "depth_bytes")))
    p01, p50, p99 = np.percentile(values, (1, 50, 99), method="inverted_cdf").tolist()
    assert found == [{"mean": values.mean(), "p01": p01, "p50": p50, "p99": p99, "max": values.max()}]
    assert most < 3_000_000


def test_loss_events__of_a_deep_buffer_take_the_memory_of_a_few():
    """A buffer of 50 base RTTs: 10,000 windows begin in the aftermath of each event."""
    flags = np.zeros(1, dtype=np.uint8)
    one: dict[str, np.ndarray] = {"flags": flags, "enqueue_mono_ns": np.array([0]), "sojourn_ns": np.array([12_000])}
    link = metrics.LinkUsage(one | {"packet_bytes": np.array([1476], dtype=np.uint16)}, LinkRate(1_000_000_000))
    of_all, starts_ns = metrics.Window(0, 0, 1_000_000_000, 0), np.arange(0, 200_000_000, 1_000_000)
    found: list[list[float | None]] = []
    most = _peak_bytes(
        lambda: found.append(_least_utilization(link, of_all, starts_ns, 200_000_000, 1_000_000, 1_000_000))
    )
    assert found == [[0.0] * 200]
    assert most < 40_000_000


def test_loss_events__group_drops_by_the_longest_rtt(known):
    a = known.analysis
    drops = [
        (card["enqueue_ns"], flow)
        for card, flow, _ in _arrivals(known)
        if card["flags"] & DROPPED and card["enqueue_ns"] < a.window.end_ns
    ]
    expected: list[list[tuple[int, int]]] = []
    for drop in drops:
        if expected and drop[0] < expected[-1][0][0] + a.rtt_max_ns:
            expected[-1].append(drop)
        else:
            expected.append([drop])
    got = [(event.start_ns, event.drops, event.flows) for event in a.events]
    assert got == [(event[0][0], len(event), len({flow for _, flow in event})) for event in expected]
    rtts: dict[int, set[int]] = {}
    for ns, flow in drops:
        rtts.setdefault((ns - a.window.start_ns) // known.scenario.rtt_ns, set()).add(flow)
    mean = sum(len(flows) for flows in rtts.values()) / len(rtts) if rtts else None
    assert flows_losing_per_rtt(a.queue, a.window, known.scenario.rtt_ns) == (mean and pytest.approx(mean))


def test_link__counts_short_frames_as_the_shortest():
    for frame_bytes, wire_bytes in ((14, 84), (60, 84), (61, 85)):
        queue: dict[str, np.ndarray] = {
            "flags": np.zeros(100, dtype=np.uint8),
            "enqueue_mono_ns": np.arange(100, dtype=np.int64) * 1_000_000,
            "sojourn_ns": np.full(100, 8 * wire_bytes * 10, dtype=np.int64),  # at 100 Mb/s
            "packet_bytes": np.full(100, frame_bytes, dtype=np.uint16),
        }
        used = metrics.LinkUsage(queue, LinkRate(100_000_000)).utilization(np.array([0]), 100_000_000)
        assert used[0] == pytest.approx(wire_bytes * 8 / 100_000)
        assert misspaced(queue | {"depth_packets": np.zeros(100, dtype=np.uint32)}, 100_000_000) == 0


# The measurement window ends when the first flow of iperf3 has sent its last data, if that is before the traffic's end.

# (flow, ns, tcp_seq, frame bytes, dropped): from 1000 ns on, flow 0 sends until 1900, flow 1 until 2100.
SENT = [(0, 1000, 0, 1514, 0), (1, 1100, 0, 1514, 0), (0, 1900, 1448, 1514, 0), (1, 2100, 1448, 1514, 0)]


def window(sent, generator="iperf3"):
    columns = np.array(sorted(sent, key=lambda packet: packet[1])).T
    queue = dict(zip(("flow", "enqueue_mono_ns", "tcp_seq", "packet_bytes", "flags"), columns, strict=True))
    queue["flags"] = queue["flags"] * DROPPED | simulate.CARD["POSTCARD_HAS_TCP"]
    documents = Documents(traffic=Traffic(generator=generator, start_mono_ns=1000, end_mono_ns=2000))
    spec = Experiment.model_construct(groups=(), warmup_ns=100, duration_ns=900, rtt_ns=10_000)
    flows = [SimpleNamespace(number=number) for number in (0, 1, -1)]
    run: Any = SimpleNamespace(documents=documents, experiment=spec, traffic=flows, flows=["0", "1"])
    return metrics.measurement_window(run, queue)


def test_window__ends_with_the_first_flow():
    for what, found, end_ns in (
        ("flow 0 ends first", window(SENT), 1900),
        ("its FIN comes later", window([*SENT, (0, 1950, 2896, 66, 0)]), 1900),
        ("a packet that was dropped came again", window([*SENT, (0, 1500, 1448, 1514, 1)]), 1900),
        ("both send until later", window([*SENT, (0, 2050, 2896, 1514, 0)]), 2000),
        ("a hole: flow 0 waits for its timer", window([*SENT, (0, 1950, 2896, 1514, 1)]), 2000),
        ("our own generator notes the end", window(SENT, "epoll"), 2000),
        ("flow 0 ended in the warm-up", window([SENT[0], SENT[1], SENT[3]]), 1100),
    ):
        assert found.end_ns == end_ns, what
    assert window(SENT).missing_ns == 100


def test_bottleneck__of_a_program_of_the_users_is_all_queues_of_its_port(tmp_path):
    cards = {"switch_id": [1] * 4, "egress_port": [2, 2, 2, 3], "queue_id": [0, 7, 7, 0], "flags": [0] * 4}
    postcards = {name: np.array(values, dtype=np.uint16) for name, values in cards.items()}
    for own, numbers in ((False, [7, 7]), (True, [0, 7, 7])):
        run: Any = SimpleNamespace(
            postcards=postcards, directory=tmp_path, experiment=SimpleNamespace(has_own_program=own),
            documents=SimpleNamespace(switch=SimpleNamespace(bottleneck_port=2)),
        )  # fmt: skip
        port, queue = metrics.bottleneck(run)
        assert (port, queue["queue_id"].tolist()) == (2, numbers)
