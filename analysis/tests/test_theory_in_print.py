# SPDX-License-Identifier: MIT
"""Closed forms against the numbers that the papers print. (Other arguments: test_theory_ranges.py.)"""

import math

import numpy as np
import pytest

from analysis.theory import capacity_ratio as ratio
from analysis.theory import (
    gaussian,
    loss_fits,
    many_flows,
    mm1b,
    queues,
    sawtooth,
    short_flows,
    single_flow,
    tiny_buffers,
)

SLOW_START_14 = short_flows.slow_start_bursts(14)
BDP_ENACHESCU = 100e6 * 0.1 / 8 / 1000  # III: 100 Mb/s, 100 ms, packets of 1000 bytes
PIPE_PRASAD = 1e9 * 0.06 / (8 * 1500)  # section 5: 1 Gb/s, 60 ms, 5000 packets of 1500 bytes, 7.5 MB
OC3_BDP = 155e6 * 0.1 / (8 * 1500)  # Appenzeller et al., 5.2.1: "RTT x C (which in this case would be 1291 packets)"
FIFO = 64_000 / 1500  # 5.2.2: 64 kBytes of an internal FIFO, 43 packets of 1500 bytes
Row = tuple[object, object, float]


def wrong(*rows: Row) -> list[Row]:
    """The rows (computed, printed, relative tolerance) that differ."""
    return [row for row in rows if row[0] != pytest.approx(row[1], rel=row[2], abs=1e-9)]


def test_single_flow__has_the_numbers_of_spang_et_al():
    """3.5: buffer in BDP for full utilization and for 90 %, and utilization without a buffer; 3.6: the part of one BDP
    that drains.
    """
    for cc, full, ninety, empty, low, high in (
        ("reno", 1, 0.80, 0.50, 1, 1),
        ("cubic", 3 / 7, 0.28, 0.70, 0.6, 0.7),
        ("scalable", 1 / 7, 0.03, 0.875, 0.11, 0.25),
        ("bbr", 1 / 4, 0.15, 0.75, 0.25, 0.25),
    ):
        buffer = single_flow.single_flow_buffer(cc, 1000) or 0
        assert single_flow.single_flow_buffer(cc, 1000, 0.9) == pytest.approx(ninety * 1000, abs=6), cc
        assert low - 0.005 <= (single_flow.drained_packets(cc, 1000, 1000) or 0) / 1000 <= high, cc
        assert wrong(
            (buffer, full * 1000, 0.005),
            (single_flow.min_utilization(cc, 0, 1000), empty, 0.001),
            (single_flow.min_utilization(cc, buffer, 1000), 1, 1e-9),
        ) == []  # fmt: skip
    assert wrong(
        (single_flow.bdp_packets(200_000_000, 10_000_000, 1538), 162.5, 1e-3),  # the default run
        (single_flow.bdp_packets(10**10, 1_193_000, 9038), 165, 1e-3),  # 3.6: "1 ms", and the hosts' own delay
        (single_flow.single_flow_buffer("reno", 100, 0.99), 98, 1e-9),
        (single_flow.decrease_buffer(0.5, 100, variability=0.2), 120, 1e-9),  # 3.3: B >= (1 + eps) BDP
    ) == []  # fmt: skip


