# SPDX-License-Identifier: MIT
"""Converts times of a switch's clock to CLOCK_MONOTONIC of the sender. `is_free` says for which switches: those whose
clock cannot be read from outside (Capabilities.clock_readable), those on another machine than the sender, and in runs
on machines every switch that does not compute departures (Capabilities.exact_time).

The sender's clock bounds the times of packets:

- From below: a packet arrives at the queue after the last trace record in which it was not sent yet (snd_nxt); an echo
  request arrives after it was sent.
- From above: the ACK of a packet, or the reply to an echo request, arrives at least one RTT of the links after the
  packet's transmission began. If the collector runs on the sender's machine, a postcard is received after its packet's
  transmission began, too.

If the drift is constant, the difference between the clocks is a straight line over time, between these bounds. Many
lines fit. At the first and at the last packet with a bound from below, the fitting lines span a range of values. The
chosen line goes through the middles of both ranges, and the uncertainty of all times between is half the wider range.
If no line fits, the bounds are moved apart by the least amount that makes one fit. The uncertainty includes this
amount, the misfit.

A switch's clock wraps around (48 bits, 78 hours), and starts anew when the switch restarts. Each part between restarts
has its own offset; the drift is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from analysis.arithmetic.unwrap import near32, switch_steps, unwrap32
from analysis.read.postcards import has_data
from analysis.read.raw import Columns, known
from model.experiment import Experiment
from wire import wire

CARD = wire.POSTCARD.const
# A restart is a step of the switch's time, between neighbours in the file, that goes back by more than BACK_NS (longer
# than a sojourn), or exceeds the receive stamps' step by more than AHEAD_NS (longer than a collector stands still).
BACK_NS, AHEAD_NS = 5_000_000_000, 10_000_000_000
BINS = 1 << 12  # number of equal spans of a part's time; each keeps at most one bound from above and one from below
MOST_FLOWS = 64  # bounds come from the flows with the most packets; these flows are enough
ROUNDING_NS = 2.0  # times are rounded to whole ns
MOST_RESTARTS = 20  # times with more restarts are not those of a switch's clock
MOST_ECHO_BYTES = 78  # size of the frame with an echo request of hosts/traffic/idle_rtt.py over IPv6
DELAY_TOLERANCE = 1e-4  # fraction of the links' delays: the largest drift of an oscillator
MAX_DRIFT = 1e-3  # limit of the first estimate, and of the correction to it; oscillators drift by at most 1e-4
ONE_GROUP = np.zeros(1, dtype=np.int64)


@dataclass
class SwitchClock:
    """The conversion of a run's times to CLOCK_MONOTONIC, and its uncertainty."""

    drift_ppm: float  # of the switch's clock; positive: it is fast
    uncertainty_ns: float | None  # of times during the traffic; None: no part is bounded from both sides
    misfit_ns: float = 0.0  # by how much the bounds had to move apart for a line to fit
    misspaced: int | None = None  # packets whose transmission took another time than wire bits / rate; None: not known
    restarts_mono_ns: list[int] = field(default_factory=list)  # receive stamps of the first postcards after restarts


@dataclass
class Bounds:
    """Bounds of one part. Each has a time of the switch (`_at`) and a value: the bound on CLOCK_MONOTONIC minus the
    first estimate of CLOCK_MONOTONIC at that time, in ns.
    """

    first: float  # time of the first packet that is bounded from below; if there is none, of the first packet
    last: float
    above_at: np.ndarray
    above: np.ndarray
    below_at: np.ndarray
    below: np.ndarray

    @classmethod
    def of(
        cls, times: np.ndarray, above_at: np.ndarray, above: np.ndarray, below_at: np.ndarray, below: np.ndarray
    ) -> Bounds:
        """The closest of all bounds (integers), for the span of `times`."""
        lowest = _extremes(below_at, -below)
        return cls(float(times.min()), float(times.max()), *_extremes(above_at, above), lowest[0], -lowest[1])


