# SPDX-License-Identifier: MIT
"""Calls each function that docs/theory.md lists: with valid arguments, with one argument changed, and with one argument
replaced by NaN, -1 or 0. Valid arguments give the numbers of theory_numbers.json, which simulated queues and windows
confirmed (commit c0b4a32a has these simulations). Every function refuses NaN and -1, because no parameter may be
negative. 0 has an answer or is refused, and never causes a division by zero. A parameter without a valid value in
COMMON fails.

If numbers are meant to change: UPDATE_GOLDEN=1 .venv/bin/pytest analysis/tests/test_theory_ranges.py.
"""

import importlib
import inspect
import json
import math
import os
import pkgutil
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis import theory
from analysis.theory import loss_fits
from experiments.machine.host import CHECKOUT

BUFFERS, LOSSES, DELAYS = (10.0, 20.0, 40.0, 80.0), (0.1, 0.05, 0.02, 0.01), (0.01, 0.02, 0.04, 0.08)
# A valid value of each parameter; of some functions, another one.
COMMON: dict[str, Any] = {
    "a": 0.5, "b": 0.01, "base_rtt_s": 0.1, "bdp": 1000.0, "buffer": 10, "buffers": BUFFERS, "bursts": (2, 4, 8),
    "capacity": 1000.0, "cc": "reno", "decrease": 0.5, "delays_s": DELAYS, "delta": 1.5, "depth": (0.5, 0.5),
    "drops": 0.01, "effective_utilization": 0.9, "extra": 5.0, "f": 0.4, "fair_window": 32.0, "first": 50.0,
    "flow_packets": 14, "flows": 100.0, "fraction": 0.5, "in_flight": 120.0, "increase": 1.0, "input_bps": 1e10,
    "k": 1.22, "largest": 5000.0, "largest_window": 64.0, "least_losing_window": 10.0, "load": 0.8, "loss": 0.01,
    "losses": LOSSES, "lost": 0.01, "mean_queue": 50.0, "mss_bytes": 1460, "mtu_bytes": 1500, "order": 3,
    "output_bps": 1e9, "pipe": 1000.0, "probabilities": (0.5, 0.5), "rate_bps": 10**9, "risk": 0.02, "rtt_ns": 10**7,
    "rtt_s": 0.1, "segments": 7, "service_second_moment": 1.5, "services": (0.5, 1.5), "size_bytes": 1e4,
    "sizes": "bimodal", "states": 10, "time_s": 0.5, "tolerance": 0.2, "utilization": 0.9, "v": 1.0,
    "variability": 0.1, "wanted": 0.99, "weights": (1.0, 1.0, 2.0), "window": 10.0, "wire_bytes": 1538,
}  # fmt: skip
OWN: dict[str, dict[str, Any]] = {
    "batch_queues.at_arrivals": {"bursts": (2, 4), "weights": (1.0, 2.0)},
    "capacity_ratio.ex_l_buffer": {"b": 1e-4},
    "capacity_ratio.ex_s_buffer": {"a": 1.0, "segments": 700},
    "capacity_ratio.pl_l_buffer": {"b": 0.5},
    "capacity_ratio.pl_loss": {"b": 0.5},
    "capacity_ratio.pl_s_buffer": {"a": 1.0, "b": 0.5, "segments": 30},
    "short_flows.mixed_bursts": {"first": 2, "flows": {14: 0.5, 60: 0.5}},
    "short_flows.slow_start_bursts": {"first": 2},
}
# Values without a meaning for which neither NaN nor -1 stands: (function, parameter, value).
REFUSED: list[tuple[str, str, Any]] = [
    ("capacity_ratio.l_model_throughput", "loss", 5),
    ("capacity_ratio.slow_start_rtts", "segments", math.inf),
    ("capacity_ratio.slow_start_rtts", "segments", 6.7),
    ("many_flows.almost_fair_buffer", "delta", 0.5),
    ("many_flows.buffer_for_utilization", "utilization", 1.5),
    ("many_flows.fraction_losing_buffer", "fraction", 2),
    ("many_flows.least_window", "decrease", 1),
    ("packet_sizes.packet_sizes", "sizes", "pareto"),
    ("queues.md1_mean_depth", "load", 1),
    ("sawtooth.period", "decrease", 1.0),
    ("short_flows.slow_start_bursts", "flow_packets", 2.5),
    ("short_flows.mixed_bursts", "flows", {14: 0}),
    ("short_flows.mean_queue", "load", 1),
    ("short_flows.mean_queue", "weights", (0, 0, 0)),
    ("short_flows.tail", "bursts", (0.5, 2, 4)),
    ("short_flows.tail", "bursts", ()),
    ("short_flows.decay", "order", 4),
    ("single_flow.decrease_buffer", "decrease", 1),
    ("single_flow.single_flow_buffer", "utilization", 2),
    ("tiny_buffers.drop_bound", "load", 1),
    ("tiny_buffers.poisson_buffer", "largest_window", 0.5),
    ("tiny_buffers.poisson_buffer", "effective_utilization", 1),
    ("tiny_buffers.tcp_mm1b_buffer", "utilization", 1),
]
# Where differences of nearly equal numbers lose digits, and sizes without an explicit form.
EXTREME: list[tuple[str, dict[str, Any]]] = [
    *((f"mm1b.{name}", {"load": 1 + far, "buffer": 300}) for name in ("loss", "mean_depth", "utilization")
      for far in (-1e-13, 0.0, 1e-12, 3e-5)),
    ("mm1b.log_loss", {"load": 0.5, "buffer": 100_000}),
    *(("mm1b.mean_depth", {"load": load, "buffer": 10**9}) for load in (0.5, 2)),
    ("tiny_buffers.tcp_md1b_load", {"fair_window": 1e-9, "buffer": 1}),
    ("tiny_buffers.tcp_mm1b_load", {"fair_window": 128.0, "buffer": 200}),  # largest_window limits every window
    ("tiny_buffers.tcp_mm1b_buffer", {"fair_window": 2.0, "utilization": 0.1}),
    ("tiny_buffers.tcp_loss", {"window": 0.5}),
    ("short_flows.buffer_for_tail", {"risk": 1e-200, "order": None}),
    ("many_flows.almost_fair_utilization", {"flows": 1.0, "delta": 3.0}),
    ("single_flow.decrease_buffer", {"decrease": 0.7, "bdp": 100.0, "utilization": 0.6}),
    *((f"single_flow.{name}", {"cc": cc}) for name in ("single_flow_buffer", "min_utilization", "drained_packets")
      for cc in ("cubic", "scalable", "bbr")),
    *(("short_flows.decay", {"load": load, "bursts": (4,), "order": order, "weights": None})
      for load in (1e-9, 0.998, 0.9999999) for order in (2, None)),
    *(("gaussian.buffer_for_loss_of", {"lost": lost, "bdp": 1e5, "flows": 1e12}) for lost in (0.5, 1e-15, 1e-250)),
    ("gaussian.lost_utilization", {"bdp": 1e5, "buffer": 1e3, "flows": 10_000, "mean_queue": None}),
    ("gaussian.required_buffer", {"wanted": 0.9999, "bdp": 100, "flows": 1}),
    *(("queues.md1_depth_distribution", {"load": load, "states": 40}) for load in (0.1, 0.95)),
    ("queues.mg1k_depth_distribution", {"load": 50.0, "buffer": 1000}),
    ("queues.md1_buffer", {"load": 0.99, "loss": 0.025}),
    ("batch_queues.limited_depth_distribution", {"load": 1.3, "buffer": 12}),
    ("capacity_ratio.ex_l_buffer", {"pipe": 500.0, "b": 0.01, "f": 0.4, "largest": 300.0}),
    ("capacity_ratio.ex_s_buffer", {"pipe": 1e9, "segments": 30, "b": 0.3}),
    *(("sawtooth.queue", {"first": 999.0, "time_s": time_s}) for time_s in (0.5, 3.0)),
    ("single_flow.queue_length", {"in_flight": 1005.0}),
    *(("tiny_buffers.poisson_utilization", {"load": load, "buffer": 12}) for load in (0.5, 0.6)),
    *(("packet_sizes.packet_sizes", {"sizes": sizes}) for sizes in ("fixed", "exponential")),
]  # fmt: skip
NUMBERS = Path(__file__).with_name("theory_numbers.json")
TEXT = (CHECKOUT / "docs/theory.md").read_text()


