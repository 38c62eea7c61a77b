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


def test_bdp__of_section_5_is_7_5_mb():
    bdp_bytes = PIPE * 1500
    assert bdp_bytes == pytest.approx(7.5e6)
    assert ratio.mm1b_l_buffer(PIPE) * 1500 == pytest.approx(15e6)  # "2CT_o, which is equal to 15MB!"


@pytest.mark.parametrize(
    ("size_bytes", "share", "printed_bytes", "off"),
    [(10_000, 0.03, 225e3, 0.02), (100_000, 0.06, 450e3, 0.035), (1_000_000, 0.15, 1.125e6, 0.09)],
)
def test_s_model__has_the_buffers_of_section_5(size_bytes, share, printed_bytes, off):
    # The printed bytes are the rounded shares of 7.5 MB; the third share should be 0.16 (see mm1b_s_buffer)
    buffer = ratio.mm1b_s_buffer(PIPE, math.ceil(size_bytes / 1500))
    assert printed_bytes == pytest.approx(share * 7.5e6)
    assert buffer * 1500 == pytest.approx(printed_bytes, rel=off)
    assert round(buffer / PIPE, 2) == (share if size_bytes < 1e6 else 0.16)


def test_testbed__buffers_of_30_kb_and_38_mb_are_20_and_26_564_packets():
    # Section 3.1. The second number needs megabytes of 2^20 bytes.
    assert 30_000 / 1500 == 20
    assert round(38 * 2**20 / 1500) == 26_564


def test_gamma__of_the_introduction_is_10():
    # Section 1: 10 Mb/s out, flows of at most 1 Mb/s in
    assert ratio.ratio(10e6, 1e6) == 10
    for out, into, gamma in ((2.5e6, 25e6, 0.1), (50e6, 500e6, 0.1), (10e6, 1e6, 10), (100e6, 10e6, 10)):  # Table 1
        assert ratio.ratio(out, into) == pytest.approx(gamma)


@pytest.mark.parametrize("segments", [1, 2, 3, 4, 7, 30, 64, 67, 667, 10**6])
def test_slow_start__takes_the_rtts_of_section_4(segments):
    assert ratio.slow_start_rtts(segments) == 1 + max(math.ceil(math.log2(segments / 2)), 0)


def test_throughput__is_that_of_section_4():
    assert ratio.s_model_throughput(45_000, 30, 0.06, 0.0) == pytest.approx(45_000 / (0.06 * 5))
    assert ratio.s_model_throughput(45_000, 30, 0.06, 0.1) == pytest.approx(45_000 / (0.06 * 8))
    assert ratio.l_model_throughput(1500, 0.06, 0.01) == pytest.approx(1.22 * 1500 / 0.006)
    assert ratio.rtt(0.06, 250, 50e6 / 12_000, 0.5) == pytest.approx(0.06 + 0.03)


def test_pl_form__reduces_to_mm1b_in_heavy_load():
    # 7.1, remarks: a = b = 1, f = 1/2 give 2 C T_o and sqrt(2 M / D C T_o)
    mm1 = (ratio.MM1B_A, ratio.MM1B_B, ratio.MM1B_F)
    assert ratio.pl_l_buffer(PIPE, *mm1[1:]) == pytest.approx(ratio.mm1b_l_buffer(PIPE))
    assert ratio.pl_s_buffer(PIPE, 30, *mm1) == pytest.approx(ratio.mm1b_s_buffer(PIPE, 30))
    assert mm1b.heavy_load_loss(20) == ratio.pl_loss(20, *mm1[:2])


def test_pl_form__of_typical_values_asks_for_0_83_of_the_pipe():
    assert ratio.pl_l_buffer(1) == pytest.approx(0.83, abs=0.005)  # 7.1: b = 0.5, f = 0.4


