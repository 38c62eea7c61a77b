# SPDX-License-Identifier: MIT
"""The plan of one repetition: all that follows from its spec, computed once, with a part for each step of the run.

A run reads its parameters from here alone. The modules that carry a part out (topology, configure, traffic) define the
part's type and know nothing of specs.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from controlplane.policy import Ecn, EgressThreshold, Policy, TailDrop, Unit
from controlplane.soft import FiveTuple, SourceAddress
from controlplane.switch import Queue
from controlplane.targets import TARGETS
from experiments import capabilities, cost, host, pacing, paths, topology, transfers
from experiments.cell import RUNTIME
from experiments.configure import POSTCARD_PORT, TCP, SwitchSettings
from experiments.resolve import Resolved
from experiments.sizes import Sizes, sizes
from experiments.switches import BOTTLENECK
from experiments.topology import HOSTS, RECEIVER, SENDER, Network
from experiments.traffic import (
    CLIENT_PORT_OFFSETS,
    FIRST_CLIENT_PORT,
    FIRST_FINITE_SERVER_PORT,
    FIRST_SERVER_PORT,
    LAST_CLIENT_PORT,
    Flow,
    TrafficPlan,
)
from hosts.traffic.transfers import draw, server_ports

MOST_WINDOW_BYTES = 256 << 20


class FlowProcess(NamedTuple):
    """One iperf3 client and its server; or all flows of epoll with one congestion control; or all open-loop traffic,
    which has no congestion control.
    """

    cc: str | None
    flows: int
    server_port: int
    first_client_port: int


class Durations(NamedTuple):
    """`unmeasured_ns` is the part of `traffic_ns` before the measurement. `round_trip_ns` is the longest RTT of all
    flows on the idle path. In virtual time the traffic is polled every `tick_s`. The last two are wall time.
    """

    connect_ns: int
    unmeasured_ns: int
    traffic_ns: int
    round_trip_ns: int
    tick_s: float
    repetition_s: float
    analysis_s: float


@dataclass(frozen=True)
class RunPlan:
    """`stored_spec` is the content of spec.yaml. `setup` are the playbooks' variables without the run's directory.
    `machine_seed` seeds everything random in a virtual machine.
    """

    title: str
    target: str
    stored_spec: Mapping[str, Any]
    network: Network
    settings: SwitchSettings
    traffic: TrafficPlan
    setup: Mapping[str, Any]
    sizes: Sizes
    durations: Durations
    machine_seed: int

    def variables(self, directory: Path) -> dict[str, Any]:
        """The playbooks' variables of a run in `directory`."""
        return {**self.setup, "run_dir": str(directory), "logs_dir": str(directory / "logs")}


def plan_run(spec: Resolved, repetition: int) -> RunPlan:
    """The plan of repetition `repetition` (from 1)."""
    processes = flow_processes(spec, repetition)
    flows = _flows(processes, extra_delays_ns(spec, repetition))
    finite = finite_ports(spec, repetition)
    sized = sizes(spec)
    delays_ns = [flow.extra_delay_ns for flow in flows] if spec.rtt_spread_ns else []
    return RunPlan(
        title=f"repetition {repetition} of {spec.reps}" if spec.reps > 1 else spec.name,
        target=spec.target,
        stored_spec=spec.to_dict() | {"repetition": repetition, "extra_delays_ns": delays_ns} | _paths(spec),
        network=network(spec),
        settings=_settings(spec, flows),
        traffic=_traffic(spec, repetition, processes, flows, finite),
        setup=_setup(spec, sized, len(processes), finite),
        sizes=sized,
        durations=Durations(
            connect_ns=spec.connect_ns,
            unmeasured_ns=spec.start_spread_ns + spec.warmup_ns,
            traffic_ns=spec.traffic_ns,
            round_trip_ns=spec.rtt_ns + spec.rtt_spread_ns,
            tick_s=cost.tick_s(spec),
            repetition_s=cost.repetition_s(spec),
            analysis_s=cost.analysis_s(spec),
        ),
        machine_seed=spec.seed * 1_000_003 + repetition,
    )


def network(spec: Resolved) -> Network:
    """The namespaces of the lab, and their links."""
    soft = spec.target == "soft"
    return Network(
        spec.mtu_bytes,
        switch=topology.SWITCH if soft else f"{spec.target}_switch",
        line=not TARGETS[spec.target].capabilities.links,
        driver=spec.switch == "driver",
        sender_addresses=tuple(path.src_addr for path in paths.paths(spec)),
    )


def inventory_groups(spec: Resolved) -> list[str]:
    """The groups of the inventory that take part in the run."""
    can = TARGETS[spec.target].capabilities
    line = [] if can.links or capabilities.on_testbed(can) else ["lines"]
    return [spec.target, *line, "collectors", "senders", "receivers"]


