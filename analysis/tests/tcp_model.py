# SPDX-License-Identifier: MIT
"""A small model of TCP through access links and one tail-drop queue, captured before this queue, whose truth is known:
NewReno with an initial window of ten, delayed ACKs, timestamps of 1 ms.
"""

import heapq
import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

MSS, HEADERS, START_NS, MS = 1448, 52, 1_700_000_000_000_000_000, 1_000_000
EXTRA = HEADERS + 38  # bytes that a segment's payload takes more on the link


@dataclass
class Flow:
    """What a flow is given. `near_ns` and `far_ns`: one way between sender and capture, and capture and receiver."""

    near_ns: int
    far_ns: int
    access_bps: int
    start_ns: int = 0
    window: int = 10**9  # bytes
    write: int = 0  # bytes at once, and then a pause; 0: as much as goes
    pause_ns: int = 0
    truth: str = ""

    @property
    def rtt_ns(self) -> int:
        return 2 * (self.near_ns + self.far_ns)


@dataclass
class _State:
    cwnd: float = 10.0
    ssthresh: float = 1e9
    next: int = 0
    top: int = 0  # the highest byte sent
    acked: int = 0
    limit: int = 0  # bytes that the application wrote
    dup: int = 0
    recover: int = -1
    free_ns: int = 0  # the access link
    echo: int = 0  # the timestamp of the last ACK
    got: dict = field(default_factory=dict)  # segments beyond a hole
    expected: int = 0
    unacked: int = 0
    recent: int = 0  # the timestamp to echo
    timer: int = 0


def simulate(flows: list[Flow], rate_bps: int, buffer: int, until_ns: int) -> tuple[list[tuple], list[_State]]:
    """The packets at the capture, (time, flow, is_back, seq, ack, payload, flags, timestamp, echo), and the flows."""
    events: list[tuple] = []
    states = [_State() for _ in flows]
    packets: list[tuple] = []
    queue: list[int] = []
    free_ns, count = 0, 0

    def at(time, what, *args):
        nonlocal count
        count += 1
        heapq.heappush(events, (time, count, what, args))

    def tick(now):
        return now // MS + 1

    def send(now, n, seq, again=False):
        flow, state = flows[n], states[n]
        size = min(MSS, state.limit - seq)
        begin = max(now, state.free_ns)
        state.free_ns = begin + (size + EXTRA) * 8 * 10**9 // flow.access_bps
        at(state.free_ns + flow.near_ns, arrive, n, seq, size, tick(now), state.echo)
        state.top = max(state.top, seq + size)
        if not again:
            state.next = seq + size
        state.timer += 1
        at(now + 3 * flow.rtt_ns + 400 * MS, timeout, n, state.timer)

    def fill(now, n):
        flow, state = flows[n], states[n]
        while state.next < state.limit:
            size = min(MSS, state.limit - state.next)
            if state.next + size - state.acked > min(state.cwnd * MSS, flow.window):
                break
            send(now, n, state.next)

    def write(now, n):
        flow, state = flows[n], states[n]
        state.limit += flow.write or 10**12
        fill(now, n)

    def timeout(now, n, timer):
        state = states[n]
        if timer == state.timer and state.acked < state.top:
            state.ssthresh, state.cwnd, state.recover = max(state.cwnd / 2, 2), 1, -1
            state.next = state.acked
            fill(now, n)

    def arrive(now, n, seq, size, stamp, echo):
        nonlocal free_ns
        packets.append((now, n, False, seq + 1, 1, size, 0x18 if seq + size == states[n].limit else 0x10, stamp, echo))
        while queue and queue[0] <= now:
            queue.pop(0)
        if len(queue) >= buffer:
            return
        free_ns = max(free_ns, now) + (size + EXTRA) * 8 * 10**9 // rate_bps
        queue.append(free_ns)
        at(free_ns + flows[n].far_ns, receive, n, seq, size, stamp)

    def receive(now, n, seq, size, stamp):
        state = states[n]
        in_order = seq == state.expected
        if seq >= state.expected:
            state.got[seq] = size
        if in_order and not state.unacked:
            state.recent = stamp
        while state.expected in state.got:
            state.expected += state.got.pop(state.expected)
        state.unacked += 1
        if not in_order or state.got or state.unacked >= 2:
            reply(now, n)
        else:
            at(now + 40 * MS, late, n, state.expected)

    def late(now, n, expected):
        if states[n].unacked and states[n].expected == expected:
            reply(now, n)

    def reply(now, n):
        state, flow = states[n], flows[n]
        state.unacked = 0
        at(now + flow.far_ns, back, n, state.expected, tick(now), state.recent)

    def back(now, n, ack, stamp, echo):
        packets.append((now, n, True, 1, ack + 1, 0, 0x10, stamp, echo))
        at(now + flows[n].near_ns, acked, n, ack, stamp)

    def acked(now, n, ack, stamp):
        state, flow = states[n], flows[n]
        state.echo = stamp
        if ack > state.acked:
            new = (ack - state.acked) / MSS
            state.acked, state.dup = ack, 0
            state.next = max(state.next, ack)
            if state.recover >= 0 and ack < state.recover:
                send(now, n, ack, again=True)
            else:
                if state.recover >= 0:
                    state.recover, state.cwnd = -1, state.ssthresh
                full = min(state.cwnd * MSS, flow.window) - (state.next - ack) < 3 * MSS
                if full and state.cwnd * MSS < flow.window + 10 * MSS:
                    state.cwnd += new if state.cwnd < state.ssthresh else new / state.cwnd
            if state.acked == state.limit:
                at(now + flow.pause_ns, write, n)
        elif ack == state.acked and state.acked < state.next:
            state.dup += 1
            if state.dup == 3 and state.recover < 0:
                state.ssthresh = state.cwnd = max(state.cwnd / 2, 2)
                state.recover = state.top
                send(now, n, ack, again=True)
            elif state.dup > 3 and state.recover >= 0:
                state.cwnd += 1 / max(state.dup, 1)
        fill(now, n)

    for n, flow in enumerate(flows):
        began = flow.start_ns
        packets += [
            (began + flow.near_ns, n, False, 0, 0, 0, 0x02, tick(began), 0),
            (began + flow.near_ns + 2 * flow.far_ns, n, True, 0, 1, 0, 0x12, tick(began), tick(began)),
            (began + flow.near_ns + flow.rtt_ns, n, False, 1, 1, 0, 0x10, tick(began + flow.rtt_ns), tick(began)),
        ]
        at(began + flow.rtt_ns, write, n)
    while events and events[0][0] < until_ns:
        now, _, what, args = heapq.heappop(events)
        what(now, *args)
    packets = [packet for packet in packets if packet[0] < until_ns]
    packets.sort(key=lambda packet: packet[0])
    return packets, states


