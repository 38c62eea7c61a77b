# SPDX-License-Identifier: MIT
"""The clock of a switch that nothing reads from outside (Capabilities.clock_readable), as CLOCK_MONOTONIC of the
collector, which is also the sender's.

Two facts bound it. No postcard is received before its packet's transmission began, which bounds the time of each of
these from above. And no packet comes to the queue before its sender's last trace record in which it was not sent yet
(snd_nxt), which bounds its arrival from below. If the clock's drift is constant, its time is a line between these
points. All such lines together reach from a lowest to a highest time at the first packet with both bounds, and at the
last: times are placed in the middle of both, and half the larger distance is the uncertainty of all times between. If
no line fits, the points are moved apart by as much as it takes, and that is part of the uncertainty.

A switch's clock wraps (48 bits, 78 hours), and begins anew when the switch restarts. Each part between restarts has
its own offset; the drift is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from analysis.postcards import NO_DATA_BYTES
from analysis.raw import Columns, known
from analysis.unwrap import SWITCH_TIME_BITS, near32, unwrap32
from controlplane.targets import TARGETS
from wire import wire

CARD = wire.POSTCARD.const
BACK_NS, AHEAD_NS = 5_000_000_000, 10_000_000_000  # a step of the switch's time, against the receive stamps', between
# neighbours in the file: further back than a sojourn, or ahead than a collector stands still, it is a restart
BINS = 1 << 12  # of a part's time; each has one bound from above and one from below
MOST_FLOWS = 64  # with the most packets: enough for a bound
ROUNDING_NS = 2.0  # of times, which are whole ns
MOST_RESTARTS = 20  # more are no clock of a switch
MAX_DRIFT = 1e-3  # of the first estimate, and beyond it; oscillators have 1e-4
ONE_GROUP = np.zeros(1, dtype=np.int64)


@dataclass
class SwitchClock:
    """How the times of a run were placed."""

    drift_ppm: float  # of the switch's clock; positive: it is fast
    uncertainty_ns: float | None  # of times during the traffic; None: nothing bounds them from below
    misfit_ns: float = 0.0  # by how much the bounds had to move, for a line to fit
    restarts_mono_ns: list[int] = field(default_factory=list)  # receive stamps of the first postcards after restarts


@dataclass
class _Bounds:
    """Points of one part: times of the switch, and CLOCK_MONOTONIC less these times, by a first estimate (ns)."""

    first: float  # time of the first packet that is bounded from below; of all packets, if none is
    last: float
    above_at: np.ndarray
    above: np.ndarray
    below_at: np.ndarray
    below: np.ndarray


class _Line(NamedTuple):
    """A part's offset, beyond the first estimate, in ns: at its `first` time, and per ns."""

    at_first: float
    rise: float


def is_free(spec: dict[str, Any]) -> bool:
    """Whether the run's target has a clock that nothing reads from outside."""
    target = TARGETS.get(str(spec.get("target", "soft")))
    return target is not None and not target.capabilities.clock_readable


