# SPDX-License-Identifier: MIT
"""Captures of two taps, before and behind a queue whose truth is known: TCP flows through a tail-drop queue, their ACKs
on the way back, and what captures and routers do to packets.
"""

import struct
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

RATE_BPS, BUFFER, RTT_NS, MSS, HEADERS = 50_000_000, 20, 10_000_000, 1448, 52
START_NS = 1_700_000_000_000_000_000
DROPPED = -1


@dataclass
class Side:
    """Packets in the order of the capture; the columns are arrays of one length."""

    time_ns: np.ndarray
    back: np.ndarray  # an ACK from the receiver
    flow: np.ndarray
    seq: np.ndarray
    ack: np.ndarray
    payload: np.ndarray
    ip_id: np.ndarray
    flags: np.ndarray
    ecn: np.ndarray

    def only(self, rows) -> "Side":
        return Side(*(values[rows] for values in vars(self).values()))


@dataclass
class Truth:
    before: Side
    after: Side
    came_ns: np.ndarray  # of the packets of the queue, in the order of arrivals, and all that follows
    left_ns: np.ndarray  # DROPPED
    depth: np.ndarray


def make(packets: int = 6000, flows: int = 4, seed: int = 1) -> Truth:
    """Flows that send bursts; dropped segments are sent again after an RTT; each that arrives is acknowledged."""
    random = np.random.default_rng(seed)
    link_ns = (MSS + HEADERS + 14 + 24) * 8 * 10**9 // RATE_BPS
    small_ns = (HEADERS + 14 + 24) * 8 * 10**9 // RATE_BPS  # of a segment without data
    events = []  # (time, flow, seq, payload, flags)
    sent = np.full(flows, 1_000)
    for flow in range(flows):
        events.append((START_NS + flow * 1_000_000, flow, 999, 0, 0x02))
        events.append((START_NS + flow * 1_000_000 + RTT_NS, flow, 1_000, 0, 0x10))
    time = START_NS + 2 * RTT_NS
    while len(events) < packets:
        time += int(random.exponential(11 * link_ns))
        flow = int(random.integers(flows))
        for number in range(int(random.integers(1, 16))):
            events.append((time + number * link_ns // 4, flow, int(sent[flow]), MSS, 0x10))
            sent[flow] += MSS
    events.sort()
    queue: list[int] = []
    done, acks = [], []
    free = 0
    ids, expected = np.arange(flows) * 7000, np.full(flows, 1_000)
    held: list[set[int]] = [set() for _ in range(flows)]
    while events:
        came, flow, seq, payload, flags = events.pop(0)
        queue = [left for left in queue if left > came]
        ids[flow] += 1
        depth = len(queue)
        left = DROPPED
        if depth < BUFFER:
            free = max(free, came) + (link_ns if payload else small_ns)
            left = free
            queue.append(left)
        else:
            index = next((n for n, event in enumerate(events) if event[0] > came + RTT_NS), len(events))
            events.insert(index, (came + RTT_NS, flow, seq, payload, flags))
        done.append((came, left, depth, flow, seq, payload, int(ids[flow] & 0xFFFF), flags))
        if left == DROPPED:
            continue
        if flags & 2:
            acks.append((left + RTT_NS // 2, flow, 500, 1000, 0x12))
        elif payload:
            held[flow].add(seq)
            while int(expected[flow]) in held[flow]:
                held[flow].remove(int(expected[flow]))
                expected[flow] += MSS
            acks.append((left + RTT_NS // 2, flow, 501, int(expected[flow]), 0x10))
    of_queue = [np.array(column) for column in zip(*done, strict=True)]
    came_ns, left_ns, depths, flow_of, seq_of, payload_of, id_of, flags_of = of_queue
    acks.sort()
    back_ns, back_flow, back_seq, back_ack, back_flags = map(np.array, zip(*acks, strict=True))
    count = len(acks)

    def side(times, rows, delay_ns) -> Side:
        forward = Side(
            times[rows], np.zeros(len(rows), bool), flow_of[rows], seq_of[rows], np.full(len(rows), 501),
            payload_of[rows], id_of[rows], flags_of[rows], np.full(len(rows), 2),
        )  # fmt: skip
        back = Side(
            back_ns + delay_ns, np.ones(count, bool), back_flow, back_seq, back_ack, np.zeros(count, int),
            np.arange(count) & 0xFFFF, back_flags, np.zeros(count, int),
        )  # fmt: skip
        both = Side(*(np.concatenate(pair) for pair in zip(vars(forward).values(), vars(back).values(), strict=True)))
        return both.only(np.argsort(both.time_ns, kind="stable"))

    passed = np.flatnonzero(left_ns != DROPPED)
    passed = passed[np.argsort(left_ns[passed], kind="stable")]
    return Truth(side(came_ns, np.arange(len(came_ns)), 20_000), side(left_ns, passed, 0), came_ns, left_ns, depths)


def write(
    path: Path, side: Side, *, snap: int = 96, nat: bool = False, ttl: int = 64, merge: bool = False, elsewhere=()
) -> Path:
    """A pcap file in ns. `merge`: neighbours of a flow become one frame, as by GRO. `elsewhere`: mask of the
    packets that go to another host.
    """
    frames = [struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, snap, 1)]
    rows = list(zip(*(values.tolist() for values in vars(side).values()), strict=True))
    index = 0
    while index < len(rows):
        time, back, flow, seq, ack, payload, ip_id, flags, ecn = rows[index]
        while merge and payload and index + 1 < len(rows) and payload < 10 * MSS:
            following = rows[index + 1]
            is_next = following[3] == seq + payload and following[6] == ip_id + payload // MSS
            is_next &= following[3] >> 16 == seq >> 16  # GRO merges segments of one timestamp
            if following[2] != flow or following[1] or not is_next or not following[5]:
                break
            time, payload, index = following[0], payload + following[5], index + 1
        index += 1
        src, dst = (b"\x0a\0\1" + bytes([flow + 1]), b"\x0a\0\2\1")
        if len(elsewhere) and elsewhere[index - 1]:
            dst = b"\xe0\0\0\xfb"
        if nat:
            src = b"\xc0\0\2\1"
        ports = (1000 + flow + 5000 * nat, 80)
        if back:
            src, dst, ports = dst, src, ports[::-1]
        options = b"\2\4\5\xb4\1\1\1\1\1\1\1\1" if flags & 2 else b"\1\1\x08\x0a" + struct.pack(">II", seq >> 16, 5)
        tcp = struct.pack(">HHIIBBHHH", *ports, seq, ack, 0x80, flags, 500, 0, 0) + options
        total = 20 + len(tcp) + payload
        ip = struct.pack(">BBHHHBBH", 0x45, ecn, total, ip_id, 0x4000, ttl, 6, 0) + src + dst
        frame = (bytes(12) + b"\x08\0" + ip + tcp)[:snap]
        frames.append(struct.pack("<IIII", time // 10**9, time % 10**9, len(frame), total + 14) + frame)
    path.write_bytes(b"".join(frames))
    return path


def clocked(side: Side, offset_ns: int, ppm: float = 0.0) -> Side:
    """The side by another clock."""
    since = side.time_ns - START_NS
    return replace(side, time_ns=side.time_ns + offset_ns + np.rint(since * ppm / 1e6).astype(np.int64))
