# SPDX-License-Identifier: MIT
"""The rules between values. A rule is a function `(subject, host) -> errors`; `check` evaluates each once.

The subject is the experiment, in SI units. Where its values do not show what was typed (a word without meaning beside
another, a default), the subject is the words of the spec, or of each of its groups. Of the errors of a key the first is
shown. While a key is wrong it has its default, and keys that need it are not judged: a wrong key does not make others
wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from controlplane.policy import EGRESS_ECN
from controlplane.switch import Capabilities
from controlplane.targets import TARGETS
from experiments.machine import cell
from experiments.machine.host import ALLOWED, Host
from experiments.spec import demand, linux_queue, own_p4, own_program, pacing, programs, tcp_options
from experiments.spec.congestion import BPF
from experiments.spec.disk import IPERF3_STREAM_BYTES
from experiments.spec.keys import KEYS
from experiments.spec.link_changes import ChangingRate, fastest_bps
from experiments.spec.traffic import MAX_FLOWS
from experiments.spec.transfers import DEFAULT_SIZES, FINITE, MOST_ACCESS_LINKS, MOST_PATHS, MOST_TRANSFERS
from experiments.spec.words import DEFAULTS_OF_GROUPS, GROUP_KEYS, Error, Errors, Words
from hosts.congestion_bpf import objects
from hosts.traffic.draw_words import Drawn
from hosts.traffic.open_loop import BURSTS_FORM, SIZES, is_periodic, read_arrivals
from hosts.traffic.user_program import CLIENT, SERVER
from lib import units
from lib.words import unknown
from model import paths
from model.experiment import Experiment
from model.groups import LONG, OPEN_LOOP, PROGRAM, TRAFFIC, Datagrams, Finite, Group, Long
from virtual.kernel import config

UTILIZATION_WINDOW_RTTS = 10
MAX_TRAFFIC_NS = 82_800 * 10**9  # an hour less than iperf3's own limit, for the start of many flows
MOST_IPERF3_FLOWS = 3 * cell.RUN_BYTES // 4 // IPERF3_STREAM_BYTES
LEAST_PPS = 100
MAX_RATE_ROUNDING = Fraction(1, 2 * LEAST_PPS)
POLICY_TARGETS = ("soft", "bmv2")  # they run p4c's JSON
NETEM, SIMULATOR = "tc", "ns3"
ADDRESSES = "addresses of the sender that only the lab of one machine has; an inventory names other machines"
TIMES = ("duration", "warmup", "rtt", "start_spread")
WORDS_NEED = {key: ("traffic",) for key, row in KEYS.items() if row.kinds and key != "cc"} | {
    "coalesce": ("offloads",), "ecn_threshold": ("mode",), "flows": ("traffic", "cc"), "nic_rate": ("offloads", "rate"),
    "switch": ("clock",), "taps": ("clock", "target", "switch"),
}  # fmt: skip
VALUES_NEED = WORDS_NEED | {
    "access": ("traffic", "access_links"), "ack_delay": ("rtt", "rtts"), "arrivals": ("traffic", "load", "flows"),
    "buf": ("rate", "rtt", "rtts", "rtt_spread", "jitter"), "duration": ("rtt", "warmup"),
    "ecn_threshold": ("buf", "rate", "rtt", "mtu"), "generator": ("traffic", "clock"), "rate": TIMES,
    "policy": ("p4",), "queue": ("clock", "target", "switch"), "tables": ("p4", "ports", "addresses"),
    "rtt_spread": ("traffic", "rtts", "access_links", "servers"),
    "servers": ("traffic", "rtts", "access_links"), "start": ("traffic", *TIMES),
    "start_spread": ("traffic", "generator"), "stop": ("traffic", *TIMES),
}  # fmt: skip


def check(spec: Words, groups: list[Words], experiment: Experiment, host: Host, errors: Errors) -> None:
    """Adds the errors of all rules."""
    for words in (spec, *groups):
        for rules, needs in ((OF_PLACES, {}), (OF_SPEC if words is spec else OF_GROUPS, WORDS_NEED)):
            for error in (error for rule in rules for error in rule(words, host)):
                errors.add(error._replace(group=words.number), needs)
    for error in (error for rule in OF_EXPERIMENT for error in rule(experiment, host)):
        errors.add(error, VALUES_NEED)


def _can(subject: Words | Experiment) -> Capabilities:
    return TARGETS[subject.spec.target if isinstance(subject, Words) else subject.target].capabilities


def on_testbed(subject: Words | Experiment, host: Host) -> bool:
    """Whether the hosts are other machines, whose features this machine does not know."""
    return host.testbed or _can(subject).front_panel


def beside_groups(words: Words, host: Host) -> Iterator[Error]:
    if words.spec.groups is None or words.number is not None:
        return
    for key in sorted(words.given.keys() & {*GROUP_KEYS, "finite_cc"} - {*DEFAULTS_OF_GROUPS}):
        name = "cc" if key == "finite_cc" else key
        yield Error(key, f"must be in the groups, not beside them; allowed: {name} in groups[0], groups[1], ...")
    if words.spec.generator == "iperf3":
        yield Error("generator", "has no groups; allowed: epoll")
    if not _can(words).links:
        yield Error("groups", f"needs delays and links of flows; TARGET={words.spec.target} has none (capability "
                    "links: no); allowed: with TARGET=soft")  # fmt: skip
    if words.spec.switch == SIMULATOR:
        yield Error("groups", "is not simulated; allowed: no groups with SWITCH=ns3")


def without_meaning(words: Words, host: Host) -> Iterator[Error]:
    spec, can, who = words.spec, _can(words), f"TARGET={words.spec.target}"
    if spec.switch in ("driver", SIMULATOR) and words.clock(host) == "real":
        what = "is part of the virtual-time kernel" if spec.switch == "driver" else "simulates its time"
        yield Error("switch", f"{what}; allowed: process, or {spec.switch} with CLOCK=virtual")
    elif spec.switch and not can.exact_time:
        yield Error("switch", f"is for the soft switch; {who} is another switch (capability exact_time: no); "
                    "allowed: no SWITCH")  # fmt: skip
    if spec.bdp_of and not isinstance(spec.rate, ChangingRate):
        yield Error("bdp_of", "has no meaning with a constant RATE; allowed: with a RATE that changes")
    for key, problem in own_program.wrong(spec, words.given):
        yield Error(key, problem)
    whole = spec.p4 is not None and spec.p4.parameters is None
    if whole and on_testbed(words, host):
        yield Error("p4", "is a whole program, whose queue is watched in the lab only; allowed: in the lab of one "
                    "machine")  # fmt: skip
    if whole and spec.target != "soft" and (spec.scheduler or "fifo") != "fifo":
        yield Error("scheduler", f"is of the soft switch; {who} has one queue here; allowed: no SCHEDULER")
    other_mode = spec.mode != own_p4.KEPT_MODE or ("p4" in words.given and words.given.get("mode") in own_p4.SHELF)
    if spec.p4 and (other_mode or spec.target not in POLICY_TARGETS or spec.switch == SIMULATOR):
        yield Error("p4/mode", "replaces the policy of our P4 program; allowed: with MODE=tail-drop (BUF is its "
                    f"limit), TARGET={' or '.join(POLICY_TARGETS)}, and no SWITCH=ns3")  # fmt: skip
    if spec.p4 and spec.p4.parameters is not None and spec.p4.scheduler and spec.target != "soft":
        yield Error("p4/mode", f"has several queues and the scheduler {spec.p4.scheduler}, which only the soft switch "
                    "has; allowed: with TARGET=soft")  # fmt: skip
    is_virtual = words.clock(host) == "virtual" and spec.target == "soft" and spec.switch in (None, "driver")
    for key, problem in linux_queue.wrong(spec.queue, words.given, is_virtual and not on_testbed(words, host)):
        yield Error(key, problem)
    is_real = words.clock(host) == "real" and spec.target == "soft"
    if spec.taps and (not (is_virtual or is_real) or on_testbed(words, host)):
        yield Error("taps", "records in our own switch; allowed: with TARGET=soft in the lab of one machine, without "
                    "SWITCH in real time, and with SWITCH=driver in virtual time")  # fmt: skip
    if spec.ecn_threshold and spec.mode != "ecn":
        yield Error("ecn_threshold", "has no meaning here; allowed: with MODE=ecn only")
    for key, threshold in (("ecn_threshold", spec.ecn_threshold), ("buf", spec.buf)):
        if threshold and threshold.dimension == "bytes" and not can.byte_thresholds:
            yield Error(key, f"is in bytes; {who} compares {', '.join(can.depth_units)} (capability depth_units); "
                        "allowed: p, bdp or time, which are rounded to these")  # fmt: skip
    for key in words.given.keys() & {"nic_rate", "coalesce"}:
        if spec.offloads == "off":
            yield Error(key, "has no meaning here; allowed: with OFFLOADS=on only")
        elif on_testbed(words, host):
            yield Error(key, "is a property of the NICs of a testbed; allowed: only in virtual time")
    if spec.nic_rate and spec.nic_rate.bps <= fastest_bps(spec.rate):  # the NIC's queue, without limit, would fill
        yield Error("nic_rate", "does not exceed RATE: packets would queue in the NIC; allowed: more than RATE")


def tcp(words: Words, host: Host) -> Iterator[Error]:
    given, values = tcp_options.given(words.spec), tcp_options.resolve(words.spec, None)
    if values is None:
        return
    by = "SACK=off" if "sack" in given else f"PROFILE={words.spec.profile}"
    for key in tcp_options.NEED_SACK:
        if values["sack"] == "off" and given.get(key, "off") != "off":
            yield Error(key, f"needs SACK, which {by} switches off; allowed: with SACK=on only")
    for key, absent in tcp_options.LINUX_ONLY.items():
        if words.spec.switch == SIMULATOR and key in given and values[tcp_options.option(key)] != absent:
            allowed = f"no {key.upper()}" if absent is None else f"{key.upper()}={absent}"
            yield Error(key, f"is an option of Linux's TCP; ns-3 lacks it; allowed: {allowed} with SWITCH=ns3")


def keys_of_a_group(words: Words, host: Host) -> Iterator[Error]:
    if words.number is None:
        return
    for key in words.given:
        if key not in GROUP_KEYS and key in KEYS and key not in ("finite_cc", "groups"):
            yield Error(key, "is of the whole run; allowed: outside of groups")
        elif key not in GROUP_KEYS:
            yield Error(key, f"is no key of a group; {unknown(key.upper(), map(str.upper, GROUP_KEYS))}")
        elif key in DEFAULTS_OF_GROUPS and words.kinds == [OPEN_LOOP]:
            yield Error(key, "has no meaning with TRAFFIC=open-loop; allowed: with TCP flows only")
    if len(words.kinds) > 1:
        allowed = ", ".join(TRAFFIC)
        yield Error("traffic", f"names several kinds; allowed: one of {allowed}; use one group for each")
    elif words.kinds == [PROGRAM]:
        yield Error("traffic", "cannot be in a group; allowed: TRAFFIC=program without groups")
    if any(each.flows is not None for each in words.spec.cc):
        yield Error("cc", "gives numbers of flows; allowed: one name, and the number in flows")


def meaning_with_traffic(words: Words, host: Host) -> Iterator[Error]:
    """Keys that have no meaning with this traffic, except words that switch nothing on, such as PACING=off."""
    for name in [name for name in KEYS if name in words.given]:
        row, value = KEYS[name], str(words.given[name]).strip().lower()
        is_off = row.read is None and value == row.default
        if row.kinds and not is_off and not set(row.kinds) & set(words.kinds):
            allowed = " or ".join(row.kinds)
            yield Error(name, f"has no meaning with TRAFFIC={words.spec.traffic}; allowed: with TRAFFIC={allowed} only")


def sizes(words: Words, host: Host) -> Iterator[Error]:
    given, where = words.spec.sizes, f"allowed with TRAFFIC={words.spec.traffic}"
    if isinstance(given, Drawn) and not words.finite_kinds:
        yield Error("sizes", f"gives sizes of flows; {where}: {', '.join((*SIZES, BURSTS_FORM))}")
    elif isinstance(given, str) and OPEN_LOOP not in words.kinds:
        yield Error("sizes", f"gives sizes of packets; {where}: fixed:14p, {DEFAULT_SIZES}, ...")
    if {OPEN_LOOP, FINITE} <= {*words.kinds}:
        yield Error("traffic", "has two loads and two sizes; allowed: a file with groups, where each group has its own "
                    "(docs/traffic.md)")  # fmt: skip


def cc_and_flows(words: Words, host: Host) -> Iterator[Error]:
    spec, total = words.spec, sum(each.flows or 0 for each in words.spec.cc)
    if LONG in words.kinds and total > MAX_FLOWS:
        yield Error("cc", f"has {total} flows; allowed: 1 to {MAX_FLOWS}, as FLOWS")
    elif LONG in words.kinds and total and spec.flows not in (None, total):
        yield Error("flows", f"is not the sum of CC={words.given.get('cc')}, {total}; allowed: {total}, or no FLOWS "
                    "at all")  # fmt: skip
    for key, names, of in (
        ("finite_cc", words.finite_kinds, "the congestion control of the finite flows"),
        ("program_cc", PROGRAM in words.kinds, "the congestion control of the programs' TCP"),
    ):
        if names and len(spec.cc) > 1 and getattr(spec, key) is None:
            yield Error(key, f"is missing; CC names several; allowed: {of}")
    if LONG in words.kinds or not words.finite_kinds or "cc" not in words.given:
        return
    if total:
        yield Error("cc", f"gives numbers of long flows; TRAFFIC={spec.traffic} has none; allowed: a name, as in reno")
    elif spec.finite_cc and (spec.program_cc or PROGRAM not in words.kinds):
        others = "FINITE_CC and PROGRAM_CC set" if PROGRAM in words.kinds else "FINITE_CC sets"
        yield Error("cc", f"has no effect: {others} the congestion control of all flows; allowed: without CC")


def rtts(words: Words, host: Host) -> Iterator[Error]:
    for key in ("rtt", "rtt_spread"):
        if words.spec.rtts and key in words.given:
            yield Error("rtts", f"has every RTT; {key.upper()} is given too; allowed: one of them (RTT is the least of "
                        "RTTS)")  # fmt: skip


def addresses(words: Words, host: Host) -> Iterator[Error]:
    for key in ("rtts", "access_links", "servers"):
        if words.number is None and getattr(words.spec, key) and on_testbed(words, host):
            yield Error(key, f"needs {ADDRESSES}; allowed: no {key.upper()}")


def user_programs(words: Words, host: Host) -> Iterator[Error]:
    if PROGRAM not in words.kinds:
        return
    directory = programs.directory(words.spec)
    if not directory.is_dir():
        yield Error("directory", "is not a directory; allowed: one that exists")
    for key, command in ((SERVER, words.spec.server), (CLIENT, words.spec.client)):
        if command is None:
            yield Error(key, f"is missing; allowed: the {key} and its arguments, with TRAFFIC={PROGRAM}")
        elif not programs.found(command[0], directory):
            where = "not an executable file, seen from DIRECTORY" if "/" in command[0] else "not in PATH"
            yield Error(key, f"names the program {command[0]!r}, which is {where}; allowed: an executable file")


def congestion_controls(words: Words, host: Host) -> Iterator[Error]:
    spec, known = words.spec, host.congestion_controls
    if known is None or on_testbed(words, host):
        return
    of_cc = [each.cc for each in spec.cc if not each.source]
    for key, names in (("cc", of_cc), ("finite_cc", [spec.finite_cc]), ("program_cc", [spec.program_cc])):
        if missing := [cc for cc in names if cc and cc not in known]:
            what = "is not a" if len(names) == 1 else f"names {' and '.join(missing)}, no"
            more = " (CLOCK=virtual has all of Linux's)" if host.clock == "real" else ""
            if host.bpf_lacks and {*missing} & objects.own_sources().keys():
                more = f"; bufferscope's own, which are BPF programs here, need {host.bpf_lacks}{more}"
            yield Error(key, f"{what} congestion control of {host.kernel}; allowed: {', '.join(known)}{more}")


def own_congestion_controls(words: Words, host: Host) -> Iterator[Error]:
    clock, where = words.clock(host), _without_ours(words.spec.switch, on_testbed(words, host))
    taken = {*config.OF_LINUX, *config.OURS, *(host.congestion_controls or ())}
    for source in [each.source for each in words.spec.cc if each.source]:
        if where:
            yield Error("cc", f"names a file, which {where} cannot run; allowed: the name of an algorithm, as in cubic")
        elif source.name in taken:
            yield Error("cc", f"names {source.file}, but {source.name} exists already; allowed: a file with another "
                        "name")  # fmt: skip
        elif clock == "virtual" and source.file.endswith(BPF):
            yield Error("cc", f"names {source.file}, which is BPF, and the virtual-time kernel has none; allowed: with "
                        "CLOCK=real only")  # fmt: skip
        elif clock == "real" and host.bpf_lacks:
            yield Error("cc", f"names a file, which in real time needs {host.bpf_lacks}; allowed: with CLOCK=virtual")


def _without_ours(switch: str | None, testbed: bool) -> str:
    """The switch or target whose hosts cannot get bufferscope's congestion controls and parameters; "" if they can."""
    return "SWITCH=ns3" if switch == SIMULATOR else "a testbed" if testbed else ""


