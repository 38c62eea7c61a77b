# SPDX-License-Identifier: MIT
"""Controls a soft switch through its Unix socket or its device (docs/control-protocol.md).

Links, flows, lateness and `request` are for the lab; other switches do not have them.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from controlplane.identity import refuse_other_program
from controlplane.lock import only_writer
from controlplane.program import (
    COPY_BYTES,
    COUNTERS,
    MIRROR_SESSION,
    ProgramEntry,
    Switch,
    collector_numbers,
)
from controlplane.schema import Field, Schema, Table, short
from controlplane.switch import Capabilities, Collector, Count, ProgramIdentity, Queue, SwitchError
from controlplane.targets import TARGETS

if TYPE_CHECKING:
    from lib.link_dynamics import Jitter, Loss, RateSchedule

MAX_MESSAGE_BYTES = 1 << 20
MAX_REQUEST_BYTES = 4096  # EXECUTOR_REQUEST_BYTES of softswitch/runtime/executor.h
NEXT_FLOW = ";"
MOST_SHOWN = 160  # bytes of a request in an error
TIMEOUT_S = 5.0
MAX_CELLS = 2**32 - 1


@dataclass(frozen=True)
class ControlTuple:
    """One direction of a flow; addresses are IPv4 or IPv6 text, protocol is 6 (TCP) or 17 (UDP)."""

    src_addr: str
    dst_addr: str
    protocol: int
    src_port: int
    dst_port: int


@dataclass(frozen=True)
class SourceAddress:
    """All TCP and UDP flows from an IPv4 or IPv6 address, except flows with settings of their own or of their
    SourcePort.
    """

    src_addr: str
    others: Literal["any"] = "any"


@dataclass(frozen=True)
class SourcePort:
    """All flows of a protocol from an address and port, except flows with settings of their own."""

    src_addr: str
    others: Literal["any"] = field(default="any", init=False)
    protocol: int
    src_port: int


FlowKey = ControlTuple | SourcePort | SourceAddress


class Transport(Protocol):
    """The way to a switch. Both methods raise OSError."""

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
    """The switch as a driver: a write is a request; the next read returns the whole reply at once."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def exchange(self, request: bytes) -> bytes:
        os.write(self._file, request)
        return os.read(self._file, MAX_MESSAGE_BYTES)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


def _connect(path: str) -> Transport:
    """The driver has a character device, the process a socket."""
    return _Device(path) if Path(path).is_char_device() else _Socket(path)


