# SPDX-License-Identifier: MIT
"""Resolves a spec: defaults, SI units, the rules between keys, and the limits of this host.

`resolve` reports all wrong keys at once, so that a user corrects a spec once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from controlplane.policy import EGRESS_ECN, EGRESS_MODES
from controlplane.switch import Capabilities
from controlplane.targets import TARGETS
from experiments.machine import cell
from experiments.machine.host import ALLOWED, Host
from experiments.spec import (
    ack_delay,
    capabilities,
    cc_parameters,
    congestion,
    groups,
    link_changes,
    offloads,
    pacing,
    paths,
    resolve_traffic,
    tcp_options,
    transfers,
)
from experiments.spec.disk import IPERF3_STREAM_BYTES
from experiments.spec.keys import KEYS, Spec, validate
from experiments.spec.resolved import MAX_POOL_BYTES, Resolved
from experiments.spec.thresholds import ecn_threshold
from experiments.spec.traffic import MAX_FLOWS
from hosts.congestion_bpf import objects
from lib import units
from lib.errors import BadValue, SpecError
from lib.frames import wire_bytes_of_ip
from lib.keys import Wrong
from lib.quantities import Rate
from model import paths as model_paths
from model.experiment import SPEC_VERSION
from model.groups import Datagrams, Finite, Long, Programs

UTILIZATION_WINDOW_RTTS = 10
MAX_TRAFFIC_NS = 82_800 * 10**9  # an hour less than iperf3's own limit, for the start of many flows
MOST_NAME_LETTERS = 64  # as NAME may have (spec.py)
MOST_IPERF3_FLOWS = 3 * cell.RUN_BYTES // 4 // IPERF3_STREAM_BYTES
# Most published measurements use iperf3. In virtual time iperf3 cannot run: it spins while it waits.
DEFAULT_GENERATOR = {"real": "iperf3", "virtual": "epoll"}


def resolve(given: Mapping[str, object], host: Host) -> Resolved:
    """The experiment that `given` (key -> value, keys in lower case) asks for. Raises SpecError with one error for each
    wrong key; a wrong spec_version is reported alone.
    """
    spec, errors = validate(given)
    if "spec_version" in errors:
        raise SpecError(list(errors.values()))

    def wrong(key: str, problem: str) -> None:
        errors.setdefault(key, BadValue(key.upper(), given.get(key, KEYS[key].default or None), problem))

    clock = spec.clock or host.clock
    if spec.switch in ("driver", "ns3") and clock == "real" and not errors.keys() & {"switch", "clock"}:
        what = "is part of the virtual-time kernel" if spec.switch == "driver" else "simulates its time"
        wrong("switch", f"{what}; allowed: process, or {spec.switch} with CLOCK=virtual")
    can = TARGETS[spec.target].capabilities
    fastest_bps, (rate_bps, changes) = link_changes.fastest_bps(spec.rate), link_changes.resolve(spec.rate, spec.mtu)
    spec = spec.model_copy(update={"rate": Rate(f"{rate_bps}bit")}) if changes else spec
    entries = groups.entries(spec, given, errors, wrong)
    spec = spec.model_copy(update={"traffic": groups.traffic(entries)})
    without_tcp_flows = spec.traffic == transfers.PROGRAM or (spec.traffic == transfers.OPEN_LOOP and len(entries) == 1)
    generator = None if without_tcp_flows else _generator(spec, clock, bool(changes), errors, wrong)
    switch = spec.switch or ("driver" if clock == "virtual" and can.exact_time else "process")
    wire_bytes, bdp_bps = wire_bytes_of_ip(spec.mtu), spec.bdp_of.bps if spec.bdp_of and changes else rate_bps
    testbed = host.testbed or capabilities.on_testbed(can)
    delay = spec.delay or capabilities.default_delay(can, testbed)
    tcp = tcp_options.resolve(spec, spec.switch, wrong)
    ack_delay_ns = _ack_delay_ns(spec, entries, delay, errors, wrong)
    rtts = [entry.rtts_ns for entry in entries if entry.is_tcp] or [entries[0].rtts_ns]
    rtt_ns = min(least for least, _ in rtts)
    duration_ns, warmup_ns = (spec.duration.ns(rtt_ns), spec.warmup.ns(rtt_ns))
    if spec.traffic == transfers.PROGRAM and "warmup" not in given:
        warmup_ns = 0  # a program is measured from its start
    spread_ns = resolve_traffic.start_spread_ns(spec.start_spread, generator, rtt_ns)
    is_known = not errors.keys() & {"duration", "warmup", "rtt", "start_spread"}
    where = resolve_traffic.Where(
        clock, switch, testbed, delay, host.bpf_lacks, wire_bytes, ack_delay_ns, tcp, rtt_ns, spread_ns,
        warmup_ns + duration_ns if is_known else None,
    )  # fmt: skip
    traffic = resolve_traffic.resolve(entries, generator, where)
    if spec.groups is not None:
        resolve_traffic.refuse_keys(spec.traffic, given, wrong)
    for entry in entries:
        _check_congestion_controls_of(entry, spec, host)
        _check_sources(entry, clock, where, spec, host)
    _check_parameters(entries, clock, where, spec, errors, wrong)
    _check_host(spec, host, errors, wrong)
    if spec.groups is not None and not can.links:
        wrong("groups", f"needs delays and links of flows; TARGET={can.name} has none (capability links: no); allowed: "
              "with TARGET=soft")  # fmt: skip
    if spec.switch == "ns3":
        _check_simulator(spec, errors, wrong)
    if changes and not (can.links and switch != "ns3" and not testbed) and "rate" not in errors:
        wrong("rate", "changes, which needs the soft switch in the lab of one machine; allowed: one rate, or neither "
              "TARGET, SWITCH=ns3 nor INVENTORY")  # fmt: skip
    last_ns = max((at_ns for at_ns, _ in changes.get("rate_steps", ())), default=0)
    if is_known and last_ns and last_ns >= warmup_ns + duration_ns and "rate" not in errors:
        wrong("rate", f"has a step at {units.show(last_ns, 'time')}, when the traffic has ended; allowed: times below "
              f"WARMUP + DURATION, {units.show(warmup_ns + duration_ns, 'time')}")  # fmt: skip
    if spec.bdp_of and not changes:
        wrong("bdp_of", "has no meaning with a constant RATE; allowed: with a RATE that changes")
    if testbed and delay == "tc" and not can.links:
        for key in [key for key in ("loss", "jitter") if getattr(spec, key)]:
            wrong(key, "needs the soft switch, or another switch with our delay line behind it; allowed: DELAY=switch, "
                  "where the inventory has a delay line")  # fmt: skip

    def refused(key: str, problem: str) -> None:
        if not errors.keys() & {key, "target"}:
            wrong(key, problem)

    capabilities.refuse(spec, clock, wire_bytes, can, testbed, refused)
    groups.collect(entries, errors)
    bdp = Fraction(bdp_bps * rtt_ns, 8 * 10**9 * wire_bytes)
    if not errors.keys() & {"duration", "rtt"} and duration_ns < UTILIZATION_WINDOW_RTTS * rtt_ns:
        wrong("duration", f"is too short; allowed: {UTILIZATION_WINDOW_RTTS} RTTs or more, the window of utilization")
    elif not errors.keys() & {"duration", "warmup", "rtt"} and duration_ns + warmup_ns > MAX_TRAFFIC_NS:
        wrong("duration", "is too long; allowed: 82800s at most for WARMUP and DURATION together")

    long = [group for group in traffic if isinstance(group, Long)]
    finite = [group for group in traffic if isinstance(group, Finite)]
    start_spread_ns = spread_ns if long else 0
    transfers.refuse_too_many(tuple(finite), start_spread_ns + warmup_ns + duration_ns, wrong)
    buffer_packets, threshold_bytes = spec.buf.threshold(bdp, bdp_bps, wire_bytes, spec.mtu)
    ecn = ecn_threshold(spec, buffer_packets, threshold_bytes, bdp, bdp_bps, wire_bytes, errors, wrong)
    resolved = Resolved(
        spec_version=SPEC_VERSION,
        name=spec.name or _name(traffic),
        target=spec.target,
        clock=clock,
        switch=switch,
        generator=generator,
        delay=delay,
        mode=spec.mode,
        groups=traffic,
        rate_bps=rate_bps,
        rate_pps=capabilities.rate_pps(rate_bps, wire_bytes, can),
        rtt_ns=rtt_ns,
        mtu_bytes=spec.mtu,
        wire_bytes=wire_bytes,
        bdp_packets=max(1, units.nearest(bdp)),
        buffer_given=spec.buf.text,
        buffer_packets=buffer_packets,
        threshold_bytes=threshold_bytes,
        ecn_threshold_packets=ecn[0],
        ecn_threshold_bytes=ecn[1],
        duration_ns=duration_ns,
        warmup_ns=warmup_ns,
        start_spread_ns=start_spread_ns,
        seed=spec.seed,
        reps=spec.reps,
        tcp=tcp,
        offloads=offloads.resolve(spec, given, clock, switch, where.testbed, fastest_bps, wrong),
        congestion_sources=congestion.in_spec(
            {group.source for entry in entries for group in entry.spec.cc if group.source}
        ),
        cc_parameters=spec.cc_parameters,
        drop_cost_permille=_drop_cost(spec, switch, can, errors, wrong),
        **changes,
        bdp_rate_bps=None if bdp_bps == rate_bps else bdp_bps,
        loss=spec.loss,
        jitter=spec.jitter,
    )
    if resolved.flows > MAX_FLOWS and not errors.keys() & {"cc", "flows"}:
        wrong("groups" if spec.groups else "flows", f"has {resolved.flows} flows; allowed: {MAX_FLOWS} in a run, long "
              "flows and flows of datagrams together")  # fmt: skip
    if generator == "iperf3" and not where.testbed and resolved.flows > MOST_IPERF3_FLOWS:
        wrong("flows" if "flows" in given else "cc", f"makes iperf3's servers keep {IPERF3_STREAM_BYTES >> 10} KiB a "
              f"flow in the lab's /run, a file system in memory of {cell.RUN_BYTES >> 20} MiB; allowed: "
              f"{MOST_IPERF3_FLOWS} flows, or GENERATOR=epoll")  # fmt: skip
    paths.refuse_groups(resolved, wrong)
    if where.testbed and not errors and model_paths.paths(resolved):
        wrong("groups" if spec.groups else "rtt_spread", "gives finite flows addresses of the sender that only the lab "
              "of one machine has; an inventory names other machines; allowed: one RTT, no shared links")  # fmt: skip
    if len({group.pacing for group in resolved.with_settings} - {None}) > 1:
        wrong(
            "groups",
            "has groups with different PACING, a setting of the whole host; allowed: one kind for all groups that pace",
        )
    if resolved.pacing_of_host == pacing.FQ and any(group.pacing is None for group in resolved.with_settings):
        wrong("groups", "has groups without PACING=fq, but the sender's qdisc fq paces all flows; allowed: fq for all "
              "groups")  # fmt: skip
    of_pool = {"buf", "rate", "rtt", "rtts", "rtt_spread", "jitter"}
    if resolved.pool_bytes > MAX_POOL_BYTES and not errors.keys() & of_pool:
        wrong(
            "buf",
            f"makes the switch hold {resolved.pool_packets} packets, {resolved.pool_bytes >> 20} MiB; allowed: "
            f"{MAX_POOL_BYTES >> 20} MiB for the buffer and the packets in flight, RATE x (RTT + RTT_SPREAD + JITTER)",
        )
    if errors:
        known = [key for key in KEYS if key in errors]
        raise SpecError([errors[key] for key in [*known, *sorted(errors.keys() - known)]])
    return resolved


def _ack_delay_ns(
    spec: Spec, entries: list[groups.Entry], delay: str, errors: dict[str, BadValue], wrong: Wrong
) -> int | None:
    """ACK_DELAY of the run, which also holds for groups without an ACK_DELAY of their own."""
    if errors.keys() & {"ack_delay", "rtt", "rtts"}:
        return None
    heirs = [entry for entry in entries if entry.is_tcp and not entry.has_ack_delay]
    return ack_delay.resolve(spec, min(entry.rtts_ns[0] for entry in heirs or entries), delay, wrong)


def _generator(spec: Spec, clock: str, rate_changes: bool, errors: dict[str, BadValue], wrong: Wrong) -> str:
    """The program that sends TCP flows: iperf3 or epoll."""
    lacks = [kind for kind in transfers.kinds(spec.traffic) if kind != transfers.LONG]
    timed = bool(spec.start or spec.stop or rate_changes)
    generator = spec.generator or ("epoll" if lacks or spec.groups or timed else DEFAULT_GENERATOR[clock])
    if generator == "iperf3" and (lacks or spec.groups or timed) and not errors.keys() & {"generator", "traffic"}:
        lacking = {transfers.OPEN_LOOP: "no datagrams", transfers.PROGRAM: "no flows beside programs"}
        of_flows = (
            lacking.get(lacks[0], "no finite flows")
            if lacks
            else "no exact start, from which START, STOP and a RATE that changes count"
        )
        what = "no groups" if spec.groups else of_flows
        wrong("generator", f"has {what}; allowed: epoll")
    if generator == "iperf3" and clock == "virtual" and not errors.keys() & {"generator", "clock"}:
        wrong("generator", "waits for its peer by spinning, which never ends in virtual time; allowed: epoll")
    return generator


def _name(traffic: Sequence[Long | Finite | Datagrams | Programs]) -> str:
    words = [f"{group.cc}{group.flows}" for group in traffic if isinstance(group, Long)]
    words += [f"{group.kind}-{group.cc}" for group in traffic if isinstance(group, Finite)]
    words += [f"open-loop-{group.sizes.replace(':', '-')}" for group in traffic if isinstance(group, Datagrams)]
    words += [group.kind for group in traffic if isinstance(group, Programs)]
    return "-".join(words)[:MOST_NAME_LETTERS].rstrip("-")


def _check_congestion_controls_of(entry: groups.Entry, run: Spec, host: Host) -> None:
    """Refuses unknown congestion controls, but not on a testbed: this machine does not know a testbed's hosts."""
    if host.testbed or capabilities.on_testbed(TARGETS[run.target].capabilities):
        return
    names = [group.cc for group in entry.spec.cc if not group.source]
    _check_congestion_controls("cc", names, host, entry.errors, entry.wrong)
    if entry.spec.finite_cc:
        _check_congestion_controls("finite_cc", [entry.spec.finite_cc], host, entry.errors, entry.wrong)


