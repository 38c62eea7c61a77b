# SPDX-License-Identifier: MIT
"""Keys of a bottleneck link that changes: a RATE with steps or of a trace, LOSS and JITTER behind the queue.
lib/link_dynamics.py has their meaning.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from pathlib import Path
from typing import Any

from lib import link_trace, regular, units
from lib.frames import wire_bytes_of_ip
from lib.link_dynamics import DISTRIBUTIONS, RateSchedule
from lib.places import shipped
from lib.quantities import Rate, Time
from lib.values import number
from model.experiment import Jitter, Loss, Source

LOSS_FORM = "bursts:P:R[:BAD[:GOOD]]"
RATE_WHY = "below, a packet of 1500 bytes takes over 0.19 s; above, this machine's time stamps are too coarse"
STEPS_FORM = "200mbit,10s:50mbit,20s:200mbit"
TRACE = "trace:"
STEADY = Rate.within("64kbit", "100gbit", RATE_WHY)
_SINCE = Time.within("0ns", "86400s")
_CHANCE, _LOSS = number("0", "1", percent=True), number("0", "0.5", percent=True)
_JITTER = Time.within("0ns", "10s")


class ChangingRate(Rate):
    """`amount` is the first rate above 0; of opportunities the mean in IP bits/s."""

    shown: str
    schedule: RateSchedule
    trace: Source | None

    @classmethod
    def of(cls, text: str, schedule: RateSchedule, trace: Source | None = None) -> ChangingRate:
        first = next(rate for _, rate in schedule.entries if rate)
        mean = schedule.rate_at(0) if schedule.opportunities else Fraction(first)
        rate = cls(STEADY(f"{units.nearest(mean)}bit").text)
        rate.shown, rate.schedule, rate.trace = text, schedule, trace
        return rate

    def __str__(self) -> str:
        return self.shown


def read_rate(value: object) -> Rate:
    """A constant rate, or a ChangingRate."""
    text = str(value).strip()
    if text.lower().startswith(TRACE):
        return _trace(text, shipped(regular.expanded(text[len(TRACE) :])))
    first, *later = text.split(",")
    if not later:
        return STEADY(value)
    entries = [(0, STEADY(first).bps)]
    for word in later:
        time, colon, rate = word.strip().partition(":")
        if not colon:
            raise ValueError(f"cannot be read at {word!r}; allowed: steps as in {STEPS_FORM}")
        bps = Rate(rate)
        entries.append((_SINCE(time).ns, STEADY(rate).bps if bps.amount else 0))
    return ChangingRate.of(text, RateSchedule(tuple(entries)))


def _trace(given: str, path: Path) -> Rate:
    try:
        text = link_trace.read(path)
        schedule = link_trace.parse(text)
        source = Source(name=path.stem, file=path.name, sha256=hashlib.sha256(text.encode()).hexdigest(), text=text)
        return ChangingRate.of(given, schedule, source)
    except ValueError as error:
        raise ValueError(f"names {path}: {error}") from None


def fastest_bps(rate: Rate) -> int:
    """The largest rate; of opportunities the mean."""
    if isinstance(rate, ChangingRate) and not rate.schedule.opportunities:
        return units.nearest(rate.schedule.peak_bps(1))
    return rate.bps


def resolve(rate: Rate, mtu: int) -> tuple[int, dict[str, Any]]:
    """The rate at the start in wire bits/s (of opportunities the mean, with packets of `mtu` bytes), and the fields of
    an experiment that a changing rate has.
    """
    if not isinstance(rate, ChangingRate):
        return rate.bps, {}
    wire_share = Fraction(wire_bytes_of_ip(mtu), mtu) if rate.schedule.opportunities else 1
    rate_bps = units.nearest(rate.amount * wire_share)
    return rate_bps, {"rate_trace": rate.trace} if rate.trace else {"rate_steps": rate.schedule.entries}


def read_loss(value: object) -> Loss | None:
    """None: no packet is lost."""
    kind, *words = str(value).split(":")
    if kind != "bursts" and words:
        raise ValueError(f"is no kind of loss; allowed: 0 to 0.5, or {LOSS_FORM} as in bursts:0.001:0.2")
    if not words:
        loss = Loss(in_good=float(_LOSS(value)))
    elif not 2 <= len(words) <= 4:
        raise ValueError(f"has not two to four probabilities; allowed: {LOSS_FORM} as in bursts:0.001:0.2")
    else:
        chances = [float(_CHANCE(word)) for word in words]
        if not chances[1]:
            raise ValueError("never leaves the bad state; allowed: R above 0")
        loss = Loss(**dict(zip(("to_bad", "to_good", "in_bad", "in_good"), chances, strict=False)))
    return loss if loss.of_link.mean else None


def read_jitter(value: object) -> Jitter | None:
    """None: no jitter."""
    distribution, colon, time = str(value).rpartition(":")
    if colon and distribution not in DISTRIBUTIONS:
        raise ValueError(f"is no jitter; allowed: 2ms, or {' or '.join(f'{name}:2ms' for name in DISTRIBUTIONS)}")
    most_ns = _JITTER(time).ns
    return Jitter(most_ns=most_ns, distribution=distribution or DISTRIBUTIONS[0]) if most_ns else None