class SoftSwitch(Switch):
    """A connection to a running switch. Every method raises SwitchError when the switch refuses or is gone."""

    target = "soft"

    def __init__(self, path: str | Path, transport: Transport | None = None, program: Path | None = None) -> None:
        """`transport` reaches the socket `path` of a switch on another machine. `program`: the JSON of its program, if
        it is not ours.
        """
        self._json = program
        self.path = self.address = str(path)
        try:
            self._transport = transport or _connect(self.path)
        except OSError as error:
            raise SwitchError(f"no switch answers at {self.path}: {error.strerror or error}; is it running?") from error

    @property
    def capabilities(self) -> Capabilities:
        return TARGETS["soft"].capabilities

    def close(self) -> None:
        self._transport.close()

    def writing(self) -> AbstractContextManager[None]:
        return only_writer(self.target, str(Path(self.path).absolute()))

    def request(self, *words: str | int) -> list[str]:
        """One request; the lines of the reply after `ok`."""
        text = " ".join(map(str, words))
        shown = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
        try:
            reply = self._transport.exchange(text.encode()).decode()
        except OSError as error:
            raise SwitchError(f"switch at {self.path}: '{shown}': {error.strerror or error}") from error
        status, *lines = reply.splitlines() or ["error no answer: has the switch ended?"]
        if status != "ok":
            raise SwitchError(f"switch at {self.path}: '{shown}': {status.removeprefix('error ')}")
        return lines

    def make(self, request: str) -> None:
        self.request(request)

    def about(self) -> dict[str, str]:
        """Name and digest of the P4 program, attached ports, sizes."""
        return dict(line.split(" ", 1) for line in self.request("program"))

    def program(self) -> ProgramIdentity:
        about = self.about()
        identity = ProgramIdentity(about["name"], about["digest"])
        digest = hashlib.sha256(self._json.read_bytes()).hexdigest() if self._json else None
        refuse_other_program(self, identity, digest)
        return identity

    def ports(self) -> dict[str, int]:
        return {name: int(name) for name in self.about()["ports"].split()}

    @cached_property
    def schema(self) -> Schema:
        """The tables that the switch reports, with their actions; it reports no counters and registers."""
        tables = [_table(line) for line in self.request("table", "list")]
        return Schema(f"the program of the switch at {self.path}", {table.name: table for table in tables})

    def entries(self, table: str) -> dict[int, ProgramEntry]:
        rows = [line.split(" = ") for line in self._dump(table) if not line.startswith("default ")]
        return {int(key.split(" ")[1], 0): self._entry(table, action.split(" ")) for key, action in rows}

    def default_entry(self, table: str) -> ProgramEntry:
        (line,) = [line for line in self._dump(table) if line.startswith("default ")]
        return self._entry(table, line.split(" ")[2:])

    def check_entry(self, table: str, key: int | None, entry: ProgramEntry) -> None:
        self._words(table, key, entry)

    def write_entry(self, table: str, key: int, entry: ProgramEntry) -> None:
        self.request("table", "set", table, hex(key), "=", *self._words(table, key, entry))

    def write_default(self, table: str, entry: ProgramEntry) -> None:
        self.request("table", "default", table, *self._words(table, None, entry))

    def delete_entry(self, table: str, key: int) -> None:
        if key in self.entries(table):
            self.request("table", "delete", table, hex(key))

    def mirror_port(self) -> int | None:
        try:
            session = _numbers(self.request("mirror", "show", MIRROR_SESSION))
        except SwitchError as error:
            if "no such mirror session" in str(error):
                return None
            raise
        return session["port"] if session["truncate"] == COPY_BYTES else None

    def set_mirror_port(self, port: int) -> None:
        self.request("mirror", "set", MIRROR_SESSION, port, "truncate", COPY_BYTES)

    def watch(self, port: int, sender: int, collector: Collector, switch_id: int) -> None:
        """From now on the switch itself makes a postcard of each packet of `port`'s queue, for any program. Packets
        that come from the port `sender` and do not reach the queue count as dropped on arrival.
        """
        ports = {"sender": sender, "collector": collector.port, "switch_id": switch_id}
        self.request("watch", "set", port, *_pairs(ports | collector_numbers(collector)))

    def watched(self) -> dict[str, dict[int, Count]]:
        """The counters of `watch`, with the names that our program's counters have."""
        lines = {name: list(map(int, numbers)) for name, *numbers in map(str.split, self.request("watch", "show"))}
        port, collector = lines["port"][0], lines["collector"][0]
        counts = {name: {port: Count(*lines[name])} for name in ("arrivals", "arrival_drops", "departure_drops")}
        made = {collector: Count(lines["postcards"][0], 0)}
        return counts | {"arrival_marks": {}, "departure_marks": {port: Count(*lines["marks"])}, "postcards_made": made}

    def queue(self, port: int) -> Queue:
        settings = {name: value or None for name, value in self.port(port).items()}
        return Queue(settings["rate"], limit_packets=settings["limit_packets"], limit_bytes=settings["limit_bytes"])

    def check_queue(self, port: int, queue: Queue) -> None:
        if queue.rate_pps is not None or queue.limit_cells is not None:
            raise SwitchError(f"port {port}: {self} takes rates in bits/s and limits in packets or bytes only")

    def set_queue(self, port: int, queue: Queue) -> None:
        self.check_queue(port, queue)
        self.set_port(
            port,
            rate=queue.rate_bps or 0,
            limit_packets=queue.limit_packets or 0,
            limit_bytes=queue.limit_bytes or 0,
        )

    def counter(self, name: str) -> dict[int, Count]:
        """The cells of a P4 counter that are not zero, by index."""
        cells = (map(int, line.split()) for line in self.request("counter", "read", name))
        return {index: Count(packets, size) for index, packets, size in cells}

    def counters(self) -> dict[str, dict[int, Count]]:
        return {name: self.counter(name) for name in COUNTERS}

    def read_counter(self, name: str, cells: Iterable[int]) -> dict[int, Count]:
        wanted = set(cells)
        return {index: count for index, count in self.counter(name).items() if index in wanted}

    def register(self, name: str) -> list[int]:
        """All cells of a register."""
        lines = self.request("register", "read", name, 0, MAX_CELLS)
        return [int(line.split()[1], 0) for line in lines]

    def set_register(self, name: str, index: int, value: int) -> None:
        self.request("register", "write", name, index, value)

    def target_counters(self) -> dict[str, int]:
        return self.stats()

    def set_port(self, port: int, **settings: int) -> None:
        """Changes the given settings of `port`'s link and queue: rate, access (bits/s), limit_packets, limit_bytes (0:
        no bound) and delay (ns). `drop_cost`: a packet dropped at departure occupies the link for this permille of its
        transmission time.
        """
        self.request("port", "set", port, *_pairs(settings))

    def port(self, port: int) -> dict[str, int]:
        """The settings of `port`."""
        return _numbers(self.request("port", "show", port))

    def set_flow(self, flow: FlowKey, **settings: int) -> None:
        """Extra propagation delay (delay, ns), access rate (access, bits/s) and shared access link (link) of one
        direction of a flow, or of a source port or address.
        """
        self.set_flows([(flow, settings)])

    def set_flows(self, flows: Iterable[tuple[FlowKey, Mapping[str, int]]]) -> None:
        """set_flow for many flows, in requests with as many flows as fit. After an error the flows of earlier requests
        stay set.
        """
        self._request_many(
            "flow set", (" ".join(map(str, (*astuple(flow), *_pairs(settings)))) for flow, settings in flows), NEXT_FLOW
        )

    def set_link(self, link: int, access: int) -> None:
        """The rate (bits/s) of an access link that flows share."""
        self.request("link", "set", link, "access", access)

    def set_schedule(self, port: int, schedule: RateSchedule) -> None:
        """Replaces the schedules of all ports by one of `port`'s rate. Until start_schedule the port's rate holds."""
        self.request("schedule", "clear")
        kind = "opportunities" if schedule.opportunities else "steps"
        self._request_many(f"schedule {kind} {port}", (f"{at_ns} {value}" for at_ns, value in schedule.entries))

    def start_schedule(self, port: int, mono_ns: int) -> None:
        """From `mono_ns` on, in the future, the rate of `port` follows its schedule."""
        self.request("schedule", "start", port, mono_ns)

    def set_loss(self, port: int, loss: Loss, seed: int) -> None:
        """From now on the link loses packets that leave `port`'s queue; `seed` (64 bits) is of their random numbers."""
        self.request("loss", port, "seed", seed, *_pairs(loss.settings()))

    def set_jitter(self, port: int, jitter: Jitter, seed: int) -> None:
        """From now on packets that leave `port`'s queue have jitter; `seed` (64 bits) is of their random numbers."""
        self.request("jitter", port, seed, *jitter.quantiles_ns())

    def stats(self) -> dict[str, int]:
        """Every counter of the switch itself."""
        return _numbers(self.request("stats"))

    def lateness(self, port: int) -> list[tuple[int, int]]:
        """(upper edge in ns, frames): how late frames were handed to the kernel on `port`."""
        return [(int(edge), int(count)) for edge, count in (line.split() for line in self.request("lateness", port))]

    def reset_lateness(self) -> None:
        self.request("lateness", "reset")

    def _request_many(self, head: str, items: Iterable[str], separator: str = "") -> None:
        """Requests that begin with `head`, each with as many items as fit, `separator` between them."""
        words: list[str] = []
        room = 0
        for item in items:
            if words and len(item) > room:
                self.request(head, *words)
                words = []
            if not words:
                room = MAX_REQUEST_BYTES - len(f"{head} ")
            words += [separator, item] if words and separator else [item]
            room -= len(item) + len(separator) + 2
        if words:
            self.request(head, *words)

    def _dump(self, table: str) -> list[str]:
        return self.request("table", "dump", table)

    def _entry(self, table: str, words: list[str]) -> ProgramEntry:
        action, *values = words
        _, arguments = self.schema.action(self.schema.table(table), action)
        named_values = zip((argument.name for argument in arguments), values, strict=True)
        return ProgramEntry(short(action), {name: int(value, 0) for name, value in named_values})

    def _words(self, table: str, key: int | None, entry: ProgramEntry) -> list[str | int]:
        try:
            return [entry.action, *self.schema.check(self.schema.table(table), key, *entry)]
        except SwitchError as error:
            raise SwitchError(f"{self}: {error}") from None


def connect(address: str, program: Path | None = None) -> SoftSwitch:
    return SoftSwitch(address, program=program)


def _table(line: str) -> Table:
    """NAME KEY:MATCH:BITS,... ACTION(ARGUMENT:BITS,...),... as `table list` answers; `-` means no key."""
    name, keys, actions = line.split(" ")
    fields = [key.rpartition(":") for key in keys.split(",") if key != "-"]
    action_lists = re.findall(r"([^,()]+)\(([^()]*)\)", actions)
    return Table(
        name,
        tuple(Field(field.partition(":")[0], int(bits)) for field, _, bits in fields),
        {action: tuple(_argument(text) for text in arguments.split(",") if text) for action, arguments in action_lists},
    )


def _argument(text: str) -> Field:
    name, _, bits = text.rpartition(":")
    return Field(name, int(bits))


def _pairs(settings: Mapping[str, int]) -> list[str | int]:
    return [word for pair in settings.items() for word in pair]


def _numbers(lines: list[str]) -> dict[str, int]:
    return {name: int(value) for name, value in (line.split(" ", 1) for line in lines)}