class Sender(NamedTuple):
    """The sender's data beside its trace."""

    least_rtt_ns: int  # the shortest over all paths, without queues: the links' delays
    # (when sent, round trip) in ns, of the requests before and after the traffic; all were answered
    echoes: tuple[np.ndarray, ...] = ()
    has_collector: bool = True  # the collector is on the sender's machine, so the sender's clock stamps postcards


class _Line(NamedTuple):
    """A part's offset, beyond the first estimate, in ns: at its `first` time, and per ns."""

    at_first: float
    rise: float


def is_free(spec: Experiment) -> bool:
    """Whether the offset of the switch's clock from the sender's can be inferred only from packets."""
    can = spec.capabilities
    if can is None:
        return False
    # The runner reads a remote switch's clock over ssh, which relates that clock to the runner's, not to the sender's.
    is_read_from_afar = bool(spec.machines) and not can.exact_time
    return not can.clock_readable or is_read_from_afar or is_apart(spec, "switch")


def is_apart(spec: Experiment, part: str) -> bool:
    """Whether this part of the run (`switch`, `receiver` or `collector`) is on another machine than the sender."""
    return spec.machines is not None and spec.machines.get(part) != spec.machines.get("sender")


def place(cards: Columns, tcp: Columns, sender: Sender) -> SwitchClock | None:
    """Adds columns to postcards in the file's order: `timeline_ns`, the enqueue times in ns of the switch, without
    wraps and restarts; `enqueue_mono_ns` and `departure_mono_ns`; and `clock_part`, the number of earlier restarts. If
    the collector is on another machine, changes `rx_mono_ns`, too (_place_stamps). Both tables must number the flows
    alike. Returns None without postcards.
    """
    came, rx = cards["enqueue_switch_ns"], cards["rx_mono_ns"]
    if not len(came):
        for name in ("timeline_ns", "enqueue_mono_ns", "departure_mono_ns", "clock_part"):
            cards[name] = came.view(np.int64)
        return None
    timeline, part = _timeline(came, rx)
    departure = timeline + cards["sojourn_ns"]
    lengths = np.bincount(part)
    longest = part == lengths.argmax()
    rise = slope(departure[longest], rx[longest])
    origin = timeline[0]
    base = 0

    def estimated(times: np.ndarray) -> np.ndarray:
        """Times of the switch on CLOCK_MONOTONIC by the first estimate, which keeps their order."""
        return times + np.rint(rise * (times - origin)).astype(np.int64) + base

    below, above = _bounds(cards, tcp, timeline, sender)
    if len(below.rows):  # differences become small, hence exact in 64-bit floating point
        base = int(np.median(below.times_ns - estimated(timeline[below.rows])))
    parts = []
    for number in range(len(lengths)):
        mine = np.flatnonzero(part == number)
        low, high = below.only(part[below.rows] == number), above.only(part[above.rows] == number)
        left = departure[high.rows]
        age = low.times_ns - estimated(timeline[low.rows])
        times = (timeline[low.rows] if len(low.rows) else timeline[mine]) - origin
        parts.append(Bounds.of(times, left - origin, high.times_ns - estimated(left), timeline[low.rows] - origin, age))
    lines, uncertainty, misfit = between([of for of in parts if len(of.below) and len(of.above)])
    more = lines[0].rise if lines else 0.0  # drift beyond the first estimate
    placed, gone = estimated(timeline), estimated(departure)
    for number, of in enumerate(parts):
        # A part without bounds from below goes as high as its bounds from above allow. A part without bounds from
        # above starts at the first estimate.
        most = float((of.above - more * (of.above_at - of.first)).min()) if len(of.above) else 0.0
        line = lines.pop(0) if len(of.below) and len(of.above) else _Line(most, more)
        mine = part == number
        for times, at in ((placed, timeline), (gone, departure)):
            times[mine] += np.rint(line.at_first + line.rise * (at[mine] - origin - of.first)).astype(np.int64)
    restarts = rx[np.flatnonzero(np.diff(part)) + 1].tolist()
    clock = SwitchClock(-1e6 * (rise + more), uncertainty, misfit, restarts_mono_ns=restarts)
    cards["timeline_ns"], cards["clock_part"] = timeline, part
    cards["enqueue_mono_ns"], cards["departure_mono_ns"] = placed, gone
    if not sender.has_collector:
        _place_stamps(cards)
    return clock