def generator(experiment: Experiment, host: Host) -> Iterator[Error]:
    if experiment.generator != "iperf3":
        return
    if lacks := [kind for kind in experiment.kinds if kind != LONG]:
        lacking = {OPEN_LOOP: "no datagrams", PROGRAM: "no flows beside programs"}
        yield Error("generator", f"has {lacking.get(lacks[0], 'no finite flows')}; allowed: epoll")
    if experiment.rate_changes or any(group.times_ns for group in experiment.groups):
        yield Error("generator", "has no exact start, from which START, STOP and a RATE that changes count; allowed: "
                    "epoll")  # fmt: skip
    if experiment.clock == "virtual":
        yield Error("generator", "waits for its peer by spinning, which never ends in virtual time; allowed: epoll")
    if experiment.start_spread_ns:
        yield Error("start_spread", "has no meaning with GENERATOR=iperf3; allowed: with GENERATOR=epoll only")
    if experiment.flows > MOST_IPERF3_FLOWS and not on_testbed(experiment, host):
        yield Error("flows/cc", f"makes iperf3's servers keep {IPERF3_STREAM_BYTES >> 10} KiB a flow in the lab's "
                    f"/run, a file system in memory of {cell.RUN_BYTES >> 20} MiB; allowed: {MOST_IPERF3_FLOWS} flows, "
                    "or GENERATOR=epoll")  # fmt: skip


