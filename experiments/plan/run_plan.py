# SPDX-License-Identifier: MIT
"""The plan of one repetition: everything that follows from its spec, computed once, in one part per step of the run.

The steps of a repetition (lab/repetition.py) read their parameters only from this plan. The modules that carry a part
out (topology, configure, traffic) define the part's type and know nothing of specs.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from controlplane.policy import EGRESS_ECN, EGRESS_MODES, Ecn, EgressThreshold, Policy, TailDrop, Unit
from controlplane.soft import ControlTuple, SourceAddress, SourcePort
from controlplane.switch import Queue
from controlplane.targets import TARGETS
from experiments.machine import host, p4_program
from experiments.machine.cell import RUNTIME
from experiments.plan import cost
from experiments.plan.bpf_programs import NO_PROGRAMS, BpfPrograms
from experiments.plan.configure import TCP, OwnProgram, Qdisc, SwitchSettings
from experiments.plan.repetition_plan import Durations, RunPlan
from experiments.plan.sizes import sizes
from experiments.plan.switches import BOTTLENECK
from experiments.spec import demand, own_p4, own_program, pacing, programs, tcp_options, topology
from experiments.spec.lab_ports import Ports
from experiments.spec.topology import COLLECTOR, HOSTS, RECEIVER, SENDER, Network
from experiments.spec.traffic import (
    CLIENT_PORT_OFFSETS,
    FIRST_CLIENT_PORT,
    FIRST_FINITE_SERVER_PORT,
    FIRST_SERVER_PORT,
    LAST_CLIENT_PORT,
    Flow,
    PlannedProgram,
    TrafficPlan,
)
from hosts.traffic.epoll_flows import drawn_offsets_ns
from hosts.traffic.flow_settings import span_ns
from hosts.traffic.transfers import draw, server_ports
from lib.link_dynamics import Jitter
from model import paths
from model.experiment import Experiment
from model.groups import PROGRAM, Datagrams, Finite, Long
from runs.names import TAPS

MOST_PORT = 65535
MOST_WINDOW_BYTES = 256 << 20
# The sender's NIC rate before a switch that reads frames from a ring. BMv2's ring has room for 32 frames, and without a
# rate a burst would arrive in the same ns of virtual time.
NIC_BPS = 100 * 10**9
THREADS_WAIT_NS = 500_000_000
LINES = "lines"  # the inventory's group of delay lines
# The fields of the spec that roles read, beside `traffic`, `groups` and `transfers`. They read bdp_packets only if
# netem makes the delay.
READ_BY_ROLES = ("mode", "delay", "generator", "rtt_ns", "tcp", "offloads")
READ_WITH_NETEM = ("bdp_packets",)
SEED_BITS = 48  # of a seed made of SEED and repetition: 32 + 16


class FlowProcess(NamedTuple):
    """One iperf3 client and its server; or all flows of a group that epoll carries; or a group of datagrams."""

    group: Long | Datagrams
    flows: int
    server_port: int
    first_client_port: int

    def ports(self) -> dict[str, int]:
        """The keys of this process in a plan of hosts/traffic."""
        names = ("flows", "server_port", "first_client_port")
        return {name: getattr(self, name) for name in names}


def plan_run(spec: Experiment, repetition: int, bpf: BpfPrograms = NO_PROGRAMS) -> RunPlan:
    """The plan of repetition `repetition` (from 1), with the BPF programs of a run in real time."""
    of = _Repetition(spec, repetition, bpf)
    return RunPlan(
        title=f"repetition {repetition} of {spec.reps}" if (spec.reps or 1) > 1 else spec.name or "",
        target=spec.target,
        stored_spec=of.stored.dump(),
        congestion_sources=[source.dump() for source in spec.congestion_sources or ()],
        rate_trace=[spec.rate_trace.dump()] if spec.rate_trace else [],
        p4=[source.dump() for source in (spec.p4.compiled, spec.p4.tables) if source] if spec.p4 else [],
        congestion_controls=tuple(sorted({cc for group in spec.with_settings if (cc := group.cc)})),
        cc_parameters=spec.cc_parameters or {},
        network=network(spec),
        settings=of.settings,
        traffic=of.traffic(),
        setup=of.setup(),
        sizes=of.sizes,
        durations=Durations(
            connect_ns=demand.connect_ns(spec),
            unmeasured_ns=of.start_spread_ns + spec.warmup_ns,
            traffic_ns=of.traffic_ns,
            round_trip_ns=demand.farthest_rtt_ns(spec),
            tick_s=cost.tick_s(spec),
            repetition_s=cost.repetition_s(spec),
            analysis_s=cost.analysis_s(spec),
        ),
        machine_seed=(spec.seed or 0) * 1_000_003 + repetition,
        kernel_names=dict(bpf.names),
        kernel_parameters=pacing.kernel_parameters(spec.pacing_of_host),
        recorded_ns=longest_stay_ns(spec) if spec.is_recorded else None,
    )


def longest_stay_ns(spec: Experiment) -> int:
    """Twice the time of a full queue, for recirculated packets, and that of a switch whose threads wait."""
    return round(2 * spec.buffer_packets * spec.packet_ns) + THREADS_WAIT_NS


def network(spec: Experiment) -> Network:
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


def inventory_groups(spec: Experiment) -> list[str]:
    """The groups of the inventory that take part in the run."""
    can = TARGETS[spec.target].capabilities
    line = [] if can.links or can.front_panel else [LINES]
    collector = [] if spec.is_recorded else ["collectors"]
    return [spec.target, *line, *collector, "senders", "receivers"]


def queue(spec: Experiment, port: int) -> Queue:
    """The queue of a port (as the lab numbers it), if the switch has its own queues. The queue's limit is far above the
    policy's threshold: only the P4 program drops, and it reports every drop. A whole program of the user's has BUF as
    the queue's limit. The ports of postcards and ACKs have no rate.
    """
    if port != BOTTLENECK:
        return Queue(limit_packets=demand.pool_packets(spec))
    limit = spec.buffer_packets if spec.has_own_program else demand.pool_packets(spec)
    if spec.rate_pps is not None:
        return Queue(rate_pps=spec.rate_pps, limit_packets=limit)
    return Queue(rate_bps=spec.rate_bps, limit_packets=limit)


def _has_own_process(spec: Experiment) -> bool:
    """Whether the soft switch is a process with a program of the user's."""
    return spec.p4 is not None and spec.target == "soft" and spec.switch == "process"