def test_many_flows__have_the_numbers_of_both_papers():
    assert wrong(
        # Appenzeller et al., abstract: 50,000 flows on 10 Gb/s, 250 ms: about 10 Mbit
        (many_flows.sqrt_rule(10e9 * 0.25, 50_000), 10e6, 0.15),
        # Spang et al., 4.3: n = 10,000 and Delta = 2 give 98 %; more than 1,000 flows give at least 97 % (rounded)
        (many_flows.almost_fair_utilization(10_000, 2), 0.98, 1e-9),
        (many_flows.almost_fair_utilization(1_000, 1), 0.97, 0.002),
        # 7.1: without any buffer 99 % are used
        (many_flows.almost_fair_utilization(10_000, 1), 0.99, 1e-9),
        # 5.6, Figure 10: n^2 / (2 BDP) + sqrt(n)
        (many_flows.flows_seeing_loss(165, 128, 2), 128**2 / 330 + 128**0.5, 1e-9),
        # 4.6: "if 10,000 flows share a link, and s = 1, then ... another 100-fold"; "if only s = c n extra flows lose
        # packets, then the required buffer size is c BDP"
        (many_flows.desynchronized_buffer(1e6, 10_000, 1, 1), 100, 1e-9),
        (many_flows.desynchronized_buffer(1e6, 10_000, 1, 3_000), 0.3e6, 1e-9),
    ) == []  # fmt: skip
    assert many_flows.least_flows_that_shrink_window(60, 50) > 1  # 4.2: BDP / n < n - 1


def test_tiny_buffers__have_the_numbers_of_enachescu_et_al():
    load = tiny_buffers.peak_load(125_000, 1000, 64)
    assert math.ceil(tiny_buffers.poisson_buffer(0.5, 64, 0.9)) == 15  # II: "a buffer size of 15 packets"
    assert [math.ceil(tiny_buffers.log_window_buffer(window)) for window in (10, 1529)] == [5, 16]  # Figure 6
    assert wrong(
        (tiny_buffers.drop_bound(0.75, 20), 0.003, 0.1),  # II
        # I: 1000 flows, 10 Gb/s, 100 ms, 64 KB windows, 1 KB packets: "the peak rate is roughly 5Gbps"
        (load, 0.5, 0.03),
        (tiny_buffers.poisson_buffer(0.5, 64, 0.9) + math.log2(0.2), 12, 1e-9),  # "plus some small additive constant"
        # CCR version, Figure 1: windows of 32
        ([tiny_buffers.peak_load(BDP_ENACHESCU, n, 32) for n in (1, 10, 20, 40)], [0.026, 0.26, 0.52, 1], 0.025),
    ) == []  # fmt: skip
    for flows, exponential, equal in ((20, 0.512, 0.512), (40, 0.631, 0.777), (200, 0.849, 0.937)):
        # Figure 4: windows of at most 32 packets, a buffer of 10; equal packets lose less
        load = tiny_buffers.tcp_md1b_load(BDP_ENACHESCU / flows, 10, 32)
        assert wrong(
            (mm1b.utilization(tiny_buffers.tcp_mm1b_load(BDP_ENACHESCU / flows, 10, 32), 10), exponential, 2e-3),
            (load * (1 - queues.md1_loss(load, 10)), equal, 2e-3),
        ) == []  # fmt: skip


def test_short_flows__have_the_numbers_of_appenzeller_et_al():
    # Section 4 prints {2, 4, 8} for 14 packets, and for 16 packets {2, 4, 8, 4}, whose sum is 18
    assert [short_flows.slow_start_bursts(n) for n in (1, 14, 16)] == [(1,), (2, 4, 8), (2, 4, 8, 2)]
    for bursts in ((2, 4, 8, 2), (2, 4, 8, 4)):  # section 4: the queue of 14 packets is longer than that of 16
        assert short_flows.mean_queue(0.8, SLOW_START_14) > short_flows.mean_queue(0.8, bursts)
    md1 = queues.md1_depth_distribution(0.8, 60)
    assert wrong(
        (short_flows.mean_depth(0.8, (1,)), queues.md1_mean_depth(0.8), 1e-9),  # "by setting X_i = 1"
        (short_flows.decay(0.8, (1,)), math.log(md1[40] / md1[41]), 1e-6),  # of M/D/1's own far tail
        # the textbooks: M/D/1, M/M/1
        ([queues.md1_mean_depth(load) for load in (0.5, 0.8, 0.9)], [0.75, 2.4, 4.95], 1e-9),
        ([queues.mg1_mean_depth(load, 2.0) for load in (0.3, 0.95)], [0.3 / 0.7, 0.95 / 0.05], 1e-9),
        (sawtooth.period(1000, 142, 142), 30.2, 2e-3),  # appendix B: 1.5 x 142^2 / 1000 s
    ) == []  # fmt: skip


