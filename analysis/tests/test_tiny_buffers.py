# SPDX-License-Identifier: MIT
"""Very small buffers and M/M/1/B against the papers' numbers, sums written out, and simulated queues."""

import math

import numpy as np
import pytest

from analysis.theory import many_flows, mm1b, queues, tiny_buffers


def test_drop_bound__at_75_percent_load_and_20_packets_is_0_3_percent():
    # Enachescu et al., II
    assert round(tiny_buffers.drop_bound(0.75, 20), 3) == 0.003
    assert tiny_buffers.buffer_for_drops(0.75, tiny_buffers.drop_bound(0.75, 20)) == pytest.approx(20)


@pytest.mark.parametrize("load", [0.3, 0.5, 0.75, 0.95])
@pytest.mark.parametrize("buffer", [1, 3, 10, 20])
def test_drop_bound__is_above_the_loss_of_md1_with_so_many_packets(load, buffer):
    # Lemma 2 bounds the exact loss of M/D/1/B
    assert queues.mg1k_depth_distribution(load, (1,), (1,), buffer)[-1] <= tiny_buffers.drop_bound(load, buffer)


def test_theorem_1__has_the_papers_examples():
    # II: W_max = 64, rho = 0.5, theta = 90 %: "a buffer size of 15 packets"
    assert math.ceil(tiny_buffers.poisson_buffer(0.5, 64, 0.9)) == 15
    # I: 64 KB of 1 KB packets, rho of about 0.5: "twelve packets plus some small additive constant"
    constant = -math.log2(2 * (1 - 0.9))
    assert tiny_buffers.poisson_buffer(0.5, 64, 0.9) - constant == pytest.approx(12)


def test_introduction__compares_125_000_with_3950_and_with_a_dozen_packets():
    # 1000 flows, 10 Gb/s, 100 ms, 64 KB windows, 1 KB packets
    bdp = 10e9 * 0.1 / 8 / 1000
    assert bdp == 125_000
    assert many_flows.sqrt_rule(bdp, 1000) == pytest.approx(3950, abs=5)
    load = tiny_buffers.peak_load(bdp, 1000, 64)
    assert load * 10e9 == pytest.approx(5e9, rel=0.03)  # "the peak rate is roughly 5Gbps"
    assert 12 < tiny_buffers.poisson_buffer(load, 64, 0.9) < 16


def test_figures_1_and_4__have_the_papers_loads():
    # III: 100 Mb/s, 100 ms, packets of 1000 bytes, windows of 32: 0.026, 0.26, 0.52 and 1 (CCR version, Figure 1)
    bdp = 100e6 * 0.1 / 8 / 1000
    for flows, load in ((1, 0.026), (10, 0.26), (20, 0.52), (40, 1)):
        assert tiny_buffers.peak_load(bdp, flows, 32) == pytest.approx(load, rel=0.025)
    # Figure 3: "from 3.2Mb/s to 3.4Gb/s to keep the peak load at about 80%"
    for rate_bps, flows in ((3.2e6, 1), (3.4e9, 1063)):
        assert tiny_buffers.peak_load(rate_bps * 0.1 / 8000, flows, 32) == pytest.approx(0.8, abs=0.001)
    flow_bps = 32 * 1000 * 8 / 0.1
    assert flow_bps == pytest.approx(2.5e6, rel=0.03)  # IV


@pytest.mark.parametrize("wanted", [0, 0.5, 0.9, 0.999999])
@pytest.mark.parametrize("load", [0.05, 0.5, 0.95])
def test_theorem_1__utilization_of_its_buffer_is_the_wanted_one(wanted, load):
    buffer = tiny_buffers.poisson_buffer(load, 64, wanted)
    assert tiny_buffers.poisson_utilization(load, 64, buffer) == pytest.approx(wanted, abs=1e-9)
    assert tiny_buffers.poisson_buffer(load, 1, 0) == 0


