# SPDX-License-Identifier: MIT
"""Metrics computed again from the simulation's packets and trace records, by plain loops."""

import math

import numpy as np
import pytest

from analysis import metrics
from analysis.loss import flows_losing_per_rtt
from analysis.postcards import misspaced
from analysis.summary import summarize
from analysis.tests import simulate

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


def _bits(known, start, end):
    """Wire bits that left in [start, end). The bits of each packet are spread over its transmission."""
    total = 0.0
    for card in known.truth.cards:
        if not card["flags"] & DROPPED:
            bits = 8 * (max(card["packet_bytes"], 60) + 24)
            stop = card["enqueue_ns"] + card["sojourn_ns"]
            took = bits * 1e9 / known.scenario.rate_bps
            inside = took - max(stop - end, 0) - max(start - stop + took, 0)  # exact: differences of ints
            total += bits * min(max(inside / took, 0), 1)
    return total


def _percentile(values, percent):
    ordered = sorted(values)
    return ordered[max(math.ceil(len(ordered) * percent / 100) - 1, 0)]


def test_utilization__is_wire_bits_over_rate_times_time(known):
    a, scenario = known.analysis, known.scenario
    start, end = _window(known)
    assert a.window.end_ns == pytest.approx(end, abs=2 * scenario.rtt_ns)
    end = a.window.end_ns
    capacity = scenario.rate_bps * (end - start) / 1e9
    assert a.utilization["mean"] == pytest.approx(_bits(known, start, end) / capacity, abs=1e-9)
    width = 10 * scenario.rtt_ns
    values = [
        _bits(known, at, at + width) / (scenario.rate_bps * width / 1e9)
        for at in range(start, end - width + 1, scenario.rtt_ns)
    ]
    assert a.utilization["p01"] == pytest.approx(np.percentile(values, 1), abs=1e-9)
    assert a.utilization["min"] == pytest.approx(min(values), abs=1e-9)
    assert a.utilization["max"] <= 1 + 1e-9
    assert a.utilization["window_s"] == pytest.approx(width / 1e9)


def test_queue_depth__over_packets(known):
    a = known.analysis
    for column in ("depth_packets", "depth_bytes"):
        depth = [card[column] for card, _, _ in _arrivals(known) if card["enqueue_ns"] < a.window.end_ns]
        got = metrics.queue_depth(a.queue, a.window, column)
        assert got["mean"] == pytest.approx(sum(depth) / len(depth))
        assert got["max"] == max(depth)
        for name, percent in (("p01", 1), ("p50", 50), ("p99", 99)):
            assert got[name] == _percentile(depth, percent)


def test_queue_depth__over_time(known):
    a = known.analysis
    events = []
    for card in known.truth.cards:
        if not card["flags"] & DROPPED:
            events += [(card["enqueue_ns"], 1), (card["enqueue_ns"] + card["sojourn_ns"], -1)]
    area, depth, before = 0, 0, a.window.start_ns
    for ns, step in sorted(events):
        at = min(max(ns, a.window.start_ns), a.window.end_ns)
        area += depth * (at - before)
        depth, before = depth + step, at
    area += depth * (a.window.end_ns - before)
    got = metrics.queue_depth(a.queue, a.window)["time_mean"]
    assert got == pytest.approx(area / a.window.length_ns, rel=1e-9)


