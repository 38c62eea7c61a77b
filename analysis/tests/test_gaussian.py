# SPDX-License-Identifier: MIT
"""The Gaussian model of many flows against Appenzeller et al.'s numbers, and against randomly drawn windows."""

import itertools
import math

import numpy as np
import pytest

from analysis.theory import gaussian, many_flows

OC3_BDP = 155e6 * 0.1 / (8 * 1500)  # 5.2.1: "RTT x C (which in this case would be 1291 packets)"
FIFO = 64_000 / 1500  # 5.2.2: 64 kBytes of an internal FIFO, 43 packets of 1500 bytes


def test_utilization__is_that_of_the_papers_examples():
    for multiple, percent, last_digit in ((1, 98.99, 0.01), (2, 99.99997, 0.00001)):  # 3.2, n = 10,000
        utilization = gaussian.utilization(1e6, multiple * many_flows.sqrt_rule(1e6, 10_000), 10_000)
        assert utilization * 100 == pytest.approx(percent, abs=0.6 * last_digit)
    # The paper has 99.99988 % for 1.5 BDP / sqrt(n); its equation 6 gives 99.988 %, a hundred times the loss.
    assert gaussian.lost_utilization(1e6, 1.5e4, 10_000) == pytest.approx(1 - 0.99988, rel=0.03)
    # 5.1.1: 98 % by one times the rule; 99.9 % with "buffers twice as big; just as the model predicts"
    rule = many_flows.sqrt_rule(1e6, 10_000)
    assert 0.8 < gaussian.required_buffer(0.98, 1e6, 10_000) / rule <= 1
    assert 1 < gaussian.required_buffer(0.999, 1e6, 10_000) / rule <= 2
    # Abstract: "2.5 Gb/s ... 10,000 flows ... by 99%"; "10 Gb/s ... 50,000 flows ... only 10 Mbits" (11.2)
    assert many_flows.sqrt_rule(1, 10_000) == pytest.approx(1 - 0.99)
    assert many_flows.sqrt_rule(10e9 * 0.25, 50_000) == pytest.approx(11.2e6, rel=0.005)


def test_utilization__is_the_model_of_figure_15():
    models = {  # flows: for 0.5, 1, 2 and 3 times the rule, packets and the column Model
        100: ((64, 96.9), (129, 99.9), (258, 100), (387, 100)),
        200: ((46, 98.8), (91, 99.9), (182, 100), (273, 100)),
        300: ((37, 99.5), (74, 100), (148, 100), (222, 100)),
        400: ((32, 99.7), (64, 100), (128, 100), (192, 100)),
    }
    for flows, row in models.items():
        for multiple, (packets, percent) in zip((0.5, 1, 2, 3), row, strict=True):
            buffer = multiple * many_flows.sqrt_rule(OC3_BDP, flows)
            assert abs(buffer - packets) <= max(1, multiple)  # rows 2x and 3x are multiples of the rounded row 1x
            # The paper's mean window excludes the queue, and its buffer includes the line card's FIFO. For 200 flows
            # at 1x the paper truncates 99.986 to 99.9.
            utilization = gaussian.utilization(OC3_BDP, buffer + FIFO, flows, mean_queue=0) * 100
            assert utilization == pytest.approx(percent, abs=0.087 if (flows, multiple) == (200, 1) else 0.05)


def test_required_buffer__gives_the_requested_utilization():
    for flows, lost in itertools.product((10, 1e4, 1e12, 1e18), (0.5, 1e-2, 1e-9, 1e-15, 1e-250)):
        buffer = gaussian.buffer_for_loss_of(lost, 1e5, flows)
        if buffer == math.inf:
            assert gaussian.lost_utilization(1e5, 1e15, flows) > lost
        else:
            assert math.log(gaussian.lost_utilization(1e5, buffer, flows)) == pytest.approx(math.log(lost), rel=1e-9)
    assert gaussian.required_buffer(1, 100, 10_000) == math.inf
    assert gaussian.required_buffer(0.9999, 100, 1) == math.inf
    assert gaussian.required_buffer(0, 100, 100) == pytest.approx(0)
    assert gaussian.buffer_for_loss_of(1, 100, 1) == 0


def test_deviation_and_empty_probability__are_those_of_drawn_windows():
    # Theorem 4's windows: independent, uniform in (1 +- 1/3) (BDP + B) / n. With a small B the queue is often empty.
    bdp, flows = 1000.0, 30
    buffer = 0.35 * bdp / math.sqrt(flows)
    mean = (bdp + buffer) / flows
    draws = np.random.default_rng(3).uniform(2 / 3 * mean, 4 / 3 * mean, (200_000, flows)).sum(axis=1)
    assert draws.std() == pytest.approx(gaussian.queue_deviation(bdp, buffer, flows), rel=0.01)
    assert (draws < bdp).mean() == pytest.approx(gaussian.empty_probability(bdp, buffer, flows), abs=0.01)
    for flows in (100, 10**15):
        rule = many_flows.sqrt_rule(1e9, flows)
        assert 0 < gaussian.empty_probability(1e9, rule, flows) <= 0.02
        assert gaussian.lost_utilization(1e9, rule, flows) <= 0.02
    assert (gaussian.utilization(100, 0, 1), gaussian.empty_probability(100, 0, 1)) == (0, 0.5)


def test_gaussian__refuses_invalid_arguments():
    for call, *arguments in (
        (gaussian.utilization, 100, 10, 0), (gaussian.utilization, 100, -1, 10), (gaussian.utilization, 1, math.nan, 9),
        (gaussian.lost_utilization, -100, 10, 4), (gaussian.required_buffer, 1.01, 100, 10),
        (gaussian.buffer_for_loss_of, 0, 100, 10), (gaussian.loss_of_window, 0),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="allowed"):
            call(*arguments)
    assert gaussian.loss_of_window(10) == pytest.approx(0.0076)