def test_theorem_1__holds_for_simulated_poisson_reno():
    """50 flows send at Poisson times, W per RTT. W grows by 1 per RTT up to W_max; a loss sets W to 0 (appendix I)."""
    flows, largest, load, wanted = 50, 16, 0.5, 0.8
    buffer = math.ceil(tiny_buffers.poisson_buffer(load, largest, wanted))
    capacity = flows * largest / load  # packets per RTT
    rng = np.random.default_rng(9)
    windows, queue, sent, rtts = np.full(flows, float(largest)), 0.0, 0, 3000
    for _ in range(rtts):
        counts = rng.poisson(windows)
        times = np.sort(rng.random(counts.sum()))
        owners = rng.permutation(np.repeat(np.arange(flows), counts))
        lost, last = np.zeros(flows, dtype=bool), 0.0
        for time, owner in zip(times, owners, strict=True):
            queue = max(queue - (time - last) * capacity, 0.0)
            last = time
            if math.ceil(queue) >= buffer:
                lost[owner] = True
            else:
                queue += 1
                sent += 1
        queue = max(queue - (1 - last) * capacity, 0.0)
        windows = np.where(lost, 0.0, np.minimum(windows + 1, largest))
    assert sent / (rtts * load * capacity) >= wanted


@pytest.mark.parametrize("load", [1e-3, 0.5, 0.9, 1 - 1e-5, 1 - 1e-13, 1.0, 1 + 1e-12, 1 + 3e-5, 1.2, 50.0])
@pytest.mark.parametrize("buffer", [1, 2, 20, 300])
def test_mm1b__is_the_sum_written_out(load, buffer):
    states = np.longdouble(load) ** np.arange(buffer + 1)
    assert mm1b.loss(load, buffer) == pytest.approx(float(states[-1] / states.sum()), rel=1e-9)
    expected = float((states * np.arange(buffer + 1)).sum() / states.sum())
    assert mm1b.mean_depth(load, buffer) == pytest.approx(expected, rel=1e-6)
    assert mm1b.utilization(load, buffer) == pytest.approx(1 - float(states[0] / states.sum()), rel=1e-9)


def test_mm1b__in_heavy_load_is_the_model_of_prasad_et_al():
    # Prasad et al., section 5: p = 1 / B, d = B / (2 C)
    assert mm1b.loss(1, 1000) == pytest.approx(mm1b.heavy_load_loss(1000), rel=1e-3)
    assert mm1b.mean_depth(1, 1000) == 500


def test_mm1b__neither_overflows_nor_vanishes():
    assert mm1b.loss(1.5, 100_000) == pytest.approx(1 / 3)
    assert mm1b.loss(0.5, 100_000) == 0
    assert mm1b.log_loss(0.5, 100_000) == pytest.approx(-100_001 * math.log(2))
    assert mm1b.mean_depth(0.5, 10**9) == pytest.approx(1)
    assert mm1b.mean_depth(2, 10**9) == pytest.approx(10**9 - 1)


@pytest.mark.parametrize("fair", [0.1, 2, 32, 1e4, 1e9])
@pytest.mark.parametrize("buffer", [1, 10, 100])
def test_tcp_equation__and_queue_agree_on_the_load(fair, buffer):
    load = tiny_buffers.tcp_mm1b_load(fair, buffer)
    rate = tiny_buffers.tcp_rate(mm1b.loss(load, buffer), 1.0)
    assert rate == pytest.approx(load * fair, rel=1e-6)


@pytest.mark.parametrize("wanted", [0.3, 0.8, 0.95])
def test_tcp_equation__buffer_for_a_load_gives_that_load(wanted):
    buffer = tiny_buffers.tcp_mm1b_buffer(64, wanted)
    assert buffer > 1
    assert tiny_buffers.tcp_mm1b_load(64, buffer) == pytest.approx(wanted, rel=1e-9)


def test_tcp_equation__log_sized_buffers_keep_the_load_and_constant_ones_do_not():
    # IV-A, conclusions 1 and 2: C = N W / (2 tau) and C = 2 N W / tau, W to infinity
    windows = [10.0**k for k in (2, 4, 8, 16, 32, 64)]
    kept = [tiny_buffers.tcp_mm1b_load(w / 2, 8 * math.log2(w)) for w in windows]
    approximate = [tiny_buffers.tcp_mm1b_load_approximate(w / 2, 8 * math.log2(w)) for w in windows]
    assert min(kept) > 0.8
    assert kept[-1] == pytest.approx(2 ** (-2 / 8), rel=0.01)  # p = rho^B = W^-2
    assert approximate[-1] == pytest.approx(kept[-1], rel=0.01)
    lost = [tiny_buffers.tcp_mm1b_load(2 * w, 20) for w in windows]
    assert lost == sorted(lost, reverse=True)
    assert lost[-1] < 0.01
    assert tiny_buffers.tcp_mm1b_load(2 * 64, 200, largest_window=64) == 0.5  # W_max limits every window: half the link


