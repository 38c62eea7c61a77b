# SPDX-License-Identifier: MIT
"""Closed forms against numbers in print, against each other, and against queues simulated packet by packet."""

import math
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest

from analysis.theory import capacity_ratio, packet_sizes, queues, sawtooth, single_flow, tiny_buffers


def crommelin(load: Decimal, n: int) -> Decimal:
    """P(N = n) of M/D/1 by Erlang and Crommelin's alternating sum, with enough digits for the cancellation."""
    if n < 2:
        return (1 - load) * (load.exp() - 1 if n else 1)
    total = Decimal(0)
    for k in range(1, n + 1):
        term = (k * load) ** (n - k) / math.factorial(n - k)
        if k < n:
            term += (k * load) ** (n - k - 1) / math.factorial(n - k - 1)
        total += (-1) ** (n - k) * term * (k * load).exp()
    return (1 - load) * total


def simulated_depths(load, services, probabilities, packets, seed, buffer=None):
    """Depths that Poisson arrivals find in a FIFO queue with room for `buffer` packets (None: without limit)."""
    rng = np.random.default_rng(seed)
    mean = np.dot(services, probabilities)
    arrivals = np.cumsum(rng.exponential(mean / load, packets))
    lengths = rng.choice(services, packets, p=probabilities)
    departures: list[float] = []
    depths, gone = np.empty(packets, dtype=np.int64), 0
    for index, now in enumerate(arrivals):
        while gone < len(departures) and departures[gone] <= now:
            gone += 1
        depths[index] = len(departures) - gone
        if buffer is None or depths[index] < buffer:
            departures.append(max(now, departures[-1] if departures else 0.0) + lengths[index])
    return depths


@pytest.mark.parametrize(("load", "mean"), [(0.5, 0.75), (0.8, 2.4), (0.9, 4.95)])
def test_md1__mean_is_the_textbooks(load, mean):
    assert queues.md1_mean_depth(load) == pytest.approx(mean)


def test_mg1__exponential_service_is_mm1():
    for load in (0.3, 0.8, 0.95):
        assert queues.mg1_mean_depth(load, 2.0) == pytest.approx(load / (1 - load))
        fine = (np.arange(40_000) + 0.5) / 1000  # exponential of mean 1, in thousandths
        depths = queues.mg1_depth_distribution(load, fine, np.exp(-fine), 12)
        assert depths == pytest.approx([(1 - load) * load**n for n in range(12)], rel=1e-4)


def test_mg1__wait_and_depth_obey_littles_law():
    for load, moment in ((0.2, 1.0), (0.7, 1.5), (0.99, 3.0)):
        assert queues.mg1_mean_depth(load, moment) == pytest.approx(load * (queues.mg1_mean_wait(load, moment) + 1))


