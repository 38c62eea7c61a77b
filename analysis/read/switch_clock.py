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

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from analysis.arithmetic.by_flow import Axis, Groups
from analysis.arithmetic.sequence import Unwrapped
from analysis.arithmetic.unwrap import near32, switch_steps
from analysis.read.columns import Column, Columns, filed, parts, rows_of, slabs, sort_file
from analysis.read.postcards import has_data
from analysis.read.raw import known
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
POINTS = ("part", "at", "ns")  # of a bound: the part, the time of the switch, the bound on CLOCK_MONOTONIC


Slabs = Callable[[], Iterable[tuple[np.ndarray, np.ndarray]]]  # two columns, slab by slab


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
    def of(cls, times: Slabs, above: Slabs, below: Slabs) -> Bounds:
        """The closest of all bounds (times and bounds, integers), for the span of `times`."""
        ends = [(int(at.min()), int(at.max())) for at, _ in times() if len(at)]
        lowest = _extremes(lambda: ((at, -bound) for at, bound in below()))
        first, last = float(min(at for at, _ in ends)), float(max(at for _, at in ends))
        return cls(first, last, *_extremes(above), lowest[0], -lowest[1])

    def corners(self) -> Bounds:
        """Those that bound a straight line; the others follow from them."""
        above, below = _lower_hull(self.above_at, self.above), _lower_hull(self.below_at, -self.below)
        of_above, of_below = (self.above_at[above], self.above[above]), (self.below_at[below], self.below[below])
        return Bounds(self.first, self.last, *of_above, *of_below)


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


