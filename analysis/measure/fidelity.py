# SPDX-License-Identifier: MIT
"""Fidelity: how closely departures followed their computed times, and whether postcards are consistent with each other.

This module has the limits for real time, virtual_time_limits.py those for virtual time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from analysis.arithmetic.counted import Counted
from analysis.measure import wall_clock
from analysis.measure.virtual_time_limits import inexact
from analysis.read.columns import Columns, joined, parts, rows_of
from analysis.read.documents import LINE_PORT, Environment, Histogram, SwitchState
from analysis.read.load import Run
from analysis.read.postcards import admitted
from analysis.read.recount import Recount
from analysis.read.switch_clock import is_free
from analysis.read.target_limits import Rules, rules
from lib.terminal import counted
from runs.verdict import Area

MAX_LATENESS_RTT_FRACTION = 0.05  # p99 as a fraction of the base RTT
# A rate is judged only over at least this many back-to-back gaps of full frames. Each end of the span is off by up to
# one frame's lateness. Over fewer gaps an ordinary lateness, a tenth of a gap, would look like a rate error over 0.1 %.
MIN_RATE_GAPS = 100
MAX_CLAMPED_FRACTION = 1e-3  # of the switch's arrivals: clamped arrivals have wrong times, and so wrong depths
NOT_SIMULATED = dict.fromkeys(("lateness_us", "rate_error_fraction"), "simulated frames are on time by construction")
FROM_OUTSIDE = "packets are seen before and behind the switch, not in it"
PERCENTS = {"p50": 50.0, "p99": 99.0, "p999": 99.9}
MOST_GAPS = 1000  # listed spans in which depths may be too low
POSTCARD_DELAY_NS = (-1_000_000, 10_000_000_000)  # departure to receive stamp; a lone CPU can stall for seconds


def histogram_percentiles(buckets: Histogram | None, **names: float) -> dict[str, float | None]:
    """Percentiles of [[edge_ns, count], ...] in us: the upper edges of their buckets. `max` is the last edge."""
    pairs = [(edge, count) for edge, count in sorted(buckets or ()) if count > 0]
    if not pairs:
        return dict.fromkeys([*names, "max"])
    edges, totals = np.array([edge for edge, _ in pairs]), np.cumsum([count for _, count in pairs])
    result: dict[str, float | None] = {}
    for name, percent in names.items():
        rank = min(int(np.searchsorted(totals, totals[-1] * percent / 100)), len(edges) - 1)
        result[name] = float(edges[rank]) / 1e3
    return result | {"max": float(edges[-1]) / 1e3}


def lateness_max_ns(histograms: list[Histogram | None]) -> int | None:
    """The largest lateness (an upper bucket edge); None if a histogram is unknown or there is none."""
    known = [histogram for histogram in histograms if histogram is not None]
    if not histograms or len(known) < len(histograms):
        return None
    return max((edge for buckets in known for edge, count in buckets if count > 0), default=0)


def fidelity(run: Run, queue: Columns, port: int | None) -> dict[str, Any]:
    """The switch's record of its bottleneck port, and the consistency of its postcards. None: not recorded, or not
    measurable on this target; `absent` has the reasons.
    """
    limits = rules(run)
    if limits.exact_time:
        not_known = NOT_SIMULATED if run.experiment.is_simulated else {}
        facts = soft_facts(run.documents.switch, port) | {"absent": not_known, "line": None}
        facts |= wall_clock.clock_facts(run) if is_free(run.experiment) else {}
    else:
        line = run.documents.switch.line
        known = wall_clock.link_facts(run, queue) | wall_clock.clock_facts(run)
        of_cards = dict.fromkeys(sorted(run.experiment.unknown_columns), FROM_OUTSIDE)
        absent: dict[str, Any] = wall_clock.NOT_KNOWN | of_cards
        lateness = histogram_percentiles(None, **PERCENTS)
        late_ns = wall_clock.lateness_ns(run, queue)
        if late_ns is not None and len(late_ns):
            del absent["lateness_us"]
            at = PERCENTS | {"max": 100.0}
            lateness = {name: late_ns.percentile(percent) / 1e3 for name, percent in at.items()}
        facts = dict.fromkeys(wall_clock.NOT_KNOWN) | known | {
            "lateness_us": lateness,
            "absent": absent,
            "line": soft_facts(line, LINE_PORT) if line else None,
        }  # fmt: skip
    recounted: dict[str, Any] = {}
    if run.recount is not None:
        errors, recounted = recounted_facts(run.recount)
    else:
        errors = Counted.of(depth_errors(queue, limits.tick_ns))
    facts |= {
        **cpu_fractions(run.documents.environment),
        "postcard_delay_us": _postcard_delay_us(queue),
        "depths": len(errors),
        "depth_mismatches": int(errors.counts[errors.values > limits.depth_error_packets].sum()),
        "depth_error_packets": {"p99": float(errors.percentile(99)), "max": errors.max} if len(errors) else None,
    }
    return facts | recounted


def _postcard_delay_us(queue: Columns) -> dict[str, float] | None:
    """From a packet's departure to its postcard's receive stamp, the least and the most."""
    least, most = [], []
    for cards in parts(queue, "rx_mono_ns", "enqueue_mono_ns", "sojourn_ns"):
        delay = cards["rx_mono_ns"] - cards["enqueue_mono_ns"] - cards["sojourn_ns"]
        least.append(delay.min())
        most.append(delay.max())
    return {"min": float(min(least)) / 1e3, "max": float(max(most)) / 1e3} if least else None


def recounted_facts(recount: Recount) -> tuple[Counted, dict[str, Any]]:
    """(difference of each depth in cells from the recount, in full packets; facts about the depths in cells)."""
    whole = recount.full_packet_cells or 1
    delay = recount.delay_ns
    errors, in_packets = recount.errors_cells, Counted()
    in_packets.merge(-(-errors.values // whole), errors.counts)
    return in_packets, {
        "postcard_delay_us": None if delay is None else {"min": delay[0] / 1e3, "max": delay[1] / 1e3},
        "cell_bytes": recount.cell_bytes,
        "depth_error_cells": {"p99": float(errors.percentile(99)) if len(errors) else None, "max": errors.max},
        "depth_gaps_mono_ns": recount.gaps_mono_ns[:MOST_GAPS],
        "packets_without_postcards": recount.lost_packets,
    }


def soft_facts(switch: SwitchState, port: int | None) -> dict[str, Any]:
    """Statistics of our soft switch, used as the bottleneck or as the delay line. Of one port: departures, lateness
    percentiles, gaps and rate. Of the whole switch: clock, clamped arrivals and largest lateness.
    """
    stats, buckets = switch.stats, switch.lateness.get(str(port))
    frames, off = stats.get(f"gap_frames.{port}"), stats.get(f"gap_error_over_10pct.{port}")
    real, virtual = stats.get(f"real_span_ns.{port}"), stats.get(f"virtual_span_ns.{port}")
    clamped, arrived = stats.get("arrivals_clamped"), switch.sum_stats("rx_frames")
    loop_gap_ns = stats.get("loop_gap_max_ns")
    collectors = switch.counter("postcards_made") or {}
    late: dict[bool, list[Histogram | None]] = {True: [], False: []}  # whether of a collector's port
    for at, histogram in switch.lateness.items():
        late[bool(collectors.get(at))].append(histogram)
    return {
        "departures": stats.get(f"departures.{port}"),
        "lateness_frames": None if buckets is None else sum(count for _, count in buckets),
        "lateness_us": histogram_percentiles(buckets, **PERCENTS),
        "lateness_max_ns": lateness_max_ns(late[False]),
        "postcard_lateness_max_ns": lateness_max_ns(late[True]),
        "gap_error_max_ns": stats.get(f"gap_error_max_ns.{port}"),
        "gap_error_over_10pct_fraction": off / frames if frames and off is not None else None,
        "back_to_back_ns": virtual if real is not None else None,  # 0 without back-to-back frames: no rate error
        "rate_error_fraction": real / virtual - 1 if virtual and real is not None else None,
        "loop_gap_max_us": None if loop_gap_ns is None else loop_gap_ns / 1e3,
        "clock_steps": stats.get("clock_steps"),
        "realtime_step_max_ns": stats.get("realtime_step_max_ns"),
        "arrivals_clamped_fraction": clamped / arrived if arrived and clamped is not None else None,
    }


def cpu_fractions(environment: Environment) -> dict[str, float | None]:
    """Shares of all processors' time during the traffic: busy with anything, and stolen by the hypervisor."""
    before, after = environment.cpu_ns_before, environment.cpu_ns_after
    spent = {}
    if before and after:
        spent = {name: value - (before.get(name) or 0) for name, value in after.items() if value is not None}
    total = sum(spent.values())
    if total <= 0:
        return {"cpu_busy_fraction": None, "cpu_steal_fraction": None}
    idle = spent.get("idle_ns", 0) + spent.get("iowait_ns", 0)
    return {"cpu_busy_fraction": 1 - idle / total, "cpu_steal_fraction": spent.get("steal_ns", 0) / total}