def target(experiment: Experiment, host: Host) -> Iterator[Error]:
    """What a target cannot have. All of it follows from its row in controlplane/targets.py, so a new target needs no
    line here.
    """
    can, shared, who = _can(experiment), experiment.shared, f"TARGET={experiment.target}"
    in_virtual_time = experiment.clock == "virtual"
    if in_virtual_time and can.front_panel:
        yield Error("clock", f"needs a switch that is a program of this machine; {who} is a switch with cables "
                    "(capability front_panel: yes); allowed: real")  # fmt: skip
    if in_virtual_time and not can.exact_time and not can.front_panel and experiment.delay == NETEM:
        yield Error("delay", f"can replace the sender's queue (bufferscope_tc_at), which spaces the frames to {who} in "
                    "virtual time; allowed: switch")  # fmt: skip
    if can.front_panel and experiment.delay == "switch":
        yield Error("delay", f"needs a switch that delays; {who} is a switch with cables (capability links: no); "
                    "allowed: tc")  # fmt: skip
    for key, needs, what, allowed in (
        ("rtt_spread", shared.rtt_spread_ns and not shared.rtts_ns, "a delay", "0ns"),
        ("rtts", shared.rtts_ns, "a delay", "no RTTS"),
        ("access", shared.access_bps, "a link", "no ACCESS"),
    ):
        if needs and not can.links:
            yield Error(key, f"needs {what} for each flow; {who} has no links (capability links: no); allowed: "
                        f"{allowed}", shared.number)  # fmt: skip
    if experiment.traffic == OPEN_LOOP and (can.rate_unit != "bps" or not can.exact_depth):
        exact = "yes" if can.exact_depth else "no"
        yield Error("traffic", f"is compared with theory, which needs a rate in bit/s and exact depths; {who} lacks "
                    f"one of them (capabilities rate_unit: {can.rate_unit}, exact_depth: {exact}); allowed: "
                    "long")  # fmt: skip
    pps = Fraction(experiment.rate_bps, 8 * experiment.wire_bytes)
    if experiment.rate_pps and abs(experiment.rate_pps - pps) > MAX_RATE_ROUNDING * pps:
        least = units.show(8 * experiment.wire_bytes * LEAST_PPS, "rate")
        yield Error("rate", f"is {float(pps):.2f} packets/s of {experiment.wire_bytes} bytes; {who} takes whole "
                    f"packets/s only (capability rate_unit: pps); allowed: {least} ({LEAST_PPS} packets/s) and "
                    "more")  # fmt: skip


