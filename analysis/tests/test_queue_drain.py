# SPDX-License-Identifier: MIT
"""How far a queue drains, measured on constructed sawteeth with known falls. Congestion events: a drop at most 2 RTTs
after the flow's previous drop belongs to the same event. The mean depth over time in parts of the window.
"""

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.measure import metrics
from analysis.measure.congestion_events import count
from analysis.measure.depth_over_time import of_slow_start, time_mean
from analysis.measure.loss import longest_rtt_ns, loss_events
from analysis.measure.metrics import CARD, Window
from analysis.measure.queue_drain import drained_fraction
from analysis.read.link_rate import LinkRate
from analysis.read.postcards import NO_DATA_BYTES
from analysis.tests import simulate
from analysis.theory import short_flows
from model.experiment import Experiment
from model.groups import Finite, Long

DROPPED = simulate.CARD["POSTCARD_DROPPED"] | simulate.CARD["POSTCARD_AT_INGRESS"]
RATE_BPS, RTT_NS, WIRE_BYTES = 100_000_000, 10_000_000, 1538
BDP = RATE_BPS * RTT_NS / (8e9 * WIRE_BYTES)  # 81.3 packets
GAP_NS = 123_040  # between full frames
WINDOW = metrics.Window(0, 5 * RTT_NS, 3_000_000_000, 0)
NO_WINDOWS = metrics.WindowSeries(*np.empty((8, 0), dtype=np.int64))


def _queue(depth, drop_at=()):
    """Arrivals every GAP_NS find depth(time in RTTs) packets. The first one after each time in `drop_at` is dropped."""
    came = np.arange(0, WINDOW.end_ns, GAP_NS, dtype=np.int64)
    depths = np.round([depth(at / RTT_NS) for at in came]).astype(np.uint32)
    flags = np.zeros(len(came), dtype=np.uint8)
    flags[np.searchsorted(came, [round(at * RTT_NS) for at in drop_at])] = DROPPED
    return {
        "enqueue_mono_ns": came, "depth_packets": depths, "flags": flags, "flow": np.zeros(len(came), dtype=np.uint16),
        "packet_bytes": np.full(len(came), 1514, dtype=np.uint16),
        "sojourn_ns": np.where(flags, 0, (depths.astype(np.int64) + 1) * GAP_NS),
    }  # fmt: skip


def _drained(queue, buffer_packets, cc):
    groups = tuple(Long(cc=name, flows=1) for name in cc)
    spec = Experiment.model_construct(groups=groups, rtt_ns=RTT_NS, buffer_packets=buffer_packets)
    longest_ns = longest_rtt_ns(RTT_NS, buffer_packets, WIRE_BYTES, RATE_BPS)
    link = metrics.LinkUsage(queue, LinkRate(RATE_BPS))
    events = loss_events(queue, link, NO_WINDOWS, WINDOW, RTT_NS, longest_ns)
    return drained_fraction(queue, WINDOW, events, spec, BDP)


def _saw(top, bottom, period_rtts, fall_rtts):
    def depth(at):
        since = at % period_rtts
        if since < fall_rtts:
            return top - (top - bottom) * since / fall_rtts
        return bottom + (top - bottom) * (since - fall_rtts) / (period_rtts - fall_rtts)

    return depth


