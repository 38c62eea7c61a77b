# SPDX-License-Identifier: MIT
"""Resolves the traffic of a spec, entry by entry (groups.py): long flows, finite flows, datagrams. Refuses keys that
have no meaning with a kind of traffic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from controlplane.policy import MARKING_MODES
from experiments.spec import ack_delay, pacing, paths, programs, tcp_options, transfers
from experiments.spec.groups import Entry
from experiments.spec.keys import ARRIVALS, KEYS, Spec
from experiments.spec.traffic import MAX_FLOWS
from experiments.spec.transfers import DEFAULT_LOAD, Drawn
from hosts.traffic.open_loop import BURSTS_FORM, SIZES, is_periodic, read_arrivals
from lib import units
from lib.keys import Wrong
from lib.quantities import TimeOrRtts
from model.groups import LONG, OPEN_LOOP, Datagrams, Finite, Long, Programs

DEFAULT_FLOWS = 16


@dataclass(frozen=True)
class Where:
    """The settings of the run that decide which keys its traffic can have, and the wire bytes of a full packet."""

    clock: str
    switch: str
    testbed: bool
    delay: str  # where the RTT comes from
    bpf_lacks: str  # a feature that BPF congestion controls and window bounds need and the kernel lacks; "" if none
    wire_bytes: int
    ack_delay_ns: int | None  # of groups without their own
    tcp: Mapping[str, Any] | None  # options of all TCP flows
    rtt_ns: int  # the run's
    start_spread_ns: int  # of long flows
    most_ns: int | None  # WARMUP + DURATION; None: a wrong key of the run leaves it unknown


def resolve(
    entries: list[Entry], generator: str | None, where: Where
) -> tuple[Long | Finite | Datagrams | Programs, ...]:
    """The groups of all entries. Calls each entry's `wrong` for values that are not possible."""
    result: list[Long | Finite | Datagrams | Programs] = []
    for entry in entries:
        _check(entry, generator)
        settings, times = _settings(entry, where), _times(entry, where, generator)
        of_entry = _long(entry, settings | times)
        if not entry.errors.keys() & {"access", "access_links"}:
            paths.refuse_access(entry.spec, entry.wrong)
        if not entry.errors.keys() & {"rtts", "access_links", "servers"}:
            paths.refuse(entry.spec, entry.given, entry.wrong)
        cc = of_entry[0].cc if len(of_entry) == 1 else one_cc(entry.spec)
        result += of_entry
        result += transfers.resolve(entry.spec, cc, where.wire_bytes, entry.wrong, settings | times)
        result += _datagrams(entry, where, times)
        if "traffic" not in entry.errors and (program := programs.resolve(entry.spec, cc, entry.wrong)):
            result.append(Programs.model_validate(program | settings))
    return tuple(result)


def _settings(entry: Entry, where: Where) -> dict[str, Any]:
    """The settings of the entry's TCP flows: field of Group -> value."""
    spec = entry.spec
    bounds = pacing.resolve(spec, entry.given, where.clock, where.switch, where.testbed, where.bpf_lacks, entry.wrong)
    least_ns, most_ns = entry.rtts_ns
    return {
        "number": entry.number,
        "rtt_ns": least_ns,
        "rtt_spread_ns": most_ns - least_ns,
        "rtts_ns": paths.rtts_ns(spec),
        "ack_delay_ns": _ack_delay_ns(entry, where),
        "access_bps": spec.access and spec.access.bps,
        "access_links": spec.access_links,
        "servers": spec.servers,
        **bounds,
        "ecn": _ecn(entry),
        **tcp_options.of_group(spec, where.tcp),
    }


def _ecn(entry: Entry) -> str | None:
    """The value of ECN; None if MODE implies the same."""
    spec = entry.spec
    if spec.ecn is None or (spec.ecn == "on") == (spec.mode in MARKING_MODES):
        return None
    if spec.switch == "ns3":
        entry.wrong("ecn", "sets Linux's TCP; ns-3 has its own; allowed: not with SWITCH=ns3")
    return spec.ecn


