# SPDX-License-Identifier: MIT
"""Numbers behind the figures of Enachescu et al. (very small buffers), from synthetic arrivals and runs."""

from typing import Any

import numpy as np
import pytest

from analysis.papers.enachescu2006 import (
    figure_05a,
    gaps,
    model,
    overpopulated,
    scaling,
    senders,
    theorem_1,
    theorem_2,
    today,
)  # fmt: skip

PACKET_NS = 80_000.0


class Run(dict[str, Any]):
    """A stored run's row, and its spec."""

    def __init__(self, row: dict[str, Any], **spec: Any) -> None:
        super().__init__({"pacing": None, "access_bps": None, "nic_rate_bps": None, **row})
        self.spec = spec


LINK = {"rate_bps": 100_000_000, "rtt_ns": 90_000_000, "rtt_spread_ns": 20_000_000, "wire_bytes": 1000}


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


def test_model__adds_up_the_rates_of_all_rtts() -> None:
    run = Run({"flows": 3, "window_packets": 30, "utilization_mean": 0.5}, **LINK)
    rates_pps = [30 / rtt for rtt in (0.09, 0.1, 0.11)]
    assert model.peak_load(run) == pytest.approx(sum(rates_pps) / 12_500)  # type: ignore[arg-type]
    assert model.effective_utilization(run) == pytest.approx(0.5 / model.peak_load(run))  # type: ignore[arg-type]
    assert theorem_1.bound(15) == pytest.approx(0.9375)
    assert 1 - theorem_1.bound(12, theorem_1.HALVING) == pytest.approx((1 - theorem_1.bound(12)) / 4)
    assert scaling._exponent({w: 3 * w**-0.25 for w in (16, 32, 64, 256)}) == pytest.approx(-0.25)


def test_slope__needs_a_share_at_every_window() -> None:
    shares = {w: 5 / w**2 for w in theorem_2.WINDOWS}
    assert theorem_2.slope(shares) == pytest.approx(-2)
    assert theorem_2.slope({**shares, 128: 0.0}) is None
    by_buffer = {size: 10.0**-size for size in range(3, 8)}
    sizes = dict(zip(theorem_2.WINDOWS, range(3, 8), strict=True))
    assert theorem_2.curve(by_buffer.get, 1.25) == {w: 10.0**-size for w, size in sizes.items()}
    assert theorem_2.curve(by_buffer.get, 1.5) == {}  # no run has the 8 packets of W = 128
    assert theorem_2.least({1.0: shares, 0.75: {w: 1 / w for w in shares}}) == 1.0


def test_overpopulated__intervals_hold_more_than_their_slots_and_the_buffer() -> None:
    bursts = (np.arange(500)[:, None] * 100_000 + np.arange(10) * 100).ravel()  # ten packets in one slot of 1000 ns
    shares = overpopulated.shares(bursts, 1000.0, 5)
    assert shares[2] == pytest.approx(0.3, abs=0.01)  # the last 3 of 10 packets have at least 2 + 5 before them
    assert shares[5] == 0  # no packet has 5 + 5 before it
    even = overpopulated.shares(np.arange(5000) * 1000, 1000.0, 1)
    assert set(even.values()) == {0.0}


def test_kinds_of_senders__follow_from_algorithm_pacing_access_links_and_offloads() -> None:
    rows = {
        senders.PACED: {"pacing": "exact"}, senders.POISSON: {"pacing": "poisson"}, senders.RENO: {},
        senders.ACCESS: {"access_bps": 5_000_000},
    }  # fmt: skip
    assert [senders.sender(Run(row)) for row in rows.values()] == list(rows)  # type: ignore[arg-type]
    run = Run({"cc": "cubic", "pacing": "linux", "nic_rate_bps": 10**10})
    assert today.kind(run) == "Cubic, Linux's pacing, TSO"  # type: ignore[arg-type]
    assert today.kind(Run({"cc": "bbr"})) == "BBR"  # type: ignore[arg-type]
    run = Run({"flows": 20, "access_bps": 5_000_000, "rate_bps": 125_000_000})
    assert figure_05a.offered(run) == 0.8  # type: ignore[arg-type]
