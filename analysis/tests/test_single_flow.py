# SPDX-License-Identifier: MIT
"""A single flow's rules against the numbers that the papers print."""

import pytest

from analysis.theory import single_flow


def test_bdp__of_the_first_paper_is_about_165_packets():
    # 10 Gb/s, a 1 ms delay, and RTTs a little above it: 165 packets in 3.6. The default run has the same BDP.
    assert single_flow.bdp_packets(200_000_000, 10_000_000, 1538) == pytest.approx(162.5, abs=0.1)
    assert single_flow.bdp_packets(10_000_000_000, 1_000_000, 9038) == pytest.approx(138.3, abs=0.1)


@pytest.mark.parametrize(
    ("cc", "full", "ninety", "empty"),
    [  # first paper, 3.5: buffer for full use, for 90 %, and utilization without a buffer
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
def test_drained__of_one_bdp_is_within_what_the_paper_saw(cc, low, high):
    drained = single_flow.drained_packets(cc, 1000, 1000) or 0  # first paper, 3.6
    assert low - 0.005 <= drained / 1000 <= high
    assert single_flow.drained_packets(cc, 50, 1000) == 50


def test_unknown_algorithm__has_no_rule():
    assert single_flow.drained_packets("vegas", 10, 100) is None
    assert single_flow.single_flow_buffer("vegas", 100) is None
    assert single_flow.min_utilization("vegas", 10, 100) is None


def test_queue_and_utilization__follow_the_window():
    assert [single_flow.queue_length(w, 100, 50) for w in (80, 100, 130, 200)] == [0, 0, 30, 50]
    assert [single_flow.utilization_of_window(w, 100) for w in (50, 100, 150)] == [0.5, 1, 1]
