# SPDX-License-Identifier: MIT
"""Windows that nobody recorded: the packets in flight at each ACK, by the sequence and ACK numbers that a capture has,
as records of a trace (wire/tcp_record.def). They are the sender's, as late as his segments come by: an ACK counts when
the segments that he sent upon it can have come, by his answer to the SYN or SYN-ACK; without a handshake when the ACK
itself comes by. A segment that does not go beyond all earlier ones of its flow counts as retransmitted, also if it was
overtaken. The memory is that of a part of the capture, and of some numbers for each flow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from analysis.importing.tap import FIN, SYN
from analysis.importing.write import append, unknown_fields
from analysis.read.columns import Columns, joined, rows_of, sort
from wire import wire

EVENT = wire.TCP_RECORD.const
PROBE, RETRANSMIT = EVENT["TCP_EVENT_PROBE"], EVENT["TCP_EVENT_RETRANSMIT"]
ADDRESSES = ("src_addr_hi", "src_addr_lo", "dst_addr_hi", "dst_addr_lo")
OF_ACK = {"mono_ns", "event", "src_port", "dst_port", *ADDRESSES, "snd_nxt", "snd_una"}
OF_SEGMENT = OF_ACK | {"event_seq", "data_bytes"}
ACK = 0x10
OF_FLOW = ("sent", "acked", "told_ns", "asked_ns", "way_ns")
MOST_WAY_NS = 10**9  # a longer one is of an answer that the capture lacks; it would also hold ACKs for so long
PER_RTT = 4  # records of each flow: a window changes once in an RTT
TURN = 1 << 32  # of sequence numbers
APART = 1 << 34  # between the numbers of two flows


@dataclass
class Outstanding:
    """Writes the records of one sender's side into `file`. Sequence numbers are counted on beyond 32 bits."""

    file: BinaryIO
    of_acks: bool = True  # else only of segments that are sent again
    records: int = 0
    sent: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # by flow, the highest; 0: none yet
    acked: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    told_ns: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # the time of its last record
    asked_ns: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # of its SYN-ACK; -1: answered
    way_ns: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # from here to the sender and back
    held: Columns = field(default_factory=dict)  # ACKs that do not count yet

    def add(self, part: Columns, flow: np.ndarray, is_ack: np.ndarray, rtt_ns: int) -> None:
        """TCP packets in the order of time: segments of the flows to AFTER, and ACKs that come back (`is_ack`), each
        with the number of the flow whose data it is about. `end` must follow the last ones.
        """
        if not len(flow):
            return
        missing = max(int(flow.max()) + 1 - len(self.sent), 0)
        more = np.zeros(max(missing, len(self.sent)) if missing else 0, dtype=np.int64)
        for name in OF_FLOW:
            setattr(self, name, np.append(getattr(self, name), more))
        self._learn_ways(part, flow, is_ack)
        last_ns = int(part["time_ns"][-1])
        counts_ns = part["time_ns"] + np.where(is_ack, self.way_ns[flow], 0)
        new = {**part, "time_ns": counts_ns, "flow": flow, "is_segment": ~is_ack}
        all_of = sort(joined(self.held, new) if self.held else new, "time_ns", "is_segment")
        ready = int(np.searchsorted(all_of["time_ns"], last_ns, side="right"))
        self.held = rows_of(all_of, slice(ready, None))
        self._count(rows_of(all_of, slice(ready)), rtt_ns)

    def end(self, rtt_ns: int) -> None:
        if self.held and len(self.held["flow"]):
            self._count(self.held, rtt_ns)

    def _learn_ways(self, part: Columns, flow: np.ndarray, is_ack: np.ndarray) -> None:
        """From the last SYN, or SYN-ACK, that goes to the sender to his next segment, if that is near."""
        control, times_ns = part["tcp_flags"], part["time_ns"]
        asks = is_ack & (control & SYN != 0) & (self.asked_ns[flow] >= 0)
        np.maximum.at(self.asked_ns, flow[asks], times_ns[asks])
        asked_ns = self.asked_ns[flow]
        answers = ~is_ack & (control & ACK != 0) & (asked_ns > 0) & (times_ns >= asked_ns)
        flows, first = np.unique(flow[answers], return_index=True)
        ways_ns = times_ns[answers][first] - self.asked_ns[flows]
        self.way_ns[flows] = np.where(ways_ns <= MOST_WAY_NS, ways_ns, 0)
        self.asked_ns[flows] = -1

    def _count(self, part: Columns, rtt_ns: int) -> None:
        part = sort(part, "flow")
        flow, is_ack = part["flow"], ~part["is_segment"]
        begins = np.flatnonzero(np.diff(flow, prepend=-1))
        control, payload = part["tcp_flags"], part["payload_bytes"].astype(np.int64)
        end = (part["tcp_seq"] + payload + (control & SYN != 0) + (control & FIN != 0)).astype(np.uint32)
        earlier = self.sent[flow[begins]]
        sent = _furthest(self.sent, flow, begins, end, ~is_ack, end + np.int64(TURN))
        ack, acknowledges = part["tcp_ack"].astype(np.uint32), is_ack & (sent > 0) & (control & ACK != 0)
        acked = _furthest(self.acked, flow, begins, ack, acknowledges, _nearest(ack, sent))
        before = np.append(0, sent[:-1])
        before[begins] = earlier
        again = np.flatnonzero(~is_ack & (payload > 0) & (_nearest(end, sent) <= before))
        rows = np.append(self._to_tell(part["time_ns"], flow, acknowledges, max(rtt_ns // PER_RTT, 1000)), again)
        rows = rows[np.argsort(part["time_ns"][rows], kind="stable")]
        self._write(rows_of(part, rows), is_ack[rows], np.maximum(sent, acked)[rows], acked[rows])

    def _to_tell(self, times_ns: np.ndarray, flow: np.ndarray, acknowledges: np.ndarray, step_ns: int) -> np.ndarray:
        """The rows of ACKs, of each flow one in `step_ns`."""
        rows = np.flatnonzero(acknowledges & self.of_acks)
        if not len(rows):
            return rows
        step = (times_ns[rows] - times_ns[rows].min()) // step_ns
        rows = rows[np.unique(flow[rows].astype(np.int64) << 40 | step, return_index=True)[1]]
        told_ns = self.told_ns[flow[rows]]
        rows = rows[(told_ns == 0) | (times_ns[rows] - told_ns >= step_ns // 2)]
        np.maximum.at(self.told_ns, flow[rows], times_ns[rows])
        return rows

    def _write(self, part: Columns, is_ack: np.ndarray, sent: np.ndarray, acked: np.ndarray) -> None:
        rows = np.zeros(len(sent), dtype=wire.STORED_TCP_RECORD)
        rows["mono_ns"], rows["event"] = part["time_ns"], np.where(is_ack, PROBE, RETRANSMIT)
        rows["snd_nxt"], rows["snd_una"] = sent & (TURN - 1), acked & (TURN - 1)
        for one, other in (("src", "dst"), ("dst", "src")):
            for what in ("addr_hi", "addr_lo", "port"):
                rows[f"{one}_{what}"] = np.where(is_ack, part[f"{other}_{what}"], part[f"{one}_{what}"])
        rows["event_seq"] = np.where(is_ack, 0, part["tcp_seq"])
        rows["data_bytes"] = np.where(is_ack, 0, part["payload_bytes"])
        rows["unknown_fields"] = np.where(is_ack, unknown_fields(OF_ACK), unknown_fields(OF_SEGMENT))
        self.records = append(self.file, rows, "BLOCK_TCP", EVENT["TCP_RECORD_VERSION"], self.records)


def _nearest(number: np.ndarray, near: np.ndarray) -> np.ndarray:
    """The numbers nearest to others (int64) that have these lowest 32 bits."""
    return near + (number - near.astype(np.uint32)).view(np.int32)


def _furthest(
    known: np.ndarray, flow: np.ndarray, begins: np.ndarray, number: np.ndarray, counts: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """The highest number of its flow so far at each row, by the rows that count; 0: none yet. Adds them to `known`.
    Rows are in the order of flows; a flow's first number is `start`.
    """
    base = known.copy()
    first = np.flatnonzero(counts & (known[flow] == 0))[::-1]
    base[flow[first]] = start[first]  # NumPy keeps the last of several assignments
    near, so_far = base[flow], np.cumsum(counts)
    lengths = np.diff(np.append(begins, len(flow)))
    has_begun = (known[flow] > 0) | (so_far > np.repeat(so_far[begins] - counts[begins], lengths))
    group = np.repeat(np.arange(len(begins)) * APART, lengths)
    beyond = np.where(counts, np.maximum(_nearest(number, near) - near, 0), 0)
    result = np.where(has_begun, near + np.maximum.accumulate(beyond + group) - group, 0)
    ends = begins + lengths - 1
    known[flow[ends]] = result[ends]
    return result