def place(cards: Columns, tcp: Columns) -> SwitchClock | None:
    """Adds to postcards in the file's order: `timeline_ns`, the enqueue times on one line, in ns of the switch,
    `enqueue_mono_ns`, and `clock_part`, the number of restarts before. Flow numbers of both tables must be the same.
    None without postcards.
    """
    came, rx = cards["enqueue_switch_ns"], cards["rx_mono_ns"]
    if not len(came):
        cards["timeline_ns"] = cards["enqueue_mono_ns"] = cards["clock_part"] = came.view(np.int64)
        return None
    timeline, part = _timeline(came, rx)
    departure = timeline + cards["sojourn_ns"]
    lengths = np.bincount(part)
    longest = part == lengths.argmax()
    slope = _slope(departure[longest], rx[longest])
    origin = timeline[0]
    offset = np.rint(slope * (timeline - origin)).astype(np.int64)
    packets, not_sent = _not_sent(cards, tcp, timeline)
    parts = []
    for number in range(len(lengths)):
        mine, bounded = np.flatnonzero(part == number), packets[part[packets] == number]
        ahead = rx[mine] - departure[mine] - slope * (departure[mine] - origin)
        age = not_sent[part[packets] == number] - (timeline[bounded] + offset[bounded])
        above = _extremes(departure[mine] - origin, ahead)
        below = _extremes(timeline[bounded] - origin, -age)
        times = (timeline[bounded] if len(bounded) else timeline[mine]) - origin
        parts.append(_Bounds(float(times.min()), float(times.max()), *above, below[0], -below[1]))
    lines, uncertainty, misfit = _between([of for of in parts if len(of.below)])
    more = lines[0].rise if lines else 0.0  # drift beyond the first estimate
    placed = timeline + offset
    for number, of in enumerate(parts):
        # A part without bounds from below goes as high as its bounds from above allow.
        highest = float((of.above - more * (of.above_at - of.first)).min())
        line = lines.pop(0) if len(of.below) else _Line(highest, more)
        mine = part == number
        placed[mine] += np.rint(line.at_first + line.rise * (timeline[mine] - origin - of.first)).astype(np.int64)
    clock = SwitchClock(-1e6 * (slope + more), uncertainty, misfit, rx[np.flatnonzero(np.diff(part)) + 1].tolist())
    cards["timeline_ns"], cards["enqueue_mono_ns"], cards["clock_part"] = timeline, placed, part
    return clock


