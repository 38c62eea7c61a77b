# SPDX-License-Identifier: MIT
"""Calls each function that docs/theory.md lists: with valid arguments, then with one argument replaced by NaN, -1 or 0.
Every function refuses NaN and -1, because no parameter may be negative. 0 has an answer or is refused, and never causes
a division by zero. A function or parameter without a valid value in SOUND fails.
"""

import inspect
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from analysis.tests.test_theory_documentation import public_functions
from analysis.theory import capacity_ratio, loss_fits, short_flows

BUFFERS, LOSSES, DELAYS = (10.0, 20.0, 40.0, 80.0), (0.1, 0.05, 0.02, 0.01), (0.01, 0.02, 0.04, 0.08)
SERVICE = {"services": (0.5, 1.5), "probabilities": (0.5, 0.5)}
BURSTS = {"load": 0.8, "bursts": (2, 4, 8), "weights": (1.0, 1.0, 2.0)}
FLOWS = {"bdp": 1000.0, "flows": 100.0}
FAIR = {**FLOWS, "delta": 1.5}
SAWTOOTH = {"time_s": 0.5, "capacity": 1000.0, "bdp": 100.0, "first": 50.0}
SINGLE = {"cc": "reno", "buffer": 80.0, "bdp": 100.0}
MM1B = {"load": 0.9, "buffer": 10}
SOUND: dict[str, dict[str, Any]] = {
    "capacity_ratio.ratio": {"output_bps": 1e9, "input_bps": 1e10},
    "capacity_ratio.slow_start_rtts": {"segments": 14},
    "capacity_ratio.s_model_throughput": {"size_bytes": 1e4, "segments": 7, "rtt_s": 0.1, "loss": 0.01, "v": 1.0},
    "capacity_ratio.l_model_throughput": {"mss_bytes": 1460, "rtt_s": 0.1, "loss": 0.01, "k": 1.22},
    "capacity_ratio.rtt": {"base_rtt_s": 0.1, "buffer": 100.0, "capacity": 1000.0, "f": 0.4},
    "capacity_ratio.pl_loss": {"buffer": 100.0, "a": 0.5, "b": 0.5},
    "capacity_ratio.ex_loss": {"buffer": 100.0, "a": 0.5, "b": 0.01},
    "capacity_ratio.mm1b_s_buffer": {"pipe": 1000.0, "segments": 7, "v": 1.0},
    "capacity_ratio.mm1b_l_buffer": {"pipe": 1000.0},
    "capacity_ratio.pl_l_buffer": {"pipe": 1000.0, "b": 0.5, "f": 0.4},
    "capacity_ratio.pl_s_buffer": {"pipe": 1000.0, "segments": 30, "a": 1.0, "b": 0.5, "f": 0.4, "v": 1.0},
    "capacity_ratio.ex_l_buffer": {"pipe": 1000.0, "b": 1e-4, "f": 0.4, "largest": 5000.0},
    "capacity_ratio.ex_s_buffer": {"pipe": 1000.0, "segments": 700, "a": 1.0, "b": 0.01, "f": 0.4, "v": 1.0},
    "gaussian.queue_deviation": {**FLOWS, "mean_queue": 50.0},
    "gaussian.lost_utilization": {**FLOWS, "buffer": 100.0, "mean_queue": 50.0},
    "gaussian.utilization": {**FLOWS, "buffer": 100.0, "mean_queue": 50.0},
    "gaussian.buffer_for_loss_of": {**FLOWS, "lost": 0.01},
    "gaussian.required_buffer": {**FLOWS, "wanted": 0.99},
    "gaussian.empty_probability": {**FLOWS, "buffer": 100.0},
    "gaussian.loss_of_window": {"window": 10.0},
    "loss_fits.fit_power_law": {"buffers": BUFFERS, "losses": LOSSES},
    "loss_fits.fit_exponential": {"buffers": BUFFERS, "losses": LOSSES},
    "loss_fits.compare": {"buffers": BUFFERS, "losses": LOSSES},
    "loss_fits.fit_delay": {"buffers": BUFFERS, "delays_s": DELAYS, "capacity": 1000.0, "tolerance": 0.2},
    "many_flows.sqrt_rule": FLOWS,
    "many_flows.almost_fair_buffer": FAIR,
    "many_flows.almost_fair_window": {**FAIR, "buffer": 100.0},
    "many_flows.almost_fair_utilization": {"flows": 100.0, "delta": 1.5},
    "many_flows.buffer_for_utilization": {**FAIR, "utilization": 0.95},
    "many_flows.flows_seeing_loss": FAIR,
    "many_flows.least_window": {"decrease": 0.5, "increase": 1.0},
    "many_flows.almost_fair_least_window": FAIR,
    "many_flows.desynchronized_window": {**FAIR, "buffer": 100.0, "extra": 5.0},
    "many_flows.desynchronized_buffer": {**FAIR, "extra": 5.0},
    "many_flows.fraction_losing_buffer": {**FLOWS, "fraction": 0.5},
    "many_flows.bbr_buffer": {**FAIR, "risk": 0.02},
    "many_flows.bbr_buffer_sharp": {**FAIR, "risk": 0.02},
    "many_flows.random_decrease_flows": {**FAIR, "risk": 0.02},
    "many_flows.least_flows_that_shrink_window": {"flows": 100.0, "least_losing_window": 10.0},
    "mm1b.loss": MM1B,
    "mm1b.log_loss": MM1B,
    "mm1b.heavy_load_loss": {"buffer": 10},
    "mm1b.mean_depth": MM1B,
    "mm1b.utilization": MM1B,
    "packet_sizes.packet_sizes": {"sizes": "exponential", "mtu_bytes": 1500},
    "packet_sizes.service_times": {"sizes": "bimodal", "mtu_bytes": 1500, "rate_bps": 10**9},
    "batch_queues.depth_distribution": {**BURSTS, "states": 10},
    "batch_queues.limited_depth_distribution": {**BURSTS, "buffer": 10},
    "batch_queues.at_arrivals": {"depth": (0.5, 0.5), "bursts": (2, 4), "weights": (1.0, 2.0)},
    "queues.second_moment": SERVICE,
    "queues.mg1_mean_depth": {"load": 0.8, "service_second_moment": 1.5},
    "queues.md1_mean_depth": {"load": 0.8},
    "queues.mg1_mean_wait": {"load": 0.8, "service_second_moment": 1.5},
    "queues.mg1_depth_distribution": {"load": 0.8, **SERVICE, "states": 10},
    "queues.md1_depth_distribution": {"load": 0.8, "states": 10},
    "queues.mg1k_depth_distribution": {"load": 0.8, **SERVICE, "buffer": 10},
    "queues.md1_loss": {"load": 0.8, "buffer": 10},
    "queues.md1_buffer": {"load": 0.8, "loss": 0.01},
    "sawtooth.window": SAWTOOTH,
    "sawtooth.queue": SAWTOOTH,
    "sawtooth.period": {"capacity": 1000.0, "bdp": 100.0, "buffer": 50.0, "decrease": 0.5},
    "sawtooth.extremes": {"bdp": 100.0, "buffer": 50.0, "decrease": 0.5},
    "sawtooth.mean_utilization": {"bdp": 100.0, "buffer": 50.0, "decrease": 0.5},
    "short_flows.slow_start_bursts": {"flow_packets": 14, "first": 2},
    "short_flows.mixed_bursts": {"flows": {14: 0.5, 60: 0.5}, "first": 2},
    "short_flows.mean_queue": BURSTS,
    "short_flows.mean_depth": BURSTS,
    "short_flows.decay": {**BURSTS, "order": 3},
    "short_flows.tail": {**BURSTS, "buffer": 20.0, "order": 3},
    "short_flows.buffer_for_tail": {**BURSTS, "risk": 0.02, "order": 3},
    "single_flow.bdp_packets": {"rate_bps": 10**9, "rtt_ns": 10**7, "wire_bytes": 1538},
    "single_flow.bdp_rule": {"bdp": 100.0},
    "single_flow.synchronized_buffer": {"bdp": 100.0, "flows": 4},
    "single_flow.queue_length": {"in_flight": 120.0, "bdp": 100.0, "buffer": 50.0},
    "single_flow.utilization_of_window": {"in_flight": 80.0, "bdp": 100.0},
    "single_flow.decrease_buffer": {"decrease": 0.5, "bdp": 100.0, "utilization": 0.9, "variability": 0.1},
    "single_flow.decrease_utilization": {"decrease": 0.5, "buffer": 50.0, "bdp": 100.0},
    "single_flow.min_utilization": SINGLE,
    "single_flow.drained_packets": SINGLE,
    "single_flow.single_flow_buffer": {"cc": "reno", "bdp": 100.0, "utilization": 0.9},
    "tiny_buffers.log_window_buffer": {"largest_window": 60.0},
    "tiny_buffers.drop_bound": {"load": 0.75, "buffer": 20},
    "tiny_buffers.buffer_for_drops": {"load": 0.75, "drops": 0.01},
    "tiny_buffers.peak_load": {"bdp": 1000.0, "flows": 10, "largest_window": 60.0},
    "tiny_buffers.poisson_buffer": {"load": 0.75, "largest_window": 64.0, "effective_utilization": 0.9},
    "tiny_buffers.poisson_utilization": {"load": 0.75, "largest_window": 64.0, "buffer": 40},
    "tiny_buffers.tcp_rate": {"loss": 0.01, "rtt_s": 0.1},
    "tiny_buffers.tcp_loss": {"window": 10.0},
    "tiny_buffers.tcp_mm1b_load": {"fair_window": 32.0, "buffer": 10, "largest_window": 64.0},
    "tiny_buffers.tcp_md1b_load": {"fair_window": 32.0, "buffer": 10, "largest_window": 64.0},
    "tiny_buffers.tcp_mm1b_load_approximate": {"fair_window": 32.0, "buffer": 10},
    "tiny_buffers.tcp_mm1b_buffer": {"fair_window": 32.0, "utilization": 0.8},
}  # fmt: skip
FUNCTIONS = dict(public_functions())


