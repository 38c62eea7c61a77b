# SPDX-License-Identifier: MIT
"""Closed forms against the numbers that the papers print, and against other closed forms of the same queue."""

import math

import numpy as np
import pytest

from analysis.theory import many_flows, mm1b, packet_sizes, queues, sawtooth, short_flows, single_flow, tiny_buffers

SLOW_START_14 = short_flows.slow_start_bursts(14)
BDP_ENACHESCU = 100e6 * 0.1 / 8 / 1000  # III: 100 Mb/s, 100 ms, packets of 1000 bytes
ORDERS = (2, 3, None)
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
            (single_flow.drained_packets(cc, 50, 1000), 50, 0),
        ) == []  # fmt: skip
    rules = single_flow.single_flow_buffer, single_flow.min_utilization, single_flow.drained_packets
    assert [rules[0]("vegas", 9), rules[1]("vegas", 1, 9), rules[2]("vegas", 1, 9)] == [None] * 3
    assert wrong(
        (single_flow.bdp_packets(200_000_000, 10_000_000, 1538), 162.5, 1e-3),  # the default run
        (single_flow.bdp_packets(10**10, 1_193_000, 9038), 165, 1e-3),  # 3.6: "1 ms", and the hosts' own delay
        (single_flow.bdp_rule(165), 165, 0),
        (single_flow.synchronized_buffer(165, 50), 165, 0),
        (single_flow.single_flow_buffer("reno", 100, 0.99), 98, 1e-9),
        ([single_flow.queue_length(w, 100, 50) for w in (80, 100, 130, 200)], [0, 0, 30, 50], 0),
        ([single_flow.utilization_of_window(w, 100) for w in (50, 100, 150)], [0.5, 1, 1], 0),
        ([single_flow.decrease_buffer(beta, 1000) for beta in (0.3, 0.5, 0.9)], [7e3 / 3, 1000, 1e3 / 9], 1e-9),
        (single_flow.decrease_utilization(0.9, 1e3 / 9, 1000), 1, 1e-9),
        (single_flow.decrease_utilization(0.5, 500, 1000), 0.75, 1e-9),
        (single_flow.decrease_buffer(0.5, 100, variability=0.2), 120, 1e-9),  # 3.3: B >= (1 + eps) BDP
        (single_flow.decrease_buffer(0.7, 100, 0.6), 0, 0),
    ) == []  # fmt: skip


def test_many_flows__have_the_numbers_of_both_papers():
    assert wrong(
        # Appenzeller et al., abstract: 10,000 flows need 99 % less; 50,000 flows on 10 Gb/s, 250 ms: about 10 Mbit
        (many_flows.sqrt_rule(1, 10_000), 0.01, 1e-9),
        (many_flows.sqrt_rule(10e9 * 0.25, 50_000), 10e6, 0.15),
        # Spang et al., 4.3: n = 10,000 and Delta = 2 give 98 %; more than 1,000 flows give at least 97 % (rounded)
        (many_flows.almost_fair_utilization(10_000, 2), 0.98, 1e-9),
        (many_flows.almost_fair_utilization(1_000, 1), 0.97, 0.002),
        (many_flows.almost_fair_utilization(1, 3), 0, 0),
        (many_flows.almost_fair_buffer(165, 16, 4), 165, 1e-9),
        (many_flows.almost_fair_window(165, 165, 16, 2), 330 - 82.5, 1e-9),
        (many_flows.almost_fair_least_window(165, 16, 2), 165 / 32, 1e-9),
        # 7.1: 100 ms x 100 Gb/s, 10,000 flows need 100 Mbit by Theorem 5; without any buffer 99 % are used
        (many_flows.almost_fair_buffer(1e10, 10_000, 1), 100e6, 1e-9),
        (many_flows.almost_fair_utilization(10_000, 1), 0.99, 1e-9),
        (many_flows.almost_fair_window(1000, many_flows.buffer_for_utilization(1000, 64, 4, 0.95), 64, 4), 950, 1e-9),
        # 5.6, Figure 10: n^2 / (2 BDP) + sqrt(n)
        (many_flows.flows_seeing_loss(165, 128, 2), 128**2 / 330 + 128**0.5, 1e-9),
        # 4.6: "if 10,000 flows share a link, and s = 1, then ... another 100-fold"; "if only s = c n extra flows lose
        # packets, then the required buffer size is c BDP"
        (many_flows.desynchronized_buffer(1e6, 10_000, 1, 1), 100, 1e-9),
        (many_flows.desynchronized_buffer(1e6, 10_000, 1, 3_000), 0.3e6, 1e-9),
        (many_flows.desynchronized_window(165, 165, 16, 2, 4), 330 - 82.5, 1e-9),
        ([many_flows.fraction_losing_buffer(1000, 10, c) for c in (0, 1)], [0, 1000], 1e-9),
        ([many_flows.least_window(), many_flows.least_window(0.7)], [2, 1 / 0.7], 1e-9),
        (many_flows.bbr_buffer(1e4, 200, 1, 0.05), 1e4 / 200**0.5 * math.sqrt(math.log(20) / 2), 1e-9),
        (many_flows.bbr_buffer_sharp(1e4, 200, 1, 0.05), many_flows.bbr_buffer(1e4, 200, 1, 0.05) / 2, 1e-9),
        ([many_flows.least_flows_that_shrink_window(*of) for of in ((1, 2), (100, 30))], [0.5, 6.25], 1e-9),
        (many_flows.random_decrease_flows(5000, 300, 1.5), 300**2 * 1.5 / 5000 + 300**0.5, 1e-9),
    ) == []  # fmt: skip
    assert many_flows.least_flows_that_shrink_window(60, 50) > 1  # 4.2: BDP / n < n - 1