def depth_errors(queue: Columns, tick_ns: int = 0) -> Iterator[np.ndarray]:
    """Absolute difference in packets (int64) of each depth to an independent recount from arrivals and departures, slab
    by slab.

    Packets with equal arrival times have an unknown order: their difference counts as 0. A packet that leaves within
    `tick_ns` of an arrival counts either way.
    """
    waiting, left = rows_of(queue, slice(0)), np.empty(0, dtype=np.int64)  # packets, and departures that they may see
    depth = int(queue["depth_packets"][0]) if len(queue["depth_packets"]) else 0  # at the first of `waiting`, with
    gone = 0  # so many departures less
    for cards in chain(parts(queue, "enqueue_mono_ns", "sojourn_ns", "flags", "depth_packets"), (None,)):
        known = len(waiting["flags"])
        if cards:
            came, entered = cards["enqueue_mono_ns"], admitted(cards)
            left = np.sort(np.append(left, came[entered] + cards["sojourn_ns"][entered]))
            waiting = joined(waiting, cards)
            known = int(np.searchsorted(waiting["enqueue_mono_ns"], came[-1] - tick_ns))  # later packets leave later
        ready, waiting = rows_of(waiting, slice(known)), rows_of(waiting, slice(known, None))
        entered = admitted(ready)
        yield _depth_errors(ready, left, depth - gone + np.cumsum(entered) - entered, tick_ns)
        depth += int(np.count_nonzero(entered))
        past = int(np.searchsorted(left, waiting["enqueue_mono_ns"][0] - tick_ns)) if len(waiting["flags"]) else 0
        left, gone = left[past:], gone + past