@pytest.mark.parametrize("load", ["0.1", "0.5", "0.8", "0.95"])
def test_md1__distribution_is_crommelins(load):
    depths = queues.md1_depth_distribution(float(load), 40)
    with localcontext(Context(prec=80)):
        expected = [float(crommelin(Decimal(load), n)) for n in range(40)]
    assert depths == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("load", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("sizes", ["fixed", "bimodal", "exponential"])
def test_mg1__distribution_sums_to_one_and_has_the_mean(load, sizes):
    services, probabilities = packet_sizes.service_times(sizes, 1500, 10**9)
    depths = queues.mg1_depth_distribution(load, services, probabilities, 1500)
    moment = queues.second_moment(services, probabilities)
    assert (depths >= 0).all()
    assert depths.sum() == pytest.approx(1, abs=1e-9)
    assert np.dot(np.arange(1500), depths) == pytest.approx(queues.mg1_mean_depth(load, moment), rel=1e-6)


@pytest.mark.parametrize("sizes", ["fixed", "bimodal", "exponential"])
def test_mg1__equals_a_simulated_queue(sizes):
    services, probabilities = packet_sizes.service_times(sizes, 1500, 10**9)
    depths = simulated_depths(0.7, services, probabilities, 200_000, seed=1)
    expected = queues.mg1_depth_distribution(0.7, services, probabilities, 8)
    assert np.bincount(depths, minlength=8)[:8] / len(depths) == pytest.approx(expected, abs=0.005)
    moment = queues.second_moment(services, probabilities)
    assert depths.mean() == pytest.approx(queues.mg1_mean_depth(0.7, moment), rel=0.04)


@pytest.mark.parametrize(("load", "buffer"), [(0.8, 1), (0.9, 5), (1.5, 8)])
def test_mg1k__loss_and_depth_equal_a_simulated_queue(load, buffer):
    services, probabilities = packet_sizes.service_times("bimodal", 1500, 10**9)
    depths = simulated_depths(load, services, probabilities, 100_000, seed=2, buffer=buffer)
    expected = queues.mg1k_depth_distribution(load, services, probabilities, buffer)
    assert len(expected) == buffer + 1
    assert expected.sum() == pytest.approx(1)
    assert np.bincount(depths, minlength=buffer + 1) / len(depths) == pytest.approx(expected, abs=0.01)


def test_mg1k__is_erlang_b_for_one_packet_and_mg1_for_many():
    assert queues.mg1k_depth_distribution(0.8, (1,), (1,), 1) == pytest.approx([1 / 1.8, 0.8 / 1.8])
    many = queues.mg1k_depth_distribution(0.8, (1,), (1,), 200)
    assert many[:50] == pytest.approx(queues.md1_depth_distribution(0.8, 50), rel=1e-9)
    assert queues.mg1k_depth_distribution(50.0, (1,), (1,), 1000)[-1] == pytest.approx(1 - 1 / 50)


@pytest.mark.parametrize("load", [0, 1, 1.5, -0.1, math.nan])
def test_queues__without_a_steady_state_are_refused(load):
    with pytest.raises(ValueError, match="allowed: above 0, below 1, where the queue has a steady state"):
        queues.md1_mean_depth(load)
    with pytest.raises(ValueError, match="allowed: above 0, below 1, where the queue has a steady state"):
        queues.md1_depth_distribution(load, 5)
    if not load > 0:
        with pytest.raises(ValueError, match="allowed: above 0, finite"):
            queues.mg1k_depth_distribution(load, (1,), (1,), 5)


def test_packet_sizes__moments_are_those_of_the_docstring():
    sizes, probabilities = packet_sizes.packet_sizes("exponential", 1500)
    mean = np.dot(sizes, probabilities)
    assert (sizes[0], sizes[-1], len(sizes)) == (46, 1500, 1455)
    assert mean == pytest.approx(389.8, abs=0.05)
    assert math.sqrt(np.dot((sizes - mean) ** 2, probabilities)) == pytest.approx(308.3, abs=0.05)
    services, probabilities = packet_sizes.service_times("bimodal", 1500, 8 * 10**6)
    assert np.dot(services, probabilities) == pytest.approx((84 + 1538) / 2 * 1e-6)
    with pytest.raises(ValueError, match="allowed: fixed, exponential, bimodal, bursts:<n>p with n from 1 to 1000"):
        packet_sizes.packet_sizes("pareto", 1500)


def test_sawtooth__period_is_that_of_appenzeller_et_al():
    # Appenzeller et al., appendix B: 1.5 x 142^2 / 1000 = 30.2 s for the paper's Figure 4.
    assert sawtooth.period(1000, 142, 142) == pytest.approx(30.2, abs=0.05)
    assert sawtooth.period(1000, 142, 142) == pytest.approx(142**2 / 2 / 1000 + 142 / 1000 * 142)


@pytest.mark.parametrize(("buffer", "decrease"), [(139, 0.5), (50, 0.5), (400, 0.5), (139, 0.7), (139, 7 / 8)])
def test_sawtooth__window_and_queue_end_the_period_at_their_maximum(buffer, decrease):
    capacity, bdp = 138_000.0, 138.0
    least, most = sawtooth.extremes(bdp, buffer, decrease)
    end_s = sawtooth.period(capacity, bdp, buffer, decrease)
    assert sawtooth.window(0, capacity, bdp, least) == pytest.approx(least)
    assert sawtooth.window(end_s, capacity, bdp, least) == pytest.approx(most)
    assert sawtooth.queue(end_s, capacity, bdp, least) == pytest.approx(buffer)
    assert sawtooth.queue(0, capacity, bdp, least) == pytest.approx(max(least - bdp, 0))
    # One packet more each RTT, step by step.
    window, time_s, step_s = least, 0.0, 1e-6
    while window < most:
        window += step_s / max(bdp, window) * capacity
        time_s += step_s
    assert time_s == pytest.approx(end_s, rel=1e-3)
    with pytest.raises(ValueError, match="between 0 and 1"):
        sawtooth.period(capacity, bdp, buffer, 1.0)


@pytest.mark.parametrize("decrease", [0.5, 717 / 1024, 7 / 8])
def test_sawtooth__mean_utilization_is_that_of_its_windows(decrease):
    bdp = 200.0
    for buffer in (0.0, 20.0, 100.0, 400.0):
        least, _ = sawtooth.extremes(bdp, buffer, decrease)
        end_s = sawtooth.period(1.0, bdp, buffer, decrease)
        times = (np.arange(20_000) + 0.5) / 20_000 * end_s
        sent = np.mean([min(sawtooth.window(t, 1.0, bdp, least) / bdp, 1) for t in times])
        assert sawtooth.mean_utilization(bdp, buffer, decrease) == pytest.approx(sent, rel=1e-4)
    assert sawtooth.mean_utilization(bdp, 0) == pytest.approx(0.75)
    assert sawtooth.mean_utilization(bdp, bdp) == pytest.approx(1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: single_flow.min_utilization("reno", -500, 100),
        lambda: single_flow.min_utilization("bbr", 10, 0),
        lambda: single_flow.single_flow_buffer("bbr", 100, 2),
        lambda: single_flow.decrease_buffer(0.5, -1),
        lambda: single_flow.decrease_utilization(0.5, 10, 0),
        lambda: sawtooth.mean_utilization(0, 0),
        lambda: sawtooth.extremes(100, math.nan),
        lambda: capacity_ratio.slow_start_rtts(6.7),  # type: ignore[arg-type]
        lambda: capacity_ratio.pl_loss(5, -1, 1),
        lambda: queues.md1_buffer(1, 0.1),
        lambda: queues.md1_buffer(0.5, 0),
    ],
)
def test_theory__refuses_invalid_arguments(call):
    with pytest.raises(ValueError, match=r"allowed|steady state"):
        call()


@pytest.mark.parametrize("load", [0.1, 0.5, 0.8, 0.99])
@pytest.mark.parametrize("loss", [0.3, 0.025, 1e-6])
def test_md1_buffer__is_the_least_with_that_loss(load, loss):
    packets = queues.md1_buffer(load, loss)
    assert packets is not None
    lost = [queues.mg1k_depth_distribution(load, (1,), (1,), size)[-1] for size in (packets, max(packets - 1, 1))]
    assert lost[0] <= loss
    assert packets == 1 or lost[1] > loss
    assert queues.md1_buffer(0.999999, 1e-9) is None


def test_log_window_buffer__is_that_of_figure_6() -> None:
    """Enachescu et al.: 5 packets for W = 10, 16 for 1,529."""
    assert tiny_buffers.log_window_buffer(10) == 5
    assert math.ceil(tiny_buffers.log_window_buffer(1529)) == 16
    with pytest.raises(ValueError, match="a largest window"):
        tiny_buffers.log_window_buffer(0.5)
