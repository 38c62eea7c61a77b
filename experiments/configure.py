# SPDX-License-Identifier: MIT
"""Tells started switches what the experiment asks of them: hosts, links, queue, policy, postcards, delays of flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.policy import Ecn, EgressThreshold, Policy, TailDrop, Unit
from controlplane.soft import FiveTuple, SoftSwitch
from controlplane.switch import Collector, Queue
from experiments.resolve import Resolved
from experiments.switches import BOTTLENECK, Switches
from experiments.topology import (
    COLLECTOR,
    HOSTS,
    LINE_TO_RECEIVER,
    LINE_TO_SENDER,
    POSTCARD_SOURCE,
    RECEIVER,
    SENDER,
)
from wire import wire

if TYPE_CHECKING:
    from experiments.traffic import Flow

SWITCH_ID = 1
TCP = 6
POSTCARD_PORT = wire.POSTCARD.const["POSTCARD_UDP_PORT"]


def configure(switches: Switches, spec: Resolved, flows: list[Flow]) -> None:
    """Makes the switches ready for traffic. Forwarding comes last: nothing passes a switch that is half configured."""
    measured = switches.measured
    if isinstance(measured, SoftSwitch):
        links(measured, spec)
        for flow in flows:
            if flow.extra_delay_ns:
                five_tuple = FiveTuple(flow.src_addr, flow.dst_addr, TCP, flow.src_port, flow.dst_port)
                measured.set_flow(five_tuple, delay=flow.extra_delay_ns)
    else:
        for host in HOSTS:
            measured.set_queue(host.port, queue(spec, host.port))
    measured.set_policy(BOTTLENECK, policy(spec))
    collector = Collector(
        COLLECTOR.port,
        switch_mac=COLLECTOR.switch_mac,
        collector_mac=COLLECTOR.mac,
        switch_addr=POSTCARD_SOURCE,
        collector_addr=COLLECTOR.ipv4,
        src_port=POSTCARD_PORT,
        dst_port=POSTCARD_PORT,
    )
    measured.set_collector(collector)
    measured.set_postcards(BOTTLENECK, SWITCH_ID)
    if switches.line:
        delay_line(switches.line, spec)
    for host in HOSTS:
        measured.set_forwarding(host.mac, host.port)


def links(switch: SoftSwitch, spec: Resolved) -> None:
    """The bottleneck towards the receiver, half of the RTT in each direction; netem has all of it with DELAY=tc."""
    forth_ns, back_ns = delays_ns(spec)
    switch.set_port(RECEIVER.port, rate=spec.rate_bps, delay=forth_ns, access=0, limit_packets=0, limit_bytes=0)
    switch.set_port(SENDER.port, rate=0, delay=back_ns, access=0, limit_packets=0, limit_bytes=0)
    switch.set_port(COLLECTOR.port, rate=0, delay=0, access=0, limit_packets=0, limit_bytes=0)


def delay_line(line: SoftSwitch, spec: Resolved) -> None:
    """Both directions of the path behind the bottleneck: delay, and nothing else. No queue of it is watched."""
    forth_ns, back_ns = delays_ns(spec)
    line.set_port(LINE_TO_RECEIVER, rate=0, delay=forth_ns, access=0, limit_packets=0, limit_bytes=0)
    line.set_port(LINE_TO_SENDER, rate=0, delay=back_ns, access=0, limit_packets=0, limit_bytes=0)
    line.set_forwarding(RECEIVER.mac, LINE_TO_RECEIVER)
    line.set_forwarding(SENDER.mac, LINE_TO_SENDER)


def delays_ns(spec: Resolved) -> tuple[int, int]:
    """Propagation delay towards the receiver, and back."""
    forth_ns = 0 if spec.delay == "tc" else spec.rtt_ns // 2
    back_ns = 0 if spec.delay == "tc" else spec.rtt_ns - forth_ns
    return forth_ns, back_ns


def queue(spec: Resolved, port: int) -> Queue:
    """A port of a switch with queues of its own: the policy's threshold lies so far below the queue's own limit that
    only the program, which tells of it, drops. On the ports of postcards and ACKs there is no rate.
    """
    if port != BOTTLENECK:
        return Queue(limit_packets=spec.pool_packets)
    if spec.rate_pps is not None:
        return Queue(rate_pps=spec.rate_pps, limit_packets=spec.pool_packets)
    return Queue(rate_bps=spec.rate_bps, limit_packets=spec.pool_packets)


def policy(spec: Resolved) -> Policy:
    """The queue policy of the bottleneck, in the unit that BUF was given in."""
    in_bytes = spec.threshold_bytes is not None
    unit = Unit.BYTES if in_bytes else Unit.PACKETS
    buffer = spec.threshold_bytes if spec.threshold_bytes is not None else spec.buffer_packets
    if spec.mode == "ecn":
        marks_from = spec.ecn_threshold_bytes if in_bytes else spec.ecn_threshold_packets
        assert marks_from is not None  # resolve sets it with this mode
        return Ecn(marks_from, buffer, unit)
    if spec.mode == "egress-threshold":
        return EgressThreshold(buffer, unit=unit)
    return TailDrop(buffer, unit)
