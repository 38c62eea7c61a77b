# SPDX-License-Identifier: MIT
"""Bursts of short flows against Appenzeller et al.'s numbers, known queues, and queues simulated packet by packet."""

import math
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest

from analysis.theory import queues, short_flows

SLOW_START_14 = short_flows.slow_start_bursts(14)


def simulated_depths(load, bursts, weights, count, seed):
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


def test_slow_start__sends_bursts_that_double_and_add_up():
    # Section 4 prints {2, 4, 8} for 14 packets, and for 16 packets {2, 4, 8, 4}, whose sum is 18
    assert short_flows.slow_start_bursts(14) == (2, 4, 8)
    assert short_flows.slow_start_bursts(16) == (2, 4, 8, 2)
    assert short_flows.slow_start_bursts(1) == (1,)
    assert short_flows.slow_start_bursts(10, first=10) == (10,)
    for packets in range(1, 200):
        bursts = short_flows.slow_start_bursts(packets)
        assert sum(bursts) == packets
        assert list(bursts[:-1]) == [2 ** (k + 1) for k in range(len(bursts) - 1)]


def test_mean_queue__of_14_packets_is_larger_than_of_16():
    # Section 4: the largest burst, 8, has a probability of 1/3 with 14 packets and of 1/4 with 16. The bursts that the
    # paper prints for 16 packets give the same order.
    assert short_flows.mean_queue(0.8, (2, 4, 8)) > short_flows.mean_queue(0.8, (2, 4, 8, 2))
    assert short_flows.mean_queue(0.8, (2, 4, 8)) > short_flows.mean_queue(0.8, (2, 4, 8, 4))
    assert short_flows.mean_depth(0.8, (2, 4, 8)) > short_flows.mean_depth(0.8, (2, 4, 8, 2))


def test_short_flows__are_those_below_90_packets():
    # Section 4: "fewer than 90 packets, assuming a typical maximum window size of 65kB" (2 W - 2 packets have been
    # sent when the bursts have doubled up to a window of W)
    window = 65_535 / 1460
    assert 2 * window - 2 == pytest.approx(90, abs=3)


@pytest.mark.parametrize("load", [0.1, 0.5, 0.8, 0.99])
def test_single_packets__are_md1(load):
    # Section 4: "an M/D/1 model by setting X_i = 1"
    assert short_flows.mean_queue(load, (1,)) == pytest.approx(queues.md1_mean_depth(load) - load)
    assert short_flows.mean_depth(load, (1,)) == pytest.approx(queues.md1_mean_depth(load))


@pytest.mark.parametrize(("bursts", "weights"), [((2, 4, 8), (1, 1, 1)), ((1, 16), (9, 1)), ((5,), (1,))])
def test_mean_depth__is_that_of_a_simulated_queue_and_the_printed_one_is_below(bursts, weights):
    depths, work = simulated_depths(0.7, bursts, weights, 300_000, seed=7)
    expected = short_flows.mean_depth(0.7, bursts, weights)
    assert depths.mean() == pytest.approx(expected, rel=0.05)
    assert work.mean() == pytest.approx(expected - 0.35, rel=0.05)
    printed = short_flows.mean_queue(0.7, bursts, weights)
    assert printed < expected - 0.7  # too small, even without the packet in transmission (0.7 packets on average)


@pytest.mark.parametrize("bursts", [(2, 4, 8), (1,), (2, 4, 8, 16, 32)])
@pytest.mark.parametrize("load", [0.3, 0.8, 0.95])
def test_tail__thickens_with_the_order_towards_the_exact_one(load, bursts):
    second, third, exact = (short_flows.decay(load, bursts, order=order) for order in (2, 3, None))
    assert second > third > exact > 0
    sizes = np.array(bursts, dtype=float)
    assert np.expm1(exact * sizes).mean() / (exact * sizes.mean()) == pytest.approx(1 / load, rel=1e-9)  # equation 12
    p = second * sizes.mean() * load / (2 * (1 - load))
    assert p == pytest.approx(sizes.mean() ** 2 / (sizes**2).mean())
    assert third**2 + third * 3 * (sizes**2).mean() / (sizes**3).mean() == pytest.approx(
        6 * (1 - load) / load * sizes.mean() / (sizes**3).mean()
    )


@pytest.mark.parametrize("order", [2, 3, None])
@pytest.mark.parametrize("bursts", [(2, 4, 8), (3,), (1, 50)])
def test_tail__has_the_factor_of_equation_13(order, bursts):
    """(C - alpha(0)) / (kappa alpha'(kappa)), with C = 1, lambda = rho, and alpha' by finite differences."""
    load, sizes = 0.8, np.array(bursts, dtype=float)

    def alpha(s):  # equation 11, its exponential series truncated after `order` terms as in equation 14
        growth = np.expm1(s * sizes)
        if order:
            growth = sum((s * sizes) ** k / math.factorial(k) for k in range(1, order + 1))
        return load / (s * sizes.mean()) * growth.mean()

    kappa = short_flows.decay(load, bursts, order=order)
    slope = (alpha(kappa * (1 + 1e-5)) - alpha(kappa * (1 - 1e-5))) / (2e-5 * kappa)
    assert alpha(kappa) == pytest.approx(1)
    expected = (1 - load) / (kappa * slope) * math.exp(-kappa * 30)
    assert short_flows.tail(load, bursts, 30, order=order) == pytest.approx(expected, rel=1e-6)


