# SPDX-License-Identifier: MIT
"""The plan of one repetition: everything that follows from its spec, computed once, in one part per step of the run.

The steps of a repetition (lab/repetition.py) read their parameters only from this plan. The modules that carry a part
out (topology, configure, traffic) define the part's type and know nothing of specs.
"""

from __future__ import annotations

import itertools
import random
import sys
from typing import Any, NamedTuple

from controlplane.policy import EGRESS_ECN, EGRESS_MODES, Ecn, EgressThreshold, Policy, TailDrop, Unit
from controlplane.soft import ControlTuple, SourceAddress, SourcePort
from controlplane.switch import Queue
from controlplane.targets import TARGETS
from experiments.machine import host
from experiments.machine.cell import RUNTIME
from experiments.plan import cost
from experiments.plan.bpf_programs import NO_PROGRAMS, Programs
from experiments.plan.configure import TCP, SwitchSettings
from experiments.plan.repetition_plan import Durations, RunPlan, Sizes
from experiments.plan.sizes import sizes
from experiments.plan.switches import BOTTLENECK
from experiments.spec import capabilities, pacing, programs, tcp_options, topology, transfers
from experiments.spec.resolved import Resolved
from experiments.spec.topology import HOSTS, RECEIVER, SENDER, Network
from experiments.spec.traffic import (
    CLIENT_PORT_OFFSETS,
    FIRST_CLIENT_PORT,
    FIRST_FINITE_SERVER_PORT,
    FIRST_SERVER_PORT,
    LAST_CLIENT_PORT,
    Flow,
    TrafficPlan,
    UserProgram,
)
from hosts.traffic.epoll_flows import drawn_offsets_ns
from hosts.traffic.flow_settings import span_ns
from hosts.traffic.transfers import draw, server_ports
from lib.link_dynamics import Jitter
from model import paths
from model.experiment import Experiment
from model.groups import Datagrams, Finite, Long

MOST_PORT = 65535
MOST_WINDOW_BYTES = 256 << 20
# The sender's NIC rate before a switch that reads frames from a ring. BMv2's ring has room for 32 frames, and without a
# rate a burst would arrive in the same ns of virtual time.
NIC_BPS = 100 * 10**9
LINES = "lines"  # the inventory's group of delay lines
# The fields of the spec that roles read, beside `traffic`, `groups` and `transfers`. They read bdp_packets only if
# netem makes the delay.
READ_BY_ROLES = ("mode", "delay", "generator", "rtt_ns", "tcp", "offloads")
READ_WITH_NETEM = ("bdp_packets",)
SEED_BITS = 48  # of a seed made of SEED and repetition (_seed): 32 + 16


class FlowProcess(NamedTuple):
    """One iperf3 client and its server; or all flows of a group that epoll carries; or a group of datagrams."""

    group: Long | Datagrams
    flows: int
    server_port: int
    first_client_port: int

    @property
    def cc(self) -> str | None:
        return self.group.cc if isinstance(self.group, Long) else None

    def ports(self) -> dict[str, int]:
        """The keys of this process in a plan of hosts/traffic."""
        names = ("flows", "server_port", "first_client_port")
        return {name: getattr(self, name) for name in names}


