# SPDX-License-Identifier: MIT
"""The rules for many flows against the numbers that the papers print."""

import math

import numpy as np
import pytest

from analysis.theory import many_flows


def test_sqrt_rule__has_the_second_papers_numbers():
    # Abstract: 10,000 flows on 2.5 Gb/s need 99 % less buffer; 50,000 flows on 10 Gb/s (250 ms) need about 10 Mbit.
    assert many_flows.sqrt_rule(1, 10_000) == pytest.approx(0.01)
    assert many_flows.sqrt_rule(10e9 * 0.25, 50_000) == pytest.approx(10e6, rel=0.15)


def test_almost_fair__has_the_first_papers_numbers():
    # 4.3: n = 10,000 and Delta = 2 give 98 %; more than 1,000 flows give at least 97 % (rounded).
    assert many_flows.almost_fair_utilization(10_000, 2) == pytest.approx(0.98)
    assert many_flows.almost_fair_utilization(1_000, 1) == pytest.approx(0.97, abs=0.002)
    assert many_flows.almost_fair_buffer(165, 16, 4) == pytest.approx(165)
    assert many_flows.almost_fair_window(165, 165, 16, 2) == pytest.approx(330 - 82.5)
    assert many_flows.almost_fair_utilization(1, 3) == 0


def test_flows_seeing_loss__grows_from_sqrt_n():
    assert many_flows.flows_seeing_loss(165, 16, 2) == pytest.approx(4 + 256 / 330)


def test_sqrt_rule__is_a_hundred_times_equation_3_for_one_flow():
    # 4.6: "if 10,000 flows share a link, and s = 1, then ... another 100-fold"
    rule = many_flows.sqrt_rule(1e6, 10_000)
    assert rule / many_flows.desynchronized_buffer(1e6, 10_000, 1, 1) == pytest.approx(100)
    # "if only s = c n extra flows lose packets, then the required buffer size is c BDP"
    assert many_flows.desynchronized_buffer(1e6, 10_000, 1, 0.3 * 10_000) == pytest.approx(0.3e6)
    assert many_flows.desynchronized_buffer(1e6, 10_000, 2, 100) == pytest.approx(
        many_flows.almost_fair_buffer(1e6, 10_000, 2)
    )
    assert many_flows.desynchronized_window(165, 165, 16, 2, 4) == many_flows.almost_fair_window(165, 165, 16, 2)


def test_section_7_1__needs_10_gbit_or_100_mbit_or_next_to_nothing():
    # 100 ms x 100 Gb/s, 10,000 flows: the rule for a single flow asks for 10 Gbit, Theorem 5 for 100 Mbit. Without any
    # buffer the utilization is 99 %.
    bdp_bits = 0.1 * 100e9
    assert bdp_bits == 10**10
    assert many_flows.almost_fair_buffer(bdp_bits, 10_000, 1) == pytest.approx(100e6)
    assert many_flows.almost_fair_utilization(10_000, 1) == pytest.approx(0.99)
    assert many_flows.buffer_for_utilization(bdp_bits, 10_000, 1, 0.99) == pytest.approx(0, abs=1)


@pytest.mark.parametrize(("flows", "delta", "wanted"), [(16, 2, 0.9), (64, 4, 0.95), (100, 1, 1), (10_000, 4, 0.97)])
def test_buffer_for_utilization__leaves_a_window_that_has_it(flows, delta, wanted):
    buffer = many_flows.buffer_for_utilization(1000, flows, delta, wanted)
    window = many_flows.almost_fair_window(1000, buffer, flows, delta)
    assert min(window / 1000, 1) == pytest.approx(wanted)
    assert many_flows.buffer_for_utilization(1000, flows, delta, 1) == pytest.approx(
        many_flows.almost_fair_buffer(1000, flows, delta)
    )


def aggregate_after(windows, losing):
    """The sum of Reno windows after one RTT (Spang et al., appendix A): each of `losing` is halved, each other window
    grows by one packet.
    """
    return sum(w / 2 if i in losing else w + 1 for i, w in enumerate(windows))


@pytest.mark.parametrize("delta", [1.0, 1.5, 3.0])
@pytest.mark.parametrize(("flows", "bdp"), [(9, 200), (64, 1000), (400, 4000)])
def test_theorem_5__holds_for_windows_and_losers_chosen_for_the_worst(flows, bdp, delta):
    largest = delta * bdp / flows
    rng = np.random.default_rng(4)
    for _ in range(50):
        windows = rng.uniform(max(2, bdp / flows / delta), largest, flows)
        losing = np.argsort(-windows)[: int(many_flows.flows_seeing_loss(bdp, flows, delta))]  # the largest windows
        after = aggregate_after(windows, set(losing.tolist()))
        assert after >= windows.sum() - many_flows.almost_fair_buffer(bdp, flows, delta) - 1e-9


