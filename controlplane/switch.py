# SPDX-License-Identifier: MIT
"""The one interface to every kind of switch: settings, counters, and the target's capabilities.

Ports are the data plane's numbers; `ports()` has their front-panel names. Every setting can be read back: a read
returns the setting in force, after the target's rounding. No setting is cached. Exception: BMv2 cannot report the
settings of a queue, so a read returns the settings that this control plane last made (bmv2_queues.py).
"""

from __future__ import annotations

import abc
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Self

from controlplane.policy import Ecn, Policy, TailDrop, Unit


class SwitchError(RuntimeError):
    """A request failed: the switch refused it, did not answer, or could not be asked. One line: the reason and, as far
    as they apply, target, table, key and request.
    """


@dataclass(frozen=True)
class Capabilities:
    """The exact abilities of a target. targets.py has one row per target; a connection adds values that it reads."""

    name: str
    depth_units: tuple[Unit, ...]  # units that thresholds are compared in; the first is the histogram's
    exact_depth: bool  # a depth counts exactly the packets ahead
    exact_time: bool  # stamps are exact functions of the arrivals, not readings of a wall clock
    time_step_ns: int  # one tick of the switch's clock
    tail_drop_seen_by_program: bool  # else the traffic manager drops, and can deflect the dropped packets
    rate_unit: str  # unit of the queue's rate: bps or pps
    limit_units: tuple[Unit, ...]  # units of the queue's own limit
    links: bool  # the switch emulates propagation delays, access rates, a changing rate, random loss and jitter
    front_panel: bool  # ports have cables with speed and FEC
    clock_readable: bool = True  # a run reads the switch's clock or knows it; else a run derives it from postcards
    cell_bytes: int | None = None  # if depths are in cells; read from the switch
    queued_extra_bytes: int = 0  # queued with each frame; the frame's cells include them

    @property
    def byte_thresholds(self) -> bool:
        return Unit.BYTES in self.depth_units


@dataclass(frozen=True)
class ProgramIdentity:
    """The P4 program on the switch. `digest`: of its P4 sources, or words if the target knows only that they are not
    this checkout's; None: not known.
    """

    name: str
    digest: str | None


@dataclass(frozen=True)
class Count:
    """One cell of a P4 counter."""

    packets: int
    bytes: int


@dataclass(frozen=True)
class Collector:
    """The destination of postcards: a UDP socket behind `port`. Addresses are IPv4."""

    port: int
    switch_mac: str
    collector_mac: str
    switch_addr: str
    collector_addr: str
    src_port: int
    dst_port: int


@dataclass(frozen=True)
class Queue:
    """A port's queue: service rate and limit. None: no bound, or a bound in another unit.

    `rate_bps` counts wire bits: preamble, FCS and gap add 24 bytes to a frame.
    """

    rate_bps: int | None = None
    rate_pps: int | None = None
    limit_packets: int | None = None
    limit_bytes: int | None = None
    limit_cells: int | None = None


@dataclass(frozen=True)
class FrontPanel:
    """Settings of a port with a cable. `fec`: none, firecode, reed-solomon; `auto_negotiation`: default, on, off."""

    speed_bps: int
    fec: str = "none"
    auto_negotiation: str = "default"
    enabled: bool = True


class Switch(abc.ABC):
    """A connection to a running switch; use it as a context manager. A method that fails raises SwitchError."""

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
    def forwarding(self) -> dict[str, int]:
        """Destination MAC (02:bf:...) -> egress port."""

    @abc.abstractmethod
    def set_forwarding(self, mac: str, port: int) -> None: ...

    @abc.abstractmethod
    def delete_forwarding(self, mac: str) -> None:
        """Frames to `mac` are dropped from now on. Idempotent: a missing entry is not an error."""

    @abc.abstractmethod
    def policy(self, port: int) -> Policy: ...

    @abc.abstractmethod
    def set_policy(self, port: int, policy: Policy) -> None:
        """Sets the policy of `port`'s queue, from the next packet on."""

    @abc.abstractmethod
    def check_policy(self, port: int, policy: Policy) -> None:
        """Raises the errors of set_policy, and changes nothing."""

    @abc.abstractmethod
    def postcards(self, port: int) -> int | None:
        """The switch id in the postcards of `port`'s queue. None: no postcards."""

    @abc.abstractmethod
    def set_postcards(self, port: int, switch_id: int | None) -> None:
        """From now on each packet of `port`'s queue gets one postcard, with `switch_id`. None: no postcards."""

    @abc.abstractmethod
    def collector(self) -> Collector | None: ...

    @abc.abstractmethod
    def set_collector(self, collector: Collector) -> None: ...

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
    def counters(self) -> dict[str, dict[int, Count]]:
        """The P4 counters except the depth histogram's, by name without the control: the cells that are not
        zero, by index.
        """

    @abc.abstractmethod
    def target_counters(self) -> dict[str, int]:
        """The target's own counters, not the program's: its drops, queue lengths."""

    @abc.abstractmethod
    def histogram(self, port: int) -> list[tuple[int, int]]:
        """All buckets of `port`'s queue: (lowest depth, in the first of depth_units; packets)."""

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
