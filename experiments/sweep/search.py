# SPDX-License-Identifier: MIT
"""Searches for the least buffer by bisection: the next measurements, and the result of the measurements so far. Pure
functions.

A buffer is enough if the whole Student's t interval of its repetitions' mean meets the criterion, and not enough if the
whole interval misses the criterion (analysis/papers/least_buffer.py, which figures use too). A single repetition has no
interval: its value decides. A buffer whose interval contains the criterion's bound is undecided and gets more
repetitions, up to most_reps. A buffer that stays undecided is not a bound, and the search goes on at both sides, so the
result is as wide as the noise. The two bounds of the result may be measured more often (edge_reps) than the buffers on
the way. Steps are geometric, because the wanted width is relative and the literature's rules span two decades of
buffers. Bisection assumes that more buffer is no worse. If measurements contradict this, the result says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from analysis.papers.least_buffer import bounds, contradiction, verdict
from experiments.sweep.spec import Search

Measured = Mapping[int, Sequence[float | None]]  # packets -> a number for each repetition, None if it has no valid run


class TriedBuffer(NamedTuple):
    """A buffer, and the number of its repetitions, earlier ones included."""

    packets: int
    repetitions: int


class LeastBuffer(NamedTuple):
    """The least buffer is more than `low` packets and at most `high`; None: no such bound."""

    low: int | None
    high: int | None
    runs: int
    note: str


def next_steps(measured: Measured, low: int, high: int, reps: int, search: Search) -> list[TriedBuffer]:
    """The next measurements between `low` and `high` packets; none if the result is narrow enough, or cannot become
    narrower.
    """
    ends = [TriedBuffer(packets, reps) for packets in sorted({low, high}) if len(measured.get(packets, ())) < reps]
    if ends:
        return ends
    more = [_more(packets, values, reps, search) for packets, values in sorted(measured.items())]
    if any(more):
        return [step for step in more if step]
    middles = [TriedBuffer(packets, reps) for packets in _middles(measured, search)]
    return middles or _edges(measured, search)


def least_buffer(measured: Measured, low: int, high: int, reps: int, search: Search) -> LeastBuffer:
    """The result of the measurements so far."""
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
    undecided = [packets for packets, enough in judged.items() if enough is None]
    if undecided:
        notes.append(f"repetitions disagree at {', '.join(map(str, undecided))} packets")
    lost = sum(value is None for values in measured.values() for value in values)
    if lost:
        notes.append(f"{lost} runs are not valid")
    return LeastBuffer(
        int(between.low) or None,
        None if math.isinf(between.high) else int(between.high),
        sum(len(values) for values in measured.values()) - lost,
        "; ".join(notes),
    )


def steps_at_most(low: int, high: int, width: float) -> int:
    """The most buffers that a search without noise measures. Rounding to whole packets may add one more."""
    halvings = math.log2(max(math.log(high / low) / math.log1p(width), 1)) if high > low else 0
    return 2 + math.ceil(halvings)


def _more(packets: int, values: Sequence[float | None], reps: int, search: Search) -> TriedBuffer | None:
    """More repetitions of a buffer: the missing ones; if the buffer is undecided, as many again, up to most_reps."""
    if len(values) < reps:
        return TriedBuffer(packets, reps)
    if verdict(values, search.least) is None and len(values) < search.most_reps:
        return TriedBuffer(packets, min(2 * len(values), search.most_reps))
    return None


def _edges(measured: Measured, search: Search) -> list[TriedBuffer]:
    """The bounds of the result that have fewer repetitions than `edge_reps`."""
    between = bounds(measured, search.least)
    return [
        TriedBuffer(int(packets), search.edge_reps)
        for packets in (between.low, between.high)
        if packets in measured and len(measured[int(packets)]) < search.edge_reps
    ]


def _middles(measured: Measured, search: Search) -> list[int]:
    """The middle of each gap that is too wide: between the bounds, or between a bound and the undecided buffers."""
    between = bounds(measured, search.least)
    inside = [packets for packets in sorted(measured) if between.low < packets < between.high]
    gaps = [(between.low, inside[0]), (inside[-1], between.high)] if inside else [(between.low, between.high)]
    return [
        min(max(round(math.sqrt(low * high)), int(low) + 1), int(high) - 1)
        for low, high in gaps
        if low > 0 and not math.isinf(high) and high - low > max(1.0, search.width * low)
    ]
