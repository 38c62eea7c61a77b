# SPDX-License-Identifier: MIT
"""Configures started switches for the experiment: hosts, links, queue, policy, postcards, delays of flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from controlplane.apply import Desired, DesiredPort, plan
from controlplane.policy import Policy
from controlplane.program import ProgramEntry
from controlplane.soft import FlowKey, SoftSwitch
from controlplane.switch import Collector, Queue
from controlplane.tables_file import Request
from experiments.plan.switches import BOTTLENECK, LAB_PORTS, Switches
from experiments.spec.lab_ports import QUEUES, Ports
from experiments.spec.topology import (
    COLLECTOR,
    HOSTS,
    LINE_TO_RECEIVER,
    LINE_TO_SENDER,
    POSTCARD_SOURCE,
    RECEIVER,
    SENDER,
)
from hosts.tune import commands
from lib.errors import RunError
from wire.formats import POSTCARD

if TYPE_CHECKING:
    from lib.link_dynamics import Jitter, Loss, RateSchedule

SWITCH_ID = 1
QDISC_DEVICE = "bswq"  # softswitch/driver/queue_device.c
TCP = 6
POSTCARD_PORT = POSTCARD.const["POSTCARD_UDP_PORT"]


@dataclass(frozen=True)
class OwnProgram:
    """A whole program of the user's: the requests of its tables, and the limit and scheduler of the bottleneck."""

    requests: tuple[Request, ...]
    limit: Mapping[str, int]  # limit_packets or limit_bytes
    scheduler: str | None


@dataclass(frozen=True)
class Qdisc:
    """A Linux qdisc as the bottleneck's queue: its name with the arguments of tc, and the MTU of its device."""

    words: tuple[str, ...]
    mtu_bytes: int


@dataclass(frozen=True)
class SwitchSettings:
    """`forth_ns` and `back_ns` are propagation delays towards the receiver and back. `flow_settings` has the flows,
    source ports and source addresses with a delay or a link of their own. The names of the settings are those of
    `SoftSwitch.set_flow`. `queues` has each port's queue, for a switch with queues of its own.
    """

    rate_bps: int
    forth_ns: int
    back_ns: int
    queues: Mapping[int, Queue]
    policy: Policy
    flow_settings: tuple[tuple[FlowKey, Mapping[str, int]], ...]
    shared_links_bps: Mapping[int, int] = field(default_factory=dict)  # access links that flows share, by number
    nic_rate_bps: int = 0  # at which the sender's NIC spaces bursts; 0: without limit
    drop_cost_permille: int = 0  # share of its transmission time that a packet dropped at departure takes
    # Of the bottleneck's link towards the receiver. `rate_schedule` begins `schedule_after_ns` after the common start
    # of the traffic, with WARMUP; rate_bps holds before.
    rate_schedule: RateSchedule | None = None
    schedule_after_ns: int = 0
    loss: Loss | None = None
    jitter: Jitter | None = None
    loss_seed: int = 0  # 64 bits, likewise jitter_seed
    jitter_seed: int = 0
    # Of a user's policy: (table, action) -> arguments of the default action.
    policy_parameters: Mapping[tuple[str, str], Mapping[str, int]] = field(default_factory=dict)
    queue_requests: Sequence[tuple[str | int, ...]] = ()  # of the queues and the scheduler that it asks for
    random_seed: int | None = None  # of the P4 program's random numbers
    program: OwnProgram | None = None  # None: our program
    ports: Ports = LAB_PORTS
    qdisc: Qdisc | None = None  # None: the switch's own queue

    @property
    def is_watched_by_core(self) -> bool:
        """Whether the switch's core makes the postcards, and not the P4 program."""
        return self.program is not None or self.qdisc is not None

    @property
    def parameter_tables(self) -> tuple[str, ...]:
        return tuple(table for table, _ in self.policy_parameters)


@dataclass(frozen=True)
class Attached:
    """The hosts at the switch: MAC addresses by port, and the destination of postcards."""

    macs: Mapping[int, str]
    collector: Collector


IN_THE_LAB = Attached(
    {host.port: host.mac for host in HOSTS},
    Collector(
        COLLECTOR.port,
        switch_mac=COLLECTOR.switch_mac,
        collector_mac=COLLECTOR.mac,
        switch_addr=POSTCARD_SOURCE,
        collector_addr=COLLECTOR.ipv4,
        src_port=POSTCARD_PORT,
        dst_port=POSTCARD_PORT,
    ),
)