def test_tail__of_second_order_is_section_4s():
    assert short_flows.tail(0.8, (2, 4, 8), 0) == 1
    assert short_flows.tail(0.8, (1,), 10) == pytest.approx(math.exp(-5))
    assert short_flows.tail(0.8, SLOW_START_14, 40) == pytest.approx(math.exp(-40 * 2 * 0.2 / 0.8 * (14 / 3) / 28))


def test_tail__exact_is_mm1s_for_exponential_bursts():
    packets = np.arange(1, 40_000)  # up to 40 times the mean
    kappa = short_flows.decay(0.6, packets, np.exp(-packets / 1000))
    assert kappa == pytest.approx((1 - 0.6) / 1000, rel=1e-3)  # the waiting time of M/M/1: exp(-(mu - lambda) t)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_tail__exact_is_that_of_a_simulated_queue_and_of_md1(load):
    _, work = simulated_depths(load, SLOW_START_14, (1, 1, 1), 400_000, seed=8)
    buffer = short_flows.buffer_for_tail(load, SLOW_START_14, 0.01, order=None)
    assert (work >= buffer).mean() == pytest.approx(0.01, rel=0.15)
    rougher = short_flows.buffer_for_tail(load, SLOW_START_14, 0.01)
    assert (work >= rougher).mean() > 0.0105  # the second order underestimates the tail
    # M/D/1's own far tail falls as the exact decay says
    depths = queues.md1_depth_distribution(load, 60)
    assert math.log(depths[40] / depths[41]) == pytest.approx(short_flows.decay(load, (1,)), rel=1e-6)


@pytest.mark.parametrize("order", [2, 3, None])
@pytest.mark.parametrize("risk", [0.5, 0.025, 1e-12, 1e-200])
def test_buffer__for_a_tail_has_that_tail(order, risk):
    buffer = short_flows.buffer_for_tail(0.8, SLOW_START_14, risk, order=order)
    assert short_flows.tail(0.8, SLOW_START_14, buffer, order=order) == pytest.approx(risk, rel=1e-9)


@pytest.mark.parametrize("load", ["0.9999999", "0.99999", "0.998", "0.996", "0.99", "0.9"])
def test_decay__exact_has_all_its_digits(load):
    kappa = Decimal(short_flows.decay(float(load), (4,)))
    with localcontext(Context(prec=40)):
        growth = ((kappa * 4).exp() - 1) / (kappa * 4)  # 1 / rho
        spare = (growth - 1) / (1 / Decimal(float(load)) - 1)
    assert float(spare) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("order", [2, 3, None])
def test_decay__keeps_its_digits_near_full_load_and_near_none(order):
    spare = 1e-9
    assert short_flows.decay(1 - spare, (4,), order=order) == pytest.approx(2 * spare / 4, rel=1e-6)
    assert 0 < short_flows.decay(1e-9, (4,), order=order) < math.inf


def test_buffer__depends_on_load_and_sizes_only_and_grows_with_both():
    # Section 5.1.2: load 0.8, P(Q > B) = 0.025. The buffer is the same at 1 Tb/s and at 10 Mb/s: no argument is a rate.
    needed = [short_flows.buffer_for_tail(0.8, short_flows.slow_start_bursts(size), 0.025) for size in (2, 14, 30, 62)]
    assert needed == sorted(needed)
    assert short_flows.buffer_for_tail(0.9, SLOW_START_14, 0.025) > needed[1]


def test_mix__counts_every_burst_of_every_flow():
    bursts, weights = short_flows.mixed_bursts({14: 3, 2: 1})
    assert dict(zip(bursts, weights, strict=True)) == {2: 4, 4: 3, 8: 3}
    assert short_flows.mean_queue(0.8, *short_flows.mixed_bursts({14: 5})) == pytest.approx(
        short_flows.mean_queue(0.8, (2, 4, 8))
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda: short_flows.mean_queue(1, (1,)),
        lambda: short_flows.mean_depth(0, (1,)),
        lambda: short_flows.tail(0.5, (0.5,), 1),
        lambda: short_flows.tail(0.5, (), 1),
        lambda: short_flows.mean_queue(0.5, (1, 2), (0, 0)),
        lambda: short_flows.tail(0.5, (1, 2), 1, (1,)),
        lambda: short_flows.tail(0.5, (1,), -1),
        lambda: short_flows.decay(0.5, (1,), order=4),
        lambda: short_flows.buffer_for_tail(0.5, (1,), 0),
        lambda: short_flows.slow_start_bursts(0),
        lambda: short_flows.mixed_bursts({14: 0}),
        lambda: short_flows.mixed_bursts({14: -1, 2: 2}),
    ],
)
def test_short_flows__refuse_invalid_arguments(call):
    with pytest.raises(ValueError, match=r"allowed|steady state|not negative"):
        call()