def write_pcap(path: Path, packets: list[tuple], flows: list[Flow], only_forward: bool = False) -> Path:
    """A capture of 96 bytes a packet between two routers, in ns."""
    parts = [struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 96, 1)]
    macs = (b"\2\0\0\0\0\1", b"\2\0\0\0\0\2")
    for number, (time, n, is_back, seq, ack, payload, flags, stamp, echo) in enumerate(packets):
        if is_back and only_forward:
            continue
        ends = [(b"\x0a\0\1" + bytes([n % 250 + 1]), 2000 + n), (b"\x0a\0\2\1", 80)]
        window, scale = min(flows[n].window, 16 << 20), 9
        options = b"\1\1\x08\x0a" + struct.pack(">II", stamp, echo)
        if flags & 2:
            options += b"\2\4\5\xb4\3\3" + bytes([scale]) + b"\1"
        (src, src_port), (dst, dst_port) = ends[::-1] if is_back else ends
        shown = 65535 if flags & 2 else -(-window >> scale) if is_back else 502
        shown = min(shown, 65535)
        offset = (20 + len(options)) // 4 << 4
        tcp = struct.pack(
            ">HHIIBBHHH", src_port, dst_port, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, offset, flags, shown, 0, 0
        )
        total = 20 + len(tcp) + len(options) + payload
        ip = struct.pack(">BBHHHBBH", 0x45, 0, total, number & 0xFFFF, 0x4000, 64, 6, 0) + src + dst
        link = macs[not is_back] + macs[is_back] + b"\x08\0"
        frame = (link + ip + tcp + options)[:96]
        at = START_NS + time
        parts.append(struct.pack("<IIII", at // 10**9, at % 10**9, len(frame), total + 14) + frame)
    path.write_bytes(b"".join(parts))
    return path


def five_rtts(seconds: float = 6.0) -> tuple[list[Flow], int, int, int]:
    """Flows of four kinds and five RTTs: (flows, rate, buffer, end). The link is busy."""
    random = np.random.default_rng(5)
    flows = []
    for n in range(40):
        rtt = (10, 20, 40, 80, 120)[n % 5] * MS
        near = int(rtt * random.uniform(0.1, 0.4))
        flow = Flow(near, rtt // 2 - near, 400_000_000, int(random.integers(0, 200 * MS)), truth="this link")
        kind = n // 5 % 4
        if kind == 0:
            flow.access_bps, flow.truth = 2_000_000, "access link"
        elif kind == 1:
            flow.window, flow.truth = int(1_500_000 / 8 * rtt / 1e9) + 4 * MSS, "window"
        elif kind == 2:
            flow.write, flow.pause_ns, flow.truth = 20 * MSS, 2 * rtt + 100 * MS, "application"
        flows.append(flow)
    return flows, 200_000_000, 300, int(seconds * 1e9)
