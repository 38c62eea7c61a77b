# SPDX-License-Identifier: MIT
"""What stored runs say about a link: its least buffer for a utilization, and what a buffer would give.

Runs that differ in nothing but buffer and repetition form a series. Each series bounds the least buffer of its link
(analysis/papers/least_buffer.py). The bounds are carried over to the asked link by the square root rule
(B sqrt(n) / BDP), and kriging measures, on the series themselves, how far this rule is off at a distance in flows and
in BDP/n. Series of all loss-based algorithms show the error; only those of the asked algorithm give the value.
Intervals are of two standard deviations: in docs/theory.md is how many links, held out, lay inside.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from analysis.advise import kriging
from analysis.advise.evidence import EvidenceRun
from analysis.advise.kriging import Samples
from analysis.advise.link import Link
from analysis.advise.rule import P01
from analysis.papers.least_buffer import bounds
from analysis.theory.single_flow import bdp_packets
from lib.frames import wire_bytes_of_ip

LEAST_SERIES = 4  # with fewer series of an algorithm there is no estimate
DEVIATIONS = 2.0  # half the width of an interval
# If no buffer that was tried is too small, the least is taken to be more than this share of the smallest, or this many
# packets.
LEAST_SHARE, LEAST_BUFFER = 0.1, 0.5
MOST_BDP = 2.0  # no least buffer is taken to be above this
BEYOND = 1.25  # a series says something about buffers up to this factor outside of its own
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995)  # utilizations at which the error of the rule is measured
PACED = "bbr"  # prefix of the algorithms that do not fill the queue until it drops


class Least(NamedTuple):
    """The bounds of a least buffer, in packets, on a link with `flows` flows and a BDP of `bdp` packets. `low` is 0,
    and `high` infinite, if not known.
    """

    cc: str
    flows: int
    bdp: float
    low: float
    high: float


class Estimate(NamedTuple):
    """A number that runs of other links say, and the ends of its interval; both are always known."""

    value: float
    low: float
    high: float


class Outcome(NamedTuple):
    """What a buffer would give; None for a quantity that too few runs have."""

    utilization_mean: Estimate | None
    utilization_p01: Estimate | None
    delay_p99_s: Estimate | None
    loss: Estimate | None


@dataclass(frozen=True)
class Series:
    """Runs of one link and setting, by buffer in packets."""

    cc: str
    flows: int
    bdp: float
    runs: dict[float, list[EvidenceRun]] = field(default_factory=dict)
    _least: dict[tuple[str, float], Least] = field(default_factory=dict)

    def least(self, measure: str, utilization: float) -> Least:
        """The bounds of the least buffer, computed once."""
        if (key := (measure, utilization)) not in self._least:
            measured = {int(buffer): [getattr(run, measure) for run in runs] for buffer, runs in self.runs.items()}
            _, low, high = bounds(measured, utilization)
            self._least[key] = Least(self.cc, self.flows, self.bdp, low, high)
        return self._least[key]

    def at(self, buffer: float, of: Callable[[EvidenceRun], float | None]) -> float | None:
        """A quantity with a buffer, between the two nearest that were tried; None if none is near."""
        means = {
            tried: float(np.mean(values))
            for tried, runs in sorted(self.runs.items())
            if (values := [value for run in runs if (value := of(run)) is not None])
        }
        if not means or not min(means) / BEYOND <= buffer <= max(means) * BEYOND:
            return None
        return float(np.interp(math.log(buffer), np.log(list(means)), list(means.values())))


def series(runs: Iterable[EvidenceRun]) -> list[Series]:
    """The series of runs."""
    groups: dict[object, Series] = {}
    for run in runs:
        bdp = bdp_packets(run.rate_bps, run.rtt_ns, wire_bytes_of_ip(run.mtu_bytes))
        key = (run.cc, run.flows, run.rate_bps, run.rtt_ns, run.mtu_bytes, run.setting)
        group = groups.setdefault(key, Series(run.cc, run.flows, bdp))
        group.runs.setdefault(run.buffer_packets, []).append(run)
    return list(groups.values())


def least(stored: Sequence[Series], link: Link, measure: str = P01, also: Sequence[Least] = ()) -> Estimate | None:
    """The least buffer, in packets, with which `measure` (P01 or MEAN) is the link's utilization. `also`: bounds that
    were measured for this question. None without enough runs of the algorithm.
    """
    alike = [one for one in stored if _kind(one.cc) == _kind(link.cc)]
    at_levels = {level: _known(alike, measure, level) for level in {*LEVELS, link.utilization}}
    own = {level: known.get(link.cc, []) for level, known in at_levels.items() if level <= link.utilization}
    if also:
        own = {link.utilization: [*own[link.utilization], *also]}
    if len(own[link.utilization]) < LEAST_SERIES:
        return None
    measured = kriging.variogram([_of_bounds(same) for level in LEVELS for same in at_levels[level].values()])
    packets, most = link.bdp / math.sqrt(link.flows), max(MOST_BDP * link.bdp, 1.0)
    ends = []
    for known in own.values():
        if len(known) >= LEAST_SERIES:
            value, deviation = kriging.estimate(_of_bounds(known), measured, _place(link.flows, link.bdp))
            ends.append([packets * math.exp(value + step * deviation) for step in (0, -DEVIATIONS, DEVIATIONS)])
    # What is too small for a lower utilization is too small for this one, so that no end falls as UTIL rises.
    return Estimate(*(min(max(each), most) for each in zip(*ends, strict=True)))


def _known(stored: Sequence[Series], measure: str, utilization: float) -> dict[str, list[Least]]:
    """The least buffers of which a bound is known, by algorithm."""
    known: dict[str, list[Least]] = {}
    for one in stored:
        bounded = one.least(measure, utilization)
        if bounded.low > 0 or not math.isinf(bounded.high):
            known.setdefault(one.cc, []).append(bounded)
    return known


def outcome(stored: Sequence[Series], link: Link, buffer: float) -> Outcome:
    """What `buffer` packets would give on the link, from runs with as large a share of BDP/sqrt(n)."""
    share = buffer * math.sqrt(link.flows) / link.bdp
    window = (link.bdp + buffer) / link.flows

    def of(value: Callable[[Series, EvidenceRun], float | None], back: Callable[[float], float]) -> Estimate | None:
        places: dict[str, list[np.ndarray]] = {}
        values: dict[str, list[float]] = {}
        for one in stored:
            own = share * one.bdp / math.sqrt(one.flows)
            at = one.at(own, functools.partial(value, one)) if _kind(one.cc) == _kind(link.cc) else None
            if at is not None:
                places.setdefault(one.cc, []).append(_place(one.flows, one.bdp))
                values.setdefault(one.cc, []).append(at)
        groups = {
            cc: Samples(np.array(places[cc]), np.array(values[cc]), np.zeros(len(values[cc]))) for cc in sorted(places)
        }
        if len(values.get(link.cc, ())) < LEAST_SERIES:
            return None
        measured = kriging.variogram(list(groups.values()))
        middle, deviation = kriging.estimate(groups[link.cc], measured, _place(link.flows, link.bdp))
        ends = sorted(back(middle + step * deviation) for step in (-DEVIATIONS, DEVIATIONS))
        return Estimate(back(middle), ends[0], ends[1])

    return Outcome(
        of(lambda _, run: _log_idle(run.utilization_mean), _used),
        of(lambda _, run: _log_idle(run.utilization_p01), _used),
        of(lambda _, run: _filled(run), lambda part: link.time_s(buffer) * min(max(part, 0.0), 1.0)),
        of(_log_loss, lambda log: min(max(math.exp(log) / window**2 - LEAST_LOSS, 0.0), 1.0)),
    )


LEAST_IDLE, LEAST_LOSS = 3e-3, 1e-5  # are added before a logarithm is taken


def _log_idle(utilization: float | None) -> float | None:
    return None if utilization is None else math.log(max(1 - utilization, 0.0) + LEAST_IDLE)


def _used(log_idle: float) -> float:
    return min(max(1 - (math.exp(log_idle) - LEAST_IDLE), 0.0), 1.0)


def _filled(run: EvidenceRun) -> float | None:
    """The 99th percentile of the queueing delay over the delay of a full buffer: an arrival waits for the packets that
    it found, and for its own transmission.
    """
    if run.depth_p99 is None:
        return None
    return min(run.depth_p99 + 1, run.buffer_packets) / run.buffer_packets


def _log_loss(of: Series, run: EvidenceRun) -> float | None:
    """The logarithm of loss x window^2, which the window of a flow that halves at a loss leaves nearly constant."""
    window = (of.bdp + run.buffer_packets) / of.flows
    return None if run.loss is None else math.log((run.loss + LEAST_LOSS) * window**2)


def _kind(cc: str) -> bool:
    return cc.startswith(PACED)


def _place(flows: int, bdp: float) -> np.ndarray:
    """The coordinates of a link: ln n and ln(BDP/n)."""
    return np.array([math.log(flows), math.log(bdp / flows)])


def _of_bounds(bounded: Sequence[Least]) -> Samples:
    """Logarithms of B sqrt(n) / BDP: the middle of the bounds, with the variance of an even distribution between."""
    ends = np.array(
        [
            (
                one.low or max(LEAST_SHARE * one.high, LEAST_BUFFER),
                one.high if math.isfinite(one.high) else MOST_BDP * max(one.low, one.bdp),
            )
            for one in bounded
        ]
    )
    scale = np.array([math.sqrt(one.flows) / one.bdp for one in bounded])
    low, high = np.log(ends * scale[:, None]).T
    return Samples(np.array([_place(one.flows, one.bdp) for one in bounded]), (low + high) / 2, (high - low) ** 2 / 12)
