# SPDX-License-Identifier: MIT
"""The Gaussian model of many flows against Appenzeller et al.'s numbers, and against randomly drawn windows."""

import math

import numpy as np
import pytest

from analysis.theory import gaussian, many_flows

OC3_BDP = 155e6 * 0.1 / (8 * 1500)  # 5.2.1: "RTT x C (which in this case would be 1291 packets)"
FIFO = 64_000 / 1500  # 5.2.2: 64 kBytes of an internal FIFO, 43 packets of 1500 bytes


@pytest.mark.parametrize(("multiple", "percent", "last_digit"), [(1, 98.99, 0.01), (2, 99.99997, 0.00001)])
def test_utilization__is_that_of_the_papers_examples(multiple, percent, last_digit):
    # 3.2, n = 10,000
    utilization = gaussian.utilization(1e6, multiple * many_flows.sqrt_rule(1e6, 10_000), 10_000)
    assert utilization * 100 == pytest.approx(percent, abs=0.6 * last_digit)


def test_utilization__misprinted_example_differs_from_the_formula():
    # The paper has 99.99988 % for 1.5 BDP / sqrt(n); its equation 6 gives 99.988 %, a hundred times the loss.
    lost = gaussian.lost_utilization(1e6, 1.5e4, 10_000)
    assert lost == pytest.approx(1 - 0.99988, rel=0.03)
    assert lost > 50 * (1 - 0.9999988)


@pytest.mark.parametrize(
    ("flows", "multiple", "packets", "percent"),
    [  # Figure 15, columns flows, RTT x BW / sqrt(n), packets, Model
        (100, 0.5, 64, 96.9), (100, 1, 129, 99.9), (100, 2, 258, 100), (100, 3, 387, 100),
        (200, 0.5, 46, 98.8), (200, 1, 91, 99.9), (200, 2, 182, 100), (200, 3, 273, 100),
        (300, 0.5, 37, 99.5), (300, 1, 74, 100), (300, 2, 148, 100), (300, 3, 222, 100),
        (400, 0.5, 32, 99.7), (400, 1, 64, 100), (400, 2, 128, 100), (400, 3, 192, 100),
    ],
)  # fmt: skip
def test_utilization__is_the_model_of_figure_15(flows, multiple, packets, percent):
    buffer = multiple * many_flows.sqrt_rule(OC3_BDP, flows)
    assert abs(buffer - packets) <= max(1, multiple)  # the paper's rows 2x and 3x are multiples of the rounded row 1x
    # The paper's mean window excludes the queue, and its buffer includes the line card's FIFO. For 200 flows at 1x the
    # paper truncates 99.986 to 99.9.
    utilization = gaussian.utilization(OC3_BDP, buffer + FIFO, flows, mean_queue=0) * 100
    assert utilization == pytest.approx(percent, abs=0.087 if (flows, multiple) == (200, 1) else 0.05)


def test_oc3__has_the_papers_packets():
    assert int(OC3_BDP) == 1291
    assert int(FIFO + 0.5) == 43
    # 5.1.4: 165 packets at 155 Mb/s, 100 ms, 100 to 200 flows are "a small multiple" of the rule.
    assert 1 < 165 / many_flows.sqrt_rule(OC3_BDP, 100) < 165 / many_flows.sqrt_rule(OC3_BDP, 200) < 2


def test_required_buffer__is_near_the_rule_for_98_percent_and_below_twice_it_for_99_9():
    # 5.1.1: 98 % by one times the rule; 99.9 % with "buffers twice as big; just as the model predicts"
    rule = many_flows.sqrt_rule(1e6, 10_000)
    assert 0.8 < gaussian.required_buffer(0.98, 1e6, 10_000) / rule <= 1
    assert 1 < gaussian.required_buffer(0.999, 1e6, 10_000) / rule <= 2


@pytest.mark.parametrize("flows", [10, 1e4, 1e12, 1e18])
@pytest.mark.parametrize("lost", [0.5, 1e-2, 1e-9, 1e-15, 1e-250])
def test_required_buffer__gives_the_requested_utilization(flows, lost):
    buffer = gaussian.buffer_for_loss_of(lost, 1e5, flows)
    if buffer == math.inf:
        assert gaussian.lost_utilization(1e5, 1e15, flows) > lost
    else:
        assert math.log(gaussian.lost_utilization(1e5, buffer, flows)) == pytest.approx(math.log(lost), rel=1e-9)