def _place_stamps(cards: Columns) -> None:
    """Removes the drift from the receive stamps of another machine's clock, and shifts them so that the least delay of
    postcards is 0. In place.
    """
    rx, departure = cards["rx_mono_ns"], cards["departure_mono_ns"]
    longest = cards["clock_part"] == np.bincount(cards["clock_part"]).argmax()
    drift = slope(departure[longest], rx[longest])
    rx = rx - np.rint(drift * (departure - departure[0])).astype(np.int64)
    cards["rx_mono_ns"] = rx - int((rx - departure).min())


class _Points(NamedTuple):
    """Bounds of packets' times: rows of the postcards, and the bounds on CLOCK_MONOTONIC of the sender."""

    rows: np.ndarray
    times_ns: np.ndarray

    def only(self, which: np.ndarray) -> _Points:
        return _Points(self.rows[which], self.times_ns[which])


def _bounds(cards: Columns, tcp: Columns, came: np.ndarray, sender: Sender) -> tuple[_Points, _Points]:
    """Bounds of arrivals from below, and of departures from above."""
    requests, sent, answered = _echoes(cards, came, sender.echoes)
    known, ack_came = acked(cards, tcp, came)
    unsent, then = not_sent(cards, tcp, came)
    below = _Points(np.concatenate((unsent, requests)), np.concatenate((then, sent)))
    # A soft switch delays by its own clock. If that clock is fast, its links delay less than nominal.
    least_ns = sender.least_rtt_ns - int(sender.least_rtt_ns * DELAY_TOLERANCE)
    rows, times = [known, requests], [ack_came - least_ns, answered - least_ns]
    if sender.has_collector:
        rows.append(np.arange(len(came)))
        times.append(cards["rx_mono_ns"])
    return below, _Points(np.concatenate(rows), np.concatenate(times))


def _echoes(
    cards: Columns, came: np.ndarray, measured: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows of echo requests, when they were sent, when their replies arrived). Postcards lack the requests'
    numbers: only their order identifies them. All are empty if `measured` is empty, if other packets look like
    requests, or if a request is missing.
    """
    of_ip = (cards["flags"] & (CARD["POSTCARD_HAS_IP"] | CARD["POSTCARD_HAS_PORTS"])) == CARD["POSTCARD_HAS_IP"]
    rows = np.flatnonzero(of_ip & (cards["packet_bytes"] <= MOST_ECHO_BYTES))
    rows = rows[np.argsort(came[rows], kind="stable")]
    nothing = np.zeros(0, dtype=np.int64)
    # Each measurement began with an echo that was not stored.
    if not measured or len(rows) != sum(len(times) + 1 for times in measured):
        return nothing, nothing, nothing
    counted, begin = [], 0
    for times in measured:
        counted.append(rows[begin + 1 : begin + 1 + len(times)])
        begin += 1 + len(times)
    stored = np.concatenate(measured)
    return np.concatenate(counted), stored[:, 0], stored[:, 0] + stored[:, 1]


def _timeline(switch_ns: np.ndarray, rx_mono_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(times without wraps and restarts, the part of each row). The first time is the first receive stamp. Across a
    restart, times advance by as much as the receive stamps do.
    """
    step = switch_steps(switch_ns)
    of_stamps = np.diff(rx_mono_ns)
    restart = (step < -BACK_NS) | (step > of_stamps + AHEAD_NS)
    if np.count_nonzero(restart) > MOST_RESTARTS:  # no clock: the receive stamps are all that is left
        return rx_mono_ns.copy(), np.zeros(len(rx_mono_ns), dtype=np.int64)
    step[restart] = of_stamps[restart]
    timeline = rx_mono_ns[0] + np.concatenate(([0], np.cumsum(step)))
    return timeline, np.concatenate(([0], np.cumsum(restart)))


