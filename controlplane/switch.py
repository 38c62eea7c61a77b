# SPDX-License-Identifier: MIT
"""The settings and counters of a switch, and a target's capabilities. program.py has the switch itself."""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.policy import Unit


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
