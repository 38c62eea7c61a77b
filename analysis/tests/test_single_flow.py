# SPDX-License-Identifier: MIT
"""A single flow's rules against the numbers that the papers print."""

import pytest

from analysis.theory import single_flow


def test_bdp__is_rate_times_rtt_in_packets():
    # The default run, then 10 Gb/s with exactly 1 ms. The 165 packets of Spang et al., 3.6, need a longer RTT (below).
    assert single_flow.bdp_packets(200_000_000, 10_000_000, 1538) == pytest.approx(162.5, abs=0.1)
    assert single_flow.bdp_packets(10_000_000_000, 1_000_000, 9038) == pytest.approx(138.3, abs=0.1)


@pytest.mark.parametrize(
    ("cc", "full", "ninety", "empty"),
    [  # Spang et al., 3.5: buffer in BDP for full utilization and for 90 %; utilization without a buffer
        ("reno", 1, 0.80, 0.50),
        ("cubic", 3 / 7, 0.28, 0.70),
        ("scalable", 1 / 7, 0.03, 0.875),
        ("bbr", 1 / 4, 0.15, 0.75),
    ],
)
def test_single_flow__has_the_papers_buffers(cc, full, ninety, empty):
    assert single_flow.single_flow_buffer(cc, 1000) == pytest.approx(full * 1000, rel=0.005)
    assert single_flow.single_flow_buffer(cc, 1000, 0.9) == pytest.approx(ninety * 1000, abs=6)
    assert single_flow.min_utilization(cc, 0, 1000) == pytest.approx(empty, abs=0.001)
    assert single_flow.min_utilization(cc, single_flow.single_flow_buffer(cc, 1000) or 0, 1000) == pytest.approx(1)


def test_reno__loses_one_percent_of_utilization_for_two_of_buffer():
    assert single_flow.single_flow_buffer("reno", 100, 0.99) == pytest.approx(98)


@pytest.mark.parametrize(
    ("cc", "low", "high"), [("reno", 1, 1), ("cubic", 0.6, 0.7), ("scalable", 0.11, 0.25), ("bbr", 0.25, 0.25)]
)
def test_drained__of_one_bdp_is_within_the_papers_measurements(cc, low, high):
    drained = single_flow.drained_packets(cc, 1000, 1000) or 0  # Spang et al., 3.6
    assert low - 0.005 <= drained / 1000 <= high
    assert single_flow.drained_packets(cc, 50, 1000) == 50


def test_unknown_algorithm__has_no_rule():
    assert single_flow.drained_packets("vegas", 10, 100) is None
    assert single_flow.single_flow_buffer("vegas", 100) is None
    assert single_flow.min_utilization("vegas", 10, 100) is None


def test_queue_and_utilization__follow_the_window():
    assert [single_flow.queue_length(w, 100, 50) for w in (80, 100, 130, 200)] == [0, 0, 30, 50]
    assert [single_flow.utilization_of_window(w, 100) for w in (50, 100, 150)] == [0.5, 1, 1]


def test_bdp__of_the_testbed_of_spang_et_al_is_165_packets():
    # Spang et al., 3.6. At 10 Gb/s and MTU 9000 this is an RTT of 1.19 ms: the "1 ms of delay" and the hosts' delay.
    assert single_flow.bdp_packets(10**10, 1_193_000, 9038) == pytest.approx(165, abs=0.1)
    assert single_flow.bdp_rule(165) == single_flow.synchronized_buffer(165, 50) == 165


def test_newer_algorithms__need_60_to_75_percent_less():
    # Abstract and section 1: Cubic 0.4 BDP, BBR 0.25 BDP
    assert 1 - (single_flow.single_flow_buffer("bbr", 1) or 0) == 0.75
    assert 1 - (single_flow.single_flow_buffer("cubic", 1) or 0) == pytest.approx(0.6, abs=0.03)


def test_variability__of_the_queue_enlarges_the_buffer_in_proportion():
    # 3.3: "the B >= BDP rule for TCP Reno would become B >= (1 + eps) BDP"
    assert single_flow.decrease_buffer(0.5, 100, variability=0.2) == pytest.approx(120)
    assert single_flow.decrease_buffer(0.7, 100, 0.6) == 0


def test_decrease__of_any_beta_is_the_rule_of_table_1():
    for beta in (0.3, 0.5, 0.9):
        buffer = single_flow.decrease_buffer(beta, 1000)
        assert buffer == pytest.approx((1 / beta - 1) * 1000)
        assert single_flow.decrease_utilization(beta, buffer, 1000) == pytest.approx(1)
        assert single_flow.decrease_utilization(beta, buffer / 2, 1000) < 1


@pytest.mark.parametrize(
    "call",
    [
        lambda: single_flow.decrease_buffer(1, 100),
        lambda: single_flow.decrease_buffer(0.5, 100, 1.1),
        lambda: single_flow.decrease_buffer(0.5, 100, 1, -0.1),
        lambda: single_flow.decrease_utilization(0, 1, 100),
        lambda: single_flow.synchronized_buffer(100, 0),
    ],
)
def test_single_flow__refuses_values_without_meaning(call):
    with pytest.raises(ValueError, match="allowed"):
        call()