def test_after_losses__the_drain_is_the_fall_of_the_sawtooth():
    for bottom, period, cc in ((0, 90, "reno"), (40, 30, "bbr"), (75, 15, "reno"), (99, 20, "bbr"), (100, 20, "reno")):
        drops = np.arange(period, 295, period)
        got = _drained(_queue(_saw(100, bottom, period, 2), drops), 100, ("scalable", cc))
        assert got["basis"] == "loss events"
        whole = int(sum(at >= 5 and at + 4 * 2.23 + 1 <= 300 for at in drops))
        assert abs(got["count"] - whole) <= 1
        assert got["packets"]["median"] == pytest.approx(100 - bottom, abs=1)
        assert got["of_depth_before"]["median"] == pytest.approx(1 - bottom / 100, abs=0.01)
        assert got["of_buffer"]["median"] == pytest.approx(1 - bottom / 100, abs=0.01)
        assert got["of_bdp"]["median"] == pytest.approx((100 - bottom) / BDP, abs=0.02)
        assert got["of_bdp_mean_over_rtt"]["median"] == pytest.approx((100 - bottom) / BDP, abs=0.1)
    got = _drained(_queue(_saw(100, 50, 30, 2)), 200, ("cubic",))  # no loss
    assert (got["count"], got["of_buffer"]["median"]) == (0, None)


def _probing(top_bdp, fall_bdp, phase_rtts):
    """A depth that rises by `fall_bdp` BDP in one round trip, falls by as much in the next, and is level for six."""

    def depth(at):
        since = (at + phase_rtts) % 8
        height = since if since < 1 else 2 - since if since < 2 else 0
        return BDP * (top_bdp + fall_bdp * (height - 1))

    return depth


def test_in_cycles__the_drain_is_the_fall_of_a_probe():
    for top_bdp, phase_rtts in ((0.25, 0), (0.9, 0.9), (0.25, 1.1), (0.9, 1.9), (0.25, 4.3), (0.9, 7.99)):
        got = _drained(_queue(_probing(top_bdp, 0.25, phase_rtts)), 81, ("bbr", "bbr"))
        assert (got["basis"], got["count"]) == ("probing cycles", 35)
        assert got["of_bdp"]["median"] == pytest.approx(0.25, abs=0.02)
        assert got["of_depth_before"]["median"] == pytest.approx(0.25 / top_bdp, abs=0.06)
        assert got["of_bdp"]["max"] - got["of_bdp"]["min"] < 0.03


# Congestion events ----------------------------------------------------------------------------------------------------


MS = 1_000_000
RTTS = np.array([10, 50, 10, 10]) * MS


def _counts(*drops: tuple[int, int]) -> list[int]:
    """The events of each flow, from drops given as (flow, time in ms)."""
    flow, at_ms = (np.array(column, dtype=np.int64) for column in zip(*drops, strict=True))
    return count(flow, at_ms * MS, RTTS).tolist()


def test_events__begin_with_a_drop_more_than_two_rtts_after_the_one_before() -> None:
    assert _counts((0, 100), (0, 120)) == [1, 0, 0, 0]
    assert _counts((0, 100), (0, 121)) == [2, 0, 0, 0]
    assert _counts((1, 100), (1, 121)) == [0, 1, 0, 0]  # the RTT of flow 1 is 50 ms
    # Not from the first drop of the event, and of each flow alone.
    assert _counts((0, 100), (0, 115), (0, 130), (0, 145)) == [1, 0, 0, 0]
    assert _counts((2, 7), (0, 5), (2, 5), (0, 50), (3, 6), (2, 90)) == [2, 0, 2, 1]
    none = np.zeros(0, dtype=np.int64)
    assert count(none, none, RTTS).tolist() == [0, 0, 0, 0]


# The mean depth over time, and the runs of short flows that theory can predict ----------------------------------------


SECOND_NS = 10**9
MSS = np.array([0, 1448], dtype=np.uint32)


def queue(came, sojourn, dropped=None, packet_bytes=1514):
    flags = np.zeros(len(came), dtype=np.uint8)
    if dropped is not None:
        flags[dropped] = CARD["POSTCARD_DROPPED"] | CARD["POSTCARD_AT_INGRESS"]
    return {
        "enqueue_mono_ns": np.asarray(came, dtype=np.int64), "sojourn_ns": np.asarray(sojourn, dtype=np.uint32),
        "flags": flags, "packet_bytes": np.full(len(came), packet_bytes, dtype=np.uint16),
    }  # fmt: skip


