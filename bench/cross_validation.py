# SPDX-License-Identifier: MIT
"""Does virtual time give the same results as real time? The same specs run in both, at rates where real time is
faithful. Rows compare queue depth, utilization, drops and the sawtooth's period. Other rows compare virtual time with
closed forms.

A run is one observation, however many packets it has, because its packets depend on each other. Runs of the same clock
are compared, too: their distance is the noise level.
"""

from __future__ import annotations

import itertools
import os
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.measure.metrics import arrivals_in, bottleneck, measurement_window
from analysis.read.load import load
from analysis.theory import sawtooth
from analysis.theory.single_flow import bdp_packets
from bench import depth_figure, lab
from bench.lab import BenchRun
from bench.part import Part
from bench.report import FIGURE, BenchRow
from runs import verdict

NAME = "cross_validation"
CLOCKS = ("real", "virtual")
REPETITIONS = 4
LEAST_RUNS = 3  # of each clock, for a meaningful comparison
SEEDS = {"real": (1, 2), "virtual": (1,)}  # the second seed replaces invalid runs of the first
# Both clocks use the generator `epoll`, for equal durations: iperf3 would send for whole seconds.
SPECS = {
    "1 Reno, 100 Mb/s, 10 ms": ("CC=reno", "FLOWS=1", "RATE=100mbit", "RTT=10ms"),
    "1 Cubic, 100 Mb/s, 10 ms": ("CC=cubic", "FLOWS=1", "RATE=100mbit", "RTT=10ms"),
    "16 Reno, 100 Mb/s, 10 ms": ("CC=reno", "FLOWS=16", "RATE=100mbit", "RTT=10ms"),
    "16 Cubic, 50 Mb/s, 20 ms": ("CC=cubic", "FLOWS=16", "RATE=50mbit", "RTT=20ms"),
}
# The standard error comes from 20 batches: with one seed in a thousand a correct queue is further off than this.
MAX_STANDARD_ERRORS = 4


@dataclass(frozen=True)
class QueueSample:
    """One run: the distribution of depth at arrivals, and the run's summary."""

    depth: np.ndarray  # probabilities of 0, 1, 2... packets
    summary: dict[str, Any]

    @property
    def period_s(self) -> float | None:
        return period_s(self.summary)


def measure(short: bool) -> list[BenchRow]:
    lab.prepare(NAME)
    rows, pictures = [], []
    for name, parameters in SPECS.items():
        samples = {clock: _sample(name, parameters, clock, short) for clock in CLOCKS}
        rows += _rows(name, samples, short)
        pictures.append((name, {clock: [sample.depth for sample in runs] for clock, runs in samples.items()}))
    depth_figure.draw(pictures, FIGURE)
    print(f"  drawn: {FIGURE}", file=sys.stderr)
    return [*rows, *_sawtooth(short), *_open_loop(short)]


PART = Part(measure, goals=("kernel",))  # only rows in real time need root; without root they are skipped


def _row(name: str, value: float, unit: str, **more: Any) -> BenchRow:
    return BenchRow(name=f"cross-validation: {name}", value=value, unit=unit, **more)


# Real beside virtual --------------------------------------------------------------------------------------------------


def _sample(name: str, parameters: Iterable[str], clock: str, short: bool) -> list[QueueSample]:
    """The valid runs of one clock; none if the clock is not available here. Runs in real time may be disturbed, so
    invalid runs are repeated once, with another seed."""
    if clock == "real" and os.geteuid() != 0:
        print(f"  SKIPPED: {name} in real time: it needs root", file=sys.stderr)
        return []
    length = ("DURATION=200rtt", "WARMUP=50rtt") if short else ()
    title = "".join(c if c.isalnum() else "-" for c in f"{name}-{clock}")
    samples: list[QueueSample] = []
    for seed in SEEDS[clock]:
        missing = (2 if short else REPETITIONS) - len(samples)
        if not missing:
            break
        words = (*parameters, *length, f"REPS={missing}", f"SEED={seed}", "GENERATOR=epoll", f"NAME={title}")
        for outcome in lab.run(NAME, *words, clock=clock):
            if outcome.valid:
                samples.append(QueueSample(depth_distribution(outcome), outcome.summary))
            else:
                print(f"  left out: {outcome.why_not}", file=sys.stderr)
    return samples


def depth_distribution(outcome: BenchRun) -> np.ndarray:
    """Share of the packets that found each depth, in the measurement window."""
    run = load(outcome.repetition)
    _, queue = bottleneck(run)
    window = measurement_window(run, queue)
    depth = queue["depth_packets"][arrivals_in(queue, window.start_ns, window.end_ns)]
    return np.bincount(depth) / max(len(depth), 1)


def _rows(name: str, samples: dict[str, list[QueueSample]], short: bool) -> list[BenchRow]:
    real, virtual = ([sample.depth for sample in samples[clock]] for clock in CLOCKS)
    rows = [
        _row(f"{name}: valid runs, {clock} time", len(samples[clock]), "", must=None if short else LEAST_RUNS)
        for clock in CLOCKS
        if clock == "virtual" or os.geteuid() == 0
    ]
    if real and virtual:
        within = [f"{clock} {_farthest(depths)}" for clock, depths in zip(CLOCKS, (real, virtual), strict=True)]
        rows.append(
            _row(f"{name}: depth, real to virtual", distance(real, virtual), "KS", better="lower",
                 peer=f"largest distance between two runs of one clock: {', '.join(within)}",
                 note=f"{len(real)} real and {len(virtual)} virtual runs; permutation test: "
                 f"p = {share_as_far(real, virtual):.2f}")
        )  # fmt: skip
    for metric, unit, pick in (
        ("utilization", "", lambda sample: sample.summary["utilization"]["mean"]),
        ("drop fraction", "", lambda sample: sample.summary["drop_fraction"]),
        ("depth, mean", "packets", lambda sample: sample.summary["queue_depth_packets"]["mean"]),
        ("sawtooth period", "s", lambda sample: sample.period_s),
    ):
        values = {clock: [v for sample in samples[clock] if (v := pick(sample)) is not None] for clock in CLOCKS}
        if values["virtual"] and (metric != "sawtooth period" or name.startswith("1 ")):
            rows.append(
                _row(f"{name}: {metric}, virtual", statistics.fmean(values["virtual"]), unit, samples=values["virtual"],
                     peer=f"real: {_spread(values['real'])}", note=f"virtual: {_spread(values['virtual'])}")
            )  # fmt: skip
    return rows


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "no valid run"
    return f"{statistics.fmean(values):.5g} ({min(values):.5g} to {max(values):.5g}, {len(values)} runs)"