def _timeline(switch_ns: np.ndarray, rx_mono_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(times without wraps and restarts, the part of each row). The first time is its receive stamp; the first after a
    restart is as long after the one before it as their receive stamps are.
    """
    shift = np.uint64(64 - SWITCH_TIME_BITS)
    times = switch_ns.astype(np.uint64)
    step = (times[1:] - times[:-1] << shift).view(np.int64) >> np.int64(shift)
    of_stamps = np.diff(rx_mono_ns)
    restart = (step < -BACK_NS) | (step > of_stamps + AHEAD_NS)
    if np.count_nonzero(restart) > MOST_RESTARTS:  # no clock: the receive stamps are all that is left
        return rx_mono_ns.copy(), np.zeros(len(rx_mono_ns), dtype=np.int64)
    step[restart] = of_stamps[restart]
    timeline = rx_mono_ns[0] + np.concatenate(([0], np.cumsum(step)))
    return timeline, np.concatenate(([0], np.cumsum(restart)))


def _slope(departure: np.ndarray, rx: np.ndarray) -> float:
    """The slope of the lower convex hull of rx - departure over the departures, at their mean; 0 with one point."""
    at = (departure - departure[0]).astype(np.float64)
    ahead = (rx - departure).astype(np.float64)
    span = at.max() - at.min()
    if not span:
        return 0.0
    at, ahead = _extremes(at, ahead)
    hull: list[int] = []
    for row in range(len(at)):
        while len(hull) > 1 and _is_above(hull[-2], hull[-1], row, at, ahead):
            hull.pop()
        hull.append(row)
    middle = float(at.mean())
    if len(hull) < 2:
        return 0.0
    right = min(max(int(np.searchsorted(at[hull], middle)), 1), len(hull) - 1)
    one, other = hull[right - 1], hull[right]
    return float(np.clip((ahead[other] - ahead[one]) / (at[other] - at[one]), -MAX_DRIFT, MAX_DRIFT))


def _is_above(one: int, between: int, other: int, at: np.ndarray, ahead: np.ndarray) -> bool:
    """Whether the point between two others lies on or above their connection."""
    rise = (ahead[other] - ahead[one]) * (at[between] - at[one])
    return bool((ahead[between] - ahead[one]) * (at[other] - at[one]) >= rise)


def _extremes(at: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(time, value) of the least value in each of BINS equal spans of time, in the order of time."""
    if not len(at):
        return np.zeros(0), np.zeros(0)
    span = float(at.max() - at.min()) + 1
    bins = ((at - at.min()) * (BINS / span)).astype(np.int64)
    order = np.lexsort((values, bins))
    least = order[np.unique(bins[order], return_index=True)[1]]
    least = least[np.argsort(at[least], kind="stable")]
    return at[least].astype(np.float64), values[least].astype(np.float64)


def _between(parts: list[_Bounds]) -> tuple[list[_Line], float | None, float]:
    """(the middle line of each part, the largest uncertainty or None, misfit), in ns. All parts have both bounds.

    Linear programs: the unknowns are the drift, an offset for each part, and in the first program the misfit.
    """
    if not parts:
        return [], None, 0.0
    scale = max(max(of.last for of in parts), 1.0)
    rows, limits = [], []
    for number, of in enumerate(parts):
        for at, bound, sign in ((of.above_at, of.above, 1.0), (of.below_at, of.below, -1.0)):
            row = np.zeros((len(at), len(parts) + 2))
            row[:, 0], row[:, 1 + number], row[:, -1] = sign * at / scale, sign, -1.0
            rows.append(row)
            limits.append(sign * bound)
    matrix, limit = np.concatenate(rows), np.concatenate(limits)
    free: list[tuple[float | None, float | None]] = [(-MAX_DRIFT * scale, MAX_DRIFT * scale)]
    free += [(None, None)] * len(parts)
    goal = np.zeros(len(parts) + 2)
    goal[-1] = 1.0
    misfit = _solved(goal, matrix, limit, [*free, (0, None)])
    of_lines, limit = matrix[:, :-1], limit + misfit + ROUNDING_NS
    lines: list[_Line] = []
    widest = 0.0
    for number, of in enumerate(parts):
        middles = []
        for end in (of.first, of.last):
            goal = np.zeros(len(parts) + 1)
            goal[0], goal[1 + number] = end / scale, 1.0
            low, high = _solved(goal, of_lines, limit, free), -_solved(-goal, of_lines, limit, free)
            middles.append((low + high) / 2)
            widest = max(widest, (high - low) / 2)
        lines.append(_Line(middles[0], (middles[1] - middles[0]) / max(of.last - of.first, 1.0)))
    return lines, widest + misfit + ROUNDING_NS, misfit


def _solved(
    goal: np.ndarray, matrix: np.ndarray, limit: np.ndarray, free: Sequence[tuple[float | None, float | None]]
) -> float:
    """The least value of goal * x with matrix * x <= limit."""
    from scipy.optimize import linprog  # takes long to import, and few runs need it

    found = linprog(goal, A_ub=matrix, b_ub=limit, bounds=free, method="highs")
    if found.status != 0:
        raise AssertionError(f"linprog: {found.message}")
    return float(found.fun)


def _not_sent(cards: Columns, tcp: Columns, came: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows of packets, the time of the last trace record in which each was not sent yet)."""
    rows, times = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    has_next = np.flatnonzero(known(tcp, "snd_nxt"))
    has_tcp = (cards["flags"] & CARD["POSTCARD_HAS_TCP"]) != 0
    has_tcp = np.flatnonzero(has_tcp & (cards["packet_bytes"] > NO_DATA_BYTES))  # a pure ACK has snd_nxt, however late
    flows = np.unique(tcp["flow"][has_next])
    counts = np.bincount(cards["flow"][has_tcp], minlength=int(flows.max(initial=0)) + 1)[flows]
    for flow in flows[np.argsort(-counts, kind="stable")][:MOST_FLOWS].tolist():
        packets = has_tcp[cards["flow"][has_tcp] == flow]
        records = has_next[tcp["flow"][has_next] == flow]
        if not len(packets):
            continue
        packets = packets[np.argsort(came[packets], kind="stable")]
        seq = unwrap32(cards["tcp_seq"][packets], ONE_GROUP)
        following = unwrap32(tcp["snd_nxt"][records], ONE_GROUP)
        following += near32(int(following[0]), int(seq[0])) - following[0]
        earlier = np.searchsorted(np.maximum.accumulate(following), seq, side="right") - 1
        # snd_nxt says nothing of a packet that is sent again: only those further than all before them are of use.
        further = seq > np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(seq)[:-1]))
        useful = further & (earlier >= 0)
        rows.append(packets[useful])
        times.append(tcp["mono_ns"][records[earlier[useful]]])
    return np.concatenate(rows), np.concatenate(times)
