# SPDX-License-Identifier: MIT
"""The least buffer that is enough, by bisection: what to measure next, and what the measurements say. Pure.

A buffer is enough if the whole Student's t interval of its repetitions' mean is (analysis/least_buffer.py, which
figures use too), not enough if none of it is. Where repetitions leave that open there are more of them, up to
most_reps; where they still do, the buffer bounds nothing and both sides of it are searched: the interval is as wide as
the noise. Steps are geometric, because the width that is asked for is relative and the rules go over two decades of
buffers. Bisection relies on more buffer being no worse; where measurements contradict that, the result says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from analysis.least_buffer import bounds, contradiction, verdict
from experiments.sweep.spec import Search

Measured = Mapping[int, Sequence[float | None]]  # packets -> a number for each repetition, None if it has no valid run


class Step(NamedTuple):
    """A buffer that so many repetitions are needed of, earlier ones included."""

    packets: int
    repetitions: int


class Found(NamedTuple):
    """The least buffer is more than `low` packets and at most `high`; None where there is no such bound."""

    low: int | None
    high: int | None
    runs: int
    note: str


def next_steps(measured: Measured, low: int, high: int, reps: int, search: Search) -> list[Step]:
    """What to measure next between `low` and `high` packets; nothing if the result is as narrow as it can be."""
    ends = [Step(packets, reps) for packets in sorted({low, high}) if len(measured.get(packets, ())) < reps]
    if ends:
        return ends
    more = [_more(packets, values, reps, search) for packets, values in sorted(measured.items())]
    if any(more):
        return [step for step in more if step]
    return [Step(packets, reps) for packets in _middles(measured, search)]


def found(measured: Measured, low: int, high: int, reps: int, search: Search) -> Found:
    """What the measurements say so far."""
    notes = []
    judged = {packets: verdict(values, search.least) for packets, values in sorted(measured.items())}
    between = bounds(measured, search.least)
    contradicted = contradiction(measured, search.least)
    if next_steps(measured, low, high, reps, search):
        notes.append("not finished")
    if contradicted:
        notes.append(f"not monotone: {contradicted[0]} packets are enough and {contradicted[1]} are not")
    elif between.high == low:
        notes.append(f"at most {low}, the least that was tried")
    elif between.low == high:
        notes.append(f"more than {high}, the most that was tried")
    undecided = [packets for packets, one in judged.items() if one is None]
    if undecided:
        notes.append(f"repetitions disagree with {', '.join(map(str, undecided))} packets")
    lost = sum(value is None for values in measured.values() for value in values)
    if lost:
        notes.append(f"{lost} runs are not valid")
    return Found(
        int(between.low) or None,
        None if math.isinf(between.high) else int(between.high),
        sum(len(values) for values in measured.values()) - lost,
        "; ".join(notes),
    )


def steps_at_most(low: int, high: int, width: float) -> int:
    """Buffers that a search without noise measures at most."""
    halvings = math.log2(max(math.log(high / low) / math.log1p(width), 1)) if high > low else 0
    return 2 + math.ceil(halvings)


def _more(packets: int, values: Sequence[float | None], reps: int, search: Search) -> Step | None:
    """More repetitions of a buffer: those that are missing, or twice as many where they leave it open."""
    if len(values) < reps:
        return Step(packets, reps)
    if verdict(values, search.least) is None and len(values) < search.most_reps:
        return Step(packets, min(2 * len(values), search.most_reps))
    return None


def _middles(measured: Measured, search: Search) -> list[int]:
    """The middle of each gap that is still too wide: between the bounds, or from each to what is open between them."""
    between = bounds(measured, search.least)
    inside = [packets for packets in sorted(measured) if between.low < packets < between.high]
    gaps = [(between.low, inside[0]), (inside[-1], between.high)] if inside else [(between.low, between.high)]
    return [
        min(max(round(math.sqrt(low * high)), int(low) + 1), int(high) - 1)
        for low, high in gaps
        if low > 0 and not math.isinf(high) and high - low > max(1.0, search.width * low)
    ]