def place(cards: Columns, tcp: Columns, sender: Sender, directory: Path) -> SwitchClock | None:
    """Adds columns, in files, to postcards in the file's order: `timeline_ns`, the enqueue times in ns of the switch,
    without wraps and restarts; `enqueue_mono_ns` and `departure_mono_ns`; and `clock_part`, the number of earlier
    restarts. If the collector is on another machine, changes `rx_mono_ns`, too (_place_stamps). Both tables must number
    the flows alike. Returns None without postcards.
    """
    if not len(cards["rx_mono_ns"]):
        cards |= dict.fromkeys(("timeline_ns", "enqueue_mono_ns", "departure_mono_ns", "clock_part"), np.zeros(0, int))
        return None
    restarts = _timeline(cards, directory)
    rise = slope(lambda: _departures(cards, _longest(cards)))
    origin = int(cards["timeline_ns"][0])
    base = 0

    def estimated(times: np.ndarray) -> np.ndarray:
        """Times of the switch on CLOCK_MONOTONIC by the first estimate, which keeps their order."""
        return times + np.rint(rise * (times - origin)).astype(np.int64) + base

    below, above = _bounds(cards, tcp, sender, directory)
    if count := len(below["ns"]):  # differences become small, hence exact in 64-bit floating point
        ages = filed(directory, ({"ns": part["ns"] - estimated(part["at"])} for part in parts(below, "at", "ns")))
        sort_file(directory, ages, "ns")
        base = int(np.median(ages["ns"][np.array([(count - 1) // 2, count // 2])]))

    def every_above() -> Iterator[Columns]:
        yield from parts(above, *POINTS)
        if sender.has_collector:
            for part in parts(cards, "clock_part", "timeline_ns", "sojourn_ns", "rx_mono_ns"):
                left = part["timeline_ns"] + part["sojourn_ns"]
                yield {"part": part["clock_part"], "at": left, "ns": part["rx_mono_ns"]}

    def of_part(number: int, points: Callable[[], Iterable[Columns]]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for part in points():
            at = part["at"][mine := part["part"] == number]
            yield at - origin, part["ns"][mine] - estimated(at)

    bounds = []
    for number in range(len(restarts) + 1):
        low = partial(of_part, number, partial(parts, below, *POINTS))
        times = low if any(len(at) for at, _ in low()) else partial(_times, cards, number, origin)
        bounds.append(Bounds.of(times, partial(of_part, number, every_above), low))
    lines, uncertainty, misfit = between([of for of in bounds if len(of.below) and len(of.above)])
    more = lines[0].rise if lines else 0.0  # drift beyond the first estimate
    of_parts = []
    for of in bounds:
        # A part without bounds from below goes as high as its bounds from above allow. A part without bounds from
        # above starts at the first estimate.
        most = float((of.above - more * (of.above_at - of.first)).min()) if len(of.above) else 0.0
        of_parts.append(lines.pop(0) if len(of.below) and len(of.above) else _Line(most, more))

    def placed() -> Iterator[Columns]:
        for part in parts(cards, "timeline_ns", "sojourn_ns", "clock_part"):
            at_first, line_rise, first = (
                np.array(values)[part["clock_part"]]
                for values in zip(*((*line, of.first) for line, of in zip(of_parts, bounds, strict=True)), strict=True)
            )
            times = {"enqueue_mono_ns": part["timeline_ns"]}
            times["departure_mono_ns"] = part["timeline_ns"] + part["sojourn_ns"]
            yield {
                name: estimated(at) + np.rint(at_first + line_rise * (at - origin - first)).astype(np.int64)
                for name, at in times.items()
            }

    cards |= filed(directory, placed())
    if not sender.has_collector:
        _place_stamps(cards, directory)
    return SwitchClock(-1e6 * (rise + more), uncertainty, misfit, restarts_mono_ns=restarts)


def _times(cards: Columns, number: int, origin: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The times of all packets of a part, after `origin`."""
    for part in parts(cards, "timeline_ns", "clock_part"):
        at = part["timeline_ns"][part["clock_part"] == number] - origin
        yield at, at


def _longest(cards: Columns) -> int:
    """The part with the most packets."""
    counts = np.zeros(MOST_RESTARTS + 1, dtype=np.int64)
    for part in parts(cards, "clock_part"):
        counts += np.bincount(part["clock_part"], minlength=len(counts))
    return int(counts.argmax())


def _departures(
    cards: Columns, number: int, names: tuple[str, ...] = ("timeline_ns", "sojourn_ns")
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(departure, receive stamp) of the packets of a part; `names`: of columns that add up to the departure."""
    for part in parts(cards, *names, "clock_part", "rx_mono_ns"):
        mine = part["clock_part"] == number
        yield sum(part[name][mine] for name in names), part["rx_mono_ns"][mine]


def _place_stamps(cards: Columns, directory: Path) -> None:
    """Removes the drift from the receive stamps of another machine's clock, and shifts them so that the least delay of
    postcards is 0. In place.
    """
    drift = slope(lambda: _departures(cards, _longest(cards), ("departure_mono_ns",)))
    first = int(cards["departure_mono_ns"][0])

    def placed(least: int = 0) -> Iterator[Columns]:
        for part in parts(cards, "rx_mono_ns", "departure_mono_ns"):
            departure = part["departure_mono_ns"]
            rx = part["rx_mono_ns"] - np.rint(drift * (departure - first)).astype(np.int64)
            yield {"rx_mono_ns": rx - least, "delay": rx - departure}

    least = min(int(part["delay"].min()) for part in placed())
    cards |= filed(directory, ({"rx_mono_ns": part["rx_mono_ns"]} for part in placed(least)))


def _bounds(cards: Columns, tcp: Columns, sender: Sender, directory: Path) -> tuple[Columns, Columns]:
    """Bounds of arrivals from below, and of departures from above, but for the postcards' receive stamps: POINTS, the
    part, the switch's time and the bound on CLOCK_MONOTONIC of the sender.
    """
    requests, sent, answered = _echoes(cards, sender.echoes)
    # A soft switch delays by its own clock. If that clock is fast, its links delay less than nominal.
    least_ns = sender.least_rtt_ns - int(sender.least_rtt_ns * DELAY_TOLERANCE)
    part, came = cards["clock_part"][requests], cards["timeline_ns"][requests]
    left = came + cards["sojourn_ns"][requests]
    below = chain(_not_sent(cards, tcp, directory), [{"part": part, "at": came, "ns": sent}])
    above = chain(_acked(cards, tcp, directory, least_ns), [{"part": part, "at": left, "ns": answered - least_ns}])
    return filed(directory, below), filed(directory, above)


def _echoes(cards: Columns, measured: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows of echo requests, when they were sent, when their replies arrived). Postcards lack the requests'
    numbers: only their order identifies them. All are empty if `measured` is empty, if other packets look like
    requests, or if a request is missing.
    """
    nothing = np.zeros(0, dtype=np.int64)
    found, first, count = [nothing], 0, 0
    most = sum(len(times) + 1 for times in measured)  # each measurement began with an echo that was not stored
    for part in parts(cards, "flags", "packet_bytes"):
        of_ip = (part["flags"] & (CARD["POSTCARD_HAS_IP"] | CARD["POSTCARD_HAS_PORTS"])) == CARD["POSTCARD_HAS_IP"]
        found.append(first + np.flatnonzero(of_ip & (part["packet_bytes"] <= MOST_ECHO_BYTES)))
        first, count = first + len(of_ip), count + len(found[-1])
        if count > most:
            break
    if not measured or count != most:
        return nothing, nothing, nothing
    rows = np.concatenate(found)
    rows = rows[np.argsort(cards["timeline_ns"][rows], kind="stable")]
    counted, begin = [], 0
    for times in measured:
        counted.append(rows[begin + 1 : begin + 1 + len(times)])
        begin += 1 + len(times)
    stored = np.concatenate(measured)
    return np.concatenate(counted), stored[:, 0], stored[:, 0] + stored[:, 1]


def _timeline(cards: Columns, directory: Path) -> list[int]:
    """Adds `timeline_ns` (times without wraps and restarts) and `clock_part` (the part of each row). The first time is
    the first receive stamp. Across a restart, times advance by as much as the receive stamps do. Returns the receive
    stamps of the first postcards after restarts.
    """
    restarts: list[int] = []

    def timeline() -> Iterator[Columns]:
        came_before, rx_before = cards["enqueue_switch_ns"][:1], cards["rx_mono_ns"][:1]
        at = int(rx_before[0])
        for part in parts(cards, "enqueue_switch_ns", "rx_mono_ns"):
            step = switch_steps(np.append(came_before, part["enqueue_switch_ns"]))
            of_stamps = np.diff(part["rx_mono_ns"], prepend=rx_before)
            restart = (step < -BACK_NS) | (step > of_stamps + AHEAD_NS)
            step[restart] = of_stamps[restart]
            times = at + np.cumsum(step)
            yield {"timeline_ns": times, "clock_part": (len(restarts) + np.cumsum(restart)).astype(np.uint8)}
            restarts.extend(part["rx_mono_ns"][restart][: MOST_RESTARTS + 1].tolist())
            if len(restarts) > MOST_RESTARTS:
                return
            at, came_before, rx_before = int(times[-1]), part["enqueue_switch_ns"][-1:], part["rx_mono_ns"][-1:]

    added = filed(directory, timeline())
    if len(restarts) > MOST_RESTARTS:  # no clock: the receive stamps are all that is left
        restarts.clear()
        stamps = parts(cards, "rx_mono_ns")
        added = filed(
            directory,
            (
                {"timeline_ns": part["rx_mono_ns"], "clock_part": np.zeros(len(part["rx_mono_ns"]), np.uint8)}
                for part in stamps
            ),
        )
    cards |= added
    return restarts


def slope(stamps: Slabs) -> float:
    """The drift of receive stamps against departures, which `stamps` has slab by slab: the slope of the lower convex
    hull of rx - departure, in the middle of the departures. Delays only add to the receive stamps, so the hull has the
    fastest postcards. 0 if all departures are at one time.
    """
    first = next(int(departure[0]) for departure, _ in stamps() if len(departure))
    at, ahead = _extremes(lambda: ((departure - first, rx - departure) for departure, rx in stamps()))
    if len(at) < 2:
        return 0.0
    hull = _lower_hull(at, ahead)
    middle = float(at.mean())
    if len(hull) < 2:
        return 0.0
    right = min(max(int(np.searchsorted(at[hull], middle)), 1), len(hull) - 1)
    left, right_end = hull[right - 1], hull[right]
    return float(np.clip((ahead[right_end] - ahead[left]) / (at[right_end] - at[left]), -MAX_DRIFT, MAX_DRIFT))


def _lower_hull(at: np.ndarray, ahead: np.ndarray) -> list[int]:
    """The corners of the lower convex hull of points in the order of time."""
    hull: list[int] = []
    for row in range(len(at)):
        while len(hull) > 1 and _is_above(hull[-2], hull[-1], row, at, ahead):
            hull.pop()
        hull.append(row)
    return hull


def _is_above(left: int, between: int, right: int, at: np.ndarray, ahead: np.ndarray) -> bool:
    """Whether the point between two others lies on or above their connection."""
    rise = (ahead[right] - ahead[left]) * (at[between] - at[left])
    return bool((ahead[between] - ahead[left]) * (at[right] - at[left]) >= rise)


def _extremes(points: Slabs) -> tuple[np.ndarray, np.ndarray]:
    """(time, value) of the least value in each of BINS equal spans of time, in the order of time; of points that come
    slab by slab.
    """
    ends = [(int(at.min()), int(at.max())) for at, _ in points() if len(at)]
    if not ends:
        return np.zeros(0), np.zeros(0)
    begin = min(first for first, _ in ends)
    span = float(max(last for _, last in ends) - begin) + 1
    least_at, least = np.zeros(BINS, dtype=np.int64), np.full(BINS, np.iinfo(np.int64).max)
    for at, values in points():
        bins = ((at - begin) * (BINS / span)).astype(np.int64)
        order = np.lexsort((values, bins))
        known, first = np.unique(bins[order], return_index=True)
        lower = values[order[first]] < least[known]
        known, rows = known[lower], order[first[lower]]
        least_at[known], least[known] = at[rows], values[rows]
    filled = least < np.iinfo(np.int64).max
    return least_at[filled].astype(np.float64), least[filled].astype(np.float64)


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


def _not_sent(cards: Columns, tcp: Columns, directory: Path) -> Iterator[Columns]:
    """POINTS of arrivals: the time of the last trace record in which each packet was not sent yet."""
    for packets, record, first, _, ns in _traced(cards, tcp, "snd_nxt", directory):
        earlier = record > first
        part, came = packets["part"][earlier], packets["came"][earlier]
        yield {"part": part, "at": came, "ns": ns[record[earlier] - 1]}


def _acked(cards: Columns, tcp: Columns, directory: Path, least_ns: int) -> Iterator[Columns]:
    """POINTS of departures: the time of the first trace record in which the first byte of each packet was acknowledged,
    less the least RTT.
    """
    for packets, record, _, last, ns in _traced(cards, tcp, "snd_una", directory):
        later = record < last
        part, left = packets["part"][later], packets["left"][later]
        yield {"part": part, "at": left, "ns": ns[record[later]] - least_ns}


def _traced(
    cards: Columns, tcp: Columns, column: str, directory: Path
) -> Iterator[tuple[Columns, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """For the flows with the most packets, flow by flow: data packets that go beyond all earlier ones of their flow, in
    the order of their times; for each the first record of its flow in which `column`, a sequence number, is beyond
    the packet's, or where it would be; the first and last record of its flow, and the times of all records.
    """
    size = 1 + max((int(part["flow"].max()) for table in (cards, tcp) for part in parts(table, "flow")), default=0)
    recorded, counts = np.zeros((2, size), dtype=np.int64)
    for part in parts(tcp, "flow", "unknown_fields"):
        recorded += np.bincount(part["flow"][known(part, column)], minlength=size)
    for part in parts(cards, "flow", "flags", "packet_bytes"):
        counts += np.bincount(part["flow"][has_data(part)], minlength=size)  # a pure ACK's number is always snd_nxt
    flows = np.flatnonzero((recorded > 0) & (counts > 0))
    flows = flows[np.argsort(-counts[flows], kind="stable")][:MOST_FLOWS]
    rank = np.full(size, MOST_FLOWS, dtype=np.uint8)
    rank[flows] = np.arange(len(flows))

    def data() -> Iterator[Columns]:
        names = ("flow", "flags", "packet_bytes", "tcp_seq", "timeline_ns", "sojourn_ns", "clock_part")
        for part in parts(cards, *names):
            part = rows_of(part, has_data(part) & (rank[part["flow"]] < MOST_FLOWS))
            yield {
                "rank": rank[part["flow"]], "came": part["timeline_ns"], "part": part["clock_part"],
                "left": part["timeline_ns"] + part["sojourn_ns"], "seq": part["tcp_seq"].astype(np.uint32),
            }  # fmt: skip

    def records() -> Iterator[Columns]:
        for part in parts(tcp, "flow", "unknown_fields", column, "mono_ns"):
            part = rows_of(part, known(part, column) & (rank[part["flow"]] < MOST_FLOWS))
            value = part[column].astype(np.uint32)
            yield {"rank": rank[part["flow"]], "seq": value, "ns": part["mono_ns"], "at": np.zeros(len(value), int)}

    if not len(flows):
        return
    sent, seen = filed(directory, data()), filed(directory, records())
    sort_file(directory, sent, "came")
    for table in (sent, seen):
        sort_file(directory, table, "rank")
    ends = np.cumsum(recorded[flows])
    begins = ends - recorded[flows]
    first_value, first_seq = seen["seq"][begins].astype(np.int64), sent["seq"][np.cumsum(counts[flows]) - counts[flows]]
    shift = near32(first_value, first_seq.astype(np.int64)) - first_value
    for rows, seq, before in _running(seen):
        cast(Column, seen["at"]).write(rows.start, np.maximum(before, seq) + shift[seen["rank"][rows]])
    axis = Axis.of(seen["at"][begins], seen["at"][ends - 1])
    for rows in slabs(len(seen["at"])):
        cast(Column, seen["at"]).write(rows.start, axis.at(seen["rank"][rows], seen["at"][rows]))
    for rows, seq, before in _running(sent):
        # Neither snd_nxt nor snd_una bounds a retransmission's time, so only packets beyond all earlier ones are used.
        further = seq > before
        packets, seq = rows_of(rows_of(sent, rows), further), seq[further]
        found = np.searchsorted(seen["at"], axis.clipped(packets["rank"], seq), side="right")
        yield packets, found, begins[packets["rank"]], ends[packets["rank"]], seen["ns"]


def _running(table: Columns) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """The rows of a table of flows, one after the other, slab by slab; their sequence numbers, unwrapped; and the
    highest of the flow's earlier rows.
    """
    unwrapped, highest = Unwrapped(MOST_FLOWS), np.full(MOST_FLOWS, np.iinfo(np.int64).min)
    for rows in slabs(len(table["seq"])):
        groups = Groups.of_sorted(np.arange(rows.stop - rows.start), table["rank"][rows])
        seq = unwrapped.add(groups, table["seq"][rows])
        before = np.empty_like(seq)
        for flow, start, end in zip(groups.flow, groups.starts, groups.ends, strict=True):
            running = np.maximum.accumulate(np.append(highest[flow], seq[start:end]))
            before[start:end], highest[flow] = running[:-1], running[-1]
        yield rows, seq, before