def _times(entry: Entry, where: Where, generator: str | None) -> dict[str, int]:
    """START and STOP as fields of Group. Refuses times that leave a flow no time to send."""
    spec, most_ns = entry.spec, where.most_ns
    times_ns = {"start_ns": spec.start.ns(where.rtt_ns)} if spec.start and spec.start.amount else {}
    times_ns |= {"stop_ns": spec.stop.ns(where.rtt_ns)} if spec.stop else {}
    if not times_ns or most_ns is None or entry.errors.keys() & {"start", "stop", "traffic"}:
        return {}
    begun_ns, key = times_ns.get("start_ns", 0), "stop" if spec.stop else "start"
    if begun_ns and LONG in transfers.kinds(spec.traffic):
        begun_ns += where.start_spread_ns
    begun, most = (units.show(ns, "time") for ns in (begun_ns, most_ns))
    if generator is None:  # the only traffic is a group of datagrams
        entry.wrong(key, f"has no meaning with TRAFFIC={OPEN_LOOP} alone; allowed: beside other traffic")
    elif times_ns.get("stop_ns", 0) > most_ns:
        entry.wrong("stop", f"is after the end of the traffic; allowed: up to WARMUP + DURATION, {most}")
    elif spec.stop and begun_ns >= times_ns["stop_ns"]:
        entry.wrong("stop", f"is too early: flows begin until {begun} (START and START_SPREAD); allowed: up to {most}")
    elif begun_ns >= most_ns:
        entry.wrong("start", f"is too late: flows begin until {begun} (with START_SPREAD); allowed: less than {most}")
    else:
        return times_ns
    return {}


def _ack_delay_ns(entry: Entry, where: Where) -> int | None:
    """ACK_DELAY in ns; None if it is not given."""
    if not entry.has_ack_delay or entry.errors.keys() & {"ack_delay", "rtt", "rtts"}:
        return where.ack_delay_ns
    return ack_delay.resolve(entry.spec, entry.rtts_ns[0], where.delay, entry.wrong)


def _long(entry: Entry, settings: Mapping[str, Any]) -> list[Long]:
    """The groups of long flows. If CC has one group without a number, FLOWS is its number of flows (default 16)."""
    spec, errors = entry.spec, entry.errors
    if LONG not in transfers.kinds(spec.traffic):
        return []
    given_groups = tuple(spec.cc)
    if len(given_groups) == 1 and given_groups[0].flows is None:
        return [Long(cc=given_groups[0].cc, flows=DEFAULT_FLOWS if spec.flows is None else spec.flows, **settings)]
    total = sum(group.flows or 0 for group in given_groups)
    if total > MAX_FLOWS:
        entry.wrong("cc", f"has {total} flows; allowed: 1 to {MAX_FLOWS}, as FLOWS")
    elif spec.flows is not None and spec.flows != total and not errors.keys() & {"cc", "flows"}:
        problem = f"is not the sum of CC={entry.given.get('cc')}, {total}; allowed: {total}, or no FLOWS at all"
        entry.wrong("flows", problem)
    return [Long(cc=group.cc, flows=group.flows or 0, **settings) for group in given_groups]


def _datagram_flows(entry: Entry) -> int:
    """Number of 5-tuples of open-loop traffic."""
    spec = entry.spec
    if spec.traffic == OPEN_LOOP and not entry.is_listed:
        return DEFAULT_FLOWS if spec.flows is None else spec.flows
    return 1 if spec.flows is None or LONG in transfers.kinds(spec.traffic) else spec.flows


def _datagrams(entry: Entry, where: Where, times: Mapping[str, Any]) -> list[Datagrams]:
    """The open-loop traffic of an entry."""
    spec = entry.spec
    if OPEN_LOOP not in transfers.kinds(spec.traffic):
        return []
    return [
        Datagrams(
            kind="open-loop",
            number=entry.number,
            ack_delay_ns=where.ack_delay_ns,
            flows=_datagram_flows(entry),
            load=float(DEFAULT_LOAD if spec.load is None else spec.load),
            sizes=spec.sizes if isinstance(spec.sizes, str) else SIZES[0],
            arrivals=spec.arrivals or ARRIVALS[0],
            **times,
        )
    ]


