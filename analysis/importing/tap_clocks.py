# SPDX-License-Identifier: MIT
"""Relates the captures of two taps to each other: which packets went from the first to the second, what a router
changed in them (NAT), and the clocks.

A first reading keeps packets by a digest of the fields that no router changes, so that both sides keep the same ones.
The difference between the times of a packet at both taps is the clocks' offset plus its time between them, or minus
that time if it went the other way. So of two hosts that send to each other, the packets with the larger differences
went forward. The clocks differ by a straight line below all differences of packets that went forward, less their time
on the link; packets that went the other way bound it from below. A clock that was set shifts all later differences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from analysis.importing.tap import TCP, TWICE_NS, Tap
from analysis.importing.wrong_times import wrong
from analysis.matching.match import KEY, keys
from analysis.read import switch_clock
from analysis.read.columns import Columns, joined, rows_of
from analysis.read.postcards import wire_bytes
from lib.errors import InputError
from lib.frames import ETHERNET_BYTES

SAMPLE = 1 << 19  # packets to keep of each side, at most
ENDS = {  # the columns of KEY that NAT changes
    "source address": ("src_addr_hi", "src_addr_lo"), "source port": ("src_port",),
    "destination address": ("dst_addr_hi", "dst_addr_lo"), "destination port": ("dst_port",),
}  # fmt: skip
CHANGED = 0.01  # share of the packets in which a field differs before NAT is inferred
LEAST_PAIRS = 20
STEP_NS, WINDOW = 500_000_000, 16  # a step of a clock, and the packets before and after it that must agree
SAME_CLOCK_NS = 10_000_000_000  # clocks that differ by less are synchronized, so a packet must leave after it came
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass
class Clocks:
    """How two taps relate. All times become those of the clock of BEFORE."""

    steps: dict[str, list[tuple[int, int]]]  # of each tap: (row, ns to add from this row on)
    origin_ns: int
    base_ns: int  # AFTER minus BEFORE at `origin_ns` of AFTER
    slope: float  # and its growth
    uncertainty_ns: float | None  # of all times between the taps; None: nothing bounds it from the other side
    longest_ns: int  # of the packets that were compared
    changed: list[str]  # the fields of ENDS that NAT changed
    covered: dict[str, tuple[int, int]]  # of each tap: the first and last time that both captures cover
    forward: dict[str, np.ndarray] = field(default_factory=dict)  # of each tap: digests of addresses behind AFTER
    backward: dict[str, np.ndarray] = field(default_factory=dict)
    behind: np.ndarray | None = None  # digests of all addresses that packets of AFTER go to; None: NAT changes them

    def covers(self, name: str, times: np.ndarray, margin_ns: int = 0) -> np.ndarray:
        """Mask of the times of a tap that both captures cover."""
        first, last = self.covered[name]
        return (times >= first - margin_ns) & (times <= last + margin_ns)

    def place(self, tap: Tap, parts: Iterator[Columns]) -> Iterator[Columns]:
        """Puts the times of a tap onto the one clock, and adds `forward`: whether the packet goes to AFTER."""
        for part in parts:
            times = _shifted(part, self.steps[tap.name])
            if tap.name == "AFTER":
                times -= self.base_ns + np.rint(self.slope * (times - self.origin_ns)).astype(np.int64)
            forward = self._is_forward(tap.name, part)
            if self.behind is not None:
                to = (_address(part, "dst"), self.behind, self.backward[tap.name])
                tap.strays += int(np.count_nonzero(~(forward | among(to[0], to[1]) | among(to[0], to[2]))))
            yield part | {"time_ns": times, "forward": forward}

    def _is_forward(self, name: str, part: Columns) -> np.ndarray:
        """By the destination, else by the source: a host that packets came back to is before the router."""
        src, dst = (_address(part, end) for end in ("src", "dst"))
        from_before = ~among(dst, self.backward[name]) & among(src, self.backward[name])
        return among(dst, self.forward[name]) | (from_before & self._is_behind(dst))

    def _is_behind(self, dst: np.ndarray) -> np.ndarray | bool:
        """Whether AFTER has a packet to this address: others go through other ports of the router, or nowhere."""
        return True if self.behind is None else among(dst, self.behind)


def among(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Mask of the values that are among others, which ascend. np.isin would sort the values."""
    if not len(known):
        return np.zeros(len(values), dtype=bool)
    return known[np.minimum(np.searchsorted(known, values), len(known) - 1)] == values