def flow_processes(spec: Resolved, repetition: int) -> list[FlowProcess]:
    """The processes of the traffic. SEED and `repetition` select the client ports, and so the flows' hashes."""
    first_port = FIRST_CLIENT_PORT + random.Random(f"ports {spec.seed} {repetition}").randrange(CLIENT_PORT_OFFSETS)
    result: list[FlowProcess] = []
    for cc, flows in spec.process_flows:
        result.append(FlowProcess(cc, flows, FIRST_SERVER_PORT + len(result), first_port))
        first_port += flows
    return result


def finite_ports(spec: Resolved, repetition: int) -> list[range]:
    """The server ports of each group of finite flows: as many as the flows that SEED and `repetition` draw need."""
    result: list[range] = []
    first = FIRST_FINITE_SERVER_PORT
    duration_ns = spec.start_spread_ns + spec.warmup_ns + spec.duration_ns
    for number, group in enumerate(spec.transfers):
        flows = sum(1 for _ in draw(group.group(first), number, duration_ns, _seed(spec, repetition)))
        result.append(range(first, first + server_ports(flows)))
        first = result[-1].stop
    return result


def _seed(spec: Resolved, repetition: int) -> int:
    """Of the traffic."""
    return spec.seed << 16 | repetition


def extra_delays_ns(spec: Resolved, repetition: int) -> list[int]:
    """Each flow's delay beyond RTT: even steps from 0 to RTT_SPREAD, shuffled among the flows by SEED and repetition.

    Random draws would change the distribution of RTTs between repetitions. Even steps change only which flow has which.
    Of RTTS, flow k has element k mod their number before they are shuffled.
    """
    intervals = max(spec.flows - 1, 1)
    delays = [spec.rtt_spread_ns * i // intervals for i in range(spec.flows)]
    if spec.rtts_ns:
        delays = [spec.rtts_ns[i % len(spec.rtts_ns)] - spec.rtt_ns for i in range(spec.flows)]
    random.Random(f"delays {spec.seed} {repetition}").shuffle(delays)
    return delays


def queue(spec: Resolved, port: int) -> Queue:
    """The queue of a port, if the switch has its own queues. The queue's limit is far above the policy's threshold:
    only the P4 program drops, and it reports every drop. The ports of postcards and ACKs have no rate.
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


def _flows(processes: list[FlowProcess], delays_ns: list[int]) -> tuple[Flow, ...]:
    """Every flow, in the order of their numbers."""
    ports = [
        (process.first_client_port + stream, process.server_port)
        for process in processes
        for stream in range(process.flows)
    ]
    return tuple(
        Flow(SENDER.ipv4, RECEIVER.ipv4, src_port, dst_port, delay_ns)
        for (src_port, dst_port), delay_ns in zip(ports, delays_ns, strict=True)
    )


def _settings(spec: Resolved, flows: tuple[Flow, ...]) -> SwitchSettings:
    """The switch delays by half of the RTT in each direction. DELAY=tc: netem on the receiver has the whole RTT."""
    rtt_ns = 0 if spec.delay == "tc" else spec.rtt_ns
    return SwitchSettings(
        rate_bps=spec.rate_bps,
        forth_ns=rtt_ns // 2,
        back_ns=rtt_ns - rtt_ns // 2,
        queues={host.port: queue(spec, host.port) for host in HOSTS},
        policy=policy(spec),
        flow_settings=tuple(
            (FiveTuple(flow.src_addr, flow.dst_addr, TCP, flow.src_port, flow.dst_port), own)
            for flow in flows
            if (own := _flow_settings(spec, flow))
        )
        + tuple((SourceAddress(path.src_addr), _path_settings(spec, path)) for path in paths.paths(spec)),
        shared_links_bps=dict.fromkeys(range(1, (spec.access_links or 0) + 1), spec.access_bps or 0),
        nic_rate_bps=(spec.offloads or {}).get("nic_rate_bps", 0),
    )


def _flow_settings(spec: Resolved, flow: Flow) -> dict[str, int]:
    """What the switch's links have for this flow alone."""
    own = {"delay": flow.extra_delay_ns, "access": spec.access_bps or 0}
    return {name: value for name, value in own.items() if value}


def _path_settings(spec: Resolved, path: paths.Path) -> dict[str, int]:
    return {"delay": path.rtt_ns - spec.rtt_ns} | ({"link": path.access_link} if path.access_link else {})


def _paths(spec: Resolved) -> dict[str, Any]:
    """The paths of finite flows in spec.yaml, if there are several."""
    listed = [path._asdict() for path in paths.paths(spec)]
    return {"paths": listed} if listed else {}


def _traffic(
    spec: Resolved, repetition: int, processes: list[FlowProcess], flows: tuple[Flow, ...], finite: list[range]
) -> TrafficPlan:
    """The traffic program and its options. `start_mono_ns` 0 means as soon as possible; the starter may set a time."""
    if spec.traffic == transfers.OPEN_LOOP:
        return TrafficPlan("open_loop", flows, _open_loop_options(spec, repetition, processes))
    options = _tcp_options(spec, repetition, processes)
    if finite:
        options["transfers"] = [
            group.plan(ports.start, tuple(path.src_addr for path in paths.paths(spec)))
            for group, ports in zip(spec.transfers, finite, strict=True)
        ]
    return TrafficPlan("long_flows", flows, options)


def _open_loop_options(spec: Resolved, repetition: int, processes: list[FlowProcess]) -> dict[str, Any]:
    (process,) = processes
    assert spec.load is not None  # resolve sets it with this traffic
    return {
        "start_mono_ns": 0,
        "duration_ns": spec.traffic_ns,
        "server": RECEIVER.ipv4,
        "server_port": process.server_port,
        "first_client_port": process.first_client_port,
        "flows": process.flows,
        "rate_bps": spec.rate_bps,
        "load_ppm": round(spec.load * 1e6),
        "mtu_bytes": spec.mtu_bytes,
        "seed": _seed(spec, repetition),
        "arrivals": spec.arrivals,
        "sizes": spec.sizes,
    }


def _tcp_options(spec: Resolved, repetition: int, processes: list[FlowProcess]) -> dict[str, Any]:
    timing: dict[str, Any] = {"seconds": spec.traffic_ns // 10**9}
    if spec.generator == "epoll":
        timing = {
            "duration_ns": spec.warmup_ns + spec.duration_ns,
            "start_spread_ns": spec.start_spread_ns,
            "seed": _seed(spec, repetition),
            "connect_interval_ns": spec.connect_interval_ns,
            # The sockets stay open for the ACKs of the last measured packets.
            "drain_ns": spec.longest_rtt_ns,
        }
    return {
        "generator": spec.generator,
        "start_mono_ns": 0,
        **timing,
        "server": RECEIVER.ipv4,
        "groups": [process._asdict() for process in processes],
        "ecn": spec.mode == "ecn",
        **pacing.options(spec.pacing, spec.window_packets),
    }


def _setup(spec: Resolved, sized: Sizes, processes: int, finite: list[range]) -> dict[str, Any]:
    """The playbooks' variables. Options that depend on the experiment are here, all others in the roles."""
    window_rtt_share = (spec.rtt_ns + spec.rtt_spread_ns) / spec.rtt_ns
    window_packets = spec.bdp_packets * window_rtt_share + spec.buffer_packets
    # Of long flows and datagrams. Without any, a port on which nobody listens: finite flows are not traced.
    traced_ports = f"{FIRST_SERVER_PORT}-{FIRST_SERVER_PORT + max(processes, 1) - 1}"
    # Collector and tracer report each second; in virtual time twice between two looks at the traffic.
    status_ms = max(1, int(cost.tick_s(spec) * 500)) if spec.clock == "virtual" else 1000
    status = ["--status", "--status-ms", str(status_ms)]
    watch = ["--no-watch"] if spec.clock == "virtual" else []
    return {
        "run_groups": ":".join(inventory_groups(spec)),
        "runtime_dir": str(RUNTIME),
        "spec": spec.to_dict(),
        "python": sys.executable,
        "checkout": str(host.CHECKOUT),
        "client_ports": f"{FIRST_CLIENT_PORT}-{LAST_CLIENT_PORT}",
        "finite_ports": [
            f"{ports.start}-{ports[-1]}={group.cc}" for group, ports in zip(spec.transfers, finite, strict=True)
        ],
        "postcard_port": POSTCARD_PORT,
        "collector_address": topology.COLLECTOR.ipv4,
        "collector_source": topology.POSTCARD_SOURCE,
        **({} if spec.access_buffer_bytes is None else {"tune_buffer_bytes": spec.access_buffer_bytes}),
        **pacing.setup(spec.pacing),
        "tune_window_bytes": min(int(window_packets * spec.mtu_bytes) + 1, MOST_WINDOW_BYTES),
        "switch_frame_bytes": sized.frame_bytes,
        "switch_executor": spec.switch,
        "switch_options": ["--packets", str(sized.pool_packets), "--drop-user", "nobody", *watch],
        "collector_options": status,
        "tracer_options": [*status, "--ring-mib", str(sized.trace_ring_mib), "--port", traced_ports],
    }
