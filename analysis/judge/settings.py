# SPDX-License-Identifier: MIT
"""Checks that the lab was the one that spec.yaml asks for: its clock and kind of switch, the settings that the switch
reports, and the policy and link behaviour in each postcard. All checks are exact, because a run with another rate or
limit is another experiment; only a chip may round its rate (MAX_ROUNDED_RATE).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from analysis.arithmetic.counted import Counted
from analysis.measure.access_links import access_reasons
from analysis.read.columns import parts
from analysis.read.documents import Port, total
from analysis.read.load import Run
from analysis.read.postcards import misspaced
from analysis.read.raw import Columns
from analysis.read.target_limits import rules
from controlplane.policy import EGRESS_MODES
from controlplane.threshold import Conversion, convert
from lib.units import parse
from model.experiment import SOFT, Experiment
from wire import wire

CARD = wire.POSTCARD.const
MAX_ROUNDED_RATE = 1 / 256  # a chip rounds rates to mantissa and exponent (controlplane/tofino_queues.py)
POLICY_OF_MODE = {
    "tail-drop": "POLICY_TAIL_DROP", "ecn": "POLICY_ECN", **dict.fromkeys(EGRESS_MODES, "POLICY_EGRESS_THRESHOLD"),
}  # fmt: skip


def settings_reasons(run: Run, queue: Columns, port: int | None, complete: bool) -> list[str]:
    """One line for each deviation from spec.yaml. `complete`: no postcard is missing, so departures are checkable."""
    source = run.experiment.imported
    is_known = not run.experiment.unknown_columns & {"policy", "depth_packets"}
    has_policy = is_known and not run.experiment.is_watched_by_core
    return [
        *(() if source else _lab_reasons(run)),
        *_switch_reasons(run, port),
        *(unit_reasons(queue) if source is None or source.cell_bytes is None else ()),
        *(_threshold_reasons(run, queue) if has_policy else ()),
        *access_reasons(run, queue),
        *(_verdict_reasons(run, queue) if has_policy and rules(run).drops_tell else ()),
        *(_spacing_reasons(run, queue) if complete and rules(run).exact_time else ()),
    ]


def _lab_reasons(run: Run) -> list[str]:
    """Deviations of clock, target and kind of switch, which select the limits."""
    reasons = []
    clock, target, switch = run.experiment.clock, run.experiment.target, run.experiment.switch_kind
    ran_in = "real" if run.documents.environment.virtual_machine is None else "virtual"
    if ran_in != clock and run.documents.is_read("environment"):
        reasons.append(f"environment.json: is of a run in {ran_in} time, spec.yaml asks for {clock}")
    ran = run.documents.switch.target
    if ran != target and run.documents.is_read("switch"):
        reasons.append(f"switch.json: is of a {ran} switch, spec.yaml asks for {target}")
    program, asked = run.documents.switch.program_digest, run.experiment.p4
    if asked and program and program != asked.compiled.sha256:
        reasons.append("switch.json: the switch ran another P4 program than that of spec.yaml")
    executor = run.documents.switch.executor
    may_be_unnamed = clock == "real" or target != SOFT
    if executor != switch and not (executor is None and may_be_unnamed) and run.documents.is_read("switch"):
        was = f"the switch was a {executor}" if executor else "does not say the kind of switch"
        reasons.append(f"switch.json: {was}, spec.yaml asks for a {switch}")
    return reasons


def _switch_reasons(run: Run, port: int | None) -> list[str]:
    """Deviations of the settings in switch.json: the bottleneck's rate and limit, and the sum of the ports' delays."""
    switch, spec = run.documents.switch, run.experiment
    if not run.documents.is_read("switch"):
        return []
    at = switch.settings.get(str(port), Port())
    can = spec.capabilities
    unit = can.rate_unit if can else "bps"
    rate = at.rate if spec.target == SOFT else at.rate_pps if unit == "pps" else at.rate_bps
    if rate is None and can is not None and can.front_panel:  # no rate limit is set: the port's speed is the rate
        rate = switch.speed_bps
    asked_rate = spec.rate_pps if unit == "pps" else spec.rate_bps
    has_links = can is None or can.links or switch.line is not None
    delays = [link.delay for link in switch.links.settings.values()] if has_links else []
    delay_ns = total(delays)
    unsaid = [] if switch.bottleneck_port == port else ["bottleneck_port"]
    unsaid += ["the bottleneck's rate"] if rate is None else []
    unsaid += ["the delays of its ports"] if has_links and (not delays or delay_ns is None) else []
    if unsaid:
        return run.documents.unsaid("switch", unsaid, "whether the switch was set as asked is unknown")
    reasons = []
    rounded = MAX_ROUNDED_RATE if can and can.front_panel else 0
    if rate is None or asked_rate is None or abs(rate - asked_rate) > rounded * asked_rate:
        of = "packets/s" if unit == "pps" else "bit/s"
        reasons.append(f"settings: port {port} had a rate of {rate} {of}, spec.yaml asks for {asked_rate}")
    if spec.has_own_program and (at.limit_bytes or at.limit_packets) != (spec.threshold_bytes or spec.buffer_packets):
        reasons.append(f"settings: the queue of port {port} did not have the limit that spec.yaml asks for")
    elif not spec.has_own_program and at.limit_packets and at.limit_packets <= spec.buffer_packets:
        reasons.append(
            f"settings: the switch's own queue holds {at.limit_packets} packets, no more than the policy's "
            f"{spec.buffer_packets}: it may drop silently"
        )
    for table, values in switch.parameters.items():
        asked_of = (spec.p4 and spec.p4.parameters) or {}
        for name in (name for name, value in values.items() if value != asked_of.get(name)):
            reasons.append(
                f"settings: at the end {name} was {values[name]} (table {table}), spec.yaml asks for "
                f"{asked_of.get(name)}: it was changed during the run, which has both"
            )
    link = switch.links.settings.get(str(switch.link_port), Port())
    if schedule := run.rate.schedule:
        asked_of_rate = (len(schedule.entries), int(schedule.opportunities))
        if (at.schedule_entries, at.schedule_opportunities) != asked_of_rate or not at.schedule_start:
            reasons.append(f"settings: port {port} did not have the schedule of its rate that spec.yaml asks for")
    elif at.schedule_entries:
        reasons.append(f"settings: the rate of port {port} changed, spec.yaml asks for {spec.rate_bps} bit/s")
    chances = spec.loss.of_link.settings() if spec.loss else dict.fromkeys(("good", "bad", "to_bad", "to_good"), 0)
    asked_of_link = {f"loss_{name}": value for name, value in chances.items()} | {"jitter_most": spec.jitter_ns}
    for name, value in asked_of_link.items():
        if value != (had := getattr(link, name) or 0):
            reasons.append(f"settings: the link had {name} {had}, spec.yaml asks for {value}")
    asked = 0 if spec.delay == "tc" else spec.idle_rtt_ns
    if delay_ns != asked and has_links:
        where = "where netem delays, the switch must not" if spec.delay == "tc" else "the base RTT"
        reasons.append(f"settings: the switch's delays add up to {delay_ns} ns, spec.yaml asks for {asked} ({where})")
    return reasons


def limits(spec: Experiment) -> tuple[int | None, int, str, str]:
    """(the policy's threshold, the hard limit, their unit, the column of depths in that unit). Modes tail-drop and ecn
    drop every packet from the hard limit on. Mode ecn drops packets that are not ECN-capable from the threshold on.
    """
    unit = "bytes" if spec.threshold_bytes else "packets"
    hard = spec.threshold_bytes or spec.buffer_packets
    marks_from = spec.ecn_threshold_bytes if spec.threshold_bytes else spec.ecn_threshold_packets
    return marks_from if spec.mode == "ecn" else hard, hard, unit, f"depth_{unit}"


def unit_reasons(queue: Columns) -> list[str]:
    """One line if postcards have no depth in packets and bytes. Depths in cells of a buffer are not converted here."""
    exact = CARD["POSTCARD_DEPTH_EXACT"]
    others = sum(np.count_nonzero(cards["depth_unit"] != exact) for cards in parts(queue, "depth_unit"))
    if not others:
        return []
    return [
        f"queue: {others} postcards have no depth in packets and bytes; their depth counts as 0 in all results "
        f"about depths; "
        "cells, where the switch reports them, are in the column depth_cells of postcards.parquet"
    ]


def _threshold_reasons(run: Run, queue: Columns) -> list[str]:
    """Postcards with another policy or threshold than spec.yaml; each postcard carries both."""
    spec = run.experiment
    threshold, _, unit, _ = limits(spec)
    if threshold is None:
        return [f"spec.yaml: does not say ecn_threshold_{unit}; the threshold is not checked"]
    whole_unit = "packets" if run.recount is None else "cells"
    if run.recount is not None:
        try:
            threshold, unit = _in_cells(run, threshold, in_bytes=unit == "bytes"), "cells"
        except ValueError as error:
            return [f"switch.json: the threshold in cells is not checked: it {error}"]
    reasons = []
    name = "POLICY_OWN" if spec.has_own_policy else POLICY_OF_MODE[spec.mode]
    policy, of_bytes = wire.POLICY[name], CARD["POSTCARD_BYTE_THRESHOLD"]
    others, first = _odd(queue, ("policy",), lambda cards: cards["policy"] != policy)
    if others:
        reasons.append(
            f"policy: {others} postcards are of policy {first['policy']}, which is not "
            f"{'the P4 program' if spec.has_own_policy else spec.mode} of spec.yaml"
        )
    if spec.has_own_policy:  # no threshold
        return reasons

    def has_other(cards: Columns) -> np.ndarray:
        return (cards["threshold"] != threshold) | (((cards["flags"] & of_bytes) != 0) != (unit == "bytes"))

    others, first = _odd(queue, ("threshold", "flags"), has_other)
    if others:
        reasons.append(
            f"policy: {others} postcards have another threshold (first: {first['threshold']} "
            f"{'bytes' if first['flags'] & of_bytes else whole_unit}) than spec.yaml, {threshold} {unit}"
        )
    return reasons


def _odd(queue: Columns, names: tuple[str, ...], mask: Callable[[Columns], np.ndarray]) -> tuple[int, dict[str, int]]:
    """How many postcards `mask` finds, and the named values of the first."""
    found, first = 0, {}
    for cards in parts(queue, *names):
        rows = np.flatnonzero(mask(cards))
        if len(rows) and not found:
            first = {name: int(cards[name][rows[0]]) for name in names}
        found += len(rows)
    return found, first


def _in_cells(run: Run, threshold: int, *, in_bytes: bool) -> int:
    """The threshold that the control plane sets on a switch that counts cells. ValueError for an unknown cell size."""
    can, extra = run.experiment.capabilities, run.documents.switch.queued_extra_bytes or 0
    assert can is not None
    assert run.recount is not None
    can = replace(can, cell_bytes=run.recount.cell_bytes, queued_extra_bytes=extra)
    quantity = parse(f"{threshold}{'b' if in_bytes else 'p'}", ("bytes" if in_bytes else "packets",))
    spec = run.experiment
    return convert(quantity, can, Conversion(spec.mtu_bytes, spec.rate_bps, spec.rtt_ns)).value


def _verdict_reasons(run: Run, queue: Columns) -> list[str]:
    """Drops and marks that contradict the packet's depth. Modes that decide at departure are not checked: the deciding
    depth is unknown.
    """
    spec = run.experiment
    threshold, hard, unit, column = limits(spec)
    if spec.mode not in ("tail-drop", "ecn") or threshold is None or not len(queue["flags"]):
        return []
    admitted_at, early, to_mark, wrongly_marked, rightly_marked = Counted(), 0, 0, 0, 0
    for cards in parts(queue, "flags", column):
        flags, depth = cards["flags"], cards[column]
        is_dropped = (flags & CARD["POSTCARD_DROPPED"]) != 0
        marked, capable = ((flags & CARD[name]) != 0 for name in ("POSTCARD_CE_MARKED", "POSTCARD_ECT"))
        must_drop, must_mark = depth >= hard, np.zeros(len(flags), dtype=bool)
        if spec.mode == "ecn":
            must_drop |= (depth >= threshold) & ~capable
            must_mark = ~is_dropped & capable & (depth >= threshold) & (depth < hard)
        elif spec.has_own_policy:
            must_mark = ~is_dropped & capable  # may be marked
        admitted_at.add(depth[~is_dropped & must_drop])
        early += int(np.count_nonzero(is_dropped & ~must_drop))
        to_mark += int(np.count_nonzero(must_mark))
        wrongly_marked += int(np.count_nonzero(marked & ~must_mark))
        rightly_marked += int(np.count_nonzero(marked & must_mark))
    reasons = []
    if len(admitted_at):
        what = f"{hard} {unit}" if admitted_at.values[0] >= hard else f"{threshold} {unit} without ECN"
        reasons.append(
            f"policy: {len(admitted_at)} packets were admitted at a depth of {what} or more (deepest: "
            f"{admitted_at.max}); a fault of the switch, or its limit is not that of spec.yaml"
        )
    if early and not spec.has_own_policy:
        reasons.append(
            f"policy: {early} packets were dropped at a depth below {hard} {unit}; a fault of the switch, or its "
            "limit is not that of spec.yaml"
        )
    return reasons + _mark_reasons(run, to_mark, wrongly_marked, rightly_marked, f"{threshold} {unit}")


def _mark_reasons(run: Run, expected: int, wrong: int, right: int, threshold: str) -> list[str]:
    """Packets that were marked although they were dropped, not ECN-capable or below the threshold, and packets that
    lack a mark (of `expected`, `right` have one). Only a packet that arrived with CE may lack its mark.

    A postcard does not carry the arriving codepoint, but the switch's counter of marks includes packets that arrived
    with CE.
    """
    reasons = []
    if wrong:
        reasons.append(
            f"policy: {wrong} packets were marked that are not ECN-capable, or at a depth below {threshold}, or "
            "dropped; a fault of the switch, or its threshold is not that of spec.yaml"
        )
    counted = run.documents.switch.packets("arrival_marks")
    if run.experiment.mode != "ecn" or not run.documents.is_read("switch"):
        return reasons
    if counted is None:
        reasons += run.documents.unsaid("switch", ["how many packets it marked (arrival_marks)"])
    elif counted != expected or (expected and not right):
        reasons.append(
            f"policy: {expected} ECN-capable packets came at a depth of {threshold} or more, the switch counts "
            f"{counted} marks, {right + wrong} postcards show one; a fault of the switch"
        )
    return reasons


def _misspaced(run: Run, queue: Columns) -> int:
    return run.rate.misspaced(queue) if run.rate.schedule else misspaced(queue, run.experiment.rate_bps)


def _spacing_reasons(run: Run, queue: Columns) -> list[str]:
    wrong = 0
    # A packet that is dropped at its departure takes no link time: the next one leaves earlier than the check says.
    may_drop = run.experiment.mode in EGRESS_MODES
    if run.experiment.queue:
        if run.experiment.qdisc_shapes:
            return []
        passed = (queue["flags"][:] & CARD["POSTCARD_DROPPED"]) == 0  # packets dropped in the queue take no time
        queue = {name: queue[name][passed] for name in ("flags", "enqueue_mono_ns", "sojourn_ns", "packet_bytes")}
    if run.experiment.p4:
        dropped, how = CARD["POSTCARD_DROPPED"], CARD["POSTCARD_DROPPED"] | CARD["POSTCARD_AT_INGRESS"]
        may_drop = any(((cards["flags"] & how) == dropped).any() for cards in parts(queue, "flags"))
    if not may_drop:
        misspaced_by_clock = None if run.clock is None else run.clock.misspaced
        wrong = _misspaced(run, queue) if misspaced_by_clock is None else misspaced_by_clock
    if not wrong:
        return []
    return [
        f"link: {wrong} packets left at another time than wire bits / rate after the packet before them, or after "
        "their own arrival at an idle link; the switch's rate is not rate_bps of spec.yaml, or a fault of the switch"
    ]
