# SPDX-License-Identifier: MIT
"""The verdict on a run. Each reason against the run is one line: what is wrong and, where they exist, the amount, the
limit and what to do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.judge import imported_reasons, trace_clock
from analysis.judge.ledger import Entries, ledger_reasons
from analysis.judge.settings import settings_reasons
from analysis.measure import finite_flows, open_loop, program_results, stalled_flows
from analysis.measure.fidelity import fidelity_reasons
from analysis.measure.metrics import Columns, Window
from analysis.measure.virtual_time_limits import idle_rtt_reason
from analysis.read.columns import parts
from analysis.read.load import Run
from analysis.read.target_limits import rules
from hosts.traffic.idle_rtt import HEADER, PAYLOAD
from lib.frames import ETHERNET_BYTES, IPV4_BYTES, LEAST_FRAME_BYTES, WIRE_EXTRA_BYTES
from lib.terminal import one_line
from model.experiment import Offloads
from runs.verdict import Area

MAX_IDLE_RTT_ERROR, MAX_IDLE_RTT_ERROR_NS = 0.05, 200_000  # the larger applies: hosts need some time for an echo
MAX_MISSING_WINDOW_RTTS = 10
# The echo request of hosts/traffic/idle_rtt.py: Ethernet, IPv4, ICMP and payload, padded to the shortest frame.
ECHO_WIRE_BYTES = max(ETHERNET_BYTES + IPV4_BYTES + HEADER.size + len(PAYLOAD), LEAST_FRAME_BYTES) + WIRE_EXTRA_BYTES


def reasons_against(
    run: Run,
    queue: Columns,
    port: int | None,
    window: Window,
    entries: Entries,
    facts: dict[str, Any],
    utilization: dict[str, float | None],
) -> list[str]:
    """The reasons against a run; empty if the run is valid."""
    of_source = run.experiment.imported
    complete = entries["postcards_missing"] == entries["postcards_duplicate"] == run.raw["postcards"].damaged_bytes == 0
    return [
        *run.not_as_recorded,
        *(imported_reasons.reasons(run, queue, window, utilization["mean"]) if of_source else ()),
        *run.problems,
        *_queue_reasons(run, queue, port),
        *_traffic_reasons(run, queue, window),
        *stalled_flows.reasons(run, queue, window),
        *ledger_reasons(run, entries),
        *open_loop.lateness_reasons(run),
        *finite_flows.reasons(run, window),
        *program_results.reasons(run, window),
        *fidelity_reasons(run, facts, port, complete),
        *trace_clock.reasons(run, queue),
        *_path_reasons(run, utilization, facts["lateness_us"]["max"]),
        *settings_reasons(run, queue, port, complete),
    ]


def idle_rtt(run: Run) -> dict[str, int | float | None]:
    """Asked, expected and measured RTT of the idle path in ns. The expected RTT is the asked RTT plus the echo
    request's transmission time on the bottleneck, in whole ns as the switch counts it. Some targets add no transmission
    time (Rules.echo_takes_link_time). The reply crosses no rate limit. Virtual NICs add their own times.
    """
    spec = run.experiment
    idle, asked = run.documents.idle_rtt, spec.idle_rtt_ns
    least = idle.min_ns
    on_link_ns = ECHO_WIRE_BYTES * 8 * 10**9 // spec.rate_bps if rules(run).echo_takes_link_time else 0
    expected = asked + on_link_ns + _nics_ns(spec.offloads or Offloads())
    error = least / expected - 1 if least is not None else None
    return {
        "asked": asked,
        "expected": expected,
        "min": least,
        "median": idle.median_ns,
        "error_fraction": error,
    }


def _nics_ns(offloads: Offloads) -> int:
    """Time of an echo in virtual NICs: its bits leave the sender at the NIC's rate, and both hosts' interrupts wait."""
    waits_ns, rate_bps = 2 * 1000 * (offloads.coalesce_us or 0), offloads.nic_rate_bps
    return waits_ns + (ECHO_WIRE_BYTES * 8 * 10**9 // rate_bps if rate_bps else 0)


def _queue_reasons(run: Run, queue: Columns, port: int | None) -> list[str]:
    """One line if postcards of other queues are left out. A recorded run names the port of its queue."""
    of_port = len(run.postcards["egress_port"])
    if not run.experiment.imported:
        ports = (cards["egress_port"] for cards in parts(run.postcards, "egress_port"))
        of_port = sum(int(np.count_nonzero(of_part == port)) for of_part in ports)
    others = of_port - len(queue["flow"])
    if not others:
        return []
    of = ", ".join(f"{name.replace('_', ' ')} {queue[name][0]}" for name in ("switch_id", "egress_port", "queue_id"))
    return [f"queue: {others} postcards are of other queues and left out; this is the queue with the most, {of}"]


def _traffic_reasons(run: Run, queue: Columns, window: Window) -> list[str]:
    """Errors of the traffic, and its deviations from the flows and the duration in spec.yaml."""
    reasons = []
    of_source = run.experiment.imported
    see = "" if of_source else "; see traffic.json and logs/"
    if not len(queue["flags"]) and not of_source:
        reasons.append("queue: no packet arrived; see logs/")
    allowed_ns = 0 if of_source else MAX_MISSING_WINDOW_RTTS * run.experiment.rtt_ns
    if window.missing_ns > allowed_ns:
        reasons.append(
            f"traffic: ended {window.missing_ns / 1e9:.2f} s early (allowed are {allowed_ns / 1e9:g} s): "
            f"{window.length_ns / 1e9:.2f} s of {run.experiment.duration_ns / 1e9:.2f} s were measured{see}"
        )
    if not run.documents.is_read("traffic"):
        return reasons
    traffic = run.documents.traffic
    generator = run.experiment.generator or run.experiment.traffic
    must = ("errors", "groups", "flows", "start_mono_ns", "end_mono_ns")
    reasons += run.documents.unsaid("traffic", [name for name in must if getattr(traffic, name) is None])
    if errors := traffic.errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        reasons.append(f"traffic: {one_line(errors[0])}{more}; see logs/")
    for group in traffic.groups or ():
        if group.exit_status != 0:
            whose = "" if group.cc is None else f" of the {one_line(group.cc)} group"
            reasons.append(f"traffic: {generator}{whose} ended with status {group.exit_status}; see logs/")
    has_groups = not (of_source or run.experiment.finite or run.experiment.program)
    if traffic.groups == [] and has_groups:
        reasons.append("traffic.json: names no group of flows; it is of another version or damaged")
    if traffic.generator not in (None, generator):
        reasons.append(
            f"traffic.json: is of the generator {one_line(traffic.generator)}, spec.yaml asks for {generator}; "
            "one of the two files is of another run"
        )
    asked = run.experiment.flows
    planned = sum(not entry.program for entry in run.traffic)
    if asked != planned and (planned or not of_source):
        reasons.append(f"traffic: {asked} flows were asked for, traffic.json names {planned}{see}")
    unseen = [entry.id for entry in run.traffic if entry.number < 0 and not entry.silent]
    if unseen:
        reasons.append(
            f"traffic: {len(unseen)} flows sent nothing through the queue (first: flow {unseen[0]}); see logs/"
        )
    return reasons


def _path_reasons(run: Run, utilization: dict[str, float | None], late_us: float | None) -> list[str]:
    """Deviations of delay and rate from spec.yaml. `late_us`: the largest lateness of a frame."""
    reasons = []
    idle = idle_rtt(run)
    least, asked, expected = idle["min"], run.experiment.idle_rtt_ns, idle["expected"]
    if least is not None and expected is not None and run.experiment.in_virtual_time:
        reason = idle_rtt_reason(run, least, int(expected))
        reasons += [reason] if reason else []
    elif least is not None and expected is not None:
        allowed_ns = max(MAX_IDLE_RTT_ERROR * asked, MAX_IDLE_RTT_ERROR_NS)
        if not -allowed_ns <= least - expected <= allowed_ns + run.experiment.jitter_ns:
            reasons.append(
                f"{Area.DELAY}: the idle path's RTT was {least / 1e6:.3f} ms instead of {expected / 1e6:.3f} ms "
                f"({asked / 1e6:.3f} ms and an echo's own time); allowed is an error of {allowed_ns / 1e6:.3f} ms"
                f"{' beside the jitter' * bool(run.experiment.jitter)}: check where the delay is set"
            )
    else:
        reasons += run.documents.unsaid("idle_rtt", ["min_ns"], "the path's delay is unknown; see logs/")
    most = None if "packet_bytes" in run.experiment.unknown_columns else utilization["max"]
    if most is None:
        return reasons
    allowed, window_s = rules(run).max_utilization, utilization["window_s"]
    if not rules(run).exact_time and late_us and window_s:
        allowed += late_us / 1e6 / window_s  # the packets that waited for a late one follow it at once
    if run.rate.schedule and run.rate.schedule.opportunities and window_s:  # a packet counts whole at its end
        allowed += 8 * run.experiment.mtu_bytes / (run.experiment.rate_bps * window_s)
    if most > allowed:
        reasons.append(
            f"link: a utilization of {most:.2%} in one window, which is impossible (allowed are {allowed:.2%}): the "
            "switch's rate is not rate_bps of spec.yaml"
        )
    return reasons
