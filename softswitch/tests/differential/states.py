# SPDX-License-Identifier: MIT
"""Random states of the program: its tables, counting registers and mirror session, with many edge cases."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from controlplane.bmv2 import Bmv2Switch
from controlplane.program import ProgramEntry
from controlplane.soft import SoftSwitch

ATTACHED = (1, 2, 3)  # ports with a link on both switches; frames arrive there
UNATTACHED = (0, 77, 510)  # ports without a host: frames to them are lost
DROP_PORT = 511  # v1model's: packets to this port are dropped
PORTS = (*ATTACHED, *UNATTACHED)
MARKER_PORT, MARKER_MAC = 4, 0x02BF0000FF04
REGISTERS = (
    "admitted_packets", "admitted_bytes", "departed_packets", "departed_bytes", "ingress_card_seq", "egress_card_seq",
)  # fmt: skip
TOP = 2**32 - 1
WRAPPING = (0, 1, TOP - 2, TOP - 1, TOP)


@dataclass(frozen=True)
class State:
    """`policies`, `postcards`: by egress port; None: no entry. `registers`: (name, port) -> value, for all PORTS."""

    forward: dict[int, int]  # destination MAC -> port
    policies: dict[int, ProgramEntry | None]
    default_policy: ProgramEntry
    postcards: dict[int, ProgramEntry | None]
    collector: ProgramEntry
    mirror_port: int | None  # None: no mirror session
    registers: dict[tuple[str, int], int] = field(default_factory=dict)

    def apply(self, switch: SoftSwitch | Bmv2Switch, before: State | None) -> None:
        """Changes a switch from the state `before`, or from the empty state."""
        for mac in set(before.forward if before else ()) - set(self.forward):
            switch.delete_entry("forward", mac)
        for mac, port in self.forward.items():
            switch.write_entry("forward", mac, ProgramEntry("send_to", {"egress_port": port}))
        for table, entries in (("queue_policy", self.policies), ("postcards", self.postcards)):
            for port, entry in entries.items():
                if entry is None:
                    switch.delete_entry(table, port)
                else:
                    switch.write_entry(table, port, entry)
        switch.write_default("queue_policy", self.default_policy)
        switch.write_default("collector", self.collector)
        if self.mirror_port is not None:
            switch.set_mirror_port(self.mirror_port)
        for (name, port), value in self.registers.items():
            switch.set_register(name, port, value)

    def lines(self) -> list[str]:
        """The state in words, to set it up by hand."""
        return [
            *(f"forward {mac:#014x} -> port {port}" for mac, port in self.forward.items()),
            *(f"queue_policy[{port}] = {entry}" for port, entry in self.policies.items()),
            f"queue_policy default = {self.default_policy}",
            *(f"postcards[{port}] = {entry}" for port, entry in self.postcards.items()),
            f"collector = {self.collector}",
            f"mirror session -> {self.mirror_port}",
            *(f"{name}[{port}] = {value:#x}" for (name, port), value in self.registers.items()),
        ]


def state(chance: random.Random, mirrored: bool) -> State:
    registers = _registers(chance)
    hosts = {0x02BF00000001 + n: chance.choice((*ATTACHED * 4, *UNATTACHED, DROP_PORT)) for n in range(6)}
    forward = {**hosts, 0xFFFFFFFFFFFF: chance.choice(ATTACHED), 0: chance.choice(ATTACHED), MARKER_MAC: MARKER_PORT}
    return State(
        forward=forward,
        policies={
            **{port: _policy(chance, registers, port) if chance.random() < 0.9 else None for port in PORTS},
            MARKER_PORT: ProgramEntry("unwatched", {}),
        },
        default_policy=_policy(chance, registers, chance.choice(PORTS)),
        postcards={port: _postcards(chance) for port in PORTS},
        collector=_collector(chance),
        mirror_port=chance.choice((*ATTACHED * 4, 77)) if mirrored else None,
        registers=registers,
    )


def _registers(chance: random.Random) -> dict[tuple[str, int], int]:
    """Depths of 0, a few, many, and impossible ones, as from a broken counter; counters near their wrap-around."""
    values = {}
    for port in PORTS:
        for unit in ("packets", "bytes"):
            departed = chance.choice((*WRAPPING, chance.getrandbits(32)))
            depth = chance.choice((0, 0, 1, chance.randrange(300), chance.randrange(1 << 20), chance.choice(WRAPPING)))
            values[f"departed_{unit}", port] = departed
            values[f"admitted_{unit}", port] = (departed + depth) & TOP
        for name in ("ingress_card_seq", "egress_card_seq"):
            values[name, port] = chance.choice((*WRAPPING, chance.getrandbits(32)))
    return values


def _policy(chance: random.Random, registers: dict[tuple[str, int], int], port: int) -> ProgramEntry:
    """Thresholds at the current depth, one below, one above, at both ends of the range, or anywhere."""
    in_bytes = chance.randrange(2)
    unit = "bytes" if in_bytes else "packets"
    depth = registers[f"admitted_{unit}", port] - registers[f"departed_{unit}", port]

    def bound() -> int:
        return (
            chance.choice(
                (depth - 1, depth, depth + 1, depth + chance.randrange(20), 0, 1, TOP, chance.getrandbits(32))
            )
            & TOP
        )

    match chance.choice(("unwatched", "tail_drop", "tail_drop", "ecn", "ecn", "egress_threshold", "egress_threshold")):
        case "tail_drop":
            return ProgramEntry("tail_drop", {"threshold": bound(), "in_bytes": in_bytes})
        case "ecn":
            return ProgramEntry("ecn", {"threshold": bound(), "hard_limit": bound(), "in_bytes": in_bytes})
        case "egress_threshold":
            mark = chance.randrange(2)
            return ProgramEntry(
                "egress_threshold", {"threshold": bound(), "mark_instead_of_drop": mark, "in_bytes": in_bytes}
            )
    return ProgramEntry("unwatched", {})


def _postcards(chance: random.Random) -> ProgramEntry | None:
    match chance.choice(("report", "report", "report", "silent", None)):
        case "report":
            ticks = chance.choice((1, 1000, 0, 0xFFFF))
            return ProgramEntry("report", {"switch_id": chance.choice((0, 7, 0xFFFF)), "ns_per_tick": ticks})
        case "silent":
            return ProgramEntry("silent", {})
    return None


def _collector(chance: random.Random) -> ProgramEntry:
    if chance.random() < 0.2:
        return ProgramEntry("NoAction", {})
    return ProgramEntry(
        "send_to_collector",
        {
            "switch_mac": chance.choice((0x02BF00000103, chance.getrandbits(48))),
            "collector_mac": chance.choice((0x02BF00000003, 0xFFFFFFFFFFFF, chance.getrandbits(48))),
            "switch_addr": chance.choice((0x0A4E0001, 0, TOP, chance.getrandbits(32))),
            "collector_addr": chance.choice((0x0A4E0002, 0, TOP, chance.getrandbits(32))),
            "src_port": chance.choice((5577, 0, 0xFFFF)),
            "dst_port": chance.choice((5577, 0, 0xFFFF)),
        },
    )
