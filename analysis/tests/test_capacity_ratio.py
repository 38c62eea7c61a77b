# SPDX-License-Identifier: MIT
"""Buffers for the fastest transfers, and fits of loss and delay, against Prasad et al.'s numbers and grid searches."""

import math

import numpy as np
import pytest

from analysis.theory import capacity_ratio as ratio
from analysis.theory import loss_fits, mm1b

PIPE = 1e9 * 0.06 / (8 * 1500)  # section 5: 1 Gb/s, 60 ms, 5000 packets of 1500 bytes, 7.5 MB


def best_by_search(throughput, low=1e-3, high=1e7):
    """The buffer with the highest throughput on a fine logarithmic grid."""
    grid = np.geomspace(low, high, 400_001)
    return float(grid[np.argmax(throughput(grid))])


def test_models__have_the_buffers_of_the_paper():
    assert ratio.mm1b_l_buffer(PIPE) * 1500 == pytest.approx(15e6)  # "2CT_o, which is equal to 15MB!"
    # The third share of 7.5 MB should be 0.16, not the printed 0.15 (see mm1b_s_buffer)
    for size_bytes, share in ((10_000, 0.03), (100_000, 0.06), (1_000_000, 0.16)):
        assert round(ratio.mm1b_s_buffer(PIPE, math.ceil(size_bytes / 1500)) / PIPE, 2) == share
    # 7.1, remarks: a = b = 1, f = 1/2 give 2 C T_o and sqrt(2 M / D C T_o)
    mm1 = (ratio.MM1B_A, ratio.MM1B_B, ratio.MM1B_F)
    assert ratio.pl_l_buffer(PIPE, *mm1[1:]) == pytest.approx(ratio.mm1b_l_buffer(PIPE))
    assert ratio.pl_s_buffer(PIPE, 30, *mm1) == pytest.approx(ratio.mm1b_s_buffer(PIPE, 30))
    assert mm1b.heavy_load_loss(20) == ratio.pl_loss(20, *mm1[:2])
    assert ratio.pl_l_buffer(1) == pytest.approx(0.83, abs=0.005)  # 7.1: b = 0.5, f = 0.4
    # 7.2: "the optimal buffer size is, theoretically, infinite"; the least throughput is at equation 10.
    assert ratio.ex_l_buffer(500, 0.1, 0.4) == (math.inf, None)
    assert ratio.ex_l_buffer(500, 0.001, 0.4) == (0, pytest.approx(2 / (0.4 * 0.001) * (0.4 - 0.001 * 500 / 2)))
    # Equation 11, where e^(b C T_o / f) = e^(7.5e8) overflows
    best = ratio.ex_s_buffer(1e9, 30, 0.5, 0.3, 0.4).buffer
    left = 0.4 * ratio.slow_start_rtts(30) / 30 * math.exp(0.3 * best)
    assert left == pytest.approx(0.5 * (0.3 * 0.4 * best + 0.3 * 1e9 - 0.4), rel=1e-6)


def test_throughput__is_that_of_section_4():
    for segments in (1, 2, 3, 4, 7, 30, 64, 67, 667, 10**6):
        assert ratio.slow_start_rtts(segments) == 1 + max(math.ceil(math.log2(segments / 2)), 0)
    assert ratio.ratio(10e6, 1e6) == 10
    assert ratio.s_model_throughput(45_000, 30, 0.06, 0.1) == pytest.approx(45_000 / (0.06 * 8))
    assert ratio.l_model_throughput(1500, 0.06, 0.01) == pytest.approx(1.22 * 1500 / 0.006)
    assert ratio.rtt(0.06, 250, 50e6 / 12_000, 0.5) == pytest.approx(0.06 + 0.03)