def test_figure_13__large_flows_want_more_than_small_ones():
    # 50 Mb/s, 60 ms, 30 packets: "about 100 packets versus 400 packets". The paper does not print the a, b, f of its
    # simulation. f = 0.4 and b = 0.77 give 391 for large flows; small flows then get 24, 88 and 303 for a = 0.1, 1, 10.
    pipe, b, f = 50e6 * 0.06 / 12_000, 0.77, 0.4
    assert ratio.pl_l_buffer(pipe, b, f) == pytest.approx(400, rel=0.03)
    small = [ratio.pl_s_buffer(pipe, 30, a, b, f) for a in (0.1, 1, 10)]
    assert small[0] < small[1] < small[2] < 400
    assert small[0] < 100 < small[2]


@pytest.mark.parametrize("a", [0.01, 0.5, 5])
@pytest.mark.parametrize(("b", "f"), [(0.3, 0.4), (0.5, 0.4), (1, 0.5), (1.7, 0.9)])
def test_pl_form__buffer_has_the_highest_throughput_of_a_search(a, b, f):
    pipe, segments = 250.0, 30
    rtts = ratio.slow_start_rtts(segments)
    best_buffer = best_by_search(lambda x: x ** (b / 2) / (pipe + f * x))
    assert ratio.pl_l_buffer(pipe, b, f) == pytest.approx(best_buffer, rel=1e-3)
    best_buffer = best_by_search(lambda x: 1 / ((rtts + segments * a * x**-b) * (pipe + f * x)))
    assert ratio.pl_s_buffer(pipe, segments, a, b, f) == pytest.approx(best_buffer, rel=1e-3)


@pytest.mark.parametrize("a", [0.01, 0.3, 5])
@pytest.mark.parametrize("b", [1e-3, 0.01, 0.1, 1])
@pytest.mark.parametrize("f", [0.05, 0.5])
def test_ex_form__buffer_has_the_highest_throughput_of_a_search(a, b, f):
    pipe, segments, high = 500.0, 30, 1e5
    rtts = ratio.slow_start_rtts(segments)
    best_buffer = best_by_search(lambda x: 1 / ((rtts + segments * a * np.exp(-b * x)) * (pipe + f * x)), high=high)
    best = ratio.ex_s_buffer(pipe, segments, a, b, f)
    assert best.buffer == pytest.approx(best_buffer, rel=1e-3, abs=0.01)
    # The L-model's throughput grows without bound, so search up to 300 packets, in logarithms.
    best_buffer = best_by_search(lambda x: b * x / 2 - np.log(pipe + f * x), high=300.0)
    assert ratio.ex_l_buffer(pipe, b, f, largest=300).buffer == pytest.approx(best_buffer, abs=0.01)


def test_ex_form__least_throughput_is_at_equation_10():
    pipe, b, f = 500.0, 0.001, 0.4
    best = ratio.ex_l_buffer(pipe, b, f)
    assert best == (0, pytest.approx(2 / (f * b) * (f - b * pipe / 2)))

    def speed(x):
        return math.exp(b * x / 2) / (pipe + f * x)

    assert best.stationary is not None
    assert speed(best.stationary) < min(speed(best.stationary * 0.9), speed(best.stationary * 1.1))
    assert ratio.ex_l_buffer(pipe, 0.1, f) == (
        math.inf,
        None,
    )  # 7.2: "the optimal buffer size is, theoretically, infinite"


def test_ex_form__survives_exponentials_that_overflow():
    best = ratio.ex_s_buffer(1e9, 30, 0.5, 0.3, 0.4)  # e^(b C T_o / f) = e^(7.5e8)
    assert 0 < best.buffer < 200
    x = best.buffer  # equation 11, divided by e^(-b B)
    rtts = ratio.slow_start_rtts(30)
    assert 0.4 * rtts / 30 * math.exp(0.3 * x) == pytest.approx(0.5 * (0.3 * 0.4 * x + 0.3 * 1e9 - 0.4), rel=1e-6)