def _without_ours(where: resolve_traffic.Where, run: Spec) -> str:
    """The switch or target whose hosts cannot get bufferscope's congestion controls and parameters; "" if they can."""
    return "SWITCH=ns3" if run.switch == "ns3" else "a testbed" if where.testbed else ""


def _check_sources(entry: groups.Entry, clock: str, where: resolve_traffic.Where, run: Spec, host: Host) -> None:
    """Refuses users' own congestion controls where they cannot run."""
    for group in entry.spec.cc:
        problem = group.source and congestion.problem(group.source, host, clock, _without_ours(where, run))
        if problem and "cc" not in entry.errors:
            entry.wrong("cc", problem)


def _check_parameters(
    entries: list[groups.Entry], clock: str, where: resolve_traffic.Where, run: Spec,
    errors: dict[str, BadValue], wrong: Wrong,
) -> None:  # fmt: skip
    """Refuses parameters of congestion controls that cannot be set, or that no flow has."""
    if not run.cc_parameters:
        return
    used = [group.cc for entry in entries for group in entry.spec.cc]
    used += [entry.spec.finite_cc for entry in entries if entry.spec.finite_cc]
    problem = cc_parameters.problem(run.cc_parameters, clock, _without_ours(where, run), used)
    if problem and "cc_parameters" not in errors:
        wrong("cc_parameters", problem)


