# SPDX-License-Identifier: MIT
"""How far a queue drains, measured on constructed sawteeth with known falls."""

import numpy as np
import pytest

from analysis.measure import metrics
from analysis.measure.loss import longest_rtt_ns, loss_events
from analysis.measure.queue_drain import drained_fraction
from analysis.read.link_rate import LinkRate
from analysis.tests import simulate
from model.experiment import Experiment
from model.groups import Long

DROPPED = simulate.CARD["POSTCARD_DROPPED"] | simulate.CARD["POSTCARD_AT_INGRESS"]
RATE_BPS, RTT_NS, WIRE_BYTES = 100_000_000, 10_000_000, 1538
BDP = RATE_BPS * RTT_NS / (8e9 * WIRE_BYTES)  # 81.3 packets
GAP_NS = 123_040  # between full frames
WINDOW = metrics.Window(0, 5 * RTT_NS, 3_000_000_000, 0)
NO_WINDOWS = metrics.WindowSeries(*(np.empty(0, dtype=np.int64) for _ in range(3)))


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
