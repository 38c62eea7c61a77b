# SPDX-License-Identifier: MIT
"""The soft switch's control plane: typed calls over its Unix socket or its device (docs/control-protocol.md).

Names of tables, actions and counters are those of the P4 program's P4Info.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from controlplane.policy import Ecn, EgressThreshold, Policy, TailDrop, Unwatched

MAX_MESSAGE_BYTES = 1 << 20
TIMEOUT_S = 5.0
MIRROR_SESSION = 1  # POSTCARD_MIRROR_SESSION of p4src/v1model/bufferscope.p4
NS_PER_TICK = 1  # the soft switch's clock counts ns
COUNTERS = (
    "unknown_hosts",
    "arrivals",
    "arrival_drops",
    "arrival_marks",
    "departure_drops",
    "departure_marks",
    "postcards_made",
)


class SwitchError(RuntimeError):
    """The switch refused a request, or does not answer; the message says which request and why."""


@dataclass(frozen=True)
class Count:
    """One cell of a P4 counter."""

    packets: int
    bytes: int


@dataclass(frozen=True)
class FiveTuple:
    """One direction of a flow; addresses are IPv4 or IPv6 text, protocol is 6 (TCP) or 17 (UDP)."""

    src_addr: str
    dst_addr: str
    protocol: int
    src_port: int
    dst_port: int


class _Transport(Protocol):
    """Both raise OSError."""

    def exchange(self, request: bytes) -> bytes: ...
    def close(self) -> None: ...


class _Socket:
    """The switch as a process: a message is a request or a reply."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(TIMEOUT_S)
        try:
            self._socket.connect(path)
        except OSError:
            self._socket.close()
            raise

    def exchange(self, request: bytes) -> bytes:
        self._socket.send(request)
        return self._socket.recv(MAX_MESSAGE_BYTES)

    def close(self) -> None:
        self._socket.close()


class _Device:
    """The switch as a driver: a write is a request, the read after it the whole reply, at once."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def exchange(self, request: bytes) -> bytes:
        os.write(self._file, request)
        return os.read(self._file, MAX_MESSAGE_BYTES)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


def _connect(path: str) -> _Transport:
    """What kind of switch it is, its file says."""
    return _Device(path) if Path(path).is_char_device() else _Socket(path)


class SoftSwitch:
    """A connection to a running switch. Every method raises SwitchError when the switch refuses or is gone."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        try:
            self._transport = _connect(self.path)
        except OSError as error:
            raise SwitchError(f"no switch answers at {self.path}: {error.strerror or error}; is it running?") from error

    def __enter__(self) -> SoftSwitch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    def request(self, *words: str | int) -> list[str]:
        """One request; the lines of the reply after `ok`."""
        text = " ".join(map(str, words))
        try:
            reply = self._transport.exchange(text.encode()).decode()
        except OSError as error:
            raise SwitchError(f"switch at {self.path}: '{text}': {error.strerror or error}") from error
        status, *lines = reply.splitlines() or ["error no answer: has the switch ended?"]
        if status != "ok":
            raise SwitchError(f"switch at {self.path}: '{text}': {status.removeprefix('error ')}")
        return lines

    def program(self) -> dict[str, str]:
        """Name and digest of the P4 program, attached ports, sizes."""
        return dict(line.split(" ", 1) for line in self.request("program"))

    def forward(self, mac: str, port: int) -> None:
        """Frames to `mac` leave on `port`."""
        self.request("table", "set", "forward", _mac(mac), "=", "send_to", port)

    def set_policy(self, port: int, policy: Policy) -> None:
        """The policy of `port`'s queue, from the next packet on."""
        match policy:
            case TailDrop(threshold, in_bytes):
                action: tuple[str | int, ...] = ("tail_drop", threshold, int(in_bytes))
            case Ecn(threshold, hard_limit, in_bytes):
                action = ("ecn", threshold, hard_limit, int(in_bytes))
            case EgressThreshold(threshold, mark, in_bytes):
                action = ("egress_threshold", threshold, int(mark), int(in_bytes))
            case Unwatched():
                action = ("unwatched",)
        self.request("table", "set", "queue_policy", port, "=", *action)

    def postcards_on(self, port: int, switch_id: int) -> None:
        """One postcard for each packet of `port`'s queue, saying `switch_id`."""
        self.request("table", "set", "postcards", port, "=", "report", switch_id, NS_PER_TICK)

    def postcards_off(self, port: int) -> None:
        self.request("table", "set", "postcards", port, "=", "silent")

    def collector(
        self,
        port: int,
        switch_mac: str,
        collector_mac: str,
        switch_addr: str,
        collector_addr: str,
        src_port: int,
        dst_port: int,
        copy_bytes: int = 256,
    ) -> None:
        """Where postcards go: out of `port`, to a collector's UDP socket. Addresses are IPv4.

        `copy_bytes` bounds what is copied of a mirrored packet: more than any header the parser reads.
        """
        self.request("mirror", "set", MIRROR_SESSION, port, "truncate", copy_bytes)
        addresses = [int(ipaddress.IPv4Address(address)) for address in (switch_addr, collector_addr)]
        self.request(
            "table",
            "default",
            "collector",
            "send_to_collector",
            _mac(switch_mac),
            _mac(collector_mac),
            *map(hex, addresses),
            src_port,
            dst_port,
        )

    def set_port(self, port: int, **settings: int) -> None:
        """Link and queue of `port`: rate, access (bits/s), delay (ns), limit_packets, limit_bytes; 0 is no bound."""
        self.request("port", "set", port, *_pairs(settings))

    def port(self, port: int) -> dict[str, int]:
        """The settings of `port`."""
        return _numbers(self.request("port", "show", port))

    def set_flow(self, flow: FiveTuple, **settings: int) -> None:
        """Extra propagation delay (delay, ns) and access rate (access, bits/s) of one direction of a flow."""
        self.request(
            "flow",
            "set",
            flow.src_addr,
            flow.dst_addr,
            flow.protocol,
            flow.src_port,
            flow.dst_port,
            *_pairs(settings),
        )

    def clear_flows(self) -> None:
        self.request("flow", "clear")

    def stats(self) -> dict[str, int]:
        """Every counter of the switch itself."""
        return _numbers(self.request("stats"))

    def counter(self, name: str) -> dict[int, Count]:
        """The cells of a P4 counter that are not zero, by index."""
        cells = (map(int, line.split()) for line in self.request("counter", "read", name))
        return {index: Count(packets, size) for index, packets, size in cells}

    def counters(self) -> dict[str, dict[int, Count]]:
        """All P4 counters of the program."""
        return {name: self.counter(name) for name in COUNTERS}

    def lateness(self, port: int) -> list[tuple[int, int]]:
        """(upper edge in ns, frames): how late frames were handed to the kernel on `port`."""
        return [(int(edge), int(count)) for edge, count in (line.split() for line in self.request("lateness", port))]

    def reset_lateness(self) -> None:
        self.request("lateness", "reset")


def _mac(address: str) -> str:
    return "0x" + address.replace(":", "")


def _pairs(settings: dict[str, int]) -> list[str | int]:
    return [word for pair in settings.items() for word in pair]


def _numbers(lines: list[str]) -> dict[str, int]:
    return {name: int(value) for name, value in (line.split(" ", 1) for line in lines)}
