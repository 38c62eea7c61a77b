# SPDX-License-Identifier: MIT
"""The memory of a run: the switch, the tracer, TCP, and a virtual machine with all of them.

The figures are measured (docs/measurements.md). A virtual machine takes from the host only the memory that it touches,
so every sum here is an upper bound.
"""

from __future__ import annotations

import math

from experiments.machine import p4_program
from experiments.plan.repetition_plan import Sizes
from experiments.spec import demand, programs, topology
from hosts.tune.tcp_options import LINUX
from model.experiment import Experiment

FRAME_EXTRA_BYTES = 18  # Ethernet header and a VLAN tag
BODY_BYTES = 1280  # of a packet in a driver, beside the pool: the skb that holds the sender's pages
SEGMENT_BYTES = 1024  # of a segment in a socket's buffer, beside its bytes on the wire
# Sent segments in sockets per packet of window: slow start may overshoot by one window, and the receiver may hold one
# more window out of order.
SEGMENTS_PER_WINDOW_PACKET = 3
# Unsent segments per packet of window, if only the send buffer bounds them: the buffer holds two windows, one of them
# sent.
UNSENT_PER_WINDOW_PACKET = 1
# Without SACK a flow learns of one loss per RTT. Meanwhile it sends a segment for each duplicate ACK, and the receiver
# holds every segment after the first loss. A value of 12 was too small: 100 Reno flows at 1.4 Gb/s and 80 to 100 ms
# reached TCP's memory limit.
SEGMENTS_PER_WINDOW_PACKET_WITHOUT_SACK = 31
FLOW_TCP_BYTES = 48 << 10  # of a flow's buffers, beyond its windows
SOCKETS = 2  # of a flow
FLOW_BYTES = 24 << 10  # of a flow's two sockets, files and counters
FINITE_FLOW_BYTES = 1 << 10  # of a finite flow at sender and receiver, whether it is open or not
TRACE_EVENT_BYTES = 256  # in a ring, with the kernel's headers
TRACER_PERIOD_S = 0.02  # between two readings of the rings, at least
MOST_TRACER_PERIOD_S = 0.25  # at most: the raw file promises a block per second
BASE_MIB = 320  # of a virtual machine, for the kernel, Python programs, page cache, and BASE_STATE_MIB
BASE_STATE_MIB = 16  # of registers and tables of the P4 program
SWITCH_RINGS_MIB = 3 * 64  # if the switch is a process
RECORDER_MIB = 48  # two rings of 8 MiB, and Python
OTHER_SWITCH_MIB = 256  # a switch that is not ours: BMv2's threads and Thrift, and our control plane's modules


def sizes(spec: Experiment) -> Sizes:
    """The memory of one repetition."""
    frame_bytes = max(spec.mtu_bytes, topology.COLLECTOR_MTU_BYTES) + FRAME_EXTRA_BYTES
    ring_mib = _trace_ring_mib(spec)
    windows = demand.most_bdp_packets(spec) * demand.farthest_rtt_ns(spec) // spec.rtt_ns + spec.buffer_packets
    pool_packets, open_flows = demand.pool_packets(spec), demand.open_finite_flows(spec)
    windows += min(demand.access_queues_packets(spec), pool_packets)
    with_sack = (spec.tcp or LINUX)["sack"] == "on"
    each = SEGMENTS_PER_WINDOW_PACKET if with_sack else SEGMENTS_PER_WINDOW_PACKET_WITHOUT_SACK
    unsent = UNSENT_PER_WINDOW_PACKET * windows
    if (unsent_bytes := demand.unsent_bytes(spec)) is not None:
        unsent = spec.flows * -(-unsent_bytes // spec.mtu_bytes)
    tcp_bytes = (each * windows + unsent) * (spec.wire_bytes + SEGMENT_BYTES)
    tcp_bytes += (spec.flows + open_flows) * FLOW_TCP_BYTES
    if (buffer_bytes := demand.access_buffer_bytes(spec)) is not None:
        tcp_bytes = min(tcp_bytes, (spec.flows + open_flows) * (SOCKETS * buffer_bytes + FLOW_TCP_BYTES))
    pool_bytes = pool_packets * (frame_bytes + demand.POOL_PACKET_BYTES)
    rings_mib = ring_mib + (SWITCH_RINGS_MIB if spec.switch == "process" else 0)
    # Of finite flows also the sockets that are open at the same time, without TCP's buffers.
    finite_bytes = int(demand.finite_flows(spec) * FINITE_FLOW_BYTES + open_flows * FLOW_BYTES)
    other_bytes = pool_bytes + windows * BODY_BYTES + spec.flows * FLOW_BYTES + finite_bytes
    return Sizes(
        pool_packets=pool_packets,
        frame_bytes=frame_bytes,
        trace_ring_mib=ring_mib,
        trace_read_ms=_trace_read_ms(spec, ring_mib),
        tcp_mib=tcp_bytes >> 20,
        machine_mib=BASE_MIB
        + rings_mib
        + (other_bytes + tcp_bytes >> 20)
        + (OTHER_SWITCH_MIB if spec.target != "soft" else 0)
        + (RECORDER_MIB if spec.is_recorded else 0)
        + (programs.MEMORY_MIB if spec.program else 0)
        + _state_mib(spec),
    )


def _state_mib(spec: Experiment) -> int:
    """The registers and tables of a P4 program of the user's beyond those that BASE_MIB has."""
    if not spec.p4 or spec.target != "soft":
        return 0
    return max(0, (p4_program.translated(spec.p4).state_bytes >> 20) - BASE_STATE_MIB)


def _trace_ring_mib(spec: Experiment) -> int:
    """A ring with room for the events of TRACER_PERIOD_S, four per packet: a power of two from 16 to 1024 MiB."""
    return min(1024, max(16, 1 << math.ceil(math.log2(max(_trace_mib_a_second(spec) * TRACER_PERIOD_S, 1)))))


def _trace_read_ms(spec: Experiment, ring_mib: int) -> int:
    """The interval at which a tracer in virtual time empties its ring: as long as the ring and MOST_TRACER_PERIOD_S
    allow, because each reading wakes a process.
    """
    period_s = min(ring_mib / _trace_mib_a_second(spec), MOST_TRACER_PERIOD_S)
    return int(1000 * max(period_s, TRACER_PERIOD_S))


def _trace_mib_a_second(spec: Experiment) -> float:
    """The rate of a trace with four events per packet."""
    return 4 * spec.peak_bps / (8 * spec.wire_bytes) * TRACE_EVENT_BYTES / (1 << 20)