def compared(before: Tap, after: Tap, rate_bps: int) -> Clocks:
    """Reads both taps once. Raises InputError if they have too few packets in common, or are given the wrong way."""
    (sample, _), (other, behind) = _sample(before), _sample(after)
    one, two = _pairs(sample, other)
    if len(one["row"]) < LEAST_PAIRS:
        raise InputError(
            f"only {len(one['row'])} of {before.packets} packets of BEFORE are in AFTER: they have other times or "
            "links; allowed: captures of the same packets before and behind a router"
        )
    forward = _forward(one, two["time_ns"] - one["time_ns"])
    link_ns = wire_bytes(one["ip_bytes"] + np.uint32(ETHERNET_BYTES)) * 8_000_000_000 // rate_bps
    steps, slope, sound = _set_clocks({"BEFORE": (before, one), "AFTER": (after, two)}, forward, link_ns)
    one, two, forward, link_ns = rows_of(one, sound), rows_of(two, sound), forward[sound], link_ns[sound]
    for name, rows in (("BEFORE", one), ("AFTER", two)):
        rows["time_ns"] = _shifted(rows, steps[name])
    apart, origin = two["time_ns"] - one["time_ns"], int(two["time_ns"][0])
    since = two["time_ns"] - origin
    drifted = np.rint(slope * since).astype(np.int64)
    above = apart - link_ns - drifted
    base = int(above[forward].min())
    uncertainty = None
    if not forward.all():
        below = (apart - drifted)[~forward] - base
        bounds = switch_clock.Bounds.of(
            lambda: [(since, since)],
            lambda: [(since[forward], above[forward] - base)],
            lambda: [(since[~forward], below)],
        )
        _, width, _ = switch_clock.between([bounds.corners()])
        uncertainty = None if width is None else 2 * width  # the line is not in the middle, but at the upper bounds
    _check_order(one, apart, forward)
    changed = [
        what for what, names in ENDS.items()
        if np.mean(np.any([one[name][forward] != two[name][forward] for name in names], axis=0)) > CHANGED
    ]  # fmt: skip
    longest = int((above + link_ns)[forward].max()) - base
    came, left = one["time_ns"], two["time_ns"] - base - drifted
    covered = {  # by packets of both ways; in the queue, packets stay in their order
        "BEFORE": (int(came.min()), int(np.where(forward, came, came - longest).max())),
        "AFTER": (int(np.where(forward, left, left + longest).min()), int(left.max())),
    }
    clocks = Clocks(steps, origin, base, slope, uncertainty, longest, changed, covered)
    for name, rows in (("BEFORE", one), ("AFTER", two)):
        to = _address(rows, "dst")
        clocks.forward[name] = np.unique(to[forward])
        clocks.backward[name] = np.setdiff1d(to[~forward], clocks.forward[name])
    clocks.behind = None if "destination address" in changed else behind
    return clocks


