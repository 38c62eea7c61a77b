# SPDX-License-Identifier: MIT
"""Measures of arrivals behind the figures of Enachescu et al. (very small buffers), of synthetic arrivals."""

import numpy as np
import pytest

from analysis.papers.enachescu2006 import (
    gaps,
    overpopulated,
)  # fmt: skip

PACKET_NS = 80_000.0


def test_dispersion__of_poisson_arrivals_is_one_of_even_ones_none_and_of_bursts_their_size() -> None:
    rng = np.random.default_rng(3)
    arrivals = np.cumsum(rng.exponential(2 * PACKET_NS, 400_000)).astype(np.int64)
    index = gaps.dispersion(arrivals, 0, int(arrivals[-1]), PACKET_NS)
    assert index[-1][0] > 1000
    assert all(value == pytest.approx(1, abs=0.05 if length < 50 else 0.35) for length, value in index)
    even = np.arange(0, 10**11, 10 * int(PACKET_NS))
    assert all(value < 0.1 for length, value in gaps.dispersion(even, 0, 10**11, PACKET_NS) if length % 10 == 0)
    bursts = np.repeat(np.cumsum(rng.exponential(20 * PACKET_NS, 50_000)), 7).astype(np.int64)
    assert dict(gaps.dispersion(bursts, 0, int(bursts[-1]), PACKET_NS))[100] == pytest.approx(7, rel=0.15)


def test_overpopulated__intervals_hold_more_than_their_slots_and_the_buffer() -> None:
    bursts = (np.arange(500)[:, None] * 100_000 + np.arange(10) * 100).ravel()  # ten packets in one slot of 1000 ns
    shares = overpopulated.shares(bursts, 1000.0, 5)
    assert shares[2] == pytest.approx(0.3, abs=0.01)  # the last 3 of 10 packets have at least 2 + 5 before them
    assert shares[5] == 0  # no packet has 5 + 5 before it
    even = overpopulated.shares(np.arange(5000) * 1000, 1000.0, 1)
    assert set(even.values()) == {0.0}