def plan_run(spec: Resolved, repetition: int, bpf: Programs = NO_PROGRAMS) -> RunPlan:
    """The plan of repetition `repetition` (from 1), with the BPF programs of a run in real time."""
    processes = flow_processes(spec, repetition)
    extra_ns = extra_delays_ns(spec, repetition)
    flows = _flows(spec, processes, extra_ns)
    finite = finite_ports(spec, repetition)
    sized = sizes(spec)
    settings = _settings(spec, repetition, flows, processes, finite)
    return RunPlan(
        title=f"repetition {repetition} of {spec.reps}" if spec.reps > 1 else spec.name,
        target=spec.target,
        stored_spec=_stored(spec, repetition, extra_ns).dump(),
        congestion_sources=[source.dump() for source in spec.congestion_sources or ()],
        rate_trace=[spec.rate_trace.dump()] if spec.rate_trace else [],
        congestion_controls=_congestion_controls(spec),
        cc_parameters=spec.cc_parameters or {},
        network=network(spec),
        settings=settings,
        traffic=_traffic(spec, repetition, processes, flows, finite, bpf),
        setup=_setup(spec, sized, settings, processes, finite, bpf, _seed(spec, repetition)),
        sizes=sized,
        durations=Durations(
            connect_ns=spec.connect_ns,
            unmeasured_ns=spec.start_spread_ns + spec.warmup_ns,
            traffic_ns=spec.traffic_ns,
            round_trip_ns=spec.farthest_rtt_ns,
            tick_s=cost.tick_s(spec),
            repetition_s=cost.repetition_s(spec),
            analysis_s=cost.analysis_s(spec),
        ),
        machine_seed=spec.seed * 1_000_003 + repetition,
        kernel_names=dict(bpf.names),
        kernel_parameters=pacing.kernel_parameters(spec.pacing_of_host),
    )


def _congestion_controls(spec: Resolved) -> tuple[str, ...]:
    """Those of all TCP flows and of the user's programs."""
    of_program = spec.program and spec.program.cc
    return tuple(sorted({group.cc for group in spec.tcp_groups} | ({of_program} if of_program else set())))


def network(spec: Resolved) -> Network:
    """The namespaces of the lab, and their links."""
    soft = spec.target == "soft"
    return Network(
        spec.mtu_bytes,
        switch=topology.SWITCH if soft else f"{spec.target}_switch",
        line=not TARGETS[spec.target].capabilities.links,
        driver=spec.switch == "driver",
        sender_bps=NIC_BPS if spec.clock == "virtual" and not TARGETS[spec.target].capabilities.exact_time else None,
        sender_addresses=tuple(path.src_addr for path in paths.paths(spec)),
    )


def inventory_groups(spec: Resolved) -> list[str]:
    """The groups of the inventory that take part in the run."""
    can = TARGETS[spec.target].capabilities
    line = [] if can.links or capabilities.on_testbed(can) else [LINES]
    return [spec.target, *line, "collectors", "senders", "receivers"]


def flow_processes(spec: Resolved, repetition: int) -> list[FlowProcess]:
    """The processes of the traffic. SEED and `repetition` select the client ports, and so the flows' hashes."""
    first_port = FIRST_CLIENT_PORT + random.Random(f"ports {spec.seed} {repetition}").randrange(CLIENT_PORT_OFFSETS)
    result: list[FlowProcess] = []
    for group, flows in spec.process_flows:
        result.append(FlowProcess(group, flows, FIRST_SERVER_PORT + len(result), first_port))
        first_port += flows
    return result


def finite_ports(spec: Resolved, repetition: int) -> list[range]:
    """The server ports of each group of finite flows. SEED and `repetition` draw the flows, and their number sets the
    number of ports.
    """
    result: list[range] = []
    first = FIRST_FINITE_SERVER_PORT
    duration_ns = spec.warmup_ns + spec.duration_ns
    for number, group in enumerate(spec.finite):
        span = span_ns(group.start_ns or 0, group.stop_ns or 0, spec.start_spread_ns, duration_ns)
        flows = sum(1 for _ in draw(group.group(first), number, span, _seed(spec, repetition)))
        result.append(range(first, first + server_ports(flows)))
        first = result[-1].stop
    return result


def _seed(spec: Resolved, repetition: int) -> int:
    """The seed of the traffic."""
    return spec.seed << 16 | repetition