def testbed(experiment: Experiment, host: Host) -> Iterator[Error]:
    """What needs the lab of one machine."""
    if not on_testbed(experiment, host):
        return
    if experiment.clock == "virtual":
        yield Error("clock", "needs the lab of one machine; an inventory names other machines; allowed: real")
    if experiment.program:
        yield Error("traffic", "starts programs, which run only in the lab of one machine; an inventory names others; "
                    f"allowed: without {PROGRAM}")  # fmt: skip
    if paths.paths(experiment):
        yield Error("groups/rtt_spread", f"gives finite flows {ADDRESSES}; allowed: one RTT, no shared links")
    for key in ("loss", "jitter"):
        if getattr(experiment, key) and experiment.delay == NETEM and not _can(experiment).links:
            yield Error(key, "needs the soft switch, or another switch with our delay line behind it; allowed: "
                        "DELAY=switch, where the inventory has a delay line")  # fmt: skip


def simulator(experiment: Experiment, host: Host) -> Iterator[Error]:
    """What simulator/ lacks."""
    if not experiment.is_simulated:
        return
    simulated, shared = [kind for kind in TRAFFIC if kind not in (PROGRAM, OPEN_LOOP)], experiment.shared
    other = [kind for kind in experiment.kinds if kind not in simulated]
    not_simulated = f"has {' and '.join(other)} traffic, which is not simulated; allowed: {', '.join(simulated)}"
    at_departure = "marks at departure, which is not simulated; allowed: tail-drop, ecn, egress-threshold"
    for key, lacks, problem in (
        ("target", experiment.target != "soft", "is a switch that ns-3 does not simulate; allowed: soft"),
        ("traffic", other, not_simulated),
        ("mode", experiment.mode == EGRESS_ECN, at_departure),
        ("delay", experiment.delay == NETEM, "needs netem, which no simulated host has; allowed: switch"),
        ("loss", experiment.loss, "is not simulated; allowed: 0"),
        ("jitter", experiment.jitter, "is not simulated; allowed: 0ns"),
        ("buf", experiment.threshold_bytes, "is in bytes; the simulated queue compares packets; allowed: p, bdp, time"),
    ):
        if lacks:
            yield Error(key, f"{problem} with SWITCH=ns3")
    for key, has, problem in (
        ("start", shared.start_ns, "is not simulated; allowed: no START with SWITCH=ns3"),
        ("stop", shared.stop_ns, "is not simulated; allowed: no STOP with SWITCH=ns3"),
        ("ecn", shared.ecn, "sets Linux's TCP; ns-3 has its own; allowed: not with SWITCH=ns3"),
    ):
        if has:
            yield Error(key, problem, shared.number)


