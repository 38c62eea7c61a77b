# SPDX-License-Identifier: MIT
"""Measures the round trip of the idle path with ICMP echo, before or after traffic: `python -m hosts.traffic.idle_rtt`.

Standard library only. ICMP, because a TCP connection would use up the single test that an iperf3 server waits for. A
reply is stamped when this process reads it, so a sample includes the process's wake-up: tens of microseconds. Writes
{"samples_ns": [...], "sent_mono_ns": [...], "min_ns": N, "median_ns": N, "sent": N, "lost": N}. An unanswered request
has no entry in the lists.
"""

from __future__ import annotations

import argparse
import ipaddress
import os
import select
import socket
import statistics
import struct
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from hosts import aligned_start
from hosts.traffic.outcome import EXIT_INCOMPLETE, EXIT_REFUSED, write_json

ECHO = {socket.AF_INET: (8, 0), socket.AF_INET6: (128, 129)}  # (request, reply) types: RFC 792, RFC 4443
PROTOCOL = {socket.AF_INET: socket.IPPROTO_ICMP, socket.AF_INET6: socket.IPPROTO_ICMPV6}
HEADER = struct.Struct("!BBHHH")
PAYLOAD = b"bufferscope idle"

SUMMARY = (__doc__ or "").split("\n", 1)[0]


class Echo(NamedTuple):
    """A request that was answered."""

    sent_mono_ns: int
    round_trip_ns: int


def checksum(data: bytes) -> int:
    """RFC 1071; data of an even length."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def request(kind: int, identifier: int, sequence: int) -> bytes:
    """An echo request. For ICMPv6 and for datagram sockets the kernel fills in the checksum."""
    plain = HEADER.pack(kind, 0, 0, identifier, sequence) + PAYLOAD
    return HEADER.pack(kind, 0, checksum(plain), identifier, sequence) + PAYLOAD


def open_socket(family: socket.AddressFamily) -> tuple[socket.socket, bool]:
    """(socket, whether it is raw). Without the privilege for a raw socket: a datagram socket (ping_group_range)."""
    try:
        return socket.socket(family, socket.SOCK_RAW, PROTOCOL[family]), True
    except PermissionError:
        return socket.socket(family, socket.SOCK_DGRAM, PROTOCOL[family]), False


def reply_sequence(packet: bytes, family: socket.AddressFamily, raw: bool, identifier: int) -> int | None:
    """The sequence number of a reply to this process; None for other packets (a raw socket gets all ICMP)."""
    if family == socket.AF_INET and raw:
        if len(packet) < 20:
            return None
        packet = packet[(packet[0] & 0xF) * 4 :]
    if len(packet) < HEADER.size:
        return None
    kind, _, _, reply_identifier, sequence = HEADER.unpack_from(packet)
    if kind != ECHO[family][1] or (raw and reply_identifier != identifier):
        return None
    return sequence


def exchange(
    opened: socket.socket, raw: bool, first: int, count: int, interval_s: float, timeout_s: float
) -> list[Echo]:
    """Sends echo requests numbered from `first`, one every `interval_s`. Returns those that were answered."""
    family = socket.AddressFamily(opened.family)
    identifier = os.getpid() & 0xFFFF
    waiting: dict[int | None, int] = {}
    echoes: list[Echo] = []
    begin = time.monotonic()
    end = begin + (count - 1) * interval_s + timeout_s
    sent = 0
    while sent < count or (waiting and time.monotonic() < end):
        due = begin + sent * interval_s if sent < count else end
        if select.select([opened], [], [], max(0.0, due - time.monotonic()))[0]:
            packet = opened.recv(2048)
            received_ns = time.monotonic_ns()
            sent_ns = waiting.pop(reply_sequence(packet, family, raw, identifier), None)
            if sent_ns is not None:
                echoes.append(Echo(sent_ns, received_ns - sent_ns))
        elif sent < count:
            packet = request(ECHO[family][0], identifier, first + sent)
            waiting[first + sent] = time.monotonic_ns()
            opened.send(packet)
            sent += 1
    return echoes


def measure(server: str, count: int, interval_s: float, timeout_s: float) -> list[Echo]:
    """Sends `count` requests and returns the answered ones. One more request goes first and does not count, because it
    may wait for ARP or neighbour discovery.
    """
    family = socket.AF_INET if ipaddress.ip_address(server).version == 4 else socket.AF_INET6
    opened, raw = open_socket(family)
    with opened:
        opened.connect((server, 0))
        aligned_start.wait_for_whole()
        exchange(opened, raw, 0, 1, interval_s, timeout_s)
        return exchange(opened, raw, 1, count, interval_s, timeout_s)


def document(echoes: list[Echo], count: int) -> dict[str, Any]:
    """The content of idle_rtt.json. `echoes`: the answered requests among `count`, at least one."""
    samples = [echo.round_trip_ns for echo in echoes]
    return {
        "samples_ns": samples,
        "sent_mono_ns": [echo.sent_mono_ns for echo in echoes],
        "min_ns": min(samples),
        "median_ns": int(statistics.median(samples)),
        "sent": count,
        "lost": count - len(echoes),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m hosts.traffic.idle_rtt", description=SUMMARY)
    parser.add_argument("server", type=ipaddress.ip_address, help="address to send echo requests to")
    parser.add_argument("--output", type=Path, required=True, help="idle_rtt.json")
    parser.add_argument("--samples", type=int, default=20, help="number of echo requests (default 20)")
    parser.add_argument("--interval-ms", type=float, default=10.0, help="time between two requests (default 10)")
    parser.add_argument("--timeout-s", type=float, default=2.0, help="longest wait for the last reply (default 2)")
    options = parser.parse_args(arguments)
    if not 1 <= options.samples <= 10000 or not 0 <= options.interval_ms <= 10000 or not 0 < options.timeout_s <= 60:
        parser.error("allowed: --samples 1 to 10000, --interval-ms 0 to 10000, --timeout-s above 0 and up to 60")
    try:
        echoes = measure(str(options.server), options.samples, options.interval_ms / 1e3, options.timeout_s)
        if not echoes:
            error = f"{options.server} answered none of {options.samples} echo requests: is the path up?"
            print(f"idle_rtt: {error}", file=sys.stderr)
            return EXIT_INCOMPLETE
        write_json(options.output, document(echoes, options.samples))
    except OSError as error:
        print(f"idle_rtt: {options.server}: {error}", file=sys.stderr)
        return EXIT_REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main())