def _check_host(spec: Spec, host: Host, errors: dict[str, BadValue], wrong: Wrong) -> None:
    """Refuses features that the hosts' kernel lacks, or keeps from programs without privileges. Refuses nothing on a
    testbed: this machine does not know a testbed's hosts.
    """
    if host.testbed or capabilities.on_testbed(TARGETS[spec.target].capabilities):
        return
    if spec.program_cc:
        _check_congestion_controls("program_cc", [spec.program_cc], host, errors, wrong)
    of_program = spec.program_cc or resolve_traffic.one_cc(spec)
    is_for_programs = host.for_programs is None or of_program is None or of_program in host.for_programs
    is_wrong_anyway = errors.keys() & {"cc", "program_cc", "traffic"}
    if transfers.PROGRAM in transfers.kinds(spec.traffic) and not is_for_programs and not is_wrong_anyway:
        allowed = f"{', '.join(host.for_programs or ())}, or CLOCK=virtual"
        wrong("program_cc" if spec.program_cc else "cc", f"is {of_program}, which this machine keeps from programs "
              f"without privileges ({ALLOWED}); allowed: {allowed}")  # fmt: skip
    if spec.delay == "tc" and not host.netem and "delay" not in errors:
        wrong("delay", "needs netem, which this host's kernel lacks (CONFIG_NET_SCH_NETEM); allowed: switch")


