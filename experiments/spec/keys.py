# SPDX-License-Identifier: MIT
"""The parameters of an experiment as a user gives them, each checked by itself. Rules between keys are in rules.py.

The same keys come from `KEY=VALUE` words (make, any case), long options (`--rtt-spread 2ms`) and YAML files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from controlplane.policy import WATCHED_MODES
from controlplane.targets import RUN_TARGETS
from experiments.spec import congestion, linux_queue, own_p4, transfers
from experiments.spec.cc_parameters import read_parameters
from experiments.spec.link_changes import STEADY, read_jitter, read_loss, read_rate
from experiments.spec.offloads import OffloadKeys
from experiments.spec.own_program import OwnProgramKeys
from experiments.spec.pacing import PacingKeys
from experiments.spec.programs import ProgramKeys
from experiments.spec.tcp_options import TcpKeys
from experiments.spec.traffic import MAX_FLOWS
from experiments.spec.transfers import CLOSED_LOOP, FINITE, KINDS, LONG, OPEN_LOOP, PROGRAM, TCP, TRAFFIC, read_traffic
from hosts.traffic.draw_words import Drawn, read_distribution
from hosts.traffic.open_loop import (
    ARRIVALS,
    ARRIVALS_FORM,
    BURSTS_FORM,
    MOST_FLOW_PACKETS,
    SIZES,
    is_sizes,
    read_arrivals,
)
from hosts.traffic.transfers import MOST_USERS, PATH_OF, THINK_FROM
from lib import strict_yaml
from lib.errors import BadValue, SpecError
from lib.keys import BOTH, GROUP, SWEEP, Keys, field, flag, parse, table
from lib.places import shipped
from lib.quantities import Buffer, Duration, Rate, Time, TimeOrRtts
from lib.values import SIX_DECIMALS, number, whole_number
from model.experiment import SPEC_VERSION, Jitter, Loss

MOST_REPS, MOST_SEED = 1000, 2**32 - 1
MOST_GROUPS = 64
GENERATORS = ("iperf3", "epoll")


class GivenGroup(NamedTuple):
    """A group as CC gives it. `flows` is None if FLOWS gives the number. `source`: a user's own algorithm."""

    cc: str
    flows: int | None
    source: congestion.Source | None


def _groups(value: object) -> tuple[GivenGroup, ...]:
    form = "one congestion control (cubic, ./mycc.c), or several with their flows (cubic:8,bbr:8)"
    words = [word.strip() for word in value.split(",")] if isinstance(value, str) else []
    groups = []
    for word in words:
        match = re.fullmatch(r"(.+?)(?::([0-9]{1,9}))?", word)
        given = match[1] if match else ""
        source = congestion.read(given) if congestion.is_path(given) else None
        name = source.name if source else given.lower()
        if not match or not congestion.NAME.fullmatch(name):
            raise ValueError(f"cannot be read at {word!r}; allowed: {form}" if word else f"is empty; allowed: {form}")
        groups.append(GivenGroup(name, int(match[2]) if match[2] else None, source))
    if not groups:
        raise ValueError(f"is not text; allowed: {form}")
    if len(groups) > 1 and any(group.flows is None for group in groups):
        raise ValueError("names several without a number of flows for each; allowed: cubic:8,bbr:8")
    if any(group.flows == 0 for group in groups):
        raise ValueError("has a group of zero flows; allowed: 1 or more of each, as in cubic:8,bbr:8")
    names = [group.cc for group in groups]
    if len(set(names)) < len(names):
        raise ValueError("names a congestion control twice; allowed: each once, with its flows")
    return tuple(groups)


def _listed(value: object) -> tuple[dict[str, str], ...]:
    """The groups of a file, each a mapping of text. words.py reads their keys."""
    form = "allowed: only in a file (SPEC=...), a list of lines such as `- {cc: cubic, flows: 20, rtt: 20ms}`"
    if not isinstance(value, list) or not value:
        raise ValueError(f"is not a list of groups; {form}")
    if len(value) > MOST_GROUPS:
        raise ValueError(f"has {len(value)} groups; allowed: 1 to {MOST_GROUPS}")
    for place, group in enumerate(value):
        if not isinstance(group, dict) or not group or not all(isinstance(text, str) for text in group.values()):
            raise ValueError(f"is not a mapping of keys to single values at groups[{place}]; {form}")
    return tuple(dict(group) for group in value)