def _own_program(spec: Experiment) -> OwnProgram | None:
    if not spec.p4 or not spec.has_own_program:
        return None
    limit = {"limit_bytes": spec.threshold_bytes} if spec.threshold_bytes else {"limit_packets": spec.buffer_packets}
    return OwnProgram(tuple(own_program.requests(spec.p4)), limit, spec.p4.scheduler)


def policy(spec: Experiment) -> Policy:
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


def flow_processes(spec: Experiment, repetition: int) -> list[FlowProcess]:
    """The processes of the traffic. SEED and `repetition` select the client ports, and so the flows' hashes."""
    first_port = FIRST_CLIENT_PORT + random.Random(f"ports {spec.seed} {repetition}").randrange(CLIENT_PORT_OFFSETS)
    result: list[FlowProcess] = []
    for group, flows in demand.process_flows(spec):
        result.append(FlowProcess(group, flows, FIRST_SERVER_PORT + len(result), first_port))
        first_port += flows
    return result


def extra_delays_ns(spec: Experiment, repetition: int) -> list[int]:
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


class _Repetition:
    """The parts of a repetition's plan, and what they share."""

    def __init__(self, spec: Experiment, repetition: int, bpf: BpfPrograms) -> None:
        self.spec, self.repetition, self.bpf = spec, repetition, bpf
        self.seed = (spec.seed or 0) << 16 | repetition  # of the traffic
        self.start_spread_ns, self.traffic_ns = spec.start_spread_ns or 0, demand.traffic_ns(spec)
        self.sizes = sizes(spec)
        self.processes = flow_processes(spec, repetition)
        self.finite = list(zip(spec.finite, self._finite_ports(), strict=True))
        # A group that iperf3 carries may have several processes, each with its port.
        self.server_ports: list[tuple[Long | Finite, range]] = [
            (process.group, range(process.server_port, process.server_port + 1))
            for process in self.processes
            if isinstance(process.group, Long)
        ]
        self.server_ports += self.finite
        self.extra_ns = extra_delays_ns(spec, repetition)
        self.flows = self._flows()
        self.settings = self._settings()

    def _finite_ports(self) -> Iterator[range]:
        """The server ports of each group of finite flows. Seed and repetition draw the flows, and their number sets the
        number of ports.
        """
        first, duration_ns = FIRST_FINITE_SERVER_PORT, self.spec.warmup_ns + self.spec.duration_ns
        for number, group in enumerate(self.spec.finite):
            span = span_ns(group.start_ns or 0, group.stop_ns or 0, self.start_spread_ns, duration_ns)
            flows = sum(1 for _ in draw(group.group(first), number, span, self.seed))
            yield range(first, first + server_ports(flows))
            first += server_ports(flows)

    @property
    def stored(self) -> Experiment:
        """The experiment of the repetition. The texts of the users' own congestion controls are files."""
        extra = tuple(self.extra_ns) if self.spec.rtt_spread_ns else ()
        update = {"repetition": self.repetition, "extra_delays_ns": extra}
        return self.spec.without_texts().model_copy(update=update)

    def _flows(self) -> tuple[Flow, ...]:
        """The long flows and the flows of datagrams, in the order of their numbers."""
        spec = self.spec
        flows = [
            (process.first_client_port + stream, process.server_port, process.group)
            for process in self.processes
            for stream in range(process.flows)
        ]
        shared = paths.link_of_flows(spec)
        links = shared + [0] * (len(flows) - len(shared))
        result = []
        for (src_port, dst_port, group), extra_ns, link in zip(flows, self.extra_ns, links, strict=True):
            if isinstance(group, Long):
                extra_ns = spec.forth_extra_ns(spec.rtt_ns + extra_ns, group.ack_delay_ns)
            access_bps = 0 if link else group.access_bps or 0
            result.append(Flow(SENDER.ipv4, RECEIVER.ipv4, src_port, dst_port, extra_ns, access_bps, link))
        return tuple(result)

    def _settings(self) -> SwitchSettings:
        """The switches' settings. With DELAY=tc the links have no delay: netem on one host has the whole RTT."""
        spec = self.spec
        ports = own_program.ports(spec.p4)
        forth_ns, back_ns = (0, 0) if spec.delay == "tc" else (spec.least_forth_ns, spec.least_back_ns)
        long_flows = sum(group.flows for group in spec.long)
        of_flows = tuple(
            (ControlTuple(flow.src_addr, flow.dst_addr, TCP, flow.src_port, flow.dst_port), settings)
            for flow in self.flows
            if (settings := _given(delay=flow.extra_delay_ns, access=flow.access_bps, link=flow.access_link))
        )
        of_paths = tuple(
            (
                SourceAddress(path.src_addr),
                {"delay": spec.forth_extra_ns(path.rtt_ns, path.ack_delay_ns)} | _given(link=path.access_link),
            )
            for path in paths.paths(spec)
        )
        of_acks = tuple(  # the delay of each group beyond the least
            (SourcePort(RECEIVER.ipv4, TCP, port), {"delay": extra_ns})
            for group, ports in self.server_ports
            if (extra_ns := spec.back_of(group) - spec.least_back_ns)
            for port in ports
        )
        return SwitchSettings(
            rate_bps=spec.rate_bps,
            forth_ns=forth_ns,
            back_ns=back_ns,
            queues={number: queue(spec, host.port) for number, host in zip(ports, HOSTS, strict=True)},
            policy=policy(spec),
            flow_settings=of_flows + of_paths + of_acks,
            shared_links_bps=paths.links_bps(spec),
            nic_rate_bps=(spec.offloads and spec.offloads.nic_rate_bps) or 0,
            drop_cost_permille=spec.drop_cost_permille or 0,
            rate_schedule=spec.rate_schedule,
            # WARMUP begins with the last long flow.
            schedule_after_ns=max(drawn_offsets_ns(self.seed, self.start_spread_ns, long_flows), default=0),
            loss=spec.loss.of_link if spec.loss else None,
            loss_seed=self._link_seed("loss"),
            jitter=Jitter(spec.jitter.most_ns, spec.jitter.distribution) if spec.jitter else None,
            jitter_seed=self._link_seed("jitter"),
            policy_parameters=own_p4.default_actions(spec.p4) if spec.p4 else {},
            queue_requests=own_p4.queue_requests(spec.p4, BOTTLENECK) if spec.p4 else (),
            random_seed=self._link_seed("P4") if spec.p4 else None,
            program=_own_program(spec),
            ports=ports,
            qdisc=Qdisc(tuple(spec.queue.split()), spec.mtu_bytes) if spec.queue else None,
        )

    def _link_seed(self, what: str) -> int:
        """64 bits, which the switch draws from."""
        return random.Random(f"{what} {self.spec.seed} {self.repetition}").getrandbits(64)

    def traffic(self) -> TrafficPlan:
        """The traffic program and its options. `start_mono_ns` 0 means as soon as possible; the starter may set a
        time.
        """
        spec = self.spec
        if spec.open_loop:
            of_group = self._datagram_options(self.processes[0], self.seed)
            options = {"start_mono_ns": 0, "duration_ns": self.traffic_ns, "server": RECEIVER.ipv4, **of_group}
            return TrafficPlan("open_loop", self.flows, options)
        alone = spec.traffic == PROGRAM
        user: tuple[PlannedProgram, ...] = ()
        if spec.program:
            user = tuple(
                PlannedProgram(where, programs.plan(spec.program, name, self.seed, self.traffic_ns, alone))
                for name, where in programs.hosts(spec.program).items()
            )
        if alone:
            return TrafficPlan("", self.flows, {}, user)
        return TrafficPlan("long_flows", self.flows, self._tcp_options(), user)

    def _datagram_options(self, process: FlowProcess, seed: int) -> dict[str, Any]:
        """The options of one process of build/open_loop: its flows, load, sizes and seed."""
        group = process.group
        assert isinstance(group, Datagrams)
        return {
            **process.ports(),
            "rate_bps": self.spec.rate_bps,
            "load_ppm": round(group.load * 1e6),
            "mtu_bytes": self.spec.mtu_bytes,
            "seed": seed,
            "arrivals": group.arrivals,
            "sizes": group.sizes,
            **group.times_ns,
        }

    def _own_options(self, group: Long | Finite) -> dict[str, Any]:
        """The settings of a group in a plan of hosts/traffic; only its times if all groups have the same."""
        spec = self.spec
        if not spec.has_own_settings:
            return group.times_ns
        buffer_bytes = demand.socket_buffer_bytes(spec, group.access_bps) if group.access_bps else 0
        return {
            **pacing.options(group.pacing, group.window_packets, spec.clock),
            **_given(buffer_bytes=buffer_bytes),
            "ecn": spec.ecn_of(group),
            **group.times_ns,
        }

    def _tcp_options(self) -> dict[str, Any]:
        spec, by_number = self.spec, paths.by_number(self.spec)
        timing: dict[str, Any] = {"seconds": self.traffic_ns // 10**9}
        if spec.generator == "epoll":
            timing = {
                "duration_ns": spec.warmup_ns + spec.duration_ns,
                "start_spread_ns": self.start_spread_ns,
                "seed": self.seed,
                "connect_interval_ns": demand.connect_interval_ns(spec),
                # The sockets stay open for the ACKs of the last measured packets.
                "drain_ns": demand.longest_rtt_ns(spec),
            }
        groups = [
            {"cc": process.group.cc, **process.ports(), **self._own_options(process.group)}
            for process in self.processes
            if isinstance(process.group, Long)
        ]
        of_datagrams = [process for process in self.processes if isinstance(process.group, Datagrams)]
        datagrams = [
            self._datagram_options(process, self.seed + (number << SEED_BITS))
            for number, process in enumerate(of_datagrams, 1)
        ]
        transfers = [
            group.plan(ports.start, tuple(path.src_addr for path in by_number[group.number])) | self._own_options(group)
            for group, ports in self.finite
        ]
        return {
            "generator": spec.generator,
            "start_mono_ns": 0,
            **timing,
            "server": RECEIVER.ipv4,
            "groups": groups,
            **({"ecn": spec.with_ecn} if spec.generator == "epoll" else {}),  # iperf3: the host's sysctl alone decides
            **pacing.options(spec.shared.pacing, spec.shared.window_packets, spec.clock),
            **self.bpf.of_traffic(),
            **_given(datagrams=datagrams, transfers=transfers),
        }

    def setup(self) -> dict[str, Any]:
        """The playbooks' variables. Options that depend on the experiment are here, all others in the roles."""
        spec, sized, bpf = self.spec, self.sizes, self.bpf
        window_rtt_share = demand.farthest_rtt_ns(spec) / spec.rtt_ns
        window_packets = demand.most_bdp_packets(spec) * window_rtt_share + spec.buffer_packets
        buffer_bytes, unsent_bytes = demand.access_buffer_bytes(spec), demand.unsent_bytes(spec)
        # The ports of long flows and datagrams; without both, a port on which nobody listens. Finite flows are not
        # traced. The tracer takes one range of ports, so programs are traced only if there are no finite flows.
        traced_ports = f"{FIRST_SERVER_PORT}-{FIRST_SERVER_PORT + max(len(self.processes), 1) - 1}"
        if spec.program and not self.finite:
            traced_ports = f"1-{MOST_PORT}"
        # Collector and tracer report each second; in virtual time twice between two progress reports.
        status_ms = max(1, int(cost.tick_s(spec) * 500)) if spec.clock == "virtual" else 1000
        status = ["--status", "--status-ms", str(status_ms)]
        watch = ["--no-watch"] if spec.clock == "virtual" else []
        schedule = self.settings.rate_schedule
        changes = ["--rate-entries", str(len(schedule.entries))] if schedule else []
        # Disks take no virtual time, so few blocks wait for them. Each MiB of buffers costs 256 page faults.
        buffers = ["--buffers", "8"] if spec.clock == "virtual" else []
        read = ["--read-ms", str(sized.trace_read_ms)] if spec.clock == "virtual" else []
        return {
            "run_groups": ":".join(inventory_groups(spec)),
            "runtime_dir": str(RUNTIME),
            "spec": self._spec_of_roles(),
            "python": sys.executable,
            "checkout": str(host.CHECKOUT),
            "build": str(host.BUILD),
            "client_ports": f"{FIRST_CLIENT_PORT}-{LAST_CLIENT_PORT}",
            "finite_ports": [f"{ports.start}-{ports[-1]}={bpf.name(group.cc)}" for group, ports in self.finite],
            "datagram_ports": [
                process.server_port for process in self.processes if isinstance(process.group, Datagrams)
            ],
            "collector_address": topology.COLLECTOR.ipv4,
            "collector_source": topology.POSTCARD_SOURCE,
            **_given(tune_buffer_bytes=buffer_bytes, tune_unsent_bytes=unsent_bytes),
            **pacing.setup(spec.pacing_of_host),
            **bpf.of_roles(self._windows() if spec.clock == "real" else [], self.seed),
            "tune_ecn": "on" if spec.with_ecn else "off",
            **self._port_tcp(),
            **({"program_cc": spec.program.cc} if spec.program else {}),
            "tune_window_bytes": min(int(window_packets * spec.mtu_bytes) + 1, MOST_WINDOW_BYTES),
            "switch_frame_bytes": sized.frame_bytes,
            "switch_executor": spec.switch,
            **self._switch_ports(),
            **({"p4_json": f"{own_p4.DIRECTORY}/{spec.p4.compiled.file}"} if spec.p4 and spec.target != "soft" else {}),
            **({"softswitch_program": str(p4_program.switch_of(spec.p4))} if _has_own_process(spec) else {}),
            **_given(switch_taps=self._taps() if spec.taps else []),
            "switch_options": ["--packets", str(sized.pool_packets), "--drop-user", "nobody", *watch, *changes],
            "collector_options": [*status, *buffers],
            "tracer_options": [*status, *read, "--ring-mib", str(sized.trace_ring_mib), "--port", traced_ports],
        }

    def _switch_ports(self) -> dict[str, list[str]]:
        """The numbers of the switch's ports, if a program of the user's has others than the lab."""
        ports = self.settings.ports
        if ports == Ports():
            return {}
        named = zip(ports, (SENDER, RECEIVER, COLLECTOR), strict=True)
        name = "switch_ports" if self.spec.target == "soft" else "bmv2_ports"  # switch_ports are also the delay line's
        return {name: [f"{number}={host.switch_interface}" for number, host in named]}

    def _taps(self) -> list[str]:
        """The captures of the switch, NUMBER=FILE of the run directory."""
        ports = self.settings.ports
        return [f"{port}={name}" for port, name in zip((ports.sender, ports.receiver), TAPS, strict=True)]

    def _port_tcp(self) -> dict[str, list[str]]:
        """INITCWND and ACKS of groups. The hosts identify a group by the ports of its servers."""
        every = (tcp_options.words_of_ports(ports, vars(group), self.spec.tcp) for group, ports in self.server_ports)
        words = [word for word in every if word]
        return _given(
            sender_port_tcp=[f"dport:{word}" for word in words], receiver_port_tcp=[f"sport:{word}" for word in words]
        )

    def _windows(self) -> list[str]:
        """Bounds of the senders' windows by server ports, FIRST-LAST=SEGMENTS: of the run, or of its groups."""
        if self.spec.shared.window_packets:
            return [f"1-{MOST_PORT}={self.spec.shared.window_packets}"]
        bounded = [(group.window_packets, ports) for group, ports in self.server_ports if group.window_packets]
        return [f"{ports.start}-{ports[-1]}={packets}" for packets, ports in bounded]

    def _spec_of_roles(self) -> dict[str, Any]:
        """The fields of the spec that roles read: these decide the steps of the set-up. Roles set sockets' congestion
        controls, so the groups have the algorithms' kernel names. Numbers of flows matter with iperf3 only, because
        they set the number of iperf3 servers.
        """
        spec, name = self.spec, self.bpf.name
        names = READ_BY_ROLES + (READ_WITH_NETEM if spec.delay == "tc" else ())
        counted = spec.generator == "iperf3"
        groups = [{"cc": name(group.cc)} | ({"flows": group.flows} if counted else {}) for group in spec.long]
        finite = [{"cc": name(group.cc)} for group in spec.finite]
        read = spec.model_dump(mode="json", include={*names})
        own = {name: value for name, value in read.items() if value is not None or name == "generator"}
        return {**own, "traffic": spec.traffic, "groups": groups, **_given(transfers=finite)}


def _given(**options: Any) -> dict[str, Any]:
    """Those that have a value: not None, 0 or empty."""
    return {name: value for name, value in options.items() if value}
