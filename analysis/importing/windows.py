# SPDX-License-Identifier: MIT
"""Windows from a log of the sender's host beside captures: tcp:tcp_probe as text (text.py), or `ss -tin` (sockets.py).

The log's clock is placed on that of the capture by sequence numbers. The capture has an ACK before the sender knows of
it, and a segment after the sender counts it as sent. So a record comes after the ACK that reached its snd_una, and
before the first segment beyond its snd_nxt. Records are placed as late as these segments allow: what matters of a
window is which segments it released. The ACKs bound how much too late that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from analysis.arithmetic.unwrap import near32, unwrap32
from analysis.importing import sockets, text
from analysis.importing.fields import Events
from analysis.importing.outstanding import ACK, ADDRESSES
from analysis.importing.tap import FIN, SYN, TCP, matching
from analysis.importing.write import Provenance, append, stored_events
from analysis.read import switch_clock
from analysis.read.columns import Columns, filed, joined, rows_of
from analysis.read.flows import MAX_FLOWS, FiveTuple, FlowTable, flow_words
from lib import regular
from lib.errors import InputError
from lib.terminal import counted
from wire import wire

WATCHED, SAMPLE = 256, 1 << 18  # connections, those with the most records, and records that place the clock
MARGIN_NS = 1_000_000_000  # records so long before and after the capture are kept
MISFIT_NS = 10_000_000  # a contradiction between log and capture that is worth a note
PROBE = wire.TCP_RECORD.const["TCP_EVENT_PROBE"]
ALLOWED = (
    "lines of tcp:tcp_probe as tracefs, trace-cmd report or perf script print them, or of `ss -tin` after the time of "
    "each reading (docs/your-capture.md)"
)


class Log(NamedTuple):
    """The records of a log. If they count bytes from a connection's SYN (`acked`, `sent`), its clock is CLOCK_REALTIME;
    else it may be any.
    """

    events: Events
    files: list[Path]
    counts_bytes: bool


def read(patterns: list[str], directory: Path) -> Log:
    """Raises InputError."""
    paths, found = [path for pattern in patterns for path in matching(pattern)], dict[bool, list[Events]]()
    for path in paths:
        if not path.is_file():
            what = regular.NOT_REGULAR if path.exists() else "does not exist"
            raise InputError(f"{path}: {what}; allowed for TRACE: {ALLOWED}")
        if text.kind(path) == "trace":
            found.setdefault(False, []).append(text.read_trace(path, directory))
        elif sockets.is_log(text.head_of(path)):
            found.setdefault(True, []).append(sockets.read(path, directory))
        else:
            raise InputError(f"{path}: is no log of windows; allowed for TRACE: {ALLOWED}")
    if len(found) != 1:
        raise InputError("TRACE names logs of two kinds; allowed: tcp_probe, or ss -tin")
    ((counts_bytes, parts),) = found.items()
    events = text.joined(parts, **text.counts(parts))
    if PROBE not in events.known or not events.rows:
        raise InputError(f"{paths[0]}: has no record of a connection's window; allowed: {ALLOWED}")
    return Log(events, paths, counts_bytes)


@dataclass
class _Connection:
    """Sampled records in the order of time, and how far the capture has come. The capture's numbers are counted on from
    the log's; in a log that counts bytes, the SYN is number 0.
    """

    time_ns: np.ndarray
    acked: np.ndarray  # int64; they do not fall
    sent: np.ndarray
    counts_bytes: bool
    furthest: int | None = None  # that was sent; None: no packet yet
    last: int = 0  # the number of the last packet's end, and as the packet has it: 32 bits
    last_end: int = 0
    reached: int | None = None  # by ACKs
    next_sent: int = 0  # the first record that no segment is beyond
    next_acked: int = 0

    def segments(self, times_ns: np.ndarray, end: np.ndarray, is_syn: bool) -> tuple[np.ndarray, np.ndarray]:
        """Packets of the sender, in the order of time, with the numbers (uint32) of their ends; `is_syn`: the first is
        a SYN. Returns the times (of the log, of the capture) between which the clock is bounded from above.
        """
        if self.furthest is None:
            if self.counts_bytes and not is_syn:  # nobody knows what number the connection began with
                return times_ns[:0], times_ns[:0]
            self.last = 1 if self.counts_bytes else int(near32(int(end[0]), int(self.acked[0])))
            self.furthest, self.last_end = self.last, int(end[0])
        ahead = np.diff(end, prepend=np.uint32(self.last_end)).view(np.int32)
        numbers = self.last + np.cumsum(ahead, dtype=np.int64)
        far = np.maximum(np.maximum.accumulate(numbers), self.furthest)
        self.last, self.last_end, self.furthest = int(numbers[-1]), int(end[-1]), int(far[-1])
        first, self.next_sent = self.next_sent, max(int(np.searchsorted(self.sent, far[-1])), self.next_sent)
        rows = slice(first, self.next_sent)
        return self.time_ns[rows], times_ns[np.searchsorted(far, self.sent[rows], side="right")]

    def acks(self, times_ns: np.ndarray, ack: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ACKs to the sender; the times between which the clock is bounded from below."""
        if self.furthest is None:
            return times_ns[:0], times_ns[:0]
        numbers = self.last + (ack - np.uint32(self.last_end)).view(np.int32).astype(np.int64)
        if self.reached is None:  # of what it acknowledges, an earlier ACK may have acknowledged a part
            self.next_acked = int(np.searchsorted(self.acked, numbers[0], side="right"))
        far = np.maximum(np.maximum.accumulate(numbers), numbers[0] if self.reached is None else self.reached)
        self.reached = int(far[-1])
        first = self.next_acked
        self.next_acked = max(int(np.searchsorted(self.acked, far[-1], side="right")), first)
        rows = slice(first, self.next_acked)
        return self.time_ns[rows], times_ns[np.searchsorted(far, self.acked[rows])]