def test_time_mean__is_a_packet_by_packet_sum_with_the_error_of_the_parts():
    rng = np.random.default_rng(1)
    start = 5 * SECOND_NS
    came = np.sort(rng.integers(start - SECOND_NS, start + 3 * SECOND_NS, 20_000))
    sojourn = rng.integers(0, SECOND_NS // 3, 20_000)
    dropped = rng.integers(0, 20_000, 500)
    window = Window(0, start, start + 2 * SECOND_NS, 0)
    kept = np.ones(20_000, dtype=bool)
    kept[dropped] = False
    edges = start + np.arange(21) * (SECOND_NS // 10)
    left = came + sojourn
    parts = [
        np.clip(np.minimum(left, high) - np.maximum(came, low), 0, None)[kept].sum() / (high - low)
        for low, high in itertools.pairwise(edges)
    ]
    measured = time_mean(queue(came, sojourn, dropped), window)
    assert measured["measured"] == pytest.approx(np.mean(parts), rel=1e-12)
    assert measured["standard_error"] == pytest.approx(np.std(parts, ddof=1) / np.sqrt(20), rel=1e-9)
    long = came % 2 == 0
    cards = queue(came, sojourn, dropped)
    cards["packet_bytes"] = np.where(long, 101, 100)
    most = queue(came[long], sojourn[long], np.flatnonzero(~kept[long]))
    assert time_mean(cards, window, 100) == time_mean(most, window)


def test_time_mean__of_an_empty_window_is_unknown():
    assert time_mean(queue([], []), Window(0, 5, 5, 0)) == {"measured": None, "standard_error": None}
    assert time_mean(queue([], []), Window(0, 5, 5000, 0)) == {"measured": 0, "standard_error": 0}


def run(group: dict[str, Any], more: tuple[Long, ...] = (), **settings: Any) -> Any:
    sizes = {"name": "fixed", "value": 14 * 1448.0}
    whole: dict[str, Any] = {"kind": "finite", "load": 0.8, "arrivals": "poisson", "sizes": sizes} | group
    groups = (*more, Finite.model_construct(**whole))
    return SimpleNamespace(experiment=Experiment.model_construct(rtt_ns=1, groups=groups, **settings))


def slow_start(group=None, mss=MSS, packet_bytes=1514, **more):
    came = np.arange(0, SECOND_NS, 1000)
    packets = queue(came, np.full(len(came), 3000), packet_bytes=packet_bytes)
    return of_slow_start(run(group or {}, **more), packets, Window(0, 0, SECOND_NS, 0), mss)


def test_slow_start__has_the_bursts_of_the_initial_window():
    measured = slow_start(tcp={"initcwnd": 2})
    assert measured["bursts_packets"] == [2, 4, 8]
    depth = measured["time_mean_depth_data_packets"]
    assert depth["theory"] == short_flows.mean_depth(0.8, (2, 4, 8))
    assert depth["measured"] == pytest.approx(3, rel=1e-4)
    assert measured["measured_over_theory"] == depth["measured"] / depth["theory"]
    assert slow_start()["bursts_packets"] == [10, 4]  # Linux's initial window
    assert slow_start(packet_bytes=NO_DATA_BYTES)["time_mean_depth_data_packets"]["measured"] == 0


def test_slow_start__without_the_theorys_conditions_is_none():
    for group in (
        {"arrivals": "cbr"}, {"load": 1.1}, {"load": None}, {"sizes": {"name": "pareto", "mean": 1e4, "shape": 1.5}},
        {"sizes": {"name": "fixed", "value": 14 * 1448.0 + 1}},
    ):  # fmt: skip
        assert slow_start(group) is None, group
    assert slow_start(more=(Long(cc="reno", flows=1),)) is None
    assert slow_start(mss=np.array([], dtype=np.uint32)) is None
    assert slow_start(mss=np.array([0], dtype=np.uint32)) is None