def test_tiny_buffers__have_the_numbers_of_enachescu_et_al():
    load = tiny_buffers.peak_load(125_000, 1000, 64)
    assert math.ceil(tiny_buffers.poisson_buffer(0.5, 64, 0.9)) == 15  # II: "a buffer size of 15 packets"
    assert [math.ceil(tiny_buffers.log_window_buffer(window)) for window in (10, 1529)] == [5, 16]  # Figure 6
    assert 12 < tiny_buffers.poisson_buffer(load, 64, 0.9) < 16
    assert wrong(
        (tiny_buffers.drop_bound(0.75, 20), 0.003, 0.1),  # II
        (tiny_buffers.buffer_for_drops(0.75, tiny_buffers.drop_bound(0.75, 20)), 20, 1e-9),
        (tiny_buffers.drop_bound(0.5, 0), 1, 0),
        # I: 1000 flows, 10 Gb/s, 100 ms, 64 KB windows, 1 KB packets: "the peak rate is roughly 5Gbps"
        (load, 0.5, 0.03),
        (tiny_buffers.poisson_buffer(0.5, 64, 0.9) + math.log2(0.2), 12, 1e-9),  # "plus some small additive constant"
        (tiny_buffers.poisson_utilization(0.95, 64, tiny_buffers.poisson_buffer(0.95, 64, 0.9)), 0.9, 1e-9),
        (tiny_buffers.poisson_utilization(0.5, 1, 0), 0.5, 0),
        # CCR version, Figure 1: windows of 32
        ([tiny_buffers.peak_load(BDP_ENACHESCU, n, 32) for n in (1, 10, 20, 40)], [0.026, 0.26, 0.52, 1], 0.025),
        ([tiny_buffers.tcp_loss(tiny_buffers.tcp_rate(0.01, 0.1) * 0.1), tiny_buffers.tcp_loss(0.5)], [0.01, 1], 1e-9),
        (tiny_buffers.tcp_mm1b_load(64, tiny_buffers.tcp_mm1b_buffer(64, 0.95)), 0.95, 1e-9),
        (tiny_buffers.tcp_mm1b_buffer(2, 0.1), 1, 0),
        (tiny_buffers.tcp_mm1b_load(2 * 64, 200, largest_window=64), 0.5, 0),  # W_max limits every window
        (tiny_buffers.tcp_md1b_load(20, 1000), 1, 0.02),  # a buffer that never empties
        # nearly all packets are lost: sqrt(3 / 2)
        ([fair * tiny_buffers.tcp_md1b_load(fair, b) for fair, b in ((1e-9, 1), (0.01, 4095))], [1.5**0.5] * 2, 0.01),
    ) == []  # fmt: skip
    for flows, exponential, equal in ((20, 0.512, 0.512), (40, 0.631, 0.777), (200, 0.849, 0.937)):
        # Figure 4: windows of at most 32 packets, a buffer of 10; equal packets lose less
        load = tiny_buffers.tcp_md1b_load(BDP_ENACHESCU / flows, 10, 32)
        assert wrong(
            (mm1b.utilization(tiny_buffers.tcp_mm1b_load(BDP_ENACHESCU / flows, 10, 32), 10), exponential, 2e-3),
            (load * (1 - queues.md1_loss(load, 10)), equal, 2e-3),
        ) == []  # fmt: skip
    for fair, buffer in ((4, 1), (64, 20), (1e9, 100)):
        load, approximate = (
            f(fair, buffer) for f in (tiny_buffers.tcp_mm1b_load, tiny_buffers.tcp_mm1b_load_approximate)
        )
        assert wrong(
            (tiny_buffers.tcp_rate(mm1b.loss(load, buffer), 1.0), load * fair, 1e-6),
            (approximate * fair, math.sqrt(3 / (2 * approximate ** (buffer + 1))), 1e-6),  # equations 2 and 3
        ) == []  # fmt: skip
    # IV-A, conclusions 1 and 2: C = N W / (2 tau) and C = 2 N W / tau, W to infinity
    windows = [10.0**k for k in (2, 4, 8, 16, 32, 64)]
    kept = [tiny_buffers.tcp_mm1b_load(w / 2, 8 * math.log2(w)) for w in windows]
    lost = [tiny_buffers.tcp_mm1b_load(2 * w, 20) for w in windows]
    assert min(kept) > 0.8
    assert kept[-1] == pytest.approx(2 ** (-2 / 8), rel=0.01)  # p = rho^B = W^-2
    assert lost == sorted(lost, reverse=True)
    assert lost[-1] < 0.01