def _sizes(value: object) -> str | Drawn:
    """SIZES: a word for open-loop packets, a distribution for finite flows."""
    if str(value).startswith("bursts") and not is_sizes(value):
        raise ValueError(
            f"is not a length of flows that send bursts; allowed: bursts:1p to bursts:{MOST_FLOW_PACKETS}p"
        )
    return str(value) if is_sizes(value) else read_distribution("bytes", "packets")(value)


def _arrivals(value: object) -> str:
    if read_arrivals(value) is None:
        raise ValueError(f"is not a kind of arrivals; allowed: {', '.join((*ARRIVALS, ARRIVALS_FORM))}")
    return str(value)


def _cc(value: object) -> str:
    if isinstance(value, str) and congestion.is_path(value):
        raise ValueError(
            "is a file; allowed: a name, as in cubic, or the file as CC, which finite flows have without FINITE_CC"
        )
    return congestion.read_name(value)


def _name(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", value):
        raise ValueError(
            "cannot name a directory; allowed: 1 to 64 letters, digits, '.', '_' and '-', the first a letter or digit"
        )
    return value


def _version(value: object) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,9}", str(value)) or int(str(value)) < 1:
        raise ValueError(f"is not a version; allowed: 1 to {SPEC_VERSION}")
    if int(str(value)) > SPEC_VERSION:
        raise ValueError(f"is newer than this bufferscope, which reads up to {SPEC_VERSION}: update bufferscope")
    return int(str(value))


_RTT_WHY = "below, the switch's own lateness is larger"
_MTU_WHY = "bytes; every IPv4 host must accept 576, and jumbo frames end at 9000"
_RTT = Time.within("100us", "10s", _RTT_WHY)
_DELAY = Time.within("0ns", "10s")
_UP_TO_AN_HOUR = TimeOrRtts.within("0ns", "3600s")
_UP_TO_A_DAY = TimeOrRtts.within("0ns", "86400s")