def test_theorem_5__needs_its_conditions():
    # 44 losers of equal windows, where the theorem allows 12: the aggregate falls below the bound.
    bdp, flows = 4000, 100
    losers = set(range(2 * int(many_flows.flows_seeing_loss(bdp, flows, 1) + 10)))
    assert aggregate_after([bdp / flows] * flows, losers) < bdp - many_flows.almost_fair_buffer(bdp, flows, 1)
    assert many_flows.least_window() == 2
    assert many_flows.least_window(717 / 1024) == pytest.approx(1024 / 717)
    assert many_flows.almost_fair_least_window(165, 16, 2) == pytest.approx(165 / 32)


def test_figure_10__bound_is_between_one_flow_and_all_of_them():
    # 5.6: n^2 / (2 BDP) + sqrt(n), BDP 165 packets
    assert many_flows.flows_seeing_loss(165, 128, 2) == pytest.approx(128**2 / 330 + 128**0.5)
    assert 1 <= many_flows.flows_seeing_loss(165, 1, 2) < 1.01


def test_ends_of_the_allowed_range__have_answers():
    assert many_flows.desynchronized_buffer(100, 10, 1, 0) == 0
    assert many_flows.sqrt_rule(100, 1) == many_flows.almost_fair_buffer(100, 1, 1) == 100
    assert many_flows.least_flows_that_shrink_window(1, 2) == 0.5


def test_losing_fraction__is_the_bdp_rule_when_all_lose_and_nothing_when_few_do():
    assert many_flows.fraction_losing_buffer(1000, 10, 1) == pytest.approx(1000)
    assert many_flows.fraction_losing_buffer(1000, 10, 0) == 0
    buffer = many_flows.fraction_losing_buffer(1000, 20, 0.5)
    window = (1000 + buffer) / 20
    assert aggregate_after([window] * 20, set(range(10))) == pytest.approx(1000)


def test_theorem_8__holds_for_random_cycles_even_with_half_the_buffer():
    # All flows send at the fair rate R. In the next RTT each sends at 3/4 R with probability 1/8, and at 5/4 R with
    # probability 1/8 (appendix B).
    bdp, flows, delta, risk = 10_000.0, 200, 1.0, 0.05
    rng = np.random.default_rng(5)
    change = rng.choice([-0.25, 0.25, 0], p=[1 / 8, 1 / 8, 6 / 8], size=(20_000, flows)).sum(axis=1) * bdp / flows
    printed = many_flows.bbr_buffer(bdp, flows, delta, risk)
    assert (change < -many_flows.bbr_buffer_sharp(bdp, flows, delta, risk)).mean() <= risk
    assert (change < -printed).mean() == 0
    assert printed == pytest.approx(many_flows.sqrt_rule(bdp, flows) * math.sqrt(math.log(20) / 2))
    # 7.1 gives BDP / sqrt(n) for BBR and names no risk. For Delta = 1 this is a risk of exp(-2).
    assert many_flows.bbr_buffer(bdp, flows, 1, math.exp(-2)) == pytest.approx(many_flows.sqrt_rule(bdp, flows))


@pytest.mark.parametrize("risk", [math.exp(-0.5), 0.1, 0.001])
def test_lemma_9__is_kept_by_flows_that_halve_at_random(risk):
    bdp, flows, delta = 5000.0, 300, 1.5
    share = delta * flows / bdp
    decreasing = np.random.default_rng(6).binomial(flows, share, 100_000)
    assert (decreasing > many_flows.random_decrease_flows(bdp, flows, delta, risk)).mean() <= risk
    assert many_flows.random_decrease_flows(bdp, flows, delta) == pytest.approx(flows**2 * delta / bdp + flows**0.5)


def test_appendix_c__fewer_flows_leave_the_window_growing():
    flows, window = 100, 30.0
    least = many_flows.least_flows_that_shrink_window(flows, window)
    before = flows * window
    assert aggregate_after([window] * flows, set(range(int(least)))) > before
    assert aggregate_after([window] * flows, set(range(int(least) + 1))) <= before
    # 4.2: if BDP / n < n - 1, the aggregate grows although one flow halves.
    assert aggregate_after([50.0] * 60, {0}) > 60 * 50
    assert many_flows.least_flows_that_shrink_window(60, 50) > 1


@pytest.mark.parametrize(
    "call",
    [
        lambda: many_flows.sqrt_rule(100, 0),
        lambda: many_flows.sqrt_rule(-100, 4),
        lambda: many_flows.sqrt_rule(math.nan, 4),
        lambda: many_flows.flows_seeing_loss(0, 4, 1),
        lambda: many_flows.fraction_losing_buffer(0, 4, 0.5),
        lambda: many_flows.almost_fair_buffer(100, 10, 0.5),
        lambda: many_flows.buffer_for_utilization(100, 10, 1, 1.5),
        lambda: many_flows.desynchronized_buffer(100, 10, 1, -1),
        lambda: many_flows.bbr_buffer(100, 10, 1, 0),
        lambda: many_flows.random_decrease_flows(100, 10, 1, 1),
        lambda: many_flows.fraction_losing_buffer(100, 10, 2),
        lambda: many_flows.least_flows_that_shrink_window(10, 0),
        lambda: many_flows.least_window(1),
        lambda: many_flows.least_window(0.5, math.nan),
    ],
)
def test_many_flows__refuses_invalid_arguments(call):
    with pytest.raises(ValueError, match="allowed"):
        call()