def kernel(experiment: Experiment, host: Host) -> Iterator[Error]:
    """What a kernel lacks, or keeps from programs without privileges; and parameters of its congestion controls."""
    is_other = on_testbed(experiment, host)
    if experiment.offloads and not is_other and (experiment.clock, experiment.switch) != ("virtual", "driver"):
        yield Error("offloads", "needs NICs: virtual ones (CLOCK=virtual, SWITCH=driver) or those of a testbed; "
                    "allowed: off")  # fmt: skip
    if experiment.delay == NETEM and not host.netem and not is_other:
        yield Error("delay", "needs netem, which this host's kernel lacks (CONFIG_NET_SCH_NETEM); allowed: switch")
    of_program, allowed = experiment.program and experiment.program.cc, host.for_programs
    if of_program and allowed is not None and of_program not in allowed and not is_other:
        yield Error("program_cc/cc", f"is {of_program}, which this machine keeps from programs without privileges "
                    f"({ALLOWED}); allowed: {', '.join(allowed)}, or CLOCK=virtual")  # fmt: skip
    used = list(dict.fromkeys(group.cc for group in experiment.with_settings if group.cc))
    unused = [name for name in experiment.cc_parameters or () if used and name.split(".")[0] not in used]
    if not experiment.cc_parameters:
        return
    if where := _without_ours(experiment.switch, is_other):
        yield Error("cc_parameters", f"sets modules of the virtual-time kernel; {where} has none; allowed: with "
                    "CLOCK=virtual in the lab")  # fmt: skip
    elif experiment.clock != "virtual":
        yield Error("cc_parameters", "would change all connections of this machine; allowed: with CLOCK=virtual only")
    elif unused:
        yield Error("cc_parameters", f"sets {unused[0]}, but no flow has that congestion control; allowed: parameters "
                    f"of {', '.join(used)}")  # fmt: skip