class RunKeys(Keys):
    """The keys of link, queue, traffic and run."""

    # fmt: off
    cc: tuple[GivenGroup, ...] = field(
        "congestion control of the flows (make cc lists them), or a file of your own, ./mycc.c; or, for long flows "
        "only, a mix with the number of flows of each: cubic:8,bbr:8",
        _groups, "cubic", values=("cubic", "reno", "bbr", "dctcp"), scope=GROUP, kinds=(*TCP, PROGRAM))
    cc_parameters: dict[str, str] | None = field(
        "with CLOCK=virtual: parameters of congestion controls (make cc lists them), "
        "cubic.beta=800,dctcp.dctcp_shift_g=5", read_parameters)
    flows: int | None = field(
        "number of long flows; with open-loop traffic, of 5-tuples (default 16; 1 for open-loop traffic beside other "
        "traffic; if CC is a mix, the sum of its numbers)",
        whole_number(1, MAX_FLOWS, "as many client ports are reserved"), scope=GROUP, kinds=(LONG, OPEN_LOOP))
    rate: Rate = field(
        "rate of the bottleneck link: kbit, mbit, gbit, or K, M, G; or a rate that changes, with times since the start "
        "of WARMUP: 200mbit,10s:50mbit,20s:200mbit (0kbit is an outage), or trace:FILE (CSV or Mahimahi; "
        "docs/changing-links.md)",
        read_rate, "200mbit")
    bdp_of: Rate | None = field(
        "with a RATE that changes: the rate by which BDPs and times of BUF and ECN_THRESHOLD become packets (default: "
        "the first rate; of a trace of Mahimahi the mean)", STEADY)
    rtt: Time = field("round-trip time without queueing: us, ms, s", _RTT, "10ms", scope=BOTH)
    rtt_spread: Time = field(
        "flows get 0 to this much more RTT, in even steps that SEED deals to the flows (16 for finite flows)",
        _DELAY, "0ns", scope=GROUP, kinds=TCP)
    rtts: tuple[Time, ...] | None = field(
        "the RTT of each class of flows, 30ms,50ms,120ms, instead of RTT and RTT_SPREAD; SEED deals the flows to the "
        "classes evenly. The least RTT is the unit of BUF, DURATION and WARMUP",
        transfers.read_rtts(_RTT), scope=GROUP, kinds=TCP)
    ack_delay: Time | None = field(
        "propagation delay of the ACK direction; the data direction has the rest of RTT: 0ns to RTT (default half of "
        "RTT each)", _DELAY, scope=BOTH)
    access: Rate | None = field(
        "rate of each long flow's own link before the bottleneck, data direction: 5mbit; with ACCESS_LINKS, the rate "
        "of each link that flows share (default: no such link, a flow sends as fast as its host can)",
        STEADY, scope=GROUP, kinds=TCP)
    access_links: int | None = field(
        "number of links before the bottleneck; each has the rate ACCESS, and several flows share it",
        whole_number(1, transfers.MOST_ACCESS_LINKS), scope=GROUP, kinds=TCP)
    servers: int | None = field(
        "number of paths of finite flows: path k has link k mod ACCESS_LINKS and RTT k mod the number of RTTs "
        "(default: a path for each pair of link and RTT)",
        whole_number(1, transfers.MOST_PATHS), scope=GROUP, kinds=KINDS)
    buf: Buffer = field(
        "buffer of the bottleneck: 1bdp, 166p (packets), 300kB (frames of MTU + 14 bytes; k is 1000), 250us",
        default="1bdp")
    loss: Loss | None = field(
        "random loss of packets behind the bottleneck's queue: 0.001, or bursts:P:R[:BAD[:GOOD]] (Gilbert-Elliott: the "
        "probabilities to leave the good and the bad state after a packet, and to lose a packet in the bad (1) and the "
        "good state (0))", read_loss, values=("0.001", "bursts:0.001:0.2"))
    jitter: Jitter | None = field(
        "random delay of packets behind the bottleneck's queue, without reordering: 2ms (uniform from 0 to 2 ms), or "
        "normal:2ms (mean 1 ms, cut off at 0 and 2 ms, which are three standard deviations away)", read_jitter,
        values=("2ms", "normal:2ms"))
    mtu: int = field("largest IP packet in bytes, 576 to 9000", whole_number(576, 9000, _MTU_WHY), "1500")
    duration: Duration = field("measured time, after WARMUP: seconds (20s) or RTTs (1000rtt)", default="1000rtt")
    # Covers slow start with its losses, and most of the first sawtooth in the slowest case of the defaults: the window
    # of one Reno flow with one BDP of buffer grows from 163 to 326 packets in about 245 base RTTs.
    warmup: TimeOrRtts = field(
        "traffic before the measurement, which no result counts: s or rtt", _UP_TO_AN_HOUR, "200rtt")
    mode: str = field(
        "what a full queue does: tail-drop, ecn (marks from ECN_THRESHOLD, drops at BUF), egress-threshold (drops at "
        "departure), egress-ecn (at departure, marks if BUF or more packets stay behind; drops packets that are not "
        "ECN-capable), or an AQM of ours in P4 (docs/aqm-shelf.md), which is the same as P4=NAME: "
        f"{', '.join(own_p4.SHELF)}", default="tail-drop", values=(*WATCHED_MODES, *own_p4.SHELF))
    queue: str | None = field(
        "with CLOCK=virtual: a Linux qdisc instead of our own queue, with tc's arguments (docs/linux-queues.md): "
        "linux:codel target 5ms, linux:pfifo limit 100. It replaces BUF and MODE",
        linux_queue.read, values=tuple(f"{linux_queue.PREFIX}{name}" for name in linux_queue.LIMITS))
    drop_cost: Fraction | None = field(
        "with MODE=egress-threshold or egress-ecn, or P4: share of its transmission time that a packet dropped at "
        "departure takes from the link, 0 to 1, at most three decimals (default 0; a packet dropped on arrival takes "
        "none)",
        number("0", "1", decimals=3))
    ecn_threshold: Buffer | None = field(
        "with MODE=ecn: queue length from which packets are marked (default half of BUF)")
    ecn: str | None = field(
        "whether TCP asks for ECN: on, off (default on with MODE=ecn and egress-ecn only)",
        values=("off", "on"), scope=BOTH, kinds=(*TCP, PROGRAM))
    traffic: str = field(
        "long (TCP flows that last), finite (TCP flows that come at drawn times), closed-loop (users that send a flow, "
        "think, send again), program (SERVER and CLIENT), open-loop (UDP, sent at drawn times), or several: "
        "long,finite", read_traffic, LONG, values=TRAFFIC, scope=GROUP)
    groups: tuple[dict[str, str], ...] | None = field(
        "only in a file: a list of groups, each with traffic, cc, flows, rtt, window, load, ... of its own "
        "(docs/traffic.md)", _listed)
    generator: str | None = field(
        "what sends: iperf3 (whole seconds; default for long flows alone with CLOCK=real), or epoll (our own, exact to "
        "the ns; else the default)", values=GENERATORS, kinds=TCP)
    start_spread: TimeOrRtts | None = field(
        "with GENERATOR=epoll: long flows begin within this time, each at a time that SEED draws: s or rtt (default "
        "1rtt)", _UP_TO_AN_HOUR, kinds=(LONG,))
    start: TimeOrRtts | None = field(
        "with GENERATOR=epoll: when flows begin (long flows: within START_SPREAD from then), counted from the start of "
        "WARMUP: s or rtt (default: with the traffic)", _UP_TO_A_DAY, scope=GROUP, kinds=(*TCP, OPEN_LOOP))
    stop: TimeOrRtts | None = field(
        "with GENERATOR=epoll: when long flows and datagrams end, and from when on no finite flow begins, counted as "
        "START: s or rtt, up to WARMUP + DURATION (default: the end of the traffic)", _UP_TO_A_DAY, scope=GROUP,
        kinds=(*TCP, OPEN_LOOP))
    load: Fraction | None = field(
        "of finite or open-loop traffic: share of RATE that is offered, in bits on the wire (default 0.8)",
        number("0.001", "2", decimals=SIX_DECIMALS), scope=GROUP, kinds=(FINITE, OPEN_LOOP))
    sizes: str | Drawn | None = field(
        "of finite flows: fixed:14p, exponential:80kB, pareto:80kB:1.5 (mean, shape; the default), lognormal:80kB:2, "
        "bimodal:2p:62p:0.1, file:PATH (lines of bytes and cumulative probability); of open-loop packets: fixed (MTU; "
        "the default), exponential, bimodal, bursts:14p (packets of the MTU, in the slow-start bursts of a flow of 14 "
        "packets: 2, 4, 8)", _sizes, values=(*SIZES, BURSTS_FORM), scope=GROUP, kinds=(*KINDS, OPEN_LOOP))
    arrivals: str | None = field(
        "of finite or open-loop traffic: poisson or cbr (default poisson); of open-loop packets: periodic (the packets "
        "of each flow are evenly spaced; SEED draws the flow's phase), periodic:64p:2.5 (64 packets a round, 2.5 "
        "packet times apart), jittered:64p (evenly spaced, with a new phase each round)",
        _arrivals, values=(*ARRIVALS, ARRIVALS_FORM), scope=GROUP, kinds=(FINITE, OPEN_LOOP))
    finite_cc: str | None = field("congestion control of finite flows (default: CC)", _cc, scope=GROUP, kinds=KINDS)
    users: int | None = field(
        "with TRAFFIC=closed-loop: number of users (default 100)",
        whole_number(1, MOST_USERS), scope=GROUP, kinds=(CLOSED_LOOP,))
    think: Drawn | None = field(
        "with TRAFFIC=closed-loop: think time, exponential:1s (the default), fixed:200ms, pareto:1s:1.5, ...",
        read_distribution("time"), scope=GROUP, kinds=(CLOSED_LOOP,))
    think_from: str | None = field(
        "with TRAFFIC=closed-loop: a user thinks from the end of the previous flow (end, the default), or from its "
        "start (start)", values=THINK_FROM, scope=GROUP, kinds=(CLOSED_LOOP,))
    path_of: str | None = field(
        "with TRAFFIC=closed-loop: all flows of a user have one path (user, the default), or each flow draws one "
        "(transfer)", values=PATH_OF, scope=GROUP, kinds=(CLOSED_LOOP,))
    delay: str | None = field(
        "which element adds the RTT: switch (the soft switch itself, or a delay line behind a switch that cannot "
        "delay), or tc (netem on the receiver); default switch, on a testbed with another switch tc",
        values=("switch", "tc"))
    taps: bool = flag(
        "1 captures the headers of all packets of both directions before and behind the queue, at the soft switch's "
        "exact times (make export FORMAT=pcap)")
    reps: int = field(
        "repetitions, one after the other (CLOCK=virtual: as many at once as there are free processors)",
        whole_number(1, MOST_REPS), "1", scope=SWEEP)
    seed: int = field(
        "decides every random draw: delays, ports, paths, starts, arrivals, sizes, think times; each repetition draws "
        "anew", whole_number(0, MOST_SEED), "1", scope=SWEEP)
    name: str | None = field(
        "names the directory in results/ (default: from the traffic, such as cubic16)", _name, scope=SWEEP)
    target: str = field(
        "what runs the P4 program: soft, bmv2 (simple_switch), tofino (on a testbed); see docs/target-*.md",
        default=RUN_TARGETS[0], values=RUN_TARGETS)
    clock: str | None = field(
        "real, on this machine's own kernel or a testbed's machines (the default for root, on a testbed and for other "
        "targets than soft), or virtual (docs/virtual-time.md)", values=("real", "virtual"))
    switch: str | None = field(
        "how the soft switch runs: process (default with CLOCK=real), or driver (a network driver of the virtual-time "
        "kernel; default with CLOCK=virtual); ns3: switch, hosts and TCP simulated by ns-3, a second opinion "
        "(simulator/README.md)", values=("process", "driver", "ns3"))
    spec_version: int = field("the form of the spec; a newer form is refused", _version, str(SPEC_VERSION), scope=SWEEP)
    # fmt: on