def public_functions() -> Iterator[tuple[str, Any]]:
    for module_info in pkgutil.iter_modules(theory.__path__):
        if module_info.name != "checks":
            module = importlib.import_module(f"analysis.theory.{module_info.name}")
            for name, function in inspect.getmembers(module, inspect.isfunction):
                if function.__module__ == module.__name__ and not name.startswith("_"):
                    yield f"{module_info.name}.{name}", function


FUNCTIONS = dict(public_functions())
SOUND = {
    name: {of: OWN.get(name, {}).get(of, COMMON[of]) for of in inspect.signature(function).parameters}
    for name, function in FUNCTIONS.items()
}


def numbers(result: Any) -> list[float]:
    """All numbers in a result."""
    if isinstance(result, (tuple, list, np.ndarray)):
        return [number for part in result for number in numbers(part)]
    return [] if isinstance(result, str | None) else [float(result)]


def answer(name: str, parameters: dict[str, Any]) -> list[float] | str:
    """The numbers that a function returns, or the text of its exception."""
    try:
        return numbers(FUNCTIONS[name](**parameters))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def is_refusal(result: list[float] | str) -> bool:
    return isinstance(result, str) and result.startswith("ValueError: ") and "allowed: " in result


def call(name: str, parameter: str, wrong: Any) -> tuple[str, list[float] | str]:
    """(name of the case, the answer to valid arguments with one of them replaced)."""
    return f"{name}({parameter}={wrong!r})", answer(name, SOUND[name] | {parameter: wrong})


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