def _set_clocks(
    taps: dict[str, tuple[Tap, Columns]], forward: np.ndarray, link_ns: np.ndarray
) -> tuple[dict[str, list[tuple[int, int]]], float, np.ndarray]:
    """The steps of both clocks as Clocks has them; the growth of AFTER minus BEFORE, from the longest part without a
    step; and a mask of the packets in their flow's order. After a step, the least differences are those of before.
    """
    one, two = (rows["time_ns"] for _, rows in taps.values())
    apart = two - one
    about = int(np.median(apart))
    found = sorted((place, name) for name in taps for place in _steps(taps, name))
    part = {name: np.zeros(len(apart), dtype=np.int64) for name in taps}
    bounds = []
    for place, name in found:
        tap, rows = taps[name]
        near = np.sort(rows["row"])
        at = int(np.searchsorted(near, rows["row"][place]))
        bounds.append(_place_of(tap, int(near[at - 1]), int(near[at])))
        part[name] += rows["row"] >= bounds[-1]
    number = part["BEFORE"] + part["AFTER"]
    sound = ~_look_alikes(taps["BEFORE"][1], two, number)
    forward = forward & sound
    stretch = forward & (number == np.bincount(number[forward]).argmax())
    rise = switch_clock.slope(lambda: [(one[stretch], (two - link_ns - about)[stretch])])  # by the time of BEFORE
    slope = rise / (1 + rise)
    steps: dict[str, list[tuple[int, int]]] = {"BEFORE": [], "AFTER": []}
    now, moved = dict.fromkeys(taps, 0), dict.fromkeys(taps, 0)
    first = None
    for (_, name), bound in zip([(0, ""), *found], [0, *bounds], strict=True):
        if name:
            now[name] += 1
        mine = forward & (part["BEFORE"] == now["BEFORE"]) & (part["AFTER"] == now["AFTER"])
        if not mine.any():
            continue
        above = (apart - link_ns - about)[mine] + moved["AFTER"] - moved["BEFORE"]
        least = int(np.floor((above - slope * (two[mine] + moved["AFTER"] - two[0])).min()))
        first = least if first is None else first
        if shift := (least - first) * (1 if name == "BEFORE" else -1):
            moved[name] += shift
            steps[name].append((bound, shift))
    return steps, slope, sound