def test_counts__of_the_measurement_window(known):
    a = known.analysis
    cards = [card for card, _, _ in _arrivals(known) if card["enqueue_ns"] < a.window.end_ns]
    drops = sum(bool(card["flags"] & DROPPED) for card in cards)
    marks = sum(bool(card["flags"] & simulate.CARD["POSTCARD_CE_MARKED"]) for card in cards)
    got = metrics.counts(a.queue, a.window)
    assert (got["arrivals"], got["drops"], got["marks"]) == (len(cards), drops, marks)
    assert got["drop_fraction"] == pytest.approx(drops / len(cards))
    assert got["queue_nonempty_fraction"] == pytest.approx(
        sum(card["depth_packets"] > 0 for card in cards) / len(cards)
    )


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
    for flow in summary["flows"][:8]:
        mine = [
            card for card, index, _ in _arrivals(known) if index == flow["id"] and card["enqueue_ns"] < a.window.end_ns
        ]
        assert flow["packets"] == len(mine)
        assert flow["drops"] == sum(bool(card["flags"] & DROPPED) for card in mine)
        records = sorted((r for r in known.truth.records if r["flow"] == flow["id"]), key=lambda r: r["mono_ns"])
        inside = [r for r in records if a.window.start_ns <= r["mono_ns"] < a.window.end_ns]
        assert flow["retransmits"] == sum(r["event"] == 2 for r in inside)
        held = total = cwnd = 0
        for record, after in zip(records, [*records[1:], {"mono_ns": a.window.end_ns}], strict=True):
            span = min(after["mono_ns"], a.window.end_ns) - max(record["mono_ns"], a.window.start_ns)
            if span > 0:
                total += span
                cwnd += span * record["cwnd_packets"]
                flight = record["packets_out"] - record["sacked_out"] - record["lost_out"] + record["retrans_out"]
                held += span * flight
        assert flow["cwnd_packets_mean"] == pytest.approx(cwnd / total)
        assert flow["in_flight_packets_mean"] == pytest.approx(held / total)
        assert flow["srtt_us_mean"] == known.scenario.rtt_ns // 1000 + 5
        assert flow["rtt_min_us"] == known.scenario.rtt_ns // 1000
        least = (known.scenario.rtt_ns + 8e9 * 1538 / known.scenario.rate_bps) / 1e3
        assert flow["packet_rtt_us_p50"] is None or flow["packet_rtt_us_p50"] >= least


def test_aggregate_window__is_the_sum_of_the_latest(known):
    a = known.analysis
    latest: dict[int, tuple[int, int]] = {}
    expected = []
    for record in sorted(known.truth.records, key=lambda record: record["mono_ns"]):
        flight = record["packets_out"] - record["sacked_out"] - record["lost_out"] + record["retrans_out"]
        latest[record["flow"]] = (flight, record["cwnd_packets"])
        expected.append([sum(value[i] for value in latest.values()) for i in (0, 1)])
    assert a.windows.in_flight_packets.tolist() == [pair[0] for pair in expected]
    assert a.windows.cwnd_packets.tolist() == [pair[1] for pair in expected]


def test_almost_fairness__bounds_the_middle_of_all_windows(known):
    a, n, bdp = known.analysis, known.scenario.flows, known.analysis.run.spec["bdp_packets"]
    windows = [
        record["packets_out"] - record["sacked_out"] - record["lost_out"] + record["retrans_out"]
        for record in known.truth.records
        if record["event"] == 1 and a.window.start_ns <= record["mono_ns"] < a.window.end_ns
    ]
    low, high = _percentile(windows, 1), _percentile(windows, 99)
    got = metrics.almost_fairness(a.run, a.trace, a.window, bdp)
    assert (got["window_p01_packets"], got["window_p99_packets"]) == (low, high)
    if low <= 0:
        assert got["delta"] is None
    else:
        assert low >= bdp / n / got["delta"] - 1e-9
        assert high <= bdp / n * got["delta"] + 1e-9


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