def test_fits__recover_the_parameters_of_generated_losses():
    buffers = np.geomspace(10, 3000, 12)
    exact = loss_fits.fit_power_law(buffers, 0.2 * buffers**-0.5)
    assert (exact.a, exact.b, exact.r_squared) == pytest.approx((0.2, 0.5, 1))
    exact = loss_fits.fit_exponential(buffers[:6], 0.1 * np.exp(-0.02 * buffers[:6]))
    assert (exact.a, exact.b, exact.r_squared) == pytest.approx((0.1, 0.02, 1))
    assert exact.loss(20) == pytest.approx(0.1 * math.exp(-0.4))


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


def test_interval__of_b_has_its_nominal_coverage():
    rng, buffers, hits = np.random.default_rng(11), np.geomspace(10, 1000, 8), 0
    for _ in range(400):
        fit = loss_fits.fit_power_law(buffers, 0.2 * buffers**-0.5 * np.exp(rng.normal(0, 0.2, 8)))
        hits += fit.b_low < 0.5 < fit.b_high
    assert 0.92 < hits / 400 < 0.98


def test_fits__leave_out_buffers_without_loss_and_say_so():
    fit = loss_fits.fit_power_law([10, 20, 40, 80], [0.1, 0.05, 0.025, 0])
    assert (fit.points, fit.left_out, fit.b_low) == (3, 1, pytest.approx(1, abs=1e-6))
    assert fit.b == pytest.approx(1)


def test_delay__is_fitted_up_to_its_cutoff():
    buffers = np.array([10, 20, 50, 100, 200, 400, 800, 1600, 3200])
    delays = 0.4 * np.minimum(buffers, 500) / 1000
    fit = loss_fits.fit_delay(buffers[::-1], delays[::-1], capacity=1000)
    assert (fit.f, fit.cutoff, fit.points) == (pytest.approx(0.4), 400, 6)
    assert fit.r_squared == pytest.approx(1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ratio.ratio(0, 1),
        lambda: ratio.slow_start_rtts(0),
        lambda: ratio.s_model_throughput(1, 1, 0, 0),
        lambda: ratio.l_model_throughput(1, 1, 0),
        lambda: ratio.pl_loss(0, 1, 1),
        lambda: ratio.pl_l_buffer(100, 0, 0.4),
        lambda: ratio.pl_s_buffer(100, 30, 0, 0.5, 0.4),
        lambda: ratio.ex_l_buffer(100, 1, 0),
        lambda: ratio.ex_s_buffer(0, 30, 1, 1, 1),
        lambda: ratio.mm1b_s_buffer(0, 30),
    ],
)
def test_capacity_ratio__refuses_invalid_arguments(call):
    with pytest.raises(ValueError, match="allowed"):
        call()


@pytest.mark.parametrize(
    ("buffers", "losses"),
    [([1, 2], [0.1, 0.2]), ([1, 2, 3], [0.1, 0.2]), ([1, 2, 3], [0, 0, 0.1]), ([5, 5, 5], [0.1, 0.1, 0.2]),
     ([0, 1, 2], [0.1, 0.1, 0.1]), ([1, 2, 3], [0.1, 1.1, 0.1]), ([1, 2, 3], [0.1, math.nan, 0.1])],
)  # fmt: skip
def test_fits__refuse_invalid_points(buffers, losses):
    with pytest.raises(ValueError, match=r"allowed|cannot be fitted"):
        loss_fits.fit_power_law(buffers, losses)


@pytest.mark.parametrize(
    ("delays", "capacity"), [([0.1, 0.2, 0], 10), ([0.1, 0.2, 0.3], 0), ([0.1, math.inf, 0.3], 10)]
)
def test_delay__refuses_invalid_points(delays, capacity):
    with pytest.raises(ValueError, match=r"allowed|cannot be fitted"):
        loss_fits.fit_delay([1, 2, 3], delays, capacity)