def link(experiment: Experiment, host: Host) -> Iterator[Error]:
    counted_ns, is_soft = _counted_ns(experiment), _can(experiment).links and not experiment.is_simulated
    if experiment.rate_changes and (not is_soft or on_testbed(experiment, host)):
        yield Error("rate", "changes, which needs the soft switch in the lab of one machine; allowed: one rate, or "
                    "neither TARGET, SWITCH=ns3 nor INVENTORY")  # fmt: skip
    last_ns = max((at_ns for at_ns, _ in experiment.rate_steps or ()), default=0)
    if last_ns and last_ns >= counted_ns:
        yield Error("rate", f"has a step at {units.show(last_ns, 'time')}, when the traffic has ended; allowed: times "
                    f"below WARMUP + DURATION, {units.show(counted_ns, 'time')}")  # fmt: skip
    if experiment.drop_cost_permille and not is_soft:
        yield Error("drop_cost", "cannot be set in this switch; allowed: with the soft switch only")
    if experiment.duration_ns < UTILIZATION_WINDOW_RTTS * experiment.rtt_ns:
        yield Error("duration", f"is too short; allowed: {UTILIZATION_WINDOW_RTTS} RTTs or more, the window of "
                    "utilization")  # fmt: skip
    if counted_ns > MAX_TRAFFIC_NS:
        yield Error("duration", "is too long; allowed: 82800s at most for WARMUP and DURATION together")


def _counted_ns(experiment: Experiment) -> int:
    """WARMUP and DURATION."""
    return experiment.warmup_ns + experiment.duration_ns


