# SPDX-License-Identifier: MIT
"""Closed forms against queues simulated packet by packet, and against windows simulated RTT by RTT."""

import math
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest

from analysis.theory import many_flows, packet_sizes, queues, sawtooth, short_flows


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


def test_md1__distribution_is_crommelins():
    for load in ("0.1", "0.95"):
        depths = queues.md1_depth_distribution(float(load), 40)
        with localcontext(Context(prec=80)):
            expected = [float(crommelin(Decimal(load), n)) for n in range(40)]
        assert depths == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("sizes", ["fixed", "bimodal", "exponential"])
def test_mg1__equals_a_simulated_queue_and_sums_to_one(sizes):
    services, probabilities = packet_sizes.service_times(sizes, 1500, 10**9)
    moment = queues.second_moment(services, probabilities)
    found = simulated_depths(0.7, services, probabilities, 150_000, seed=1)
    expected = queues.mg1_depth_distribution(0.7, services, probabilities, 8)
    assert np.bincount(found, minlength=8)[:8] / len(found) == pytest.approx(expected, abs=0.005)
    assert found.mean() == pytest.approx(queues.mg1_mean_depth(0.7, moment), rel=0.04)
    depths = queues.mg1_depth_distribution(0.95, services, probabilities, 1500)
    assert (depths >= 0).all()
    assert depths.sum() == pytest.approx(1, abs=1e-9)
    assert np.dot(np.arange(1500), depths) == pytest.approx(queues.mg1_mean_depth(0.95, moment), rel=1e-6)


def test_mg1k__loss_and_depth_equal_a_simulated_queue():
    services, probabilities = packet_sizes.service_times("bimodal", 1500, 10**9)
    for load, buffer in ((0.8, 1), (0.9, 5), (1.5, 8)):
        depths = simulated_depths(load, services, probabilities, 100_000, seed=2, buffer=buffer)
        expected = queues.mg1k_depth_distribution(load, services, probabilities, buffer)
        assert len(expected) == buffer + 1
        assert expected.sum() == pytest.approx(1)
        assert np.bincount(depths, minlength=buffer + 1) / len(depths) == pytest.approx(expected, abs=0.01)
    # Erlang's B for one packet, M/D/1 for many
    assert queues.mg1k_depth_distribution(0.8, (1,), (1,), 1) == pytest.approx([1 / 1.8, 0.8 / 1.8])
    many = queues.mg1k_depth_distribution(0.8, (1,), (1,), 200)
    assert many[:50] == pytest.approx(queues.md1_depth_distribution(0.8, 50), rel=1e-9)
    assert queues.mg1k_depth_distribution(50.0, (1,), (1,), 1000)[-1] == pytest.approx(1 - 1 / 50)


def test_md1_buffer__is_the_least_with_that_loss():
    for load, loss in ((0.1, 0.3), (0.8, 1e-6), (0.99, 0.025)):
        packets = queues.md1_buffer(load, loss)
        assert packets is not None
        assert queues.md1_loss(load, packets) <= loss
        assert packets == 1 or queues.md1_loss(load, packets - 1) > loss
    assert queues.md1_buffer(0.999999, 1e-9) is None


@pytest.mark.parametrize(("buffer", "decrease"), [(0, 0.5), (50, 0.5), (400, 0.5), (139, 7 / 8)])
def test_sawtooth__window_and_queue_end_the_period_at_their_maximum(buffer, decrease):
    capacity, bdp = 138_000.0, 138.0
    least, most = sawtooth.extremes(bdp, buffer, decrease)
    end_s = sawtooth.period(capacity, bdp, buffer, decrease)
    assert sawtooth.window(0, capacity, bdp, least) == pytest.approx(least)
    assert sawtooth.window(end_s, capacity, bdp, least) == pytest.approx(most)
    assert sawtooth.queue(end_s, capacity, bdp, least) == pytest.approx(buffer)
    assert sawtooth.queue(0, capacity, bdp, least) == pytest.approx(max(least - bdp, 0))
    window, time_s, step_s = least, 0.0, end_s / 1e5  # one packet more each RTT, step by step
    while window < most:
        window += step_s / max(bdp, window) * capacity
        time_s += step_s
    assert time_s == pytest.approx(end_s, rel=1e-3)
    times = (np.arange(20_000) + 0.5) / 20_000 * end_s
    sent = np.mean([min(sawtooth.window(t, capacity, bdp, least) / bdp, 1) for t in times])
    assert sawtooth.mean_utilization(bdp, buffer, decrease) == pytest.approx(sent, rel=1e-4)


# Bursts ---------------------------------------------------------------------------------------------------------------


def burst_depths(load, bursts, weights, count, seed):
    """(depths in packets, the one in transmission included; unfinished work), both as arriving bursts find them."""
    rng = np.random.default_rng(seed)
    shares = np.asarray(weights, dtype=float) / np.sum(weights)
    sizes = rng.choice(bursts, count, p=shares)
    gaps = rng.exponential(np.dot(bursts, shares) / load, count)
    work, left = np.empty(count), 0.0
    for i in range(count):  # Lindley's recursion: the work that a burst finds; a packet's service time is 1
        left = max(left - gaps[i], 0.0)
        work[i] = left
        left += sizes[i]
    return np.ceil(work), work  # Poisson arrivals see time averages


