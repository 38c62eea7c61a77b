# SPDX-License-Identifier: MIT
"""Congestion controls by their behaviour through the switch, in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from analysis.read.raw import load_tcp
from bench.window_laws import PROBE, RECOVERY, beginnings, dctcp_alphas, flows, growth, reactions, reduction
from experiments.tests.test_virtual import run
from runs.names import TCP_FILE

pytestmark = [
    pytest.mark.long,
    pytest.mark.virtual,
]
REPETITION = Path("latest/rep-1")


def test_reno_1w__reacts_to_a_loss_with_probability_1_over_w(tmp_path: Path) -> None:
    link = ("RATE=20mbit", "RTT=10ms", "DURATION=20s", "WARMUP=1s")
    run(tmp_path, "CLOCK=virtual", "CC=reno_1w", "FLOWS=4", *link)
    windows, halved = [], []
    for flow in flows(tmp_path / REPETITION):
        at = beginnings(flow, RECOVERY)
        # ssthresh is at least 2, so a window of 2 does not show whether it was halved.
        at = at[(flow.cwnd[at] >= flow.ssthresh[at]) & (flow.cwnd[at] > 2)]
        windows.append(flow.cwnd[at])
        left = flow.ssthresh[at + 1]
        # RACK's timer may begin a recovery after the record's ACK has grown the window by one.
        half, whole = (np.isin(left - np.maximum(share, 2), (0, 1)) for share in (flow.cwnd[at] // 2, flow.cwnd[at]))
        assert np.all(half | whole)
        halved.append(left < flow.cwnd[at])
    chance = 1 / np.concatenate(windows)
    expected, deviation = chance.sum(), np.sqrt((chance * (1 - chance)).sum())
    assert expected > 50
    assert abs(np.concatenate(halved).sum() - expected) < 4 * deviation


def test_reno_1w__is_reno_in_slow_start_and_between_losses(tmp_path: Path) -> None:
    link = ("RATE=50mbit", "RTT=10ms", "DURATION=10s", "WARMUP=0s")
    run(tmp_path, "CLOCK=virtual", "CC=reno_1w", "FLOWS=1", *link)
    (flow,) = flows(tmp_path / REPETITION)
    losses = reactions(flow)
    assert losses[0].slow_start
    assert losses[0].after == losses[0].before // 2
    assert reduction(losses) == 1  # at a window of 80, most losses have no effect
    assert np.median(growth(flow, losses)[:, 1]) == pytest.approx(1, abs=0.02)


def test_reduction__is_that_of_each_congestion_control(tmp_path: Path) -> None:
    """Reno 1/2, Cubic 717/1024, Scalable 7/8, in whole packets."""
    link = ("RATE=100mbit", "RTT=20ms", "DURATION=5s", "WARMUP=1s")
    run(tmp_path, "CLOCK=virtual", "CC=reno:1,cubic:1,scalable:1", *link)
    measured = sorted(reduction(reactions(flow)) for flow in flows(tmp_path / REPETITION))
    assert measured == pytest.approx([1 / 2, 717 / 1024, 7 / 8], abs=0.02)


def test_dctcp__halves_by_the_share_of_marked_packets(tmp_path: Path) -> None:
    link = ("RATE=50mbit", "RTT=20ms", "DURATION=5s", "WARMUP=1s")
    run(tmp_path, "CLOCK=virtual", "CC=dctcp", "FLOWS=1", "MODE=ecn", *link)
    (flow,) = flows(tmp_path / REPETITION)
    by_marks, by_windows = dctcp_alphas(tmp_path / REPETITION).T
    assert len(by_marks) > 10
    assert np.abs(by_marks - by_windows)[5:].max() < 2 / np.median(flow.cwnd)


# BBRv3's laws (draft-ietf-ccwg-bbr) in the pacing rate, the window and the packets in flight of a lone flow -----------


RATE_BPS, RTT_S = 20_000_000, 0.02
PAYLOAD_SHARE = 1448 / 1538  # payload per byte on the wire: the pacing rate counts payload
BDP = RATE_BPS * RTT_S / (8 * 1538)
DOWN, UP, CRUISE = 0.9, 1.25, 1.0  # pacing gains of ProbeBW
MARGIN = 0.99


class Trace(NamedTuple):
    s: np.ndarray  # from the first ACK
    pace: np.ndarray  # pacing rate, as a fraction of the path's rate of payload
    cwnd: np.ndarray
    in_flight: np.ndarray


def trace(results: Path) -> Trace:
    """The single flow's records."""
    (flow,) = flows(results / REPETITION)
    tcp = load_tcp(results / REPETITION / TCP_FILE)[0]
    paced = tcp["pacing_rate_bytes_per_s"][tcp["event"] == PROBE].astype(np.float64)
    return Trace((flow.ns - flow.ns[0]) / 1e9, 8 * paced / (RATE_BPS * PAYLOAD_SHARE), flow.cwnd, flow.in_flight)