def _look_alikes(one: Columns, two_ns: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Mask of the pairs that are no pairs: one capture lost a packet, and the other its copy that TCP sent again. They
    are out of order in their flow, which routers keep in order.
    """
    flow = keys(one | {"tcp_seq": part}, ("tcp_seq", *(name for names in ENDS.values() for name in names)))
    order = np.argsort(flow, kind="stable")
    result = np.empty(len(flow), dtype=bool)
    result[order] = wrong(two_ns[order], flow[order])
    return result


def _shifted(part: Columns, steps: list[tuple[int, int]]) -> np.ndarray:
    times = part["time_ns"].copy()
    for row, shift in steps:
        times[part["row"] >= row] += shift
    return times


def _check_order(one: Columns, apart: np.ndarray, forward: np.ndarray) -> None:
    """Raises InputError if BEFORE and AFTER are exchanged."""
    there, back = (int(one["ip_bytes"][way].sum(dtype=np.int64)) for way in (forward, ~forward))
    if back > there:
        raise InputError(
            f"{back} bytes went from AFTER to BEFORE, {there} the other way: give the captures the other way round"
        )
    if forward.all() and (apart < 0).all() and apart.min() > -SAME_CLOCK_NS:
        raise InputError(
            f"all packets leave before they arrive, by at least {-int(apart.max()) / 1e6:.3f} ms: give the captures "
            "the other way round"
        )


def _sample(tap: Tap) -> tuple[Columns, np.ndarray]:
    """Packets by their digest: those with `bits` zeros in it, which become more when packets become too many. Also the
    digests of all addresses that packets go to.
    """
    bits, kept = 0, list[Columns]()

    def chosen(part: Columns) -> Columns:
        return rows_of(part, part["digest"] * _MULTIPLIER >> np.uint64(64 - bits) == 0) if bits else part

    left_out = {name for names in ENDS.values() for name in names}  # changed by NAT
    to = np.empty(0, dtype=np.uint64)
    for part in tap.read():
        new = np.unique(_address(part, "dst"))
        if not among(new, to).all():
            to = np.union1d(to, new)
        compared = {name: part[name] for name in ("time_ns", *KEY) if name not in left_out}
        compared["options_digest"] = np.where(part["ip_protocol"] == TCP, 0, part["options_digest"])  # may be cut
        part["digest"] = keys(compared)
        kept.append(chosen({name: part[name] for name in _KEPT}))
        while sum(len(part["row"]) for part in kept) > SAMPLE:
            kept = [_ends(joined(*kept))]
            bits += len(kept[0]["row"]) > SAMPLE // 2
            kept = [chosen(kept[0])]
    sample = joined(*kept)
    if tap.wrong:
        sample = rows_of(sample, ~among(sample["row"], np.concatenate(tap.wrong)))
    return sample, to


def _ends(sample: Columns) -> Columns:
    """Only the first and the last packet of each digest: many packets without an IP id may have the same."""
    order = np.argsort(sample["digest"], kind="stable")
    differs = np.diff(sample["digest"][order]) != 0
    return rows_of(sample, np.sort(order[np.append(True, differs) | np.append(differs, True)]))


_KEPT = ("row", "time_ns", "digest", "ip_bytes", *(name for names in ENDS.values() for name in names))


def _pairs(one: Columns, two: Columns) -> tuple[Columns, Columns]:
    """The packets that are in both samples, once in each, in the order of BEFORE's file."""
    rows = []
    for sample in (one, two):
        order = np.argsort(sample["digest"], kind="stable")
        values, first, count = np.unique(sample["digest"][order], return_index=True, return_counts=True)
        times = sample["time_ns"][order]
        once = times[first + count - 1] - times[first] <= TWICE_NS  # copies of a mirror port are one packet
        rows.append((values[once], order[first[once]]))
    _, left, right = np.intersect1d(rows[0][0], rows[1][0], assume_unique=True, return_indices=True)
    left, right = rows[0][1][left], rows[1][1][right]
    order = np.argsort(one["row"][left], kind="stable")
    return rows_of(one, left[order]), rows_of(two, right[order])


def _address(part: Columns, end: str) -> np.ndarray:
    """A digest (uint64) of each packet's address."""
    value = (part[f"{end}_addr_hi"] * _MULTIPLIER ^ part[f"{end}_addr_lo"]) * _MULTIPLIER
    return value ^ value >> np.uint64(29)


def _forward(one: Columns, apart: np.ndarray) -> np.ndarray:
    """Mask of the packets that went from BEFORE to AFTER; all, if no two hosts sent to each other."""
    src, dst = _address(one, "src"), _address(one, "dst")
    up = dst > src
    _, hosts = np.unique(np.stack((np.minimum(src, dst), np.maximum(src, dst))), axis=1, return_inverse=True)
    order = np.argsort(hosts, kind="stable")
    first, second = order[:-1], order[1:]
    both = (hosts[first] == hosts[second]) & (up[first] != up[second])
    first, second = first[both], second[both]
    vote = np.sign(apart[first] - apart[second]) * np.where(up[first], 1, -1)
    votes = np.bincount(hosts[first], weights=vote, minlength=int(hosts.max()) + 1)[hosts]
    result = np.where(votes == 0, True, up == (votes > 0))
    if not result.all() and (votes == 0).any():
        # Of hosts that only send or only receive: by the difference of the packets of known direction next in the file.
        known = np.flatnonzero(votes != 0)
        for row in np.flatnonzero(votes == 0):
            near = known[max(np.searchsorted(known, row) - WINDOW, 0) : np.searchsorted(known, row) + WINDOW]
            ways = [apart[near[result[near] == way]] for way in (True, False)]
            if len(ways[0]) and len(ways[1]):
                result[row] = apart[row] > ways[1].max()
    return result


def _steps(taps: dict[str, tuple[Tap, Columns]], name: str) -> list[int]:
    """The rows from which on, in the order of a tap's file, all differences are others: its clock was set before them.
    In the order of the other tap's file, packets that were between the taps would blur the step.
    """
    rows = taps[name][1]
    order = np.argsort(rows["row"], kind="stable")
    times = {tap: np.diff(columns["time_ns"][order]) for tap, (_, columns) in taps.items()}
    (other,) = taps.keys() - {name}
    apart = (taps["AFTER"][1]["time_ns"] - taps["BEFORE"][1]["time_ns"])[order]
    found = [0]
    for at in np.flatnonzero(np.abs(np.diff(apart)) > STEP_NS // 2).tolist():
        before, after = apart[max(at + 1 - WINDOW, found[-1]) : at + 1], apart[at + 1 : at + 1 + WINDOW]
        step = abs(np.median(after) - np.median(before))
        is_own = abs(times[name][at]) > abs(times[other][at])
        if is_own and step > STEP_NS and np.ptp(before) + np.ptp(after) < step:
            found.append(at + 1)
    return order[found[1:]].tolist()


def _place_of(tap: Tap, after: int, until: int) -> int:
    """The row at which the tap's time jumped most."""
    jumps = [(abs(ns), row) for row, ns in tap.gaps if after < row <= until]
    return max(jumps)[1] if jumps else until