def _farthest(depths: Sequence[np.ndarray]) -> str:
    pairs = [distance([a], [b]) for a, b in itertools.combinations(depths, 2)]
    return f"{max(pairs):.3f}" if pairs else "one run"


def distance(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> float:
    """Kolmogorov-Smirnov statistic of two groups of runs: the largest difference of their average cumulative
    distributions. All runs have the same weight."""
    longest = max(len(depth) for depth in (*first, *second))
    averages = [
        np.mean([np.cumsum(np.pad(depth, (0, longest - len(depth)))) for depth in group], axis=0)
        for group in (first, second)
    ]
    return float(np.abs(averages[0] - averages[1]).max())


def share_as_far(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> float:
    """Permutation test over runs: of all divisions of the runs into groups of these sizes, the share in which the
    groups are at least as far apart. The minimum for two groups of four runs is 2 / 70."""
    runs, observed = [*first, *second], distance(first, second)
    splits = list(itertools.combinations(range(len(runs)), len(first)))
    as_far = sum(
        distance([runs[i] for i in split], [runs[i] for i in range(len(runs)) if i not in split]) >= observed - 1e-12
        for split in splits
    )
    return as_far / len(splits)


def period_s(summary: dict[str, Any]) -> float | None:
    """Median time between losses of a lone flow. Losses that are at most four times the longest RTT apart belong to the
    same tooth: a flow may still be in recovery then."""
    apart_s = 4 * summary["loss"]["longest_rtt_ns"] / 1e9
    starts: list[float] = []
    last = -apart_s
    for event in summary["loss"]["list"]:
        if event["since_traffic_start_s"] - last > apart_s:
            starts.append(event["since_traffic_start_s"])
        last = event["since_traffic_start_s"]
    return float(np.median(np.diff(starts))) if len(starts) > 1 else None


# Closed forms ---------------------------------------------------------------------------------------------------------


def _sawtooth(short: bool) -> list[BenchRow]:
    """One Reno flow with B = BDP, in virtual time, on the link of Spang et al. (2021), section 3.6, beside the closed
    form of Appenzeller et al., appendix B.
    """
    length = "DURATION=500rtt" if short else "DURATION=2000rtt"
    parameters = ("CC=reno", "FLOWS=1", "RATE=10gbit", "RTT=1ms", "MTU=9000", length, "WARMUP=100rtt")
    (outcome,) = lab.run(NAME, *parameters, "NAME=sawtooth")
    summary, spec = outcome.summary, verdict.experiment(outcome.summary)
    bdp = bdp_packets(spec.rate_bps, spec.rtt_ns, spec.wire_bytes)
    expected_s = sawtooth.period(spec.rate_bps / (8 * spec.wire_bytes), bdp, spec.buffer_packets)
    measured_s, fall = period_s(summary), summary["drained_fraction"]["packets"]["median"]
    lowest, highest = sawtooth.extremes(bdp, spec.buffer_packets)
    expected_fall = highest - max(lowest, bdp)
    return [
        _row("Reno's sawtooth at 10 Gb/s: period, off by", abs((measured_s or 0) / expected_s - 1), "", aim=0.05,
             better="lower", note=f"measured {measured_s or 0:.4f} s {outcome.why_not}",
             peer=f"Appenzeller et al., appendix B: {expected_s:.4f} s"),
        _row("Reno's sawtooth at 10 Gb/s: amplitude, off by", abs((fall or 0) / expected_fall - 1), "", aim=0.05,
             better="lower", note=f"measured {fall} packets", peer=f"W_max - BDP = {expected_fall:.1f} packets"),
    ]  # fmt: skip


def _open_loop(short: bool) -> list[BenchRow]:
    """Poisson arrivals in virtual time with equal and with mixed packet sizes, beside M/D/1 and M/G/1."""
    rows = []
    for name in ("md1", "mg1"):
        length = ("DURATION=2s",) if short else ()
        (outcome,) = lab.run(NAME, f"SPEC=experiments/specs/{name}.yaml", *length)
        result = outcome.summary["open_loop"]
        mean = result["mean_depth_packets"]
        off = abs(mean["measured"] - mean["theory"])
        rows += [
            _row(f"{result['model']} at load {result['load']}: mean depth, off by", off / mean["standard_error"],
                 "standard errors", must=MAX_STANDARD_ERRORS, better="lower", note=outcome.why_not,
                 peer=f"measured {mean['measured']:.4f} +- {mean['standard_error']:.4f}, theory {mean['theory']:.4f}"),
            _row(f"{result['model']} at load {result['load']}: depth, to theory", result["depth_distance"], "KS",
                 aim=0.02, better="lower", peer="largest difference of the cumulative distributions"),
        ]  # fmt: skip
    return rows
