# SPDX-License-Identifier: MIT
"""Each distribution equals a count by plain loops over the simulation's packets and trace records."""

import math
from collections import Counter

import polars as pl
import pytest

from analysis import distributions, over_time
from analysis.tests import simulate

CARD = simulate.CARD
DROPPED = CARD["POSTCARD_DROPPED"]
SIGNALLED = DROPPED | CARD["POSTCARD_CE_MARKED"]


def _arrivals(known):
    """(card, flow) of the packets that came in the measurement window."""
    window = known.analysis.window
    every = zip(known.truth.cards, known.truth.arrival_flow, strict=True)
    return [(card, flow) for card, flow in every if window.start_ns <= card["enqueue_ns"] < window.end_ns]


def _counts(table, what, flow=None):
    same = pl.col("flow").is_null() if flow is None else pl.col("flow") == flow
    rows = table.filter(pl.col("what") == what, same)
    return dict(rows.select("value", "count").iter_rows())


def test_queue_depth__is_the_depth_that_each_packet_found(known):
    counted = Counter(card["depth_packets"] for card, _ in _arrivals(known))
    assert _counts(distributions.distributions(known.analysis), "queue_depth_packets") == counted


def test_in_flight__is_of_each_flow_at_each_ack(known):
    window, table = known.analysis.window, distributions.distributions(known.analysis)
    for flow in range(known.scenario.flows):
        probes = [
            r for r in known.truth.records
            if r["flow"] == flow and r["event"] == simulate.EVENT["TCP_EVENT_PROBE"]
            and window.start_ns <= r["mono_ns"] < window.end_ns
        ]  # fmt: skip
        assert _counts(table, "in_flight_packets", flow) == Counter(map(_in_flight, probes))
        assert _counts(table, "cwnd_packets", flow) == Counter(r["cwnd_packets"] for r in probes)


def _in_flight(record):
    return record["packets_out"] - record["sacked_out"] - record["lost_out"] + record["retrans_out"]


def test_bursts__are_packets_of_one_flow_in_quick_succession(known):
    scenario = known.scenario
    gap_ns = (scenario.frame_bytes + 24) * 8e9 / scenario.rate_bps / 2
    sizes: list[int] = []
    last: dict[int, tuple[int, int]] = {}
    for card, flow in _arrivals(known):
        if flow in last and card["enqueue_ns"] - last[flow][0] <= gap_ns:
            sizes[last[flow][1]] += 1
            last[flow] = card["enqueue_ns"], last[flow][1]
        else:
            sizes.append(1)
            last[flow] = card["enqueue_ns"], len(sizes) - 1
    assert _counts(distributions.distributions(known.analysis), "burst_packets") == Counter(sizes)


def test_flows_signalled__are_counted_until_an_rtt_passes_without_a_signal(known):
    excursions: list[set[int]] = []
    last = -math.inf
    for card, flow in _arrivals(known):
        if not card["flags"] & SIGNALLED:
            continue
        if card["enqueue_ns"] - last > known.scenario.rtt_ns:
            excursions.append(set())
        excursions[-1].add(flow)
        last = card["enqueue_ns"]
    expected = Counter(len(flows) for flows in excursions)
    assert _counts(distributions.distributions(known.analysis), "flows_signalled_per_excursion") == expected


def test_depth_over_time__has_the_ns_at_each_depth(known):
    window, table = known.analysis.window, distributions.distributions(known.analysis)
    events = sorted(
        event
        for card in known.truth.cards
        if not card["flags"] & DROPPED
        for event in ((card["enqueue_ns"], 1), (card["enqueue_ns"] + card["sojourn_ns"], -1))
    )
    expected: Counter[int] = Counter()
    depth, since = 0, window.start_ns
    for at, change in [*events, (window.end_ns, 0)]:
        until = min(max(at, window.start_ns), window.end_ns)
        expected[depth] += until - since
        depth, since = depth + change, until
    assert _counts(table, "depth_over_time_packets") == {depth: ns for depth, ns in expected.items() if ns}


def test_aggregate_window_over_time__has_the_ns_at_each_sum(known):
    """Also tests the synchronization of the windows against its definition."""
    window, analysis = known.analysis.window, known.analysis
    latest: dict[int, int] = {}
    steps = []
    for r in sorted(known.truth.records, key=lambda r: r["mono_ns"]):
        latest[r["flow"]] = _in_flight(r)
        steps.append((r["mono_ns"], dict(latest)))
    expected: Counter[int] = Counter()
    each: dict[int, Counter[int]] = {flow: Counter() for flow in latest}
    for (at, windows), (following, _) in zip(steps, [*steps[1:], (window.end_ns, {})], strict=True):
        held = min(max(following, window.start_ns), window.end_ns) - min(max(at, window.start_ns), window.end_ns)
        expected[sum(windows.values())] += held
        for flow, packets in windows.items():
            each[flow][packets] += held
    expected = Counter({total: ns for total, ns in expected.items() if ns})
    assert _counts(distributions.distributions(analysis), "aggregate_window_over_time_packets") == expected
    together, apart = _variance(expected), sum(_variance(counts) for counts in each.values())
    measured = over_time.synchronization(analysis.run, analysis.trace, analysis.windows, window)
    if len(each) < 2 or not apart:
        assert measured is None
    else:
        assert measured == pytest.approx((together / apart - 1) / (len(each) - 1))


def _variance(counts):
    total = sum(counts.values())
    mean = sum(value * ns for value, ns in counts.items()) / total
    return sum((value - mean) ** 2 * ns for value, ns in counts.items()) / total
