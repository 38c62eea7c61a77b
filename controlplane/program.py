# SPDX-License-Identifier: MIT
"""The one interface to every kind of switch, and the meaning of the P4 program's tables, actions and arguments, which
is the same on every target.

Ports are the data plane's numbers; `ports()` has their front-panel names. Every setting can be read back: a read
returns the setting in force, after the target's rounding. No setting is cached. Exception: BMv2 cannot report the
settings of a queue, so a read returns the settings that this control plane last made (bmv2_queues.py). For the
program's tables a backend implements only primitives: entries, defaults, counters, mirror session. The names come from
p4src/shared; a test compares them with the committed compilations.
"""

from __future__ import annotations

import abc
import ipaddress
import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple, Self

from controlplane.policy import Ecn, EgressThreshold, Policy, TailDrop, Unit, Unwatched
from controlplane.switch import Capabilities, Collector, Count, FrontPanel, ProgramIdentity, Queue, SwitchError
from controlplane.tables_file import Request
from wire.formats import DEPTH_BUCKETS

PROGRAM = "bufferscope"
MIRROR_SESSION = 1  # POSTCARD_MIRROR_SESSION of the P4 program
COPY_BYTES = 256  # the soft switch cuts mirrored copies to this length: more than the headers that the parser reads
COUNTERS = (
    "unknown_hosts",
    "arrivals",
    "arrival_drops",
    "arrival_marks",
    "departure_drops",
    "departure_marks",
    "postcards_made",
)
ACTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "forward": {"send_to": ("egress_port",)},
    "queue_policy": {
        "unwatched": (),
        "tail_drop": ("threshold", "in_bytes"),
        "ecn": ("threshold", "hard_limit", "in_bytes"),
        "egress_threshold": ("threshold", "mark_instead_of_drop", "in_bytes"),
    },
    "postcards": {"report": ("switch_id", "ns_per_tick"), "silent": ()},
    "collector": {
        "send_to_collector": ("switch_mac", "collector_mac", "switch_addr", "collector_addr", "src_port", "dst_port")
    },
}


class ProgramEntry(NamedTuple):
    """An action, by its short name, and its arguments by name."""

    action: str
    arguments: Mapping[str, int]


