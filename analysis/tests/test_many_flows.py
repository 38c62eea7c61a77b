# SPDX-License-Identifier: MIT
"""The rules for many flows against the numbers that the papers print."""

import pytest

from analysis.theory import many_flows


def test_sqrt_rule__has_the_second_papers_numbers():
    # Abstract: 10,000 flows on 2.5 Gb/s need 99 % less; 50,000 on 10 Gb/s (250 ms) need about 10 Mb.
    assert many_flows.sqrt_rule(1, 10_000) == pytest.approx(0.01)
    assert many_flows.sqrt_rule(10e9 * 0.25, 50_000) == pytest.approx(10e6, rel=0.15)


def test_almost_fair__has_the_first_papers_numbers():
    # 4.3: n = 10,000 and Delta = 2 give 98 %; over 1,000 flows give at least 97 % (rounded).
    assert many_flows.almost_fair_utilization(10_000, 2) == pytest.approx(0.98)
    assert many_flows.almost_fair_utilization(1_000, 1) == pytest.approx(0.97, abs=0.002)
    assert many_flows.almost_fair_buffer(165, 16, 4) == pytest.approx(165)
    assert many_flows.almost_fair_window(165, 165, 16, 2) == pytest.approx(330 - 82.5)
    assert many_flows.almost_fair_utilization(1, 3) == 0


def test_flows_seeing_loss__grows_from_sqrt_n():
    assert many_flows.flows_seeing_loss(165, 16, 2) == pytest.approx(4 + 256 / 330)
