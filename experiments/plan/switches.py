# SPDX-License-Identifier: MIT
"""The switches of a run behind one handle: the measured switch, of any target, and the soft switch that emulates
the links. A measured soft switch emulates its own links. Behind any other measured switch, a soft switch is the delay
line; on a testbed the delay line may be missing, and netem then makes the delay.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from controlplane.program import Switch
from controlplane.soft import SoftSwitch
from controlplane.switch import Count, SwitchError
from controlplane.targets import RUN_TARGETS, TARGETS, connect
from experiments.machine.cell import RUNTIME
from experiments.plan import clock_join
from experiments.spec import topology
from experiments.spec.lab_ports import Ports
from experiments.spec.topology import LINE_TO_RECEIVER, LINE_TO_SENDER, RECEIVER
from lib import syscalls

BOTTLENECK = RECEIVER.port
LAB_PORTS = Ports()
CONTROL_SOCKET = RUNTIME / "switch.sock"
Counters = dict[str, dict[int, Count]]
# For a switch other than the soft switch, namespace, host of the inventory and daemon have the same name.
SWITCH_DAEMONS = tuple(f"{name}_switch" for name in RUN_TARGETS if name != "soft")


@dataclass(frozen=True)
class Switches:
    """`links` is None if neither switch has links: netem then makes the delay."""

    measured: Switch
    links: SoftSwitch | None
    ports: Ports = LAB_PORTS
    watched_by_core: bool = False  # the soft switch itself watches the queue, not our P4 program
    recorded: bool = False  # nothing in the switch counts: frames are recorded before and behind it

    @property
    def line(self) -> SoftSwitch | None:
        """The delay line, if there is one."""
        return None if self.links is self.measured else self.links

    @property
    def bottleneck_link(self) -> int:
        """The port of `links` towards the receiver."""
        return LINE_TO_RECEIVER if self.line else self.ports.receiver

    def scheduled(self) -> SoftSwitch:
        """The switch whose rate can change during a run. Raises SwitchError."""
        if not isinstance(self.measured, SoftSwitch):
            raise SwitchError(f"{self.measured} has no link whose rate can change (capability links: no)")
        return self.measured

    def impaired(self) -> SoftSwitch:
        """The switch behind whose queue packets can be lost or have jitter. Raises SwitchError."""
        if not self.links:
            raise SwitchError(f"{self.measured} has no links, and no delay line is behind it: no loss, no jitter")
        return self.links

    def read_counters(self) -> Counters:
        """P4 counters of the measured switch; its own, with the same names, if it watches the queue itself; none if
        frames are recorded.
        """
        if self.recorded:
            return {}
        if self.watched_by_core and isinstance(self.measured, SoftSwitch):
            return self.measured.watched()
        return self.measured.counters()

    def counters(self) -> dict[str, dict[str, dict[str, int]]]:
        """`read_counters`, for JSON."""
        return plain(self.read_counters())

    def about(self) -> dict[str, Any]:
        """Name and digest of the P4 program, and facts about the switch that runs it."""
        if isinstance(self.measured, SoftSwitch):
            return dict(self.measured.about())
        return asdict(self.measured.program())

    def clock(self) -> dict[str, int] | None:
        """The offset of the measured switch's clock now; None if it is CLOCK_MONOTONIC, cannot be read, or stamps
        nothing.
        """
        read_us = getattr(self.measured, "clock_us", None)
        if read_us is None or self.recorded:
            return None
        return asdict(clock_join.measure(lambda: 1000 * read_us()[0], self.measured.capabilities.time_step_ns))

    def state(self, parameters: Iterable[str]) -> dict[str, Any]:
        """The content of switch.json after the traffic: program, settings and counters. `line` has the settings and
        counters of the delay line. `parameters`: the tables with the parameters of a user's policy.
        """
        measured = self.measured
        state: dict[str, Any] = {
            "target": measured.target,
            "capabilities": asdict(measured.capabilities),
            "program": self.about(),
            "bottleneck_port": self.ports.receiver,
            "stats": measured.target_counters(),
            "counters": self.counters(),
            "parameters": {table: dict(measured.default_entry(table).arguments) for table in parameters},
        }
        if isinstance(measured, SoftSwitch):
            return state | _soft_state(measured, list(self.ports))
        settings = {str(port): asdict(measured.queue(port)) for port in self.ports}
        line = self.line
        ports = [LINE_TO_SENDER, LINE_TO_RECEIVER]
        about = {"line": _soft_state(line, ports) | {"stats": line.stats()}} if line else {}
        return state | {"settings": settings, "clock": self.clock()} | about

    def before(self) -> dict[str, Any]:
        """The part of switch.json from before the traffic."""
        state: dict[str, Any] = {"stats": self.measured.target_counters(), "counters": self.counters()}
        return state | {"clock": self.clock()} | ({"line": {"stats": self.line.stats()}} if self.line else {})

    def reset_lateness(self) -> None:
        if self.links:
            self.links.reset_lateness()

    def lateness(self) -> list[tuple[int, int]]:
        """The lateness histogram of the link towards the receiver: (upper edge in ns, frames)."""
        return self.links.lateness(self.bottleneck_link) if self.links else []

    def queue_length(self) -> int:
        """Packets in the bottleneck queue now; 0 if nothing counts them."""
        return packets_waiting(self.read_counters()) or 0

    def frames_moved(self) -> dict[str, int]:
        """Counters that change only if a frame passes the links."""
        if not self.links:
            return {}
        return {name: value for name, value in self.links.stats().items() if name.endswith("x_frames")}


def plain(counters: Counters) -> dict[str, dict[str, dict[str, int]]]:
    """Counters, for JSON."""
    return {name: {str(at): asdict(count) for at, count in cells.items()} for name, cells in counters.items()}


def packets_waiting(counters: Counters) -> int | None:
    """Packets in watched queues, by the P4 program's counters: those that arrived and have caused no postcard yet.
    None: there are no such counters.
    """
    if not counters:
        return None
    names = ("arrivals", "postcards_made")
    arrived, reported = (sum(count.packets for count in counters[name].values()) for name in names)
    return max(0, arrived - reported)


def _soft_state(switch: SoftSwitch, ports: list[int]) -> dict[str, Any]:
    return {
        "settings": {str(port): switch.port(port) for port in ports},
        "lateness": {str(port): switch.lateness(port) for port in ports},
    }


@contextlib.contextmanager
def in_the_lab(
    target: str, namespace: str, control: Path, program: Path | None = None, ports: Ports = LAB_PORTS,
    watched_by_core: bool = False,
) -> Iterator[Switches]:  # fmt: skip
    """Connections to the started switches: `target` in its `namespace`, and the soft switch at `control`. `program`:
    the JSON of the target's program, if it is the user's.
    """
    with SoftSwitch(control) as soft:
        if target == "soft":
            yield Switches(soft, soft, ports, watched_by_core)
            return
        with syscalls.in_network_namespace(topology.netns(namespace)):
            measured = connect(target, TARGETS[target].address, program)
        with measured:
            yield Switches(measured, soft, ports, recorded=watched_by_core)