def test_bursts__have_the_mean_and_the_tail_of_a_simulated_queue():
    for bursts, weights in (((2, 4, 8), (1, 1, 1)), ((1, 16), (9, 1))):
        depths, work = burst_depths(0.7, bursts, weights, 200_000, seed=7)
        expected = short_flows.mean_depth(0.7, bursts, weights)
        assert depths.mean() == pytest.approx(expected, rel=0.05)
        assert work.mean() == pytest.approx(expected - 0.35, rel=0.05)
        # The printed one is too small, even without the packet in transmission (0.7 packets on average)
        assert short_flows.mean_queue(0.7, bursts, weights) < expected - 0.7
    _, work = burst_depths(0.8, (2, 4, 8), (1, 1, 1), 300_000, seed=8)
    exact, second = (short_flows.buffer_for_tail(0.8, (2, 4, 8), 0.01, order=order) for order in (None, 2))
    assert (work >= exact).mean() == pytest.approx(0.01, rel=0.15)
    assert (work >= second).mean() > 0.0105  # the second order underestimates the tail


@pytest.mark.parametrize("order", [2, 3, None])
def test_tail__has_the_factor_of_equation_13(order):
    """(C - alpha(0)) / (kappa alpha'(kappa)), with C = 1, lambda = rho, and alpha' by finite differences."""
    load = 0.8
    for bursts in ((2, 4, 8), (3,), (1, 50)):
        sizes = np.array(bursts, dtype=float)

        def alpha(s, sizes=sizes):  # equation 11, its exponential series truncated after `order` terms
            growth = np.expm1(s * sizes)
            if order:
                growth = sum((s * sizes) ** k / math.factorial(k) for k in range(1, order + 1))
            return load / (s * sizes.mean()) * growth.mean()

        kappa = short_flows.decay(load, bursts, order=order)
        slope = (alpha(kappa * (1 + 1e-5)) - alpha(kappa * (1 - 1e-5))) / (2e-5 * kappa)
        assert alpha(kappa) == pytest.approx(1)
        expected = (1 - load) / (kappa * slope) * math.exp(-kappa * 30)
        assert short_flows.tail(load, bursts, 30, order=order) == pytest.approx(expected, rel=1e-6)


def test_decay__keeps_its_digits_near_full_load():
    for load in ("0.9999999", "0.998", "0.9"):
        kappa = Decimal(short_flows.decay(float(load), (4,)))
        with localcontext(Context(prec=40)):
            growth = ((kappa * 4).exp() - 1) / (kappa * 4)  # 1 / rho
            spare = (growth - 1) / (1 / Decimal(float(load)) - 1)
        assert float(spare) == pytest.approx(1, abs=1e-12)


# Many windows ---------------------------------------------------------------------------------------------------------


def aggregate_after(windows, losing):
    """The sum of Reno windows after one RTT (Spang et al., appendix A): each of `losing` is halved, each other window
    grows by one packet.
    """
    return sum(w / 2 if i in losing else w + 1 for i, w in enumerate(windows))


def test_theorem_8__holds_for_random_cycles_even_with_half_the_buffer():
    # All flows send at the fair rate R. In the next RTT each sends at 3/4 R with probability 1/8, and at 5/4 R with
    # probability 1/8 (appendix B).
    bdp, flows, delta, risk = 10_000.0, 200, 1.0, 0.05
    rng = np.random.default_rng(5)
    change = rng.choice([-0.25, 0.25, 0], p=[1 / 8, 1 / 8, 6 / 8], size=(20_000, flows)).sum(axis=1) * bdp / flows
    printed = many_flows.bbr_buffer(bdp, flows, delta, risk)
    assert (change < -many_flows.bbr_buffer_sharp(bdp, flows, delta, risk)).mean() <= risk
    assert (change < -printed).mean() == 0


def test_lemma_9__is_kept_by_flows_that_halve_at_random():
    bdp, flows, delta = 5000.0, 300, 1.5
    decreasing = np.random.default_rng(6).binomial(flows, delta * flows / bdp, 100_000)
    for risk in (math.exp(-0.5), 0.1, 0.001):
        assert (decreasing > many_flows.random_decrease_flows(bdp, flows, delta, risk)).mean() <= risk


def test_appendix_c__fewer_flows_leave_the_window_growing():
    flows, window = 100, 30.0
    least = int(many_flows.least_flows_that_shrink_window(flows, window))
    assert aggregate_after([window] * flows, set(range(least))) > flows * window
    assert aggregate_after([window] * flows, set(range(least + 1))) <= flows * window
    window = (1000 + many_flows.fraction_losing_buffer(1000, 20, 0.5)) / 20
    assert aggregate_after([window] * 20, set(range(10))) == pytest.approx(1000)