@dataclass
class Windows:
    """`add` all TCP packets of a capture, then `write` the log's records, then `say` what is known of them."""

    log: Log
    directory: Path
    name: str  # of the capture
    records: int = 0
    outside: int = 0  # records of times that the capture does not have
    offset_ns: int = 0
    uncertainty_ns: float | None = None
    _table: FlowTable = field(default_factory=FlowTable)
    _watched: dict[int, _Connection] = field(default_factory=dict)
    _above: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)  # times (of the log, of the capture)
    _below: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    _span: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        def numbered() -> Iterator[Columns]:
            for part in self.log.events.parts("event", "src_port", "dst_port", *ADDRESSES):
                flow = self._table.numbers(flow_words(part, TCP))
                flow[part["event"] != PROBE] = MAX_FLOWS
                yield {"flow": flow}

        self._flow = filed(self.directory, numbered())["flow"]
        size = len(self._table) + 1  # the last has all that is nothing
        self._sends, self._passes = (np.zeros(size, dtype=bool) for _ in range(2))  # the capture has data, or anything
        counts, watched = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=bool)
        for _, flow in self._parts("event"):
            counts += np.bincount(flow, minlength=size)
        watched[np.argsort(-counts[:-1], kind="stable")[:WATCHED]] = True
        stride, at, kept = max(int(counts[watched].sum()) // SAMPLE, 1), 0, list[Columns]()
        for part, flow in self._parts("mono_ns", *self._numbers()):
            rows = np.flatnonzero(watched[flow])
            rows, at = rows[-at % stride :: stride], at + len(rows)
            kept.append(rows_of(part | {"flow": flow}, rows))
        sample = joined(*kept)
        order = np.lexsort((sample["mono_ns"], sample["flow"]))
        sample = rows_of(sample, order)
        begins = np.flatnonzero(np.diff(sample["flow"].astype(np.int64), prepend=-1))
        acked, sent = (sample[name] for name in self._numbers())
        if not self.log.counts_bytes:
            ahead = (sent - acked).astype(np.uint32)
            acked = unwrap32(acked.astype(np.uint32), begins)
            sent = acked + ahead
        for first, last in zip(begins.tolist(), [*begins.tolist()[1:], len(order)], strict=True):
            of = [np.maximum.accumulate(numbers[first:last]) for numbers in (acked, sent)]
            connection = _Connection(sample["mono_ns"][first:last], of[0], of[1], self.log.counts_bytes)
            self._watched[int(sample["flow"][first])] = connection

    def _numbers(self) -> tuple[str, str]:
        return ("acked", "sent") if self.log.counts_bytes else ("snd_una", "snd_nxt")

    def _parts(self, *names: str) -> Iterator[tuple[Columns, np.ndarray]]:
        """Columns of the log, and the records' numbers of flows."""
        at = 0
        for part in self.log.events.parts(*names):
            rows = len(next(iter(part.values())))
            yield part, np.minimum(self._flow[at : at + rows], len(self._table))
            at += rows

    def add(self, tcp: Columns, forward: np.ndarray) -> None:
        """TCP packets in the order of time. `forward`: those whose windows are of interest; the others acknowledge."""
        if not len(forward):
            return
        first, last = int(tcp["time_ns"][0]), int(tcp["time_ns"][-1])
        self._span = (first, last) if self._span is None else (self._span[0], max(last, self._span[1]))
        for is_ack, ends in ((False, ("src", "dst")), (True, ("dst", "src"))):
            rows = np.flatnonzero((tcp["tcp_flags"] & ACK != 0) & ~forward if is_ack else forward)
            flow = self._table.find(flow_words(rows_of(tcp, rows), TCP, *ends))
            rows, flow = rows[flow >= 0], flow[flow >= 0]
            if not is_ack:
                other = self._table.find(flow_words(rows_of(tcp, np.flatnonzero(forward)), TCP, "dst", "src"))
                self._passes[other[other >= 0]] = True  # the receiver's end of a connection
                self._sends[flow[tcp["payload_bytes"][rows] > 0]] = True
            self._passes[flow] = True
            order = np.argsort(flow, kind="stable")
            rows, flow = rows[order], flow[order]
            for mine in np.split(np.arange(len(flow)), np.flatnonzero(np.diff(flow)) + 1):
                if len(mine) and (connection := self._watched.get(int(flow[mine[0]]))):
                    self._bound(connection, rows_of(tcp, rows[mine]), is_ack)

    def _bound(self, connection: _Connection, packets: Columns, is_ack: bool) -> None:
        times_ns, control = packets["time_ns"], packets["tcp_flags"]
        if is_ack:
            self._below.append(connection.acks(times_ns, packets["tcp_ack"]))
            return
        end = packets["tcp_seq"] + packets["payload_bytes"] + (control & SYN != 0) + (control & FIN != 0)
        self._above.append(connection.segments(times_ns, end.astype(np.uint32), bool(control[0] & SYN)))

    def write(self, file: BinaryIO, first: int) -> int:
        """Appends the records of the capture's connections, of its time, to a trace with `first` records. Returns how
        many it has then. Raises InputError.
        """
        if not self._sends.any():
            which = "sends data" if self._passes.any() else "is"
            raise InputError(
                f"no connection of TRACE {which} in {self.name}, of {len(self._table)}, as {self._table.tuples()[0]}; "
                "allowed: the log of the senders' host, of the time of the capture, with the addresses there"
            )
        place, known, begin = self._placed(), self.log.events.known, first
        assert self._span
        for part, flow in self._parts():
            part["mono_ns"] = place(part["mono_ns"])
            inside = (part["mono_ns"] > self._span[0] - MARGIN_NS) & (part["mono_ns"] < self._span[1] + MARGIN_NS)
            mine = self._sends[flow]
            self.outside += int(np.count_nonzero(mine & ~inside))
            rows = stored_events(rows_of(part, mine & inside), known)
            first = append(file, rows, "BLOCK_TCP", wire.TCP_RECORD.const["TCP_RECORD_VERSION"], first)
        self.records = first - begin
        return first

    def _placed(self) -> Callable[[np.ndarray], np.ndarray]:
        """Puts times of the log onto the capture's clock."""
        above, below = (
            tuple(np.concatenate(each) for each in zip(*points, strict=True))
            if points
            else (np.zeros(0, np.int64),) * 2
            for points in (self._above, self._below)
        )
        self._above, self._below = [], []
        both = np.append(above[1] - above[0], below[1] - below[0])
        if not len(both):
            if not self.log.counts_bytes:
                raise InputError(
                    f"TRACE cannot be placed on the clock of {self.name}: no segment and no ACK is of the log's time; "
                    "allowed: a log of the time of the capture"
                )
            return lambda times: times  # both are CLOCK_REALTIME
        self.offset_ns = int(np.median(both))
        origin = int(min(at.min() for at in (above[0], below[0]) if len(at)))
        (since, ahead), (since_below, least) = ((at - origin, of - at - self.offset_ns) for at, of in (above, below))
        if not len(ahead):
            self.offset_ns += int(least.max())
            return lambda times: times + self.offset_ns
        fits = len(least) and least.max() <= ahead.min()  # without a drift
        rise = 0.0 if fits else switch_clock.slope(lambda: [(since, since + ahead)])
        line = int((ahead - np.rint(rise * since).astype(np.int64)).min())
        if len(least):
            bounds = switch_clock.Bounds.of(
                lambda: [(at, at) for at in (since, since_below)],
                lambda: [(since, ahead)],
                lambda: [(since_below, least)],
            )
            _, width, _ = switch_clock.between([bounds.corners()])
            # Twice: the line is not in the middle, but at the upper bounds.
            self.uncertainty_ns = None if width is None else 2 * width
        base = self.offset_ns
        self.offset_ns += line
        return lambda times: times + (base + line) + np.rint(rise * (times - origin)).astype(np.int64)

    def say(self, source: Provenance, sending: list[FiveTuple]) -> None:
        """`sending`: the flows of the capture that are listed."""
        of_tcp = [flow.words() for flow in sending if flow.protocol == TCP]
        found = self._table.find(np.array(of_tcp, dtype=np.uint64).reshape(-1, 5).T) if of_tcp else np.zeros(0)
        sends, passes = (int(np.count_nonzero(mask)) for mask in (self._sends, self._passes))
        bound = "nothing bounds it" if self.uncertainty_ns is None else f"at most {self.uncertainty_ns / 1000:.3f} us"
        source.remarks.append(
            f"windows: cwnd of {counted(sends, 'connection')} by {counted(self.records, 'record')} of TRACE, whose "
            f"clock is {-self.offset_ns / 1e9:+.6f} s from that of {self.name}: as late as no segment comes before the "
            f"record that released it ({bound} too late)"
        )
        for number, what in (
            (len(self._table) - passes, f"connections of TRACE are not in {self.name}"),
            (passes - sends, f"connections of TRACE send no data that way through {self.name}"),
            (self.outside, f"records of TRACE are of other times than {self.name}"),
            (
                int(np.count_nonzero(found < 0)),
                "connections that send data are not in TRACE: their windows are unknown",
            ),
        ):
            source.remarks += [f"{number} {what}"] * bool(number)
        if (self.uncertainty_ns or 0) > MISFIT_NS:
            source.notes.append(
                f"the times of TRACE are known within {(self.uncertainty_ns or 0) / 1e6:.1f} ms: few records, a far "
                "host, or a clock that was set"
            )
