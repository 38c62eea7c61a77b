# SPDX-License-Identifier: MIT
"""A switch that runs in real time, between packet sockets.

Markers, extra frames that follow the test's frames on the same path, show when a pipeline is done. So no wait for the
switch has a fixed length. To hold a queue, the queue's rate is lowered and markers occupy its link.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from controlplane.policy import Policy, Unwatched
from controlplane.switch import Queue
from p4src.tests.packet_ports import PacketPorts
from p4src.tests.under_test import COLLECTOR_PORT, RATE_BPS, RECEIVER_PORT, SENDER_PORT, UNWATCHED, SwitchUnderTest

MARKER_PORT = 4  # for markers alone: the tests' frames neither enter nor leave at this port
TIME_SCALE = 20  # real ns per ns of `at_ns`; slow_link() slows the link by the same factor
WIRE_BYTES = 1538  # of a frame of 1514 bytes
SLOW_PPS = RATE_BPS // 8 // WIRE_BYTES // TIME_SCALE
HOLD_PPS = 2  # each marker holds the queue for 0.5 s: this process may wait that long for a processor
HOLD_MARKERS, HOLD_PACKETS_A_MARKER = 3, 50  # one marker for each 50 packets, at least 3
ANSWER_S = 60.0
LIMIT_PACKETS = 16384
MARKER_TYPE = b"\x88\xb6"  # local experimental EtherType 2
MARKER_BYTES = 64


class RealTimeSwitch(SwitchUnderTest):
    """`ports`: sockets at the suite's four ports (SENDER, RECEIVER, COLLECTOR, MARKER)."""

    ports: PacketPorts
    most_unsettled: ClassVar[int] = 1000  # frames that may be on their way to ingress

    def start(self) -> None:
        """Resets the state of this object and configures the switch. Call before each test, with no frame in flight."""
        self._sent: list[tuple[int, bytes]] = []
        self._entered: set[int] = set()  # input ports of the frames since the last settle
        self._watched: dict[int, Policy] = {}
        self._unsettled = 0
        self._markers = 0
        self._holding = False
        self._epoch = time.monotonic()
        self._last_ns = 0
        self.ports.receive(0)
        for port in (SENDER_PORT, RECEIVER_PORT, COLLECTOR_PORT, MARKER_PORT):
            self.control.set_forwarding(_marker_mac(port), port)
            self.control.set_queue(port, Queue(limit_packets=LIMIT_PACKETS))
        self._served_pps: int | None = None
        self.configure()

    def policy(self, policy: Policy, port: int = RECEIVER_PORT) -> None:
        super().policy(policy, port)
        self._watched[port] = policy

    def put_in(self, at_ns: int, port: int, frame: bytes) -> None:
        """Sends at once if an earlier frame had the same or a later `at_ns`, or if the queue is held. Otherwise waits
        for `at_ns`, stretched by TIME_SCALE."""
        if at_ns > self._last_ns and not self._holding:
            self._last_ns = at_ns
            time.sleep(max(0.0, self._epoch + at_ns * TIME_SCALE / 1e9 - time.monotonic()))
        self.ports.send(port, frame)
        self._entered.add(port)
        self._unsettled += 1
        if self._unsettled >= self.most_unsettled:
            self.settle()

    def slow_link(self) -> None:
        self._served_pps = SLOW_PPS
        self._serve(SLOW_PPS)

    @contextmanager
    def held(self, packets: int = 0) -> Iterator[None]:
        self.settle()
        with self._unwatched(RECEIVER_PORT):
            self._serve(HOLD_PPS)
            self._markers_through([(MARKER_PORT, RECEIVER_PORT)])  # leaves at once; the following markers must wait
            waiting = max(HOLD_MARKERS, packets // HOLD_PACKETS_A_MARKER)
            opens = time.monotonic() + waiting / HOLD_PPS
            for _ in range(waiting):
                self._send_marker(MARKER_PORT, RECEIVER_PORT)
            self._markers_through([(MARKER_PORT, MARKER_PORT)])
            self._serve(self._served_pps)
        self._holding = True
        try:
            yield
        finally:
            self._holding = False
        self.settle()
        assert time.monotonic() < opens, "this machine is too slow: the queue opened before all frames had arrived"

    def settle(self) -> None:
        if self._entered:
            ways, self._entered = [(port, MARKER_PORT) for port in sorted(self._entered)], set()
            self._unsettled = 0
            self._markers_through(ways)

    def outputs(self) -> list[tuple[int, bytes]]:
        """Sends a marker through each queue, the collector's queue last, because the other queues' egress fills it."""
        self.settle()
        with self._unwatched(SENDER_PORT), self._unwatched(RECEIVER_PORT), self._unwatched(COLLECTOR_PORT):
            self._markers_through([(MARKER_PORT, SENDER_PORT), (MARKER_PORT, RECEIVER_PORT)])
            self._markers_through([(MARKER_PORT, COLLECTOR_PORT)])
        return self._sent

    @contextmanager
    def _unwatched(self, port: int) -> Iterator[None]:
        """Inside this context, markers pass the queue of `port` without being counted."""
        policy = self._watched.get(port, UNWATCHED)
        if isinstance(policy, Unwatched):
            yield
            return
        self.control.set_policy(port, UNWATCHED)
        try:
            yield
        finally:
            self.control.set_policy(port, policy)

    def _serve(self, rate_pps: int | None) -> None:
        self.control.set_queue(RECEIVER_PORT, Queue(rate_pps=rate_pps, limit_packets=LIMIT_PACKETS))

    def _send_marker(self, enters: int, leaves: int) -> bytes:
        self._markers += 1
        header = bytes.fromhex(_marker_mac(leaves).replace(":", "")) + bytes(6) + MARKER_TYPE
        marker = (header + self._markers.to_bytes(4, "big")).ljust(MARKER_BYTES, b"\0")
        self.ports.send(enters, marker)
        return marker

    def _markers_through(self, ways: list[tuple[int, int]]) -> None:
        """Sends a marker for each (input port, output port), and collects outputs until all markers are out."""
        waiting = {(leaves, self._send_marker(enters, leaves)) for enters, leaves in ways}
        end = time.monotonic() + ANSWER_S
        while waiting:
            received = self.ports.until(end)
            assert received, f"the switch let no marker through within {ANSWER_S:g} s: {sorted(ways)}"
            waiting.difference_update(received)
            self._sent += [output for output in received if output[1][12:14] != MARKER_TYPE]


def _marker_mac(port: int) -> str:
    return f"02:bf:00:00:ff:{port:02x}"