@pytest.mark.parametrize("load", [1e-3, 0.5, 1 - 1e-5, 1 - 1e-13, 1.0, 1 + 1e-12, 1 + 3e-5, 1.2, 50.0])
def test_mm1b__is_the_sum_written_out(load):
    for buffer in (1, 2, 20, 300):
        states = np.longdouble(load) ** np.arange(buffer + 1)
        assert wrong(
            (mm1b.loss(load, buffer), float(states[-1] / states.sum()), 1e-9),
            (mm1b.mean_depth(load, buffer), float((states * np.arange(buffer + 1)).sum() / states.sum()), 1e-6),
            (mm1b.utilization(load, buffer), 1 - float(states[0] / states.sum()), 1e-9),
        ) == []  # fmt: skip


def test_mm1b__neither_overflows_nor_vanishes():
    assert wrong(
        ([mm1b.loss(1.5, 100_000), mm1b.loss(0.5, 100_000)], [1 / 3, 0], 1e-9),
        (mm1b.log_loss(0.5, 100_000), -100_001 * math.log(2), 1e-9),
        ([mm1b.mean_depth(0.5, 10**9), mm1b.mean_depth(2, 10**9)], [1, 10**9 - 1], 1e-9),
        (mm1b.loss(1, 1000), mm1b.heavy_load_loss(1000), 1e-3),  # Prasad et al., section 5: p = 1 / B, d = B / (2 C)
        (mm1b.mean_depth(1, 1000), 500, 1e-9),
    ) == []  # fmt: skip