def configure(switches: Switches, settings: SwitchSettings, attached: Attached = IN_THE_LAB) -> None:
    """Makes the switches ready for traffic. Forwarding is set last, so that no packet of a new host passes a
    half-configured switch.
    """
    measured = switches.measured
    if settings.is_watched_by_core:
        _configure_watched(switches, settings, attached)
        return
    ports = {BOTTLENECK: DesiredPort(str(BOTTLENECK), settings.policy, SWITCH_ID)}
    if isinstance(measured, SoftSwitch):
        _set_links(measured, settings)
        for link, rate_bps in settings.shared_links_bps.items():
            measured.set_link(link, rate_bps)
        measured.set_flows(settings.flow_settings)
    else:
        for port, queue in settings.queues.items():
            ports.setdefault(port, DesiredPort(str(port))).queue = queue
    if settings.rate_schedule:
        switches.scheduled().set_schedule(BOTTLENECK, settings.rate_schedule)
    _set_path_behind(switches, settings, attached)
    for (table, action), arguments in settings.policy_parameters.items():
        measured.write_default(table, ProgramEntry(action, arguments))
    for words in settings.queue_requests:
        switches.scheduled().request(*words)
    if settings.random_seed is not None and isinstance(measured, SoftSwitch):
        measured.request("random", "seed", settings.random_seed)
    forwarding = {mac: port for port, mac in attached.macs.items()}
    for change in plan(measured, Desired(ports, forwarding, attached.collector)):
        change.do()


def _configure_watched(switches: Switches, settings: SwitchSettings, attached: Attached) -> None:
    """Makes a switch ready with a program or a queue without our policies and postcards. The soft switch's core makes
    the postcards; of another switch, frames are recorded before and behind it.
    """
    program = settings.program
    if program and not isinstance(switches.measured, SoftSwitch):
        for port, queue in settings.queues.items():
            switches.measured.set_queue(port, queue)
        _set_path_behind(switches, settings, attached)
        switches.measured.install(program.requests)
        return
    switch = switches.scheduled()
    _set_links(switch, settings)
    if program:
        switch.set_port(settings.ports.receiver, **program.limit)
    if program and program.scheduler:
        switch.request("queue", "scheduler", settings.ports.receiver, program.scheduler, "queues", QUEUES)
    for link, rate_bps in settings.shared_links_bps.items():
        switch.set_link(link, rate_bps)
    switch.set_flows(settings.flow_settings)
    if settings.rate_schedule:
        switch.set_schedule(settings.ports.receiver, settings.rate_schedule)
    _set_path_behind(switches, settings, attached)
    if settings.random_seed is not None:
        switch.request("random", "seed", settings.random_seed)
    collector = replace(attached.collector, port=settings.ports.collector)
    switch.watch(settings.ports.receiver, settings.ports.sender, collector, SWITCH_ID)
    if settings.qdisc:
        _set_qdisc(settings.qdisc)
    if program:
        switch.install(program.requests)
        return
    for port, mac in attached.macs.items():
        switch.set_forwarding(mac, port)


def _set_qdisc(qdisc: Qdisc) -> None:
    """Raises RunError with tc's own words."""
    try:
        commands.run("ip", "link", "set", "dev", QDISC_DEVICE, "mtu", str(qdisc.mtu_bytes), "up")
        commands.run("tc", "qdisc", "replace", "dev", QDISC_DEVICE, "root", *qdisc.words)
    except commands.TuneError as error:
        said = f"tc says: {error.first}" if isinstance(error, commands.CommandError) else error
        raise RunError(f"QUEUE=linux:{' '.join(qdisc.words)}: {said}") from None


def _set_path_behind(switches: Switches, settings: SwitchSettings, attached: Attached) -> None:
    """The delay line, if there is one, and the link's losses and jitter."""
    if switches.line:
        _set_delay_line(switches.line, settings, attached)
    if settings.loss:
        switches.impaired().set_loss(switches.bottleneck_link, settings.loss, settings.loss_seed)
    if settings.jitter:
        switches.impaired().set_jitter(switches.bottleneck_link, settings.jitter, settings.jitter_seed)


def _set_links(switch: SoftSwitch, settings: SwitchSettings) -> None:
    """The bottleneck towards the receiver, and propagation delay in both directions."""
    ports = settings.ports
    _set_port(switch, ports.receiver, settings.rate_bps, settings.forth_ns)
    if settings.drop_cost_permille:
        switch.set_port(ports.receiver, drop_cost=settings.drop_cost_permille)
    _set_port(switch, ports.sender, 0, settings.back_ns, settings.nic_rate_bps)
    _set_port(switch, ports.collector, 0, 0)


def _set_delay_line(line: SoftSwitch, settings: SwitchSettings, attached: Attached) -> None:
    """Sets the delay of both directions of the path behind the bottleneck. No queue of the line is watched."""
    _set_port(line, LINE_TO_RECEIVER, 0, settings.forth_ns)
    _set_port(line, LINE_TO_SENDER, 0, settings.back_ns)
    line.set_forwarding(attached.macs[RECEIVER.port], LINE_TO_RECEIVER)
    line.set_forwarding(attached.macs[SENDER.port], LINE_TO_SENDER)


def _set_port(switch: SoftSwitch, port: int, rate_bps: int, delay_ns: int, access_bps: int = 0) -> None:
    switch.set_port(port, rate=rate_bps, delay=delay_ns, access=access_bps, limit_packets=0, limit_bytes=0)