def test_required_buffer__of_full_utilization_or_a_single_flow_has_no_end():
    assert gaussian.required_buffer(1, 100, 10_000) == math.inf
    assert gaussian.required_buffer(0.9999, 100, 1) == math.inf
    assert gaussian.required_buffer(0, 100, 100) == pytest.approx(0)


@pytest.mark.parametrize("flows", [3, 30])
def test_deviation_and_empty_probability__are_those_of_drawn_windows(flows):
    # Theorem 4's windows: independent, uniform in (1 +- 1/3) (BDP + B) / n. With a small B the queue is often empty.
    bdp, buffer = 1000.0, 0.35 * 1000 / math.sqrt(flows)
    mean = (bdp + buffer) / flows
    draws = np.random.default_rng(3).uniform(2 / 3 * mean, 4 / 3 * mean, (200_000, flows)).sum(axis=1)
    assert draws.std() == pytest.approx(gaussian.queue_deviation(bdp, buffer, flows), rel=0.01)
    assert (draws < bdp).mean() == pytest.approx(gaussian.empty_probability(bdp, buffer, flows), abs=0.01)


def test_empty_probability__keeps_theorem_4():
    for flows in (100, 10_000, 10**9, 10**15):
        rule = many_flows.sqrt_rule(1e9, flows)
        assert 0 < gaussian.empty_probability(1e9, rule, flows) <= 0.02
        assert gaussian.lost_utilization(1e9, rule, flows) <= 0.02
    assert gaussian.empty_probability(1e9, 1e9 / 1e7, 10**14) == pytest.approx(1.02e-7, rel=0.01)


def test_loss__of_half_the_window_is_four_times_as_much():
    assert gaussian.loss_of_window(10) == pytest.approx(0.0076)
    assert gaussian.loss_of_window(10) == pytest.approx(4 * gaussian.loss_of_window(20))
    assert gaussian.loss_of_window(0.1) == 1


def test_ends_of_the_allowed_range__have_answers():
    assert gaussian.utilization(100, 0, 1) == 0
    assert gaussian.empty_probability(100, 0, 1) == 0.5
    assert gaussian.buffer_for_loss_of(1, 100, 1) == 0


def test_abstract__has_the_second_papers_memories():
    # 1.1, 1.3: with 250 ms, 10 Gb/s need 2.5 Gbits, and 40 Gb/s need 10 Gbits (1.25 Gbytes).
    assert 10e9 * 0.25 == 2.5e9
    assert 40e9 * 0.25 / 8 == 1.25e9
    # The 10 Gbits need ten DRAMs of 1 Gbit, as printed, but only 278 SRAMs of 36 Mbit, not "over 300".
    assert (math.ceil(40e9 * 0.25 / 1e9), math.ceil(40e9 * 0.25 / 36e6)) == (10, 278)
    # "2.5 Gb/s ... 10,000 flows ... by 99%"; "10 Gb/s ... 50,000 flows ... only 10 Mbits" (11.2)
    assert many_flows.sqrt_rule(1, 10_000) == pytest.approx(1 - 0.99)
    assert many_flows.sqrt_rule(10e9 * 0.25, 50_000) == pytest.approx(11.2e6, rel=0.005)


@pytest.mark.parametrize(
    "call",
    [
        lambda: gaussian.utilization(100, 10, 0),
        lambda: gaussian.utilization(100, -1, 10),
        lambda: gaussian.lost_utilization(-100, 10, 4),
        lambda: gaussian.lost_utilization(0, 0, 4),
        lambda: gaussian.utilization(100, math.nan, 10),
        lambda: gaussian.required_buffer(1.01, 100, 10),
        lambda: gaussian.buffer_for_loss_of(0, 100, 10),
        lambda: gaussian.empty_probability(100, -1, 10),
        lambda: gaussian.loss_of_window(0),
    ],
)
def test_gaussian__refuses_invalid_arguments(call):
    with pytest.raises(ValueError, match="allowed"):
        call()
