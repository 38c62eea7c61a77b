# SPDX-License-Identifier: MIT
"""Makes an experiment of a user's words: defaults, SI units, the groups of the traffic. rules.py judges the result.

`resolve` reports all wrong keys at once, so that a user corrects a spec once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from controlplane.policy import EGRESS_MODES, MARKING_MODES
from controlplane.targets import TARGETS
from experiments.machine.host import Host
from experiments.spec import link_changes, linux_queue, offloads, own_p4, programs, rules, tcp_options, transfers, words
from experiments.spec.keys import ARRIVALS, validate
from experiments.spec.transfers import LONG, OPEN_LOOP, PROGRAM, TRAFFIC
from experiments.spec.words import Errors, Words
from hosts.traffic.open_loop import SIZES
from lib import units
from lib.errors import SpecError
from lib.frames import wire_bytes_of_ip
from lib.quantities import Buffer, TimeOrRtts
from model.experiment import SPEC_VERSION, Experiment
from model.groups import AnyGroup, Datagrams, Finite, Long, Programs
from model.record import MOST

MOST_NAME_LETTERS = 64  # as NAME may have (keys.py)
DEFAULT_FLOWS = 16
# Most published measurements use iperf3. In virtual time iperf3 cannot run: it spins while it waits.
DEFAULT_GENERATOR = {"real": "iperf3", "virtual": "epoll"}


def resolve(given: Mapping[str, object], host: Host) -> Experiment:
    """The experiment that `given` (key -> value, keys in lower case) asks for. Raises SpecError with one error for each
    wrong key; a wrong spec_version is reported alone.
    """
    spec, found = validate(given)
    spec = own_p4.of_mode(spec, given)
    run = Words(spec, given)
    errors = Errors(run, found)
    groups = words.groups(run, errors)
    used = {kind for group in groups for kind in group.kinds}
    traffic = ",".join(kind for kind in TRAFFIC if kind in used)
    run = replace(run, spec=spec.model_copy(update={"traffic": traffic}))
    experiment = _experiment(run, groups, host)
    rules.check(run, groups, experiment, host, errors)
    if errors.found:
        raise SpecError(errors.in_order())
    return experiment


def _experiment(run: Words, groups: list[Words], host: Host) -> Experiment:
    spec, clock, can = run.spec, run.clock(host), TARGETS[run.spec.target].capabilities
    testbed, switch = rules.on_testbed(run, host), spec.switch
    rate_bps, changes = link_changes.resolve(spec.rate, spec.mtu)
    bdp_bps = spec.bdp_of.bps if spec.bdp_of and changes else rate_bps
    wire_bytes, tcp = wire_bytes_of_ip(spec.mtu), tcp_options.resolve(spec, switch)
    rtt_ns = min(min(group.rtts_ns) for group in [each for each in groups if each.kinds != [OPEN_LOOP]] or groups)
    traffic = tuple(each for group in groups for each in _groups(group, rtt_ns, rate_bps, wire_bytes, tcp))
    generator = _generator(run, groups, clock)
    spread_ns = 0
    if LONG in run.kinds:
        spread_ns = _ns(spec.start_spread, rtt_ns) if spec.start_spread else rtt_ns if generator == "epoll" else 0
    counts_from_the_start = run.kinds == [PROGRAM] and "warmup" not in run.given
    bdp = Fraction(bdp_bps * rtt_ns, 8 * 10**9 * wire_bytes)

    def threshold(of: Buffer) -> tuple[int, int | None]:
        packets, in_bytes = of.threshold(bdp, bdp_bps, wire_bytes, spec.mtu)
        return min(packets, MOST - 1), in_bytes and min(in_bytes, MOST - 1)

    buffer_packets, threshold_bytes = threshold(spec.buf)
    buffer_given = spec.buf.text
    if spec.queue:  # with the packet on the link
        buffer_packets, threshold_bytes = linux_queue.most_packets(spec.queue, spec.mtu) + 1, None
        buffer_given = f"{buffer_packets}p"
    # Half of the buffer: flows in steady state then see marks, not drops at the hard limit, and half of the buffer
    # absorbs the bursts of flows that have not seen a mark yet.
    half = max(1, buffer_packets // 2), threshold_bytes and max(1, threshold_bytes // 2)
    ecn = threshold(spec.ecn_threshold) if spec.ecn_threshold else half
    drop_cost = spec.drop_cost if spec.mode in EGRESS_MODES or spec.p4 else None
    sources = {each.source for group in groups for each in group.spec.cc if each.source}
    return Experiment(
        spec_version=SPEC_VERSION,
        name=spec.name or _name(traffic),
        target=spec.target,
        clock=clock,
        switch=switch or ("driver" if clock == "virtual" and can.exact_time else "process"),
        generator=generator,
        # In the lab, links of the target or of a delay line have the RTT, as may a delay line of a testbed.
        delay=spec.delay or ("tc" if testbed and not can.links else "switch"),
        mode=spec.mode,
        groups=traffic,
        rate_bps=rate_bps,
        rate_pps=units.nearest(Fraction(rate_bps, 8 * wire_bytes)) if can.rate_unit == "pps" else None,
        rtt_ns=rtt_ns,
        mtu_bytes=spec.mtu,
        wire_bytes=wire_bytes,
        bdp_packets=max(1, units.nearest(bdp)),
        buffer_given=buffer_given,
        buffer_packets=buffer_packets,
        threshold_bytes=threshold_bytes,
        ecn_threshold_packets=ecn[0] if spec.mode == "ecn" else None,
        ecn_threshold_bytes=ecn[1] if spec.mode == "ecn" else None,
        duration_ns=max(1, _ns(spec.duration, rtt_ns)),
        warmup_ns=0 if counts_from_the_start else _ns(spec.warmup, rtt_ns),
        start_spread_ns=spread_ns,
        seed=spec.seed,
        reps=spec.reps,
        tcp=tcp,
        offloads=offloads.resolve(spec, testbed, link_changes.fastest_bps(spec.rate)),
        congestion_sources=tuple(sorted(sources, key=lambda source: source.name)),
        cc_parameters=spec.cc_parameters,
        drop_cost_permille=None if drop_cost is None else int(drop_cost * 1000) or None,
        **changes,
        bdp_rate_bps=None if bdp_bps == rate_bps else bdp_bps,
        queue=spec.queue,
        p4=own_p4.resolve(spec),
        loss=spec.loss,
        jitter=spec.jitter,
        taps=True if spec.taps else None,
    )


def _ns(time: TimeOrRtts, rtt_ns: int) -> int:
    return min(time.ns(rtt_ns), MOST - 1)  # a record has no larger number; the rules refuse smaller ones


def _generator(run: Words, groups: list[Words], clock: str) -> str | None:
    """The program that sends TCP flows: iperf3 or epoll; None without TCP flows of ours."""
    if run.kinds == [PROGRAM] or (run.kinds == [OPEN_LOOP] and len(groups) == 1):
        return None
    timed = run.spec.start or run.spec.stop or isinstance(run.spec.rate, link_changes.ChangingRate)
    more = timed or run.kinds != [LONG] or run.spec.groups
    return run.spec.generator or ("epoll" if more else DEFAULT_GENERATOR[clock])


def _groups(
    group: Words, rtt_ns: int, rate_bps: int, wire_bytes: int, tcp: Mapping[str, Any] | None
) -> Iterator[AnyGroup]:
    """The groups of these words, each with all its settings."""
    spec, rtts_ns = group.spec, group.rtts_ns
    common: dict[str, Any] = {"number": group.number or 0, "ack_delay_ns": spec.ack_delay and spec.ack_delay.ns}
    times: dict[str, Any] = {
        "start_ns": (spec.start and _ns(spec.start, rtt_ns)) or None,
        "stop_ns": spec.stop and _ns(spec.stop, rtt_ns),
    }
    settings = common | {
        "rtt_ns": min(rtts_ns),
        "rtt_spread_ns": max(rtts_ns) - min(rtts_ns),
        "rtts_ns": spec.rtts and rtts_ns,
        "access_bps": spec.access and spec.access.bps,
        "access_links": spec.access_links,
        "servers": spec.servers,
        "pacing": None if spec.pacing == "off" else spec.pacing,
        "window_packets": spec.window and spec.window.base_units,
        "ecn": spec.ecn if spec.ecn and (spec.ecn == "on") != (spec.mode in MARKING_MODES) else None,
        **tcp_options.of_group(spec, tcp),
    }
    if LONG in group.kinds:
        for each in spec.cc:
            flows = (DEFAULT_FLOWS if spec.flows is None else spec.flows) if each.flows is None else each.flows
            yield Long(cc=each.cc, flows=flows, **settings, **times)
    for kind in group.finite_kinds:
        cc = spec.finite_cc or group.cc or "cubic"
        yield Finite(cc=cc, **transfers.resolve(spec, kind, rate_bps, wire_bytes), **settings, **times)
    if OPEN_LOOP in group.kinds:
        beside = group.number is not None or len(group.kinds) > 1
        flows = 1 if beside else DEFAULT_FLOWS
        yield Datagrams(
            kind="open-loop",
            flows=flows if spec.flows is None or LONG in group.kinds else spec.flows,
            load=float(transfers.DEFAULT_LOAD if spec.load is None else spec.load),
            sizes=spec.sizes if isinstance(spec.sizes, str) else SIZES[0],
            arrivals=spec.arrivals or ARRIVALS[0],
            **common,
            **times,
        )
    if PROGRAM in group.kinds:
        yield Programs.model_validate(programs.resolve(spec, group.cc) | settings)


def _name(traffic: tuple[AnyGroup, ...]) -> str:
    words = [f"{group.cc}{group.flows}" for group in traffic if isinstance(group, Long)]
    words += [f"{group.kind}-{group.cc}" for group in traffic if isinstance(group, Finite)]
    words += [f"open-loop-{group.sizes.replace(':', '-')}" for group in traffic if isinstance(group, Datagrams)]
    words += [group.kind for group in traffic if isinstance(group, Programs)]
    return "-".join(words)[:MOST_NAME_LETTERS].rstrip("-")