@pytest.mark.parametrize(("fair", "buffer"), [(4, 1), (64, 20), (1e9, 100)])
def test_tcp_equation__with_the_papers_approximation_is_equations_2_and_3(fair, buffer):
    load = tiny_buffers.tcp_mm1b_load_approximate(fair, buffer)
    assert load * fair == pytest.approx(math.sqrt(3 / (2 * load ** (buffer + 1))))
    assert tiny_buffers.tcp_mm1b_load_approximate(0.5, buffer) == 1


@pytest.mark.parametrize(
    ("flows", "exponential", "equal"), [(20, 0.512, 0.512), (40, 0.631, 0.777), (200, 0.849, 0.937)]
)
def test_tcp_equation__with_equal_packets_loses_less(flows, exponential, equal):
    # Figure 4: 100 Mb/s, 100 ms, windows of at most 32 packets, a buffer of 10
    fair = 1250 / flows
    load = tiny_buffers.tcp_mm1b_load(fair, 10, 32)
    assert mm1b.utilization(load, 10) == pytest.approx(exponential, abs=1e-3)
    load = tiny_buffers.tcp_md1b_load(fair, 10, 32)
    loss = queues.mg1k_depth_distribution(load, (1,), (1,), 10)[-1]
    assert load * (1 - loss) == pytest.approx(equal, abs=1e-3)


def test_tcp_equation__has_an_answer_for_a_buffer_that_never_empties():
    assert tiny_buffers.tcp_md1b_load(20, 1000) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(("fair", "buffer"), [(1e-9, 1), (1e-6, 2), (0.005, 2), (0.01, 10), (0.01, 4095)])
def test_tcp_equation__has_an_answer_for_far_too_many_flows(fair, buffer):
    # Nearly all packets are lost, so a flow's window is sqrt(3 / 2)
    assert tiny_buffers.tcp_md1b_load(fair, buffer) * fair == pytest.approx(math.sqrt(1.5), rel=0.01)


def test_ends_of_the_allowed_range__have_answers():
    assert tiny_buffers.tcp_mm1b_buffer(2, 0.1) == 1
    assert tiny_buffers.poisson_utilization(0.5, 1, 0) == 0.5
    assert tiny_buffers.drop_bound(0.5, 0) == 1
    assert mm1b.loss(0.5, 1) == pytest.approx(1 / 3)


def test_tcp_loss__is_the_tcp_equation_the_other_way_round():
    assert tiny_buffers.tcp_loss(tiny_buffers.tcp_rate(0.01, 0.1) * 0.1) == pytest.approx(0.01)
    assert tiny_buffers.tcp_loss(0.5) == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda: tiny_buffers.drop_bound(1, 10),
        lambda: tiny_buffers.drop_bound(0.5, -1),
        lambda: tiny_buffers.buffer_for_drops(0.5, 1),
        lambda: tiny_buffers.poisson_buffer(0.5, 64, 1),
        lambda: tiny_buffers.poisson_buffer(1.2, 64, 0.9),
        lambda: tiny_buffers.poisson_buffer(0.5, 0.5, 0.9),
        lambda: tiny_buffers.tcp_rate(0, 0.1),
        lambda: tiny_buffers.tcp_mm1b_load(10, 0),
        lambda: tiny_buffers.tcp_mm1b_buffer(10, 1),
        lambda: tiny_buffers.peak_load(0, 1, 1),
        lambda: mm1b.loss(0, 10),
        lambda: mm1b.loss(math.nan, 10),
        lambda: mm1b.mean_depth(0.5, 0),
    ],
)
def test_tiny_buffers__refuse_invalid_arguments(call):
    with pytest.raises(ValueError, match=r"allowed"):
        call()