def _check_congestion_controls(
    key: str, names: list[str], host: Host, errors: dict[str, BadValue], wrong: Wrong
) -> None:
    known = host.congestion_controls
    missing = [] if known is None else [cc for cc in names if cc not in known]
    if missing and known is not None and key not in errors:
        what = "is not a" if len(names) == 1 else f"names {' and '.join(missing)}, no"
        more = " (CLOCK=virtual has all of Linux's)" if host.clock == "real" else ""
        if host.bpf_lacks and set(missing) & objects.own_sources().keys():
            more = f"; bufferscope's own, which are BPF programs here, need {host.bpf_lacks}{more}"
        wrong(key, f"{what} congestion control of {host.kernel}; allowed: {', '.join(known)}{more}")


def _check_simulator(spec: Spec, errors: dict[str, BadValue], wrong: Wrong) -> None:
    """Refuses features that simulator/ lacks."""
    simulated = [kind for kind in transfers.TRAFFIC if kind not in (transfers.PROGRAM, transfers.OPEN_LOOP)]
    other = [kind for kind in transfers.kinds(spec.traffic) if kind not in simulated]
    for key, lacks, problem in (
        ("target", spec.target != "soft", "is a switch that ns-3 does not simulate; allowed: soft"),
        (
            "traffic",
            bool(other),
            f"has {' and '.join(other)} traffic, which is not simulated; allowed: {', '.join(simulated)}",
        ),
        ("groups", spec.groups is not None, "is not simulated; allowed: no groups"),
        ("start", spec.start is not None, "is not simulated; allowed: no START"),
        ("stop", spec.stop is not None, "is not simulated; allowed: no STOP"),
        (
            "mode",
            spec.mode == EGRESS_ECN,
            "marks at departure, which is not simulated; allowed: tail-drop, ecn, egress-threshold",
        ),
        ("delay", spec.delay == "tc", "needs netem, which no simulated host has; allowed: switch"),
        ("loss", spec.loss is not None, "is not simulated; allowed: 0"),
        ("jitter", spec.jitter is not None, "is not simulated; allowed: 0ns"),
        (
            "buf",
            spec.buf.dimension == "bytes",
            "is in bytes; the simulated queue compares packets; allowed: p, bdp, time",
        ),
    ):
        if lacks and key not in errors:
            wrong(key, f"{problem} with SWITCH=ns3")


def _drop_cost(spec: Spec, switch: str, can: Capabilities, errors: dict[str, BadValue], wrong: Wrong) -> int | None:
    """DROP_COST in permille; None if a drop at departure takes no link time. Drops on arrival never take any."""
    if spec.drop_cost is None or spec.mode not in EGRESS_MODES or errors.keys() & {"drop_cost", "target", "switch"}:
        return None
    if not can.links or switch == "ns3":
        wrong("drop_cost", "cannot be set in this switch; allowed: with the soft switch only")
    return int(spec.drop_cost * 1000) or None
