# SPDX-License-Identifier: MIT
"""Tells a started switch what the experiment asks of it: hosts, links, queue policy, postcards, delays of flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.policy import Ecn, EgressThreshold, Policy, TailDrop, Unit
from controlplane.soft import FiveTuple, SoftSwitch
from controlplane.switch import Collector
from experiments.resolve import Resolved
from experiments.topology import COLLECTOR, HOSTS, POSTCARD_SOURCE, RECEIVER, SENDER
from wire import wire

if TYPE_CHECKING:
    from experiments.traffic import Flow

SWITCH_ID = 1
TCP = 6
BOTTLENECK = RECEIVER.port
POSTCARD_PORT = wire.POSTCARD.const["POSTCARD_UDP_PORT"]


def configure(switch: SoftSwitch, spec: Resolved, flows: list[Flow]) -> None:
    """Makes the switch ready for traffic. Forwarding comes last: nothing passes a switch that is half configured."""
    links(switch, spec)
    switch.set_policy(BOTTLENECK, policy(spec))
    collector = Collector(
        COLLECTOR.port,
        switch_mac=COLLECTOR.switch_mac,
        collector_mac=COLLECTOR.mac,
        switch_addr=POSTCARD_SOURCE,
        collector_addr=COLLECTOR.ipv4,
        src_port=POSTCARD_PORT,
        dst_port=POSTCARD_PORT,
    )
    switch.set_collector(collector)
    switch.set_postcards(BOTTLENECK, SWITCH_ID)
    for flow in flows:
        if flow.extra_delay_ns:
            five_tuple = FiveTuple(flow.src_addr, flow.dst_addr, TCP, flow.src_port, flow.dst_port)
            switch.set_flow(five_tuple, delay=flow.extra_delay_ns)
    for host in HOSTS:
        switch.set_forwarding(host.mac, host.port)


def links(switch: SoftSwitch, spec: Resolved) -> None:
    """The bottleneck towards the receiver, half of the RTT in each direction; netem has all of it with DELAY=tc."""
    forth_ns = 0 if spec.delay == "tc" else spec.rtt_ns // 2
    back_ns = 0 if spec.delay == "tc" else spec.rtt_ns - forth_ns
    switch.set_port(RECEIVER.port, rate=spec.rate_bps, delay=forth_ns, access=0, limit_packets=0, limit_bytes=0)
    switch.set_port(SENDER.port, rate=0, delay=back_ns, access=0, limit_packets=0, limit_bytes=0)
    switch.set_port(COLLECTOR.port, rate=0, delay=0, access=0, limit_packets=0, limit_bytes=0)


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