def slope(departure: np.ndarray, rx: np.ndarray) -> float:
    """The drift of receive stamps against departures: the slope of the lower convex hull of rx - departure, in the
    middle of the departures. Delays only add to the receive stamps, so the hull has the fastest postcards. 0 if all
    departures are at one time.
    """
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
    left, right_end = hull[right - 1], hull[right]
    return float(np.clip((ahead[right_end] - ahead[left]) / (at[right_end] - at[left]), -MAX_DRIFT, MAX_DRIFT))


def _is_above(left: int, between: int, right: int, at: np.ndarray, ahead: np.ndarray) -> bool:
    """Whether the point between two others lies on or above their connection."""
    rise = (ahead[right] - ahead[left]) * (at[between] - at[left])
    return bool((ahead[between] - ahead[left]) * (at[right] - at[left]) >= rise)


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


def between(parts: list[Bounds]) -> tuple[list[_Line], float | None, float]:
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

    solution = linprog(goal, A_ub=matrix, b_ub=limit, bounds=free, method="highs")
    if solution.status != 0:
        raise AssertionError(f"linprog: {solution.message}")
    return float(solution.fun)


def not_sent(cards: Columns, tcp: Columns, came: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows of packets, the time of the last trace record in which each was not sent yet)."""
    rows, times = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for packets, seq, records, following in _traced(cards, tcp, came, "snd_nxt"):
        earlier = np.searchsorted(np.maximum.accumulate(following), seq, side="right") - 1
        rows.append(packets[earlier >= 0])
        times.append(tcp["mono_ns"][records[earlier[earlier >= 0]]])
    return np.concatenate(rows), np.concatenate(times)


def acked(cards: Columns, tcp: Columns, came: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows of packets, the time of the first trace record in which the first byte of each was acknowledged)."""
    rows, times = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for packets, seq, records, first_open in _traced(cards, tcp, came, "snd_una"):
        later = np.searchsorted(np.maximum.accumulate(first_open), seq, side="right")
        rows.append(packets[later < len(records)])
        times.append(tcp["mono_ns"][records[later[later < len(records)]]])
    return np.concatenate(rows), np.concatenate(times)


def _traced(
    cards: Columns, tcp: Columns, came: np.ndarray, column: str
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """For each of the flows with the most packets: rows of its data packets that go beyond all earlier ones, their
    sequence numbers, rows of its trace that have `column`, and the values of `column`, which are sequence numbers.
    """
    has_value = np.flatnonzero(known(tcp, column))
    has_tcp = np.flatnonzero(has_data(cards))  # a pure ACK's number is always snd_nxt
    of_packet, of_record = cards["flow"][has_tcp], tcp["flow"][has_value]
    flows = np.unique(of_record)
    counts = np.bincount(of_packet, minlength=int(flows.max(initial=0)) + 1)[flows]
    for flow in flows[np.argsort(-counts, kind="stable")][:MOST_FLOWS].tolist():
        packets, records = has_tcp[of_packet == flow], has_value[of_record == flow]
        if not len(packets):
            continue
        packets = packets[np.argsort(came[packets], kind="stable")]
        seq = unwrap32(cards["tcp_seq"][packets], ONE_GROUP)
        values = unwrap32(tcp[column][records], ONE_GROUP)
        values += near32(int(values[0]), int(seq[0])) - values[0]
        # Neither snd_nxt nor snd_una bounds a retransmission's time, so only packets beyond all earlier ones are used.
        further = seq > np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(seq)[:-1]))
        yield packets[further], seq[further], records, values
