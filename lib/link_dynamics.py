# SPDX-License-Identifier: MIT
"""Links that change during a run: a rate that follows a schedule, and loss and jitter behind the queue.

The soft switch carries these out (softswitch/runtime/dynamics.h); docs/control-protocol.md has their exact meaning.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from statistics import NormalDist

MOST_ENTRIES = 1 << 20  # CORE_MAX_RATE_ENTRIES of softswitch/runtime/core.h
MOST_TIME_NS = 86_400 * 10**9  # MAX_TIME_NS of softswitch/runtime/dynamics_control.c
LEAST_BPS, MOST_BPS = 1000, 10**15  # REQUEST_MIN_RATE_BPS, REQUEST_MAX_RATE_BPS of softswitch/runtime/request.h
MOST_OPPORTUNITIES = 10**6  # at one instant: MAX_OPPORTUNITIES of dynamics_control.c
OPPORTUNITY_BYTES = 1500
NORMAL_WIDTHS = 3  # standard deviations from the mean to each end of a normal jitter
QUANTILES = 257  # of a normal jitter


@dataclass(frozen=True)
class RateSchedule:
    """The rate of a link from a start on: pairs (ns since the start, value), in rising order.

    Steps: from this time on the rate is `value` wire bits per second, 0 for an outage. The first step is at 0, the last
    holds for ever. Opportunities, as in a trace of Mahimahi: at this time IP packets of up to `value` times 1500 bytes
    leave. Bytes that find the queue empty are lost. The list repeats after its last time; its first time is above 0.
    Raises ValueError for a schedule that the switch cannot keep.
    """

    entries: tuple[tuple[int, int], ...]
    opportunities: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.entries) <= MOST_ENTRIES:
            raise ValueError(f"has {len(self.entries)} times; allowed: 1 to {MOST_ENTRIES}")
        first_ns, last_ns = self.entries[0][0], self.entries[-1][0]
        least, most = (1, MOST_OPPORTUNITIES) if self.opportunities else (LEAST_BPS, MOST_BPS)
        if first_ns < 1 if self.opportunities else first_ns:
            raise ValueError(f"begins at {first_ns} ns; allowed: {'above 0' if self.opportunities else '0'}")
        if last_ns > MOST_TIME_NS:
            raise ValueError(f"ends at {last_ns // 10**9} s; allowed: at most {MOST_TIME_NS // 10**9} s")
        for (at_ns, _), (next_ns, _) in pairwise(self.entries):
            if next_ns <= at_ns:
                raise ValueError(f"has {next_ns} ns after {at_ns} ns; allowed: rising times")
        for at_ns, value in self.entries:
            if not least <= value <= most and (value or self.opportunities):
                unit = "opportunities" if self.opportunities else "bit/s"
                raise ValueError(f"has {value} {unit} at {at_ns / 10**9:g} s; allowed: {least} to {most}")
        if not self.entries[-1][1]:
            raise ValueError("ends with a rate of 0; allowed: an outage that ends")

    def rate_at(self, since_ns: int) -> Fraction:
        """The rate at a time: wire bits/s of steps; of opportunities the mean of the whole list, in IP bits/s."""
        if self.opportunities:
            return Fraction(self._before[-1] * 10**9, self.entries[-1][0])
        return Fraction(self.entries[max(bisect_right(self._times_ns, since_ns) - 1, 0)][1])

    def bits_possible(self, from_ns: int, to_ns: int) -> Fraction:
        """The bits that a link which is never idle sends between two times since the start: wire bits of steps, IP bits
        of the opportunities later than `from_ns` and not later than `to_ns`.
        """
        return self._bits_until(to_ns) - self._bits_until(from_ns)

    def peak_bps(self, width_ns: int) -> Fraction:
        """The largest rate of steps; of opportunities that over any time of `width_ns`, in IP bits/s."""
        if not self.opportunities:
            return Fraction(max(rate_bps for _, rate_bps in self.entries))
        starts = zip(self._times_ns, self._before, strict=False)
        most = max(self._bits_until(at_ns + width_ns - 1) - before for at_ns, before in starts)
        return most * 10**9 / width_ns

    def _bits_until(self, since_ns: int) -> Fraction:
        if since_ns <= 0:
            return Fraction(0)
        if self.opportunities:
            turns, rest_ns = divmod(since_ns, self._times_ns[-1])
            return Fraction(turns * self._before[-1] + self._before[bisect_right(self._times_ns, rest_ns)])
        index = bisect_right(self._times_ns, since_ns) - 1
        at_ns, rate_bps = self.entries[index]
        return Fraction(self._before[index] + rate_bps * (since_ns - at_ns), 10**9)

    @cached_property
    def _times_ns(self) -> list[int]:
        return [at_ns for at_ns, _ in self.entries]

    @cached_property
    def _before(self) -> list[int]:
        """The sum before each entry and, last, of all entries: of opportunities bits, of steps 10^-9 bits."""
        if self.opportunities:
            return [0, *accumulate(8 * OPPORTUNITY_BYTES * value for _, value in self.entries)]
        return [0, *accumulate(rate * (end - at) for (at, rate), (end, _) in pairwise(self.entries))]


@dataclass(frozen=True)
class Loss:
    """Random loss of packets as in tc-netem(8): Gilbert-Elliott, with netem's p, r, 1-h and 1-k. `to_bad` and `to_good`
    are the probabilities to change the state after a packet, `in_bad` and `in_good` those to lose a packet in it. The
    first state is the good one. Loss(in_good=p) is Bernoulli.
    """

    to_bad: Fraction = Fraction(0)
    to_good: Fraction = Fraction(1)
    in_bad: Fraction = Fraction(1)
    in_good: Fraction = Fraction(0)

    @property
    def mean(self) -> Fraction:
        """The share of packets lost in the long run."""
        bad = self.to_bad / (self.to_bad + self.to_good) if self.to_bad else Fraction(0)
        return bad * self.in_bad + (1 - bad) * self.in_good

    def settings(self) -> dict[str, int]:
        """The switch's settings: probabilities in units of 2^-64, below 2^64."""
        of = {"good": self.in_good, "bad": self.in_bad, "to_bad": self.to_bad, "to_good": self.to_good}
        return {name: min(int(chance * 2**64), 2**64 - 1) for name, chance in of.items()}


@dataclass(frozen=True)
class Jitter:
    """Delay beyond the propagation delay, drawn for each packet from 0 to `most_ns`. It reorders no packets: a packet
    that would overtake its predecessor leaves together with it. `distribution`: uniform; or normal, with the mean in
    the middle, and cut off at three standard deviations, which are at 0 and `most_ns`.
    """

    most_ns: int
    distribution: str = "uniform"

    def quantiles_ns(self) -> tuple[int, ...]:
        """Quantiles at even probabilities from 0 to 1; between them the distribution function is linear."""
        return tuple(round(self.most_ns * share) for share in _QUANTILES[self.distribution]())


def _normal() -> list[float]:
    normal = NormalDist(0.5, 0.5 / NORMAL_WIDTHS)
    low, high = normal.cdf(0), normal.cdf(1)
    inner = [normal.inv_cdf(low + (high - low) * k / (QUANTILES - 1)) for k in range(1, QUANTILES - 1)]
    return [0.0, *inner, 1.0]


_QUANTILES: dict[str, Callable[[], list[float]]] = {"uniform": lambda: [0.0, 1.0], "normal": _normal}
DISTRIBUTIONS = tuple(_QUANTILES)