def _depth_errors(cards: Columns, left: np.ndarray, depth: np.ndarray, tick_ns: int) -> np.ndarray:
    """Of some packets. `depth`: the depth that each would find if none of the departures `left` had happened."""
    came, stored = cards["enqueue_mono_ns"], cards["depth_packets"].astype(np.int64)
    gone = np.searchsorted(left, came, side="right")
    depth = depth - gone
    error = np.abs(stored - depth)
    suspects = np.flatnonzero(error)
    # Packets that leave in the ns of an arrival count either way: a qdisc may drop many for one that comes.
    leaving = gone[suspects] - np.searchsorted(left, came[suspects], side="left")
    above = stored[suspects] - depth[suspects]
    error[suspects[(above >= 0) & (above <= leaving)]] = 0
    if tick_ns:
        surely_gone = np.searchsorted(left, came[suspects] - tick_ns, side="left")
        perhaps_gone = np.searchsorted(left, came[suspects] + tick_ns, side="right")
        counted = depth[suspects] + gone[suspects]
        above, below = stored[suspects] - (counted - surely_gone), counted - perhaps_gone - stored[suspects]
        error[suspects] = np.maximum(0, np.maximum(above, below))
    same = came[1:] == came[:-1]
    error[1:][same] = 0
    error[:-1][same] = 0
    return error


def fidelity_reasons(run: Run, facts: dict[str, Any], port: int | None, complete: bool) -> list[str]:
    """One line for each limit that was exceeded. `complete`: no postcard is missing, so depths can be recounted."""
    limits, of_source = rules(run), run.experiment.imported
    if run.experiment.in_virtual_time and limits.exact_time:
        reasons = inexact(run, facts)
    elif not limits.exact_time:
        line = facts["line"]
        reasons = []
        # A program of the user's may queue packets that nobody sees, but in virtual time no thread is late.
        if not (run.experiment.is_recorded and run.experiment.in_virtual_time):
            reasons += _lateness_reasons(run, facts, f"port {port}")
            reasons += [] if of_source and not complete else _rate_reasons(run, facts, limits)
        reasons += wall_clock.clock_reasons(run, facts) + _recount_reasons(run)
        reasons += _lateness_reasons(run, line, "port 2 of the delay line") + _soft_reasons(line) if line else []
    else:
        reasons = _lateness_reasons(run, facts, f"port {port}") + _rate_reasons(run, facts, limits)
        reasons += _soft_reasons(facts) + (wall_clock.clock_reasons(run, facts) if is_free(run.experiment) else [])
    return reasons + _common_reasons(run, facts, port, complete, limits)


def _recount_reasons(run: Run) -> list[str]:
    recount = run.recount
    if recount is None:
        return []
    reasons = []
    if recount.gaps_mono_ns:
        start, end = recount.gaps_mono_ns[0]
        since = start - int(run.postcards["enqueue_mono_ns"][0])
        reasons.append(
            f"queue: {counted(recount.lost_packets, 'packet')} without postcards; depths may be too low by as many in "
            f"{counted(len(recount.gaps_mono_ns), 'window')} (fidelity.depth_gaps_mono_ns; the first begins "
            f"{since / 1e9:.6f} s after the first packet and takes {(end - start) / 1e3:.1f} us); all other depths are "
            "right"
        )
    if recount.cell_bytes is None:
        so = "depths in cells are not compared with the recount"
        reasons += run.documents.unsaid("switch", ["cell_bytes"], so)
    if recount.first_depth_cells:
        reasons.append(
            "queue: before the first packet with a postcard, packets without postcards held "
            f"{recount.first_depth_cells} cells: depths are too low until the queue is empty for the first time; "
            "keep the path idle before a run"
        )
    return reasons