def test_loss_events__utilization_after_one_is_the_least_of_one_rtt_windows(known):
    a, rtt = known.analysis, known.scenario.rtt_ns
    for event in a.events[:3]:
        if event.min_utilization is not None:
            starts = range(event.start_ns, event.start_ns + 4 * a.rtt_max_ns, rtt // 50)
            least = min(_bits(known, at, at + rtt) for at in list(starts)[::10]) / (known.scenario.rate_bps * rtt / 1e9)
            assert event.min_utilization <= least + 1e-9
            assert event.min_utilization == pytest.approx(least, abs=0.06)
        if event.min_utilization_10rtt is not None:
            starts = range(event.start_ns, event.start_ns + 4 * a.rtt_max_ns, rtt // 50)
            bits = [_bits(known, at, at + 10 * rtt) for at in list(starts)[::10]]
            least = min(bits) / (known.scenario.rate_bps * 10 * rtt / 1e9)
            assert least - 0.01 <= event.min_utilization_10rtt <= least + 1e-9


def test_summary__has_the_median_of_both_least_utilizations_after_loss(known_runs):
    a = known_runs("one_flow").analysis
    for key, name in (("min_after_loss", "min_utilization"), ("min_after_loss_10rtt", "min_utilization_10rtt")):
        known = [value for event in a.events if (value := getattr(event, name)) is not None]
        assert known
        assert summarize(a)["utilization"][key] == pytest.approx(np.median(known))


def test_application_goodput__of_one_iperf3_process_only(known_runs):
    assert summarize(known_runs("two_flows").analysis)["application_goodput_bps"] == 4.0e7
    assert summarize(known_runs("many_flows").analysis)["application_goodput_bps"] is None


@pytest.mark.parametrize(("frame_bytes", "wire_bytes"), [(14, 84), (59, 84), (60, 84), (61, 85)])
def test_link__counts_short_frames_as_the_shortest(frame_bytes, wire_bytes):
    count = 100
    queue: dict[str, np.ndarray] = {
        "flags": np.zeros(count, dtype=np.uint8),
        "enqueue_mono_ns": np.arange(count, dtype=np.int64) * 1_000_000,
        "sojourn_ns": np.full(count, 8 * wire_bytes * 10, dtype=np.int64),  # at 100 Mb/s
        "packet_bytes": np.full(count, frame_bytes, dtype=np.uint16),
    }
    used = metrics.LinkUsage(queue, 100_000_000).utilization(np.array([0]), 100_000_000)
    assert used[0] == pytest.approx(wire_bytes * 8 / 100_000)
    assert misspaced(queue | {"depth_packets": np.zeros(count, dtype=np.uint32)}, 100_000_000) == 0


@pytest.mark.parametrize("buffer_bdp", [0.25, 0.5, 1.0, 1.5])
def test_single_reno_flow__falls_to_the_predicted_utilization(tmp_path, buffer_bdp):
    from analysis.analyse import analyse

    scenario = simulate.Scenario(flows=1, rate_bps=20_000_000, duration_ns=3_000_000_000)
    bdp = scenario.rate_bps * scenario.rtt_ns / (8e9 * 1538)
    scenario.threshold = round(buffer_bdp * bdp)
    scenario.warmup_ns = 500_000_000
    simulate.write_run(tmp_path / "rep-1", scenario)
    summary = summarize(analyse(tmp_path / "rep-1"))
    predicted = next(rule for rule in summary["rules"]["single_flow"] if rule["cc"] == "reno")["min_utilization"]
    assert predicted == pytest.approx(min((1 + scenario.threshold / bdp) / 2, 1))
    assert summary["loss"]["events"] >= 2
    assert summary["utilization"]["min_after_loss"] == pytest.approx(predicted, abs=0.08)


def test_sums__do_not_wrap_at_32_bits():
    count = 3_000_000  # 4.5 GB of frames
    queue: dict[str, np.ndarray] = {
        "flags": np.zeros(count, dtype=np.uint8),
        "enqueue_mono_ns": np.arange(count, dtype=np.int64) * 1000,
        "sojourn_ns": np.full(count, 1230, dtype=np.int64),
        "packet_bytes": np.full(count, 1514, dtype=np.uint16),
    }
    link = metrics.LinkUsage(queue, 100_000_000_000)
    assert link.bytes_before[-1] == count * 1538
    assert link.bytes_before.dtype == np.int64


def test_jain__of_nothing_equal_and_one():
    assert metrics.jain_index(np.zeros(3)) is None
    assert metrics.jain_index(np.full(4, 2.5)) == pytest.approx(1)
    assert metrics.jain_index(np.array([1.0, 0, 0, 0])) == pytest.approx(0.25)