def queue(experiment: Experiment, host: Host) -> Iterator[Error]:
    packets, in_bytes = experiment.ecn_threshold_packets, experiment.ecn_threshold_bytes
    if packets and (in_bytes is None) != (experiment.threshold_bytes is None):
        yield Error("ecn_threshold", "and BUF are not in the same unit; allowed: both in bytes, or both in p, bdp or "
                    "time")  # fmt: skip
    elif packets and (in_bytes or packets) > (experiment.threshold_bytes or experiment.buffer_packets):
        yield Error("ecn_threshold", f"is more than BUF={experiment.buffer_given}; allowed: up to BUF, which is the "
                    "hard limit")  # fmt: skip
    if (room := demand.pool_bytes(experiment)) > demand.MAX_POOL_BYTES:
        yield Error("buf", f"makes the switch hold {demand.pool_packets(experiment)} packets, {room >> 20} MiB; "
                    f"allowed: {demand.MAX_POOL_BYTES >> 20} MiB for the buffer and the packets in flight, RATE x (RTT "
                    "+ RTT_SPREAD + JITTER)")  # fmt: skip


def ack_delay(experiment: Experiment, host: Host) -> Iterator[Error]:
    by_rtt = sorted((group.rtt_ns or experiment.rtt_ns, place) for place, group in enumerate(experiment.groups))
    for rtt_ns, group in ((rtt_ns, experiment.groups[place]) for rtt_ns, place in by_rtt):
        if group.ack_delay_ns is None:
            continue
        if experiment.delay == NETEM:
            yield Error("ack_delay", "needs a delay of its own in each direction; netem has one for both; allowed: "
                        "with DELAY=switch only", group.number)  # fmt: skip
        elif experiment.is_simulated:
            yield Error("ack_delay", "is not simulated; allowed: not with SWITCH=ns3", group.number)
        elif group.ack_delay_ns > rtt_ns:
            problem = f"is longer than the RTT of {units.show(rtt_ns, 'time')}; allowed: 0ns to RTT"
            yield Error("ack_delay", problem, group.number)


def times(experiment: Experiment, host: Host) -> Iterator[Error]:
    """START and STOP leave every flow time to send."""
    most_ns = _counted_ns(experiment)
    for group in [group for group in experiment.groups if group.times_ns]:
        begun_ns, stop_ns = group.start_ns or 0, most_ns if group.stop_ns is None else group.stop_ns
        begun_ns += (experiment.start_spread_ns or 0) if begun_ns and isinstance(group, Long) else 0
        begun, most = (units.show(ns, "time") for ns in (begun_ns, most_ns))
        if experiment.generator is None:
            yield Error("stop/start", f"has no meaning with TRAFFIC={OPEN_LOOP} alone; allowed: beside other traffic",
                        group.number)  # fmt: skip
        elif stop_ns > most_ns:
            yield Error("stop", f"is after the end of the traffic; allowed: up to WARMUP + DURATION, {most}",
                        group.number)  # fmt: skip
        elif group.stop_ns is not None and begun_ns >= stop_ns:
            yield Error("stop", f"is too early: flows begin until {begun} (START and START_SPREAD); allowed: up to "
                        f"{most}", group.number)  # fmt: skip
        elif begun_ns >= most_ns:
            yield Error("start", f"is too late: flows begin until {begun} (with START_SPREAD); allowed: less than "
                        f"{most}", group.number)  # fmt: skip


def pace_and_window(experiment: Experiment, host: Host) -> Iterator[Error]:
    in_real_time = experiment.clock == "real"
    for group in experiment.with_settings:
        for key, value in (("pacing", group.pacing), ("window", group.window_packets)):
            if not value:
                continue
            if on_testbed(experiment, host):
                yield Error(key, "is set only in the lab's kernels; allowed: not on a testbed", group.number)
            elif value == pacing.POISSON and in_real_time:
                yield Error(key, "needs the virtual-time kernel; allowed: with CLOCK=virtual only", group.number)
            elif key == "window" and in_real_time and host.bpf_lacks:
                yield Error(key, f"in real time needs {host.bpf_lacks}; allowed: with CLOCK=virtual", group.number)
            elif value in (pacing.POISSON, pacing.FQ) and experiment.is_simulated:
                yield Error(key, "needs Linux; allowed: off, linux, exact with SWITCH=ns3", group.number)
    used = {group.pacing for group in experiment.with_settings}
    if len(used - {None}) > 1:
        yield Error("groups", "has groups with different PACING, a setting of the whole host; allowed: one kind for "
                    "all groups that pace")  # fmt: skip
    elif used == {None, pacing.FQ}:
        yield Error("groups", "has groups without PACING=fq, but the sender's qdisc fq paces all flows; allowed: fq "
                    "for all groups")  # fmt: skip