class Switch(abc.ABC):
    """A connection to a running switch; use it as a context manager. A method that fails raises SwitchError. Each table
    of the program has at most one key.
    """

    target: str
    address: str

    @property
    @abc.abstractmethod
    def capabilities(self) -> Capabilities: ...

    @abc.abstractmethod
    def close(self) -> None: ...

    @abc.abstractmethod
    def program(self) -> ProgramIdentity:
        """The program on the switch. SwitchError if it is another program, or another version than this checkout's."""

    @abc.abstractmethod
    def writing(self) -> AbstractContextManager[None]:
        """Inside, only this process writes to the switch through this interface. Exception: processes on other machines
        are not excluded from the soft switch and BMv2 (lock.py). SwitchError if another writer is active.
        """

    @abc.abstractmethod
    def ports(self) -> dict[str, int]:
        """Front-panel name ('1', 'eth0', '1/0') -> data-plane port, of all usable ports."""

    @abc.abstractmethod
    def queue(self, port: int) -> Queue: ...

    @abc.abstractmethod
    def set_queue(self, port: int, queue: Queue) -> None:
        """Sets all fields; None is no bound. `queue` returns the rounded settings in force."""

    def holds(self, requested: Queue, reported: Queue) -> bool:
        """Whether a switch set to `requested` may report `reported`: equal but for the target's rounding."""
        return requested == reported

    @abc.abstractmethod
    def check_queue(self, port: int, queue: Queue) -> None:
        """Raises the errors of set_queue, and changes nothing."""

    def silent_drops(self, policy: Policy, queue: Queue) -> str:
        """Why the queue would drop silently before `policy` drops. '' if it would not. Also '' if nothing is checked:
        EgressThreshold, thresholds in cells, and a limit in another unit than the threshold. BMv2 checks more
        (bmv2_queues.py).
        """
        if not isinstance(policy, TailDrop | Ecn):
            return ""
        most = policy.hard_limit if isinstance(policy, Ecn) else policy.threshold
        limit = {Unit.PACKETS: queue.limit_packets, Unit.BYTES: queue.limit_bytes}.get(policy.unit)
        if limit is None or limit > most:
            return ""
        return (
            f"the queue itself holds {limit} {policy.unit} and drops the rest silently, before the policy does at "
            f"{most}: give the queue a limit above {most} {policy.unit}"
        )

    @abc.abstractmethod
    def target_counters(self) -> dict[str, int]:
        """The target's own counters, not the program's: its drops, queue lengths."""

    def front_panel(self, port: int) -> FrontPanel | None:
        """The port's settings. None: the port is not set up, or this target has no front panel."""
        return None

    def set_front_panel(self, port: int, settings: FrontPanel | None) -> None:
        """Sets the port up; None takes it down."""
        raise SwitchError(f"{self}: port {port} has no cable whose speed could be set: leave `speed` out")

    def deflection(self) -> dict[int, int]:
        """Pipe -> port to which refused packets are deflected. Empty if the program drops, or if deflection is off."""
        return {}

    def set_deflection(self, port: int) -> None:
        """Deflects refused packets of all queues in this port's pipe to egress, as if they were for `port`."""
        raise SwitchError(f"{self}: port {port}: nothing is deflected here, the program itself drops")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        return f"{self.target} switch at {self.address}"

    def install(self, requests: Iterable[Request]) -> None:
        """Makes the requests of a file of tables, of any program. Raises SwitchError with the file's line."""
        for request in requests:
            try:
                self.make(request.text)
            except SwitchError as error:
                raise SwitchError(f"{request.where}: {request.command}: {error}") from None

    def make(self, request: str) -> None:
        """Makes a request of docs/control-protocol.md about the program, its clones, copies and queues."""
        raise SwitchError(f"{self}: takes no requests for other programs")

    @abc.abstractmethod
    def entries(self, table: str) -> dict[int, ProgramEntry]:
        """All entries by key."""

    @abc.abstractmethod
    def check_entry(self, table: str, key: int | None, entry: ProgramEntry) -> None:
        """SwitchError if names or widths do not fit the program on the switch; changes nothing."""

    @abc.abstractmethod
    def write_entry(self, table: str, key: int, entry: ProgramEntry) -> None:
        """Adds the entry, or replaces the entry with the same key."""

    @abc.abstractmethod
    def delete_entry(self, table: str, key: int) -> None:
        """Idempotent: a missing entry is not an error."""

    @abc.abstractmethod
    def default_entry(self, table: str) -> ProgramEntry: ...

    @abc.abstractmethod
    def write_default(self, table: str, entry: ProgramEntry) -> None: ...

    @abc.abstractmethod
    def read_counter(self, name: str, cells: Iterable[int]) -> dict[int, Count]:
        """The counts of `cells` that are not zero, by index."""

    @abc.abstractmethod
    def mirror_port(self) -> int | None:
        """The port of MIRROR_SESSION. None: no session, or a session with other settings than set_mirror_port makes."""

    @abc.abstractmethod
    def set_mirror_port(self, port: int) -> None: ...

    def threshold_unit(self, arguments: Mapping[str, int]) -> Unit:
        """The unit of a policy entry's threshold."""
        return Unit.BYTES if arguments.get("in_bytes") else Unit.PACKETS

    def unit_arguments(self, unit: Unit) -> Mapping[str, int]:
        """The arguments of a policy entry that set its threshold's unit."""
        if unit not in self.capabilities.depth_units:
            allowed = ", ".join(self.capabilities.depth_units)
            raise SwitchError(f"table queue_policy: {self} compares no {unit}; allowed: {allowed}")
        return {"in_bytes": int(unit is Unit.BYTES)}

    def forwarding(self) -> dict[str, int]:
        """Destination MAC (02:bf:...) -> egress port."""
        entries = self.entries("forward").items()
        return {mac_text(key): entry.arguments["egress_port"] for key, entry in entries if entry.action == "send_to"}

    def set_forwarding(self, mac: str, port: int) -> None:
        self.write_entry("forward", mac_number(mac), ProgramEntry("send_to", {"egress_port": port}))

    def delete_forwarding(self, mac: str) -> None:
        """Frames to `mac` are dropped from now on. Idempotent: a missing entry is not an error."""
        self.delete_entry("forward", mac_number(mac))

    def policy(self, port: int) -> Policy:
        entry = self.entries("queue_policy").get(port) or self.default_entry("queue_policy")
        arguments = entry.arguments
        unit = self.threshold_unit(arguments)
        match entry.action:
            case "tail_drop":
                return TailDrop(arguments["threshold"], unit)
            case "ecn":
                return Ecn(arguments["threshold"], arguments["hard_limit"], unit)
            case "egress_threshold":
                return EgressThreshold(arguments["threshold"], bool(arguments["mark_instead_of_drop"]), unit)
        return Unwatched()

    def check_policy(self, port: int, policy: Policy) -> None:
        """Raises the errors of set_policy, and changes nothing."""
        self.check_entry("queue_policy", port, self._policy_entry(policy))

    def set_policy(self, port: int, policy: Policy) -> None:
        """Sets the policy of `port`'s queue, from the next packet on."""
        self.write_entry("queue_policy", port, self._policy_entry(policy))

    def _policy_entry(self, policy: Policy) -> ProgramEntry:
        match policy:
            case TailDrop(threshold, unit):
                return ProgramEntry("tail_drop", {"threshold": threshold, **self.unit_arguments(unit)})
            case Ecn(threshold, hard_limit, unit):
                bounds = {"threshold": threshold, "hard_limit": hard_limit}
                return ProgramEntry("ecn", {**bounds, **self.unit_arguments(unit)})
            case EgressThreshold(threshold, mark, unit):
                does = {"threshold": threshold, "mark_instead_of_drop": int(mark)}
                return ProgramEntry("egress_threshold", {**does, **self.unit_arguments(unit)})
        return ProgramEntry("unwatched", {})

    def postcards(self, port: int) -> int | None:
        """The switch id in the postcards of `port`'s queue. None: no postcards."""
        entry = self.entries("postcards").get(port) or self.default_entry("postcards")
        return entry.arguments["switch_id"] if entry.action == "report" else None

    def set_postcards(self, port: int, switch_id: int | None) -> None:
        """From now on each packet of `port`'s queue gets one postcard, with `switch_id`. None: no postcards."""
        entry = ProgramEntry("silent", {})
        if switch_id is not None:
            entry = ProgramEntry("report", {"switch_id": switch_id, "ns_per_tick": self.capabilities.time_step_ns})
        self.write_entry("postcards", port, entry)

    def collector(self) -> Collector | None:
        port = self.mirror_port()
        entry = self.default_entry("collector")
        if port is None or entry.action != "send_to_collector":
            return None
        arguments = entry.arguments
        return Collector(
            port=port,
            switch_mac=mac_text(arguments["switch_mac"]),
            collector_mac=mac_text(arguments["collector_mac"]),
            switch_addr=str(ipaddress.IPv4Address(arguments["switch_addr"])),
            collector_addr=str(ipaddress.IPv4Address(arguments["collector_addr"])),
            src_port=arguments["src_port"],
            dst_port=arguments["dst_port"],
        )

    def set_collector(self, collector: Collector) -> None:
        self.write_default("collector", ProgramEntry("send_to_collector", collector_numbers(collector)))
        self.set_mirror_port(collector.port)

    def counters(self) -> dict[str, dict[int, Count]]:
        """The P4 counters except the depth histogram's, by name without the control: the cells that are not
        zero, by index.
        """
        cells = sorted(set(self.ports().values()) | set(self.forwarding().values()))
        return {name: self.read_counter(name, cells) for name in COUNTERS}

    def histogram(self, port: int) -> list[tuple[int, int]]:
        """All buckets of `port`'s queue: (lowest depth, in the first of depth_units; packets)."""
        first = port * len(DEPTH_BUCKETS)
        cells = self.read_counter("depth_histogram", range(first, first + len(DEPTH_BUCKETS)))
        nothing = Count(0, 0)
        return [(depth, cells.get(first + at, nothing).packets) for at, depth in enumerate(DEPTH_BUCKETS)]


def collector_numbers(collector: Collector) -> dict[str, int]:
    """The addresses of the collector and of the switch's postcards, by the names of the action's arguments."""
    return {
        "switch_mac": mac_number(collector.switch_mac),
        "collector_mac": mac_number(collector.collector_mac),
        "switch_addr": int(ipaddress.IPv4Address(collector.switch_addr)),
        "collector_addr": int(ipaddress.IPv4Address(collector.collector_addr)),
        "src_port": collector.src_port,
        "dst_port": collector.dst_port,
    }


def mac_number(text: str) -> int:
    if not re.fullmatch(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", text):
        raise SwitchError(f"{text!r} is not a MAC address: six bytes as in 02:bf:00:00:00:01")
    return int(text.replace(":", ""), 16)


def mac_text(number: int) -> str:
    return number.to_bytes(6, "big").hex(":")