def changed(value: Any) -> Any:
    """A value near a valid one; text as it is."""
    if isinstance(value, tuple):
        return tuple(changed(part) for part in value)
    if isinstance(value, str | Mapping):
        return value
    return value + 1 if isinstance(value, int) else value * 0.9


def computed() -> dict[str, dict[str, float | None]]:
    """For each function, by its changed arguments: the sum of the result's k-th number times k; None: refused."""
    sums: dict[str, dict[str, float | None]] = {name: {} for name in SOUND}
    calls = [(name, of, changed(value)) for name, sound in SOUND.items() for of, value in {"": 0, **sound}.items()]
    for name, given in [(name, {of: value} if of else {}) for name, of, value in calls] + EXTREME:
        got = answer(name, SOUND[name] | given)
        assert not isinstance(got, str) or is_refusal(got), (name, given, got)
        sums[name][str(given)] = None if isinstance(got, str) else float(np.dot(got, np.arange(1, len(got) + 1)))
    return sums


def test_sound_calls__have_the_stored_numbers():
    found = computed()
    if os.environ.get("UPDATE_GOLDEN"):
        rows = (f"{json.dumps(name)}: {json.dumps(sums)}" for name, sums in found.items())
        NUMBERS.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    assert [name for name, sums in found.items() if not math.isfinite(sums["{}"] or 0)] == []
    stored = json.loads(NUMBERS.read_text())
    assert {name: [*sums] for name, sums in found.items()} == {name: [*sums] for name, sums in stored.items()}
    wrong = []
    for name, sums in found.items():
        for given, got in sums.items():
            known = stored[name][given]
            if got != known and (None in (got, known) or not math.isclose(got or 0, known, rel_tol=1e-6)):
                wrong.append((name, given, got, known))
    assert wrong == []


def test_every_parameter__that_has_no_meaning_is_refused():
    answers = dict(call(*case) for case in broken(math.nan) + broken(-1) + REFUSED)
    assert {case: got for case, got in answers.items() if not is_refusal(got)} == {}


def test_nothing__is_divided_by_zero():
    with np.errstate(all="raise"):
        answers = dict(call(*case) for case in broken(0))
    assert {
        case: got
        for case, got in answers.items()
        if not is_refusal(got) and (isinstance(got, str) or any(map(math.isnan, got)))
    } == {}


def test_fits__refuse_the_loss_of_an_invalid_buffer():
    for fit in (loss_fits.fit_power_law(BUFFERS, LOSSES), loss_fits.fit_exponential(BUFFERS, LOSSES)):
        assert 0 < fit.loss(30.0) < 1
        for wrong in (math.nan, -1.0):
            with pytest.raises(ValueError, match="allowed: "):
                fit.loss(wrong)


def test_documentation__lists_every_function_once():
    table = TEXT[TEXT.index("## Every function") : TEXT.index("## Numbers in print")]
    listed = re.findall(r"`([a-z0-9_]+\.[a-z0-9_]+)`", table)
    assert sorted(listed) == sorted(FUNCTIONS)