def test_short_flows__have_the_numbers_of_appenzeller_et_al():
    # Section 4 prints {2, 4, 8} for 14 packets, and for 16 packets {2, 4, 8, 4}, whose sum is 18
    assert [short_flows.slow_start_bursts(n) for n in (1, 14, 16)] == [(1,), (2, 4, 8), (2, 4, 8, 2)]
    assert short_flows.slow_start_bursts(10, first=10) == (10,)
    assert all(sum(short_flows.slow_start_bursts(packets)) == packets for packets in range(1, 200))
    bursts, weights = short_flows.mixed_bursts({14: 3, 2: 1})
    assert dict(zip(bursts, weights, strict=True)) == {2: 4, 4: 3, 8: 3}
    for bursts in ((2, 4, 8, 2), (2, 4, 8, 4)):  # section 4: the queue of 14 packets is longer than that of 16
        assert short_flows.mean_queue(0.8, SLOW_START_14) > short_flows.mean_queue(0.8, bursts)
        assert short_flows.mean_depth(0.8, SLOW_START_14) > short_flows.mean_depth(0.8, bursts)
    # Section 5.1.2: load 0.8, P(Q > B) = 0.025
    needed = [short_flows.buffer_for_tail(0.8, short_flows.slow_start_bursts(size), 0.025) for size in (2, 14, 30, 62)]
    assert needed == sorted(needed)
    assert short_flows.buffer_for_tail(0.9, SLOW_START_14, 0.025) > needed[1]
    second, third, exact = (short_flows.decay(0.8, SLOW_START_14, order=order) for order in ORDERS)
    assert second > third > exact > 0
    md1, packets = queues.md1_depth_distribution(0.8, 60), np.arange(1, 40_000)
    assert wrong(
        (short_flows.tail(0.8, SLOW_START_14, 0), 1, 0),
        (short_flows.tail(0.8, SLOW_START_14, 40), math.exp(-40 * 2 * 0.2 / 0.8 * (14 / 3) / 28), 1e-9),
        (short_flows.mean_depth(0.8, (1,)), queues.md1_mean_depth(0.8), 1e-9),  # "by setting X_i = 1"
        (short_flows.mean_queue(0.8, (1,)), queues.md1_mean_depth(0.8) - 0.8, 1e-9),
        (short_flows.decay(0.8, (1,)), math.log(md1[40] / md1[41]), 1e-6),  # of M/D/1's own far tail
        # exponential bursts up to 40 times the mean: M/M/1, exp(-(mu - lambda) t)
        (short_flows.decay(0.6, packets, np.exp(-packets / 1000)), (1 - 0.6) / 1000, 1e-3),
        # near full load: kappa = 2 (1 - rho) / X
        ([short_flows.decay(1 - 1e-9, (4,), order=order) / 1e-9 for order in ORDERS], [0.5] * 3, 1e-6),
    ) == []  # fmt: skip
    for order in ORDERS:
        assert 0 < short_flows.decay(1e-9, (4,), order=order) < math.inf
        for risk in (0.5, 0.025, 1e-200):
            buffer = short_flows.buffer_for_tail(0.8, SLOW_START_14, risk, order=order)
            assert short_flows.tail(0.8, SLOW_START_14, buffer, order=order) == pytest.approx(risk, rel=1e-9)


def test_queues_sizes_and_sawtooth__have_printed_numbers():
    sizes, probabilities = packet_sizes.packet_sizes("exponential", 1500)
    mean = np.dot(sizes, probabilities)
    assert (sizes[0], sizes[-1], len(sizes)) == (46, 1500, 1455)
    assert wrong(
        # the textbooks: M/D/1, M/M/1, Little's law
        ([queues.md1_mean_depth(load) for load in (0.5, 0.8, 0.9)], [0.75, 2.4, 4.95], 1e-9),
        ([queues.mg1_mean_depth(load, 2.0) for load in (0.3, 0.95)], [0.3 / 0.7, 0.95 / 0.05], 1e-9),
        (queues.mg1_mean_depth(0.7, 1.5), 0.7 * (queues.mg1_mean_wait(0.7, 1.5) + 1), 1e-9),
        (mean, 389.8, 2e-4),
        (math.sqrt(np.dot((sizes - mean) ** 2, probabilities)), 308.3, 2e-4),
        (np.dot(*packet_sizes.service_times("bimodal", 1500, 8 * 10**6)), (84 + 1538) / 2 * 1e-6, 1e-9),
        (sawtooth.period(1000, 142, 142), 30.2, 2e-3),  # Appenzeller et al., appendix B: 1.5 x 142^2 / 1000 s
        (sawtooth.mean_utilization(200, 0), 0.75, 1e-9),
    ) == []  # fmt: skip