class Spec(ProgramKeys, PacingKeys, OffloadKeys, TcpKeys, OwnProgramKeys, RunKeys):
    """The parameters as given, read but not resolved. The defaults are those of `make experiment`."""

    @classmethod
    def unknown_key(cls, key: str) -> str:
        if key.lower() in ("kernel_package", "kernel_source"):
            return f"is not a parameter of an experiment; choose the kernel beforehand: make kernel {key.upper()}=..."
        return super().unknown_key(key)


KEYS = table(Spec)


def validate(given: Mapping[str, object]) -> tuple[Spec, dict[str, BadValue]]:
    """The spec, and the errors by key. A wrong key gets its default, so that the other keys can be checked. Raises
    SpecError for a wrong spec_version: in a newer version the other keys may have another meaning.
    """
    spec, errors = parse(Spec, given)
    if "spec_version" in errors:
        raise SpecError([errors["spec_version"]])
    return spec or Spec(), errors


def load_yaml(path: Path) -> dict[str, object]:
    """Key -> value of a spec file. Values are text, keys are in lower case. Raises SpecError if the file is no spec."""

    def refuse(problem: object) -> SpecError:
        return SpecError([BadValue("spec file", None, str(problem), str(path))])

    try:
        content = strict_yaml.load(shipped(path), str.lower)
    except OSError as error:
        raise refuse(f"cannot be read: {error.strerror}; give the path of a spec, as in experiments/specs/") from None
    except strict_yaml.FormError as error:
        raise refuse(error) from None
    if content is None:
        raise refuse("is not a mapping of parameters; allowed: lines such as `rtt: 10ms`")
    return content