def test_gaussian__has_the_numbers_of_appenzeller_et_al():
    rule = many_flows.sqrt_rule(1e6, 10_000)
    for multiple, percent, last_digit in ((1, 98.99, 0.01), (2, 99.99997, 0.00001)):  # 3.2, n = 10,000
        utilization = gaussian.utilization(1e6, multiple * rule, 10_000)
        assert utilization * 100 == pytest.approx(percent, abs=0.6 * last_digit)
    # The paper has 99.99988 % for 1.5 BDP / sqrt(n); its equation 6 gives 99.988 %, a hundred times the loss.
    assert gaussian.lost_utilization(1e6, 1.5e4, 10_000) == pytest.approx(1 - 0.99988, rel=0.03)
    for flows, percents in (  # Figure 15, column Model: 0.5, 1, 2 and 3 times the rule
        (100, (96.9, 99.9, 100, 100)), (200, (98.8, 99.9, 100, 100)),
        (300, (99.5, 100, 100, 100)), (400, (99.7, 100, 100, 100)),
    ):  # fmt: skip
        for times, shown in zip((0.5, 1, 2, 3), percents, strict=True):
            buffer = times * many_flows.sqrt_rule(OC3_BDP, flows)
            # The paper's mean window excludes the queue, and its buffer includes the line card's FIFO. For 200 flows
            # at 1x the paper truncates 99.986 to 99.9.
            utilization = gaussian.utilization(OC3_BDP, buffer + FIFO, flows, mean_queue=0) * 100
            assert utilization == pytest.approx(shown, abs=0.087 if (flows, times) == (200, 1) else 0.05)


def test_capacity_ratio__has_the_numbers_of_prasad_et_al():
    assert ratio.mm1b_l_buffer(PIPE_PRASAD) * 1500 == pytest.approx(15e6)  # "2CT_o, which is equal to 15MB!"
    # The third share of 7.5 MB should be 0.16, not the printed 0.15 (see mm1b_s_buffer)
    for size_bytes, share in ((10_000, 0.03), (100_000, 0.06), (1_000_000, 0.16)):
        assert round(ratio.mm1b_s_buffer(PIPE_PRASAD, math.ceil(size_bytes / 1500)) / PIPE_PRASAD, 2) == share
    assert wrong(
        (ratio.pl_l_buffer(1), 0.83, 0.006),  # 7.1: b = 0.5, f = 0.4
        ([ratio.slow_start_rtts(segments) for segments in (1, 2, 3, 67, 667)], [1, 1, 2, 7, 10], 0),
    ) == []  # fmt: skip
    # 7.2: "the optimal buffer size is, theoretically, infinite"; the least throughput is at equation 10.
    assert ratio.ex_l_buffer(500, 0.1, 0.4) == (math.inf, None)


@pytest.mark.parametrize("form", ["PL", "EX"])
def test_comparison__prefers_the_form_that_made_noisy_losses(form):
    buffers = np.linspace(20, 400, 20)
    pure = 0.3 * buffers**-0.6 if form == "PL" else 0.05 * np.exp(-0.01 * buffers)
    comparison = loss_fits.compare(buffers, pure * np.exp(np.random.default_rng(10).normal(0, 0.05, 20)))
    assert comparison.better.form == form
    assert comparison.better.b_low < (0.6 if form == "PL" else 0.01) < comparison.better.b_high
    assert (comparison.evidence_for_power_law > 1e3) == (form == "PL")
    assert loss_fits.fit_power_law([10, 20, 40, 80], [0.1, 0.05, 0.025, 0]).left_out == 1  # a buffer without loss
