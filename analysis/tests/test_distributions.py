# SPDX-License-Identifier: MIT
"""Each distribution counted again from the simulation's own list of packets, by plain loops."""

import math
from collections import Counter

import numpy as np
import polars as pl
import pytest

from analysis import distributions
from analysis.derive import derive
from analysis.metrics import Window
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


def test_queue_depth__is_what_each_packet_found(known):
    found = Counter(card["depth_packets"] for card, _ in _arrivals(known))
    assert _counts(distributions.distributions(known.analysis), "queue_depth_packets") == found


def test_in_flight__is_of_each_flow_at_each_ack(known):
    window, table = known.analysis.window, distributions.distributions(known.analysis)
    for flow in range(known.scenario.flows):
        expected = Counter(
            r["packets_out"] - r["sacked_out"] - r["lost_out"] + r["retrans_out"]
            for r in known.truth.records
            if r["flow"] == flow and r["event"] == simulate.EVENT["TCP_EVENT_PROBE"]
            and window.start_ns <= r["mono_ns"] < window.end_ns
        )  # fmt: skip
        assert _counts(table, "in_flight_packets", flow) == expected


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


def test_flows_losing__are_counted_for_each_rtt_with_a_drop(known):
    losers: dict[int, set[int]] = {}
    for card, flow in _arrivals(known):
        if card["flags"] & DROPPED:
            rtt = (card["enqueue_ns"] - known.analysis.window.start_ns) // known.scenario.rtt_ns
            losers.setdefault(rtt, set()).add(flow)
    expected = Counter(len(flows) for flows in losers.values())
    assert _counts(distributions.distributions(known.analysis), "flows_losing") == expected


def test_flows_signalled__are_those_told_until_nobody_is_for_an_rtt(known):
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


def test_utilization__has_the_summary_s_percentile(known):
    counts = _counts(distributions.distributions(known.analysis), "utilization_ppm_10rtt")
    values = np.repeat(list(counts), list(counts.values()))
    assert np.percentile(values, 1) == pytest.approx(known.analysis.utilization["p01"] * 1e6, abs=1)


def test_bursts__end_with_the_gap_and_may_be_interleaved():
    queue = {
        "enqueue_mono_ns": np.array([0, 1, 3, 4, 6, 20, 21, 31, 90]),
        "flow": np.array([0, 1, 0, 1, 0, 0, 1, 0, 0], dtype=np.uint16),
    }
    window = Window(0, 0, 90, 0)
    assert sorted(distributions.bursts(queue, window, 10)) == [1, 1, 1, 2, 3]
    assert sorted(distributions.bursts(queue, window, 11)) == [1, 2, 2, 3]
    assert len(distributions.bursts(queue, Window(0, 200, 300, 0), 10)) == 0


def test_signalled__starts_anew_after_a_gap_of_more_than_an_rtt():
    mark = CARD["POSTCARD_CE_MARKED"]
    flags = np.array([0, DROPPED, DROPPED, 0, mark, DROPPED, 0, mark], dtype=np.uint8)
    queue = {
        "enqueue_mono_ns": np.array([0, 10, 15, 16, 20, 30, 31, 32]), "flags": flags,
        "flow": np.array([0, 1, 2, 3, 2, 1, 0, 1], dtype=np.uint16),
    }  # fmt: skip
    window = Window(0, 0, 100, 0)
    assert distributions.signalled(queue, window, 4).tolist() == [1, 1, 1, 1]
    assert distributions.signalled(queue, window, 5).tolist() == [2, 1]
    assert distributions.signalled(queue, window, 10).tolist() == [2]
    assert distributions.signalled(queue, Window(0, 40, 100, 0), 10).tolist() == []


def test_derived_file__is_the_table(fresh, monkeypatch, known_runs):
    monkeypatch.setattr("analysis.derive.draw_all", lambda *_: [])
    monkeypatch.setattr("analysis.derive.render", lambda *_: "")
    directory = fresh("ecn")
    derive(directory)
    stored = pl.read_parquet(directory / distributions.NAME)
    assert stored.equals(distributions.distributions(known_runs("ecn").analysis))
    assert dict(stored.schema) == distributions.SCHEMA