def numbers(result: Any) -> list[float]:
    """All numbers in a result."""
    if isinstance(result, (tuple, list, np.ndarray)):
        return [number for part in result for number in numbers(part)]
    return [] if isinstance(result, str) else [float(result)]


def answer(name: str, parameters: dict[str, Any]) -> list[float] | str:
    """The numbers that a function returns, or the text of its exception."""
    try:
        return numbers(FUNCTIONS[name](**parameters))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def is_refusal(result: list[float] | str) -> bool:
    return isinstance(result, str) and result.startswith("ValueError: ") and "allowed: " in result


def finite(result: Iterable[float]) -> bool:
    return all(math.isfinite(number) for number in result)


def call(name: str, parameter: str, wrong: Any) -> str:
    """The name of a case."""
    return f"{name}({parameter}={wrong!r})"


def changed(name: str, parameter: str, wrong: Any) -> tuple[str, dict[str, Any]]:
    """(function name, its valid arguments with one of them replaced)."""
    return name, SOUND[name] | {parameter: wrong}


def with_one(value: Any, bad: float) -> Iterator[Any]:
    """`value` with one number in it replaced; nothing for text."""
    if isinstance(value, Mapping):
        (first, share), *rest = value.items()
        yield dict([(bad, share), *rest])
        yield dict([(first, bad), *rest])
    elif isinstance(value, tuple):
        for at in range(len(value)):
            yield (*value[:at], bad, *value[at + 1 :])
    elif not isinstance(value, str):
        yield bad