def test_buffers__have_the_highest_throughput_of_a_search():
    pipe, sent, rtts = 500.0, 30, ratio.slow_start_rtts(30)
    for a, b, f in ((0.01, 0.3, 0.4), (0.5, 0.5, 0.4), (5, 1, 0.5), (0.5, 1.7, 0.9)):
        best = best_by_search(lambda x, b=b, f=f: x ** (b / 2) / (pipe + f * x))
        assert ratio.pl_l_buffer(pipe, b, f) == pytest.approx(best, rel=1e-3)
        best = best_by_search(lambda x, a=a, b=b, f=f: 1 / ((rtts + sent * a * x**-b) * (pipe + f * x)))
        assert ratio.pl_s_buffer(pipe, sent, a, b, f) == pytest.approx(best, rel=1e-3)
    for a, b, f in ((0.01, 1e-3, 0.5), (0.3, 0.01, 0.05), (5, 1, 0.5)):
        best = best_by_search(lambda x, a=a, b=b, f=f: -(rtts + sent * a * np.exp(-b * x)) * (pipe + f * x), high=1e5)
        assert ratio.ex_s_buffer(pipe, sent, a, b, f).buffer == pytest.approx(best, rel=1e-3, abs=0.01)
        # The L-model's throughput grows without bound, so search up to 300 packets, in logarithms.
        best = best_by_search(lambda x, b=b, f=f: b * x / 2 - np.log(pipe + f * x), high=300.0)
        assert ratio.ex_l_buffer(pipe, b, f, largest=300).buffer == pytest.approx(best, abs=0.01)


def test_fits__recover_the_parameters_of_generated_losses():
    buffers = np.geomspace(10, 3000, 12)
    exact = loss_fits.fit_power_law(buffers, 0.2 * buffers**-0.5)
    assert (exact.a, exact.b, exact.r_squared) == pytest.approx((0.2, 0.5, 1))
    exact = loss_fits.fit_exponential(buffers[:6], 0.1 * np.exp(-0.02 * buffers[:6]))
    assert (exact.a, exact.b, exact.loss(20)) == pytest.approx((0.1, 0.02, 0.1 * math.exp(-0.4)))
    fit = loss_fits.fit_power_law([10, 20, 40, 80], [0.1, 0.05, 0.025, 0])  # a buffer without loss is left out
    assert (fit.points, fit.left_out, fit.b) == (3, 1, pytest.approx(1))


@pytest.mark.parametrize("form", ["PL", "EX"])
def test_comparison__prefers_the_form_that_made_noisy_losses(form):
    rng = np.random.default_rng(10)
    buffers = np.linspace(20, 400, 20)
    pure = 0.3 * buffers**-0.6 if form == "PL" else 0.05 * np.exp(-0.01 * buffers)
    comparison = loss_fits.compare(buffers, pure * np.exp(rng.normal(0, 0.05, 20)))
    assert comparison.better.form == form
    assert comparison.better.r_squared > 0.95
    assert comparison.better.deviation == pytest.approx(0.05, rel=0.5)
    assert comparison.better.b_low < (0.6 if form == "PL" else 0.01) < comparison.better.b_high
    assert (comparison.evidence_for_power_law > 1e3) == (form == "PL")


def test_delay__is_fitted_up_to_its_cutoff():
    buffers = np.array([10, 20, 50, 100, 200, 400, 800, 1600, 3200])
    delays = 0.4 * np.minimum(buffers, 500) / 1000
    fit = loss_fits.fit_delay(buffers[::-1], delays[::-1], capacity=1000)
    assert (fit.f, fit.cutoff, fit.points) == (pytest.approx(0.4), 400, 6)
    assert fit.r_squared == pytest.approx(1)


def test_capacity_ratio__refuses_invalid_arguments():
    for call, *arguments in (
        (ratio.ratio, 0, 1), (ratio.slow_start_rtts, 0), (ratio.s_model_throughput, 1, 1, 0, 0),
        (ratio.l_model_throughput, 1, 1, 0), (ratio.pl_loss, 0, 1, 1), (ratio.pl_l_buffer, 100, 0, 0.4),
        (ratio.pl_s_buffer, 100, 30, 0, 0.5, 0.4), (ratio.ex_l_buffer, 100, 1, 0), (ratio.ex_s_buffer, 0, 30, 1, 1, 1),
        (ratio.mm1b_s_buffer, 0, 30), (loss_fits.fit_power_law, [1, 2, 3], [0.1, 0.2]),
        (loss_fits.fit_power_law, [1, 2, 3], [0, 0, 0.1]), (loss_fits.fit_power_law, [5, 5, 5], [0.1, 0.1, 0.2]),
        (loss_fits.fit_power_law, [1, 2, 3], [0.1, 1.1, 0.1]), (loss_fits.fit_power_law, [1, 2, 3], [0.1, math.nan, 0]),
        (loss_fits.fit_delay, [1, 2, 3], [0.1, 0.2, 0], 10), (loss_fits.fit_delay, [1, 2, 3], [0.1, 0.2, 0.3], 0),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"allowed|cannot be fitted"):
            call(*arguments)