def _check_arrivals(entry: Entry) -> None:
    """Refuses periodic arrivals that finite flows, the sizes or the load make impossible."""
    spec, kinds = entry.spec, transfers.kinds(entry.spec.traffic)
    parts = read_arrivals(spec.arrivals)
    if parts is None or not is_periodic(str(spec.arrivals)) or entry.errors.keys() & {"arrivals", "traffic"}:
        return
    if OPEN_LOOP not in kinds:
        entry.wrong("arrivals", f"spaces datagrams; allowed with TRAFFIC={spec.traffic}: poisson, cbr")
        return
    if "sizes" not in entry.errors and spec.sizes not in (None, SIZES[0]):
        entry.wrong(
            "sizes", f"has packets of several sizes or bursts; allowed with ARRIVALS={spec.arrivals}: {SIZES[0]}"
        )
    if parts.spacing_ppm is None or entry.errors.keys() & {"load", "flows"}:
        return
    load = DEFAULT_LOAD if spec.load is None else Fraction(spec.load)
    widest = _datagram_flows(entry) / load
    if Fraction(parts.spacing_ppm, 10**6) > widest * (1 + Fraction(1, 10**6)):
        entry.wrong(
            "arrivals",
            f"spaces a flow's packets too widely for LOAD: a round has no room for its packets; allowed: at most FLOWS "
            f"/ LOAD = {float(widest):.6g} packet times",
        )


def _check(entry: Entry, generator: str | None) -> None:
    """Refuses keys and values that have no meaning with this kind of traffic."""
    spec, given, errors, wrong = entry.spec, entry.given, entry.errors, entry.wrong
    if "traffic" in errors:
        return
    refuse_keys(spec.traffic, given, wrong)
    _check_arrivals(entry)
    kinds, finite = transfers.kinds(spec.traffic), transfers.finite_kinds(spec.traffic)
    if OPEN_LOOP in kinds and "finite" in kinds:
        wrong(
            "traffic",
            "has two loads and two sizes; allowed: a file with groups, where each group has its own (docs/traffic.md)",
        )
    if "sizes" not in errors and isinstance(spec.sizes, Drawn) and not finite and OPEN_LOOP in kinds:
        wrong("sizes", f"gives sizes of flows; allowed with TRAFFIC={spec.traffic}: {', '.join((*SIZES, BURSTS_FORM))}")
    elif "sizes" not in errors and isinstance(spec.sizes, str) and OPEN_LOOP not in kinds:
        allowed = f"fixed:14p, {transfers.DEFAULT_SIZES}, ..."
        wrong("sizes", f"gives sizes of packets; allowed with TRAFFIC={spec.traffic}: {allowed}")
    if LONG not in kinds and finite and "cc" in given and "cc" not in errors:
        if any(group.flows for group in spec.cc):
            wrong("cc", f"gives numbers of long flows; TRAFFIC={spec.traffic} has none; allowed: a name, as in reno")
        elif spec.finite_cc and (spec.program_cc or transfers.PROGRAM not in transfers.kinds(spec.traffic)):
            others = "FINITE_CC sets" if transfers.PROGRAM not in kinds else "FINITE_CC and PROGRAM_CC set"
            wrong("cc", f"has no effect: {others} the congestion control of all flows; allowed: without CC")
    spread = spec.start_spread and spec.start_spread.amount
    if spread and generator != "epoll" and not errors.keys() & {"start_spread", "generator"}:
        wrong("start_spread", f"has no meaning with GENERATOR={generator}; allowed: with GENERATOR=epoll only")


def refuse_keys(traffic: str, given: Mapping[str, object], wrong: Wrong) -> None:
    """Refuses keys that have no meaning with this traffic, except words that switch nothing on, such as PACING=off."""
    for name in [name for name in KEYS if name in given]:
        row, value = KEYS[name], str(given[name]).strip().lower()
        is_off = row.read is None and value == row.default
        if row.kinds and not is_off and not set(row.kinds) & set(transfers.kinds(traffic)):
            wrong(name, f"has no meaning with TRAFFIC={traffic}; allowed: with TRAFFIC={' or '.join(row.kinds)} only")


def one_cc(spec: Spec) -> str | None:
    """The congestion control of CC, if it names a single one."""
    return spec.cc[0].cc if len(spec.cc) == 1 else None


def start_spread_ns(given: TimeOrRtts | None, generator: str | None, rtt_ns: int) -> int:
    """START_SPREAD in ns; by default one RTT with GENERATOR=epoll, else 0. If flows with equal RTTs all began in the
    same ns, they would behave the same in every run in virtual time: another SEED would give the same sample.
    """
    if given is None:
        return rtt_ns if generator == "epoll" else 0
    return given.ns(rtt_ns)