def broken(bad: float) -> list[tuple[str, str, Any]]:
    return [
        (name, parameter, wrong)
        for name, sound in SOUND.items()
        for parameter, value in sound.items()
        for wrong in with_one(value, bad)
    ]


def test_every_function__has_a_sound_call_of_all_its_parameters():
    assert set(SOUND) == set(FUNCTIONS)
    for name, function in FUNCTIONS.items():
        assert set(inspect.signature(function).parameters) == set(SOUND[name]), name


def test_sound_calls__have_answers():
    answers = {name: answer(name, parameters) for name, parameters in SOUND.items()}
    assert {name: got for name, got in answers.items() if isinstance(got, str) or not got or not finite(got)} == {}


def test_every_parameter__that_has_no_meaning_is_refused():
    cases = broken(math.nan) + broken(-1)
    answers = {call(*case): answer(*changed(*case)) for case in cases}
    assert len(answers) == len(cases)
    assert {case: got for case, got in answers.items() if not is_refusal(got)} == {}


def test_nothing__is_divided_by_zero():
    cases = broken(0)
    with np.errstate(all="raise"):
        answers = {call(*case): answer(*changed(*case)) for case in cases}
    assert len(answers) == len(cases)
    wrong = {
        case: got
        for case, got in answers.items()
        if not is_refusal(got) and (isinstance(got, str) or any(math.isnan(number) for number in got))
    }
    assert wrong == {}


@pytest.mark.parametrize("wrong", [math.nan, -1.0])
def test_fits__refuse_the_loss_of_an_invalid_buffer(wrong):
    for fit in (loss_fits.fit_power_law(BUFFERS, LOSSES), loss_fits.fit_exponential(BUFFERS, LOSSES)):
        assert 0 < fit.loss(30.0) < 1
        with pytest.raises(ValueError, match="allowed: "):
            fit.loss(wrong)


@pytest.mark.parametrize(
    "call",
    [
        lambda: capacity_ratio.l_model_throughput(1460, 0.1, 5),
        lambda: capacity_ratio.s_model_throughput(1e4, 7, 0.1, 1.01),
        lambda: capacity_ratio.slow_start_rtts(math.inf),  # type: ignore[arg-type]
        lambda: short_flows.slow_start_bursts(math.inf),  # type: ignore[arg-type]
        lambda: short_flows.slow_start_bursts(2.5),  # type: ignore[arg-type]
    ],
)
def test_too_large_or_broken_arguments__are_refused(call):
    with pytest.raises(ValueError, match="allowed: "):
        call()