def arrivals(experiment: Experiment, host: Host) -> Iterator[Error]:
    """Periodic arrivals are of datagrams of one size, and a round has room for each flow's packets."""
    groups: tuple[Finite | Datagrams, ...] = (*experiment.finite, *experiment.datagrams)
    for group in groups:
        if group.arrivals is None or not is_periodic(group.arrivals):
            continue
        if isinstance(group, Finite):
            yield Error("arrivals", f"spaces datagrams; allowed with TRAFFIC={','.join(_kinds(experiment, group))}: "
                        "poisson, cbr", group.number)  # fmt: skip
            continue
        if group.sizes != SIZES[0]:
            yield Error("sizes", f"has packets of several sizes or bursts; allowed with ARRIVALS={group.arrivals}: "
                        f"{SIZES[0]}", group.number)  # fmt: skip
        parts, widest = read_arrivals(group.arrivals), group.flows / group.load
        if parts and (parts.spacing_ppm or 0) > 1e6 * widest * (1 + 1e-6):
            yield Error("arrivals", "spaces a flow's packets too widely for LOAD: a round has no room for its packets; "
                        f"allowed: at most FLOWS / LOAD = {widest:.6g} packet times", group.number)  # fmt: skip


def _kinds(experiment: Experiment, group: Group) -> list[str]:
    """Those of all groups of one number."""
    used = {each.kind for each in experiment.groups if each.number == group.number}
    return [kind for kind in TRAFFIC if kind in used]


def access_links(experiment: Experiment, host: Host) -> Iterator[Error]:
    for group in experiment.tcp_groups:
        links = group.access_links
        if links and not group.access_bps:
            yield Error("access_links", "needs the links' rate; allowed: with ACCESS=25mbit or another rate",
                        group.number)  # fmt: skip
        if isinstance(group, Long):
            continue
        if group.access_bps and not links and LONG in _kinds(experiment, group):
            yield Error("access", "would be a link of each long flow, and finite flows share links; allowed: with "
                        "ACCESS_LINKS, with only long flows, or a file with groups", group.number)  # fmt: skip
        elif group.access_bps and not links:
            yield Error("access", "is the rate of links that finite flows share; their number is missing; allowed: "
                        f"with ACCESS_LINKS=1 to {MOST_ACCESS_LINKS}", group.number)  # fmt: skip
        classes = len(group.rtts_ns or ()) or (paths.SPREAD_CLASSES if group.rtt_spread_ns else 1)
        if group.servers and group.servers < (least := max(classes, links or 1)):
            yield Error("servers", f"leaves RTTs or access links without a path; allowed: {least} to {MOST_PATHS}, for "
                        f"{classes} RTTs and {links or 'no'} access links", group.number)  # fmt: skip
        if links and not group.servers and classes * links > MOST_PATHS:
            yield Error("access_links", f"and {classes} RTTs make {classes * links} paths; allowed: {MOST_PATHS}, or a "
                        "number of SERVERS that share RTTs and links", group.number)  # fmt: skip


def numbers(experiment: Experiment, host: Host) -> Iterator[Error]:
    """Flows, paths and links of all groups together."""
    if experiment.flows > MAX_FLOWS:
        yield Error("groups/flows", f"has {experiment.flows} flows; allowed: {MAX_FLOWS} in a run, long flows and "
                    "flows of datagrams together")  # fmt: skip
    lasts_ns = (experiment.start_spread_ns or 0) + _counted_ns(experiment)
    finite, several = experiment.finite, experiment.has_own_settings
    number = sum(group.flows((group.stop_ns or lasts_ns) - (group.start_ns or 0)) for group in finite)
    if number > MOST_TRANSFERS:
        of_one = "sizes" if finite[0].kind == FINITE else "users"
        key = "groups" if len({group.number for group in finite}) > 1 else of_one
        yield Error(key, f"makes about {number:,.0f} flows in the {lasts_ns / 1e9:g} s of traffic; allowed: "
                    f"{MOST_TRANSFERS:,} in a run")  # fmt: skip
    if several and (count := len(paths.paths(experiment))) > MOST_PATHS:
        yield Error("groups", f"makes {count} paths of finite flows (RTTs times access links); allowed: {MOST_PATHS}")
    if several and (count := len(paths.links_bps(experiment))) > MOST_ACCESS_LINKS:
        yield Error("groups", f"makes {count} access links; allowed: {MOST_ACCESS_LINKS}")


Rules = tuple[Callable[[Any, Host], Iterator[Error]], ...]
OF_PLACES: Rules = (beside_groups, keys_of_a_group)
# In the words of the whole spec TRAFFIC has the kinds of all groups.
OF_SPEC: Rules = (without_meaning, tcp, meaning_with_traffic)
OF_GROUPS: Rules = (
    meaning_with_traffic, sizes, cc_and_flows, rtts, addresses, user_programs, congestion_controls,
    own_congestion_controls,
)  # fmt: skip
OF_EXPERIMENT: Rules = (
    generator, ack_delay, arrivals, pace_and_window, times, access_links, kernel, simulator, link, target, testbed,
    queue, numbers,
)  # fmt: skip