def extra_delays_ns(spec: Resolved, repetition: int) -> list[int]:
    """Each flow's delay beyond RTT: even steps from 0 to RTT_SPREAD, shuffled among the flows by SEED and repetition.

    Random draws would change the distribution of RTTs between repetitions. With even steps only the assignment of RTTs
    to flows changes. Before the shuffle, with RTTS, flow k gets the RTT with index k mod the number of RTTs. Each group
    has its own RTTs. Datagrams have no RTT, so their value is 0.
    """
    result: list[int] = []
    for number, groups in itertools.groupby(spec.long, key=lambda group: group.number):
        settings, *more = groups
        flows = settings.flows + sum(group.flows for group in more)
        least_ns, spread_ns, rtts = settings.rtt_ns or 0, settings.rtt_spread_ns or 0, settings.rtts_ns
        name = f" {number}" if spec.has_own_settings else ""
        delays = [least_ns + spread_ns * i // max(flows - 1, 1) - spec.rtt_ns for i in range(flows)]
        if rtts:
            delays = [rtts[i % len(rtts)] - spec.rtt_ns for i in range(flows)]
        random.Random(f"delays {spec.seed} {repetition}{name}").shuffle(delays)
        result += delays
    return result + [0] * sum(group.flows for group in spec.datagrams)


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
    """The queue policy of the bottleneck: in bytes if BUF is in bytes, else in packets."""
    in_bytes = spec.threshold_bytes is not None
    unit = Unit.BYTES if in_bytes else Unit.PACKETS
    buffer = spec.threshold_bytes if spec.threshold_bytes is not None else spec.buffer_packets
    if spec.mode == "ecn":
        marks_from = spec.ecn_threshold_bytes if in_bytes else spec.ecn_threshold_packets
        assert marks_from is not None  # resolve sets it with this mode
        return Ecn(marks_from, buffer, unit)
    if spec.mode in EGRESS_MODES:
        return EgressThreshold(buffer, mark_instead_of_drop=spec.mode == EGRESS_ECN, unit=unit)
    return TailDrop(buffer, unit)


def _flows(spec: Resolved, processes: list[FlowProcess], delays_ns: list[int]) -> tuple[Flow, ...]:
    """The long flows and the flows of datagrams, in the order of their numbers."""
    flows = [
        (process.first_client_port + stream, process.server_port, process.group)
        for process in processes
        for stream in range(process.flows)
    ]
    shared = paths.link_of_flows(spec)
    links = shared + [0] * (len(flows) - len(shared))
    return tuple(
        Flow(
            SENDER.ipv4, RECEIVER.ipv4, src_port, dst_port, _forth_extra_ns(spec, group, delay_ns),
            0 if link else _access_bps(spec, group), link,
        )
        for (src_port, dst_port, group), delay_ns, link in zip(flows, delays_ns, links, strict=True)
    )  # fmt: skip


def _forth_extra_ns(spec: Resolved, group: Long | Datagrams, extra_ns: int) -> int:
    """A flow's delay in the data direction beyond the bottleneck's. `extra_ns` is the flow's RTT minus the run's."""
    return extra_ns if isinstance(group, Datagrams) else spec.forth_extra_ns(spec.rtt_ns + extra_ns, group.ack_delay_ns)


def _access_bps(spec: Resolved, group: Long | Datagrams) -> int:
    """The rate of each long flow's own link; 0: none."""
    return group.access_bps or 0


def _settings(
    spec: Resolved, repetition: int, flows: tuple[Flow, ...], processes: list[FlowProcess], finite: list[range]
) -> SwitchSettings:
    """The switches' settings. With DELAY=tc the links have no delay: netem on one host has the whole RTT."""
    forth_ns, back_ns = (0, 0) if spec.delay == "tc" else (spec.least_forth_ns, spec.least_back_ns)
    return SwitchSettings(
        rate_bps=spec.rate_bps,
        forth_ns=forth_ns,
        back_ns=back_ns,
        queues={host.port: queue(spec, host.port) for host in HOSTS},
        policy=policy(spec),
        flow_settings=tuple(
            (ControlTuple(flow.src_addr, flow.dst_addr, TCP, flow.src_port, flow.dst_port), settings)
            for flow in flows
            if (settings := _flow_settings(flow))
        )
        + tuple((SourceAddress(path.src_addr), _path_settings(spec, path)) for path in paths.paths(spec))
        + _ack_settings(spec, processes, finite),
        shared_links_bps=paths.links_bps(spec),
        nic_rate_bps=(spec.offloads and spec.offloads.nic_rate_bps) or 0,
        drop_cost_permille=spec.drop_cost_permille or 0,
        rate_schedule=spec.rate_schedule,
        schedule_after_ns=_warmup_after_ns(spec, repetition),
        loss=spec.loss.of_link if spec.loss else None,
        loss_seed=_link_seed(spec, repetition, "loss"),
        jitter=Jitter(spec.jitter.most_ns, spec.jitter.distribution) if spec.jitter else None,
        jitter_seed=_link_seed(spec, repetition, "jitter"),
    )


def _warmup_after_ns(spec: Resolved, repetition: int) -> int:
    """When WARMUP begins, after the common start of the traffic: with the last long flow."""
    flows = sum(group.flows for group in spec.long)
    return max(drawn_offsets_ns(_seed(spec, repetition), spec.start_spread_ns, flows), default=0)


def _link_seed(spec: Resolved, repetition: int, what: str) -> int:
    """64 bits, which the switch draws from."""
    return random.Random(f"{what} {spec.seed} {repetition}").getrandbits(64)


def _flow_settings(flow: Flow) -> dict[str, int]:
    """The settings of the switch's links for this flow."""
    settings = {"delay": flow.extra_delay_ns, "access": flow.access_bps, "link": flow.access_link}
    return {name: value for name, value in settings.items() if value}


def _path_settings(spec: Resolved, path: paths.Path) -> dict[str, int]:
    delay_ns = spec.forth_extra_ns(path.rtt_ns, path.ack_delay_ns)
    return {"delay": delay_ns} | ({"link": path.access_link} if path.access_link else {})


def _ack_settings(
    spec: Resolved, processes: list[FlowProcess], finite: list[range]
) -> tuple[tuple[SourcePort, dict[str, int]], ...]:
    """The ACK direction's delay of each group beyond the least, by the group's server ports."""
    return tuple(
        (SourcePort(RECEIVER.ipv4, TCP, port), {"delay": extra_ns})
        for group, ports in _server_ports(spec, processes, finite)
        if (extra_ns := spec.back_of(group) - spec.least_back_ns)
        for port in ports
    )


def _server_ports(
    spec: Resolved, processes: list[FlowProcess], finite: list[range]
) -> list[tuple[Long | Finite, range]]:
    """The server ports of each group of long or finite flows. A group that iperf3 carries may have several processes,
    each with its port.
    """
    long = [
        (process.group, range(process.server_port, process.server_port + 1))
        for process in processes
        if isinstance(process.group, Long)
    ]
    return [*long, *zip(spec.finite, finite, strict=True)]


def _stored(spec: Resolved, repetition: int, extra_ns: list[int]) -> Experiment:
    """The experiment of a repetition. The texts of the users' own congestion controls are files."""
    extra = tuple(extra_ns) if spec.rtt_spread_ns else ()
    return spec.without_texts().model_copy(update={"repetition": repetition, "extra_delays_ns": extra})


def _traffic(
    spec: Resolved,
    repetition: int,
    processes: list[FlowProcess],
    flows: tuple[Flow, ...],
    finite: list[range],
    bpf: Programs,
) -> TrafficPlan:
    """The traffic program and its options. `start_mono_ns` 0 means as soon as possible; the starter may set a time."""
    if spec.open_loop:
        return TrafficPlan("open_loop", flows, _open_loop_options(spec, repetition, processes))
    user = _user_programs(spec, repetition)
    if spec.traffic == transfers.PROGRAM:
        return TrafficPlan("", flows, {}, user)
    options = _tcp_options(spec, repetition, processes, bpf)
    if finite:
        by_number = paths.by_number(spec)
        options["transfers"] = [
            group.plan(ports.start, tuple(path.src_addr for path in by_number[group.number]))
            | _own_options(spec, group)
            for group, ports in zip(spec.finite, finite, strict=True)
        ]
    return TrafficPlan("long_flows", flows, options, user)


def _user_programs(spec: Resolved, repetition: int) -> tuple[UserProgram, ...]:
    """The server and the client; none without TRAFFIC=program."""
    if spec.program is None:
        return ()
    alone = spec.traffic == transfers.PROGRAM
    return tuple(
        UserProgram(where, programs.plan(spec.program, name, _seed(spec, repetition), spec.traffic_ns, alone))
        for name, where in programs.hosts(spec.program).items()
    )


def _open_loop_options(spec: Resolved, repetition: int, processes: list[FlowProcess]) -> dict[str, Any]:
    (process,) = processes
    of_group = _datagram_options(spec, process, _seed(spec, repetition))
    return {"start_mono_ns": 0, "duration_ns": spec.traffic_ns, "server": RECEIVER.ipv4, **of_group}


def _datagram_options(spec: Resolved, process: FlowProcess, seed: int) -> dict[str, Any]:
    """The options of one process of build/open_loop: its flows, load, sizes and seed."""
    group = process.group
    assert isinstance(group, Datagrams)
    return {
        **process.ports(),
        "rate_bps": spec.rate_bps,
        "load_ppm": round(group.load * 1e6),
        "mtu_bytes": spec.mtu_bytes,
        "seed": seed,
        "arrivals": group.arrivals,
        "sizes": group.sizes,
        **group.times_ns,
    }


def _own_options(spec: Resolved, group: Long | Finite) -> dict[str, Any]:
    """The settings of a group in a plan of hosts/traffic; only its times if all groups have the same."""
    if not spec.has_own_settings:
        return group.times_ns
    buffer_bytes = spec.socket_buffer_bytes(group.access_bps) if group.access_bps else 0
    return {
        **pacing.options(group.pacing, group.window_packets, spec.clock),
        **({"buffer_bytes": buffer_bytes} if buffer_bytes else {}),
        "ecn": spec.ecn_of(group),
        **group.times_ns,
    }


def _tcp_options(spec: Resolved, repetition: int, processes: list[FlowProcess], bpf: Programs) -> dict[str, Any]:
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
    groups = [
        {"cc": process.group.cc, **process.ports(), **_own_options(spec, process.group)}
        for process in processes
        if isinstance(process.group, Long)
    ]
    of_datagrams = [process for process in processes if isinstance(process.group, Datagrams)]
    datagrams = [
        _datagram_options(spec, process, _seed(spec, repetition) + (number << SEED_BITS))
        for number, process in enumerate(of_datagrams, 1)
    ]
    return {
        "generator": spec.generator,
        "start_mono_ns": 0,
        **timing,
        "server": RECEIVER.ipv4,
        "groups": groups,
        **({"ecn": spec.with_ecn} if spec.generator == "epoll" else {}),  # with iperf3 the host's sysctl alone decides
        **pacing.options(spec.shared.pacing, spec.shared.window_packets, spec.clock),
        **bpf.of_traffic(),
        **({"datagrams": datagrams} if datagrams else {}),
    }


def _setup(
    spec: Resolved,
    sized: Sizes,
    settings: SwitchSettings,
    processes: list[FlowProcess],
    finite: list[range],
    bpf: Programs,
    seed: int,
) -> dict[str, Any]:
    """The playbooks' variables. Options that depend on the experiment are here, all others in the roles."""
    window_rtt_share = spec.farthest_rtt_ns / spec.rtt_ns
    window_packets = spec.most_bdp_packets * window_rtt_share + spec.buffer_packets
    # The ports of long flows and datagrams; without both, a port on which nobody listens. Finite flows are not traced.
    # The tracer takes one range of ports, so programs are traced only if there are no finite flows.
    traced_ports = f"{FIRST_SERVER_PORT}-{FIRST_SERVER_PORT + max(len(processes), 1) - 1}"
    if spec.program and not finite:
        traced_ports = "1-65535"
    # Collector and tracer report each second; in virtual time twice between two progress reports.
    status_ms = max(1, int(cost.tick_s(spec) * 500)) if spec.clock == "virtual" else 1000
    status = ["--status", "--status-ms", str(status_ms)]
    watch = ["--no-watch"] if spec.clock == "virtual" else []
    changes = ["--rate-entries", str(len(settings.rate_schedule.entries))] if settings.rate_schedule else []
    # Disks take no virtual time, so few blocks wait for them. Each MiB of buffers costs 256 page faults.
    buffers = ["--buffers", "8"] if spec.clock == "virtual" else []
    read = ["--read-ms", str(sized.trace_read_ms)] if spec.clock == "virtual" else []
    return {
        "run_groups": ":".join(inventory_groups(spec)),
        "runtime_dir": str(RUNTIME),
        "spec": _spec_of_roles(spec, bpf),
        "python": sys.executable,
        "checkout": str(host.CHECKOUT),
        "client_ports": f"{FIRST_CLIENT_PORT}-{LAST_CLIENT_PORT}",
        "finite_ports": [
            f"{ports.start}-{ports[-1]}={bpf.name(group.cc)}" for group, ports in zip(spec.finite, finite, strict=True)
        ],
        "datagram_ports": [process.server_port for process in processes if isinstance(process.group, Datagrams)],
        "collector_address": topology.COLLECTOR.ipv4,
        "collector_source": topology.POSTCARD_SOURCE,
        **({} if spec.access_buffer_bytes is None else {"tune_buffer_bytes": spec.access_buffer_bytes}),
        **({} if spec.unsent_bytes is None else {"tune_unsent_bytes": spec.unsent_bytes}),
        **pacing.setup(spec.pacing_of_host),
        **bpf.of_roles(_windows(spec, processes, finite) if spec.clock == "real" else [], seed),
        "tune_ecn": "on" if spec.with_ecn else "off",
        **_port_tcp(spec, processes, finite),
        **({"program_cc": spec.program.cc} if spec.program else {}),
        "tune_window_bytes": min(int(window_packets * spec.mtu_bytes) + 1, MOST_WINDOW_BYTES),
        "switch_frame_bytes": sized.frame_bytes,
        "switch_executor": spec.switch,
        "switch_options": ["--packets", str(sized.pool_packets), "--drop-user", "nobody", *watch, *changes],
        "collector_options": [*status, *buffers],
        "tracer_options": [*status, *read, "--ring-mib", str(sized.trace_ring_mib), "--port", traced_ports],
    }


def _port_tcp(spec: Resolved, processes: list[FlowProcess], finite: list[range]) -> dict[str, list[str]]:
    """INITCWND and ACKS of groups. The hosts identify a group by the ports of its servers."""
    words = [
        tcp_options.words_of_ports(ports, vars(group), spec.tcp)
        for group, ports in _server_ports(spec, processes, finite)
    ]
    of_groups = [word for word in words if word]
    if not of_groups:
        return {}
    return {
        "sender_port_tcp": [f"dport:{word}" for word in of_groups],
        "receiver_port_tcp": [f"sport:{word}" for word in of_groups],
    }


def _windows(spec: Resolved, processes: list[FlowProcess], finite: list[range]) -> list[str]:
    """Bounds of the senders' windows by server ports, FIRST-LAST=SEGMENTS: of the run, or of its groups."""
    if spec.shared.window_packets:
        return [f"1-{MOST_PORT}={spec.shared.window_packets}"]
    return [
        f"{ports.start}-{ports[-1]}={group.window_packets}"
        for group, ports in _server_ports(spec, processes, finite)
        if group.window_packets
    ]


def _spec_of_roles(spec: Resolved, bpf: Programs) -> dict[str, Any]:
    """The fields of the spec that roles read: these decide the steps of the set-up. Roles set sockets' congestion
    controls, so the groups have the algorithms' kernel names. Numbers of flows matter with iperf3 only, because they
    set the number of iperf3 servers.
    """
    names = READ_BY_ROLES + (READ_WITH_NETEM if spec.delay == "tc" else ())
    counted = spec.generator == "iperf3"
    groups = [{"cc": bpf.name(group.cc)} | ({"flows": group.flows} if counted else {}) for group in spec.long]
    finite = {"transfers": [{"cc": bpf.name(group.cc)} for group in spec.finite]} if spec.finite else {}
    read = spec.model_dump(mode="json", include={*names})
    own = {name: value for name, value in read.items() if value is not None or name == "generator"}
    return {**own, "traffic": spec.traffic, "groups": groups, **finite}