def phases(pace: np.ndarray) -> list[float]:
    """The successive levels of the pacing rate. A level counts if three consecutive records or more have it."""
    level = np.round(pace / MARGIN, 2)
    begin = np.flatnonzero(np.diff(level, prepend=-1))
    length = np.diff(np.append(begin, len(level)))
    return [float(level[at]) for at in begin[length >= 3]]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    results = tmp_path_factory.mktemp("bbr3")
    link = ("RATE=20mbit", "RTT=20ms", "BUF=4bdp", "DURATION=13s", "WARMUP=0s")
    run(results, "CLOCK=virtual", "CC=bbr3", "FLOWS=1", *link)
    return trace(results)


def test_startup__paces_at_2_77_and_drain_at_a_half(alone: Trace) -> None:
    start = alone.s < 1
    assert alone.pace[start].max() == pytest.approx(2.77 * MARGIN, rel=0.03)
    after = alone.pace[start][alone.pace[start].argmax() :]
    assert after.min() == pytest.approx(0.5 * MARGIN, rel=0.03)
    assert 1.9 * BDP < alone.in_flight[start].max() < 2.4 * BDP  # DefaultCwndGain is 2; extra_acked adds to it


def test_probe_bw__cycles_up_down_cruise(alone: Trace) -> None:
    later = alone.s > 1
    levels = phases(alone.pace[later])
    ups = [at for at, level in enumerate(levels) if level == pytest.approx(UP, rel=0.02)]
    assert len(ups) >= 4
    for at in ups[:-1]:
        assert levels[at + 1] == pytest.approx(DOWN, rel=0.02)
        assert levels[at + 2] == pytest.approx(CRUISE, rel=0.02)
    cruising = np.abs(alone.pace[later] / MARGIN - CRUISE) < 0.02
    assert np.mean(cruising) > 0.5
    assert np.median(alone.in_flight[later][cruising]) == pytest.approx(BDP, rel=0.15)


def test_probe_rtt__halves_the_bdp_every_five_seconds(alone: Trace) -> None:
    low = alone.cwnd <= np.ceil(BDP / 2) + 1
    low &= alone.s > 1
    begins = alone.s[np.flatnonzero(np.diff(low.astype(int)) == 1)]
    assert np.diff(begins) == pytest.approx([5.2] * (len(begins) - 1), abs=0.4)
    assert len(begins) >= 2
    assert alone.in_flight[low].min() == pytest.approx(BDP / 2, abs=2)
    stays = alone.s[np.flatnonzero(np.diff(low.astype(int)) == -1)][: len(begins)] - begins[: len(begins)]
    assert np.all((stays > 0.2) & (stays < 0.3))  # ProbeRTTDuration is 0.2 s, plus a round trip


def test_loss__bounds_the_volume_and_leaves_headroom(tmp_path: Path) -> None:
    """With BUF=0.25bdp, probes lose more than 2 %. Then the flow keeps 15 % less in flight than at that loss."""
    link = ("RATE=20mbit", "RTT=20ms", "BUF=0.25bdp", "DURATION=8s", "WARMUP=0s")
    summary = run(tmp_path, "CLOCK=virtual", "CC=bbr3", "FLOWS=1", *link)
    assert summary["drops"]
    flow = trace(tmp_path)
    later = (flow.s > 2) & (flow.s < 5)
    assert np.median(flow.cwnd[later]) <= 0.85 * 1.25 * BDP + 2
    assert np.median(flow.cwnd[later]) >= 0.7 * BDP
