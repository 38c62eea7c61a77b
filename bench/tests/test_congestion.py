# SPDX-License-Identifier: MIT
"""Congestion controls by their behaviour through the switch, in virtual time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.window_laws import RECOVERY, beginnings, dctcp_alphas, flows, growth, reactions, reduction
from experiments.tests.test_virtual import run

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