def _lateness_reasons(run: Run, facts: dict[str, Any], where: str) -> list[str]:
    late, allowed = facts["lateness_us"]["p99"], MAX_LATENESS_RTT_FRACTION * run.experiment.rtt_ns / 1e3
    if late is None or late <= allowed:
        return []
    return [
        f"{Area.FIDELITY}: 1 % of frames left {where} at least {late:.0f} us late; allowed are {allowed:.0f} us (5 % "
        "of the base RTT): lower RATE, raise RTT, or leave the machine idle"
    ]


def _rate_reasons(run: Run, facts: dict[str, Any], limits: Rules) -> list[str]:
    time_error, span_ns = facts["rate_error_fraction"], facts["back_to_back_ns"]
    gap_ns = run.experiment.packet_ns
    if time_error is None or span_ns < MIN_RATE_GAPS * gap_ns or abs(time_error) <= limits.max_rate_error:
        return []
    rate_error = 1 / (1 + time_error) - 1
    remedy = "import the run again with this rate as RATE" if run.experiment.imported else "lower RATE"
    return [
        f"{Area.FIDELITY}: the link's real rate was off by {rate_error:+.3%}; allowed is "
        f"{100 * limits.max_rate_error:g} %: {remedy}"
    ]


def _soft_reasons(facts: dict[str, Any]) -> list[str]:
    clamped = facts["arrivals_clamped_fraction"]
    if clamped is None or clamped <= MAX_CLAMPED_FRACTION:
        return []
    return [
        f"{Area.FIDELITY}: {clamped:.2%} of arrivals were read too late and moved to a later virtual time; allowed is "
        f"{MAX_CLAMPED_FRACTION:.1%}: lower RATE, or leave the machine idle"
    ]


def _common_reasons(run: Run, facts: dict[str, Any], port: int | None, complete: bool, limits: Rules) -> list[str]:
    reasons = []
    late = facts["lateness_us"]["p99"]
    soft = facts
    if not limits.exact_time:
        soft = facts["line"] or {}
        known = {"rate error": facts["back_to_back_ns"]}
        if run.clock is None and not run.experiment.is_recorded:
            known |= {
                "its clock's offset": facts.get("clock_moved_ns"),
                "its clock's uncertainty": facts["clock_uncertainty_ns"],
            }
    else:
        known = {"lateness": late, "departures": facts["departures"], "rate error": facts["back_to_back_ns"]}
    if soft:
        known |= {"clock steps": soft["clock_steps"], "clamped arrivals": soft["arrivals_clamped_fraction"]}
    if run.experiment.in_virtual_time and limits.exact_time:
        known["gap error"] = facts["gap_error_max_ns"]
    unknown = [] if run.experiment.is_simulated else [name for name, value in known.items() if value is None]
    if unknown:
        reasons += run.documents.unsaid("switch", [f"{', '.join(unknown)} of port {port}"], "fidelity is unknown")
    departures, counted = facts["departures"], facts["lateness_frames"]
    if late is not None and departures is not None and departures != counted:
        reasons.append(
            f"switch.json: its lateness histogram of port {port} counts {counted:.0f} frames, but {departures:.0f} "
            "departed; it is damaged"
        )
    if soft and soft["clock_steps"]:
        reasons.append(
            f"{Area.FIDELITY}: CLOCK_REALTIME stepped {soft['clock_steps']} times (by up to "
            f"{soft['realtime_step_max_ns']} ns) while it stamped the switch's arrivals: stop whatever sets the clock"
        )
    delay, (low, high) = facts["postcard_delay_us"], (limit / 1e3 for limit in POSTCARD_DELAY_NS)
    if delay and not (low <= delay["min"] and delay["max"] <= high):
        reasons.append(
            f"clocks: postcards were received {delay['min']:.0f} to {delay['max']:.0f} us after departure; allowed are "
            f"{low:.0f} to {high:.0f} us: switch and collector are not on one clock, or the collector stood still"
        )
    wrong = facts["depth_mismatches"]
    if complete and wrong > limits.depth_error_fraction * facts["depths"]:
        by = f" by more than {limits.depth_error_packets} packets" if limits.depth_error_packets else ""
        remedy = "a fault of the switch: please report it with this run"
        if limits.depth_error_fraction:
            remedy = f"allowed are {limits.depth_error_fraction:.0%} of them: lower RATE, or leave the machine idle"
        reasons.append(
            f"queue: {wrong} packets report a depth that contradicts the arrivals and departures of the other "
            f"packets{by}; {remedy}"
        )
    return reasons
