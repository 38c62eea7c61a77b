# SPDX-License-Identifier: MIT
"""Did the emulation keep up? How well real time followed virtual time, and whether the postcards agree.

Limits that depend on the clock: those of real time are here, those of virtual time in exactness.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.exactness import in_virtual_time, inexact
from analysis.ledger import number, ports_with_packets, sum_stats
from analysis.load import Run
from wire import wire

CARD = wire.POSTCARD.const
MAX_LATENESS_RTT_FRACTION = 0.05  # p99, of the base RTT
MAX_RATE_ERROR = 1e-3
# Back-to-back time that a rate is judged by, in gaps of full frames: each end is off by up to one frame's lateness, so
# over fewer of them a tenth of a gap, which any scheduler takes, would pass for 0.1 % of the rate.
MIN_RATE_GAPS = 100
MAX_CLAMPED_FRACTION = 1e-3  # of the switch's arrivals: their times, and so depths, are a little off
POSTCARD_DELAY_NS = (-1_000_000, 10_000_000_000)  # from departure to receive stamp; a lone CPU may well stall a while


def histogram(buckets: Any) -> list[tuple[float, float]] | None:
    """[[edge_ns, count], ...] by edge; None if anything in it is not as it should be."""
    pairs = []
    for pair in buckets if isinstance(buckets, list) else (None,):
        known = dict(enumerate(pair)) if isinstance(pair, (list, tuple)) and len(pair) == 2 else {}
        edge, count = (number({"": known.get(index)}, "") for index in (0, 1))
        if edge is None or count is None:
            return None
        pairs.append((edge, count))
    return sorted(pairs)


def histogram_percentiles(buckets: Any, **names: float) -> dict[str, float | None]:
    """Percentiles of [[edge_ns, count], ...] in us, as the edge of the bucket they fall in; `max` is the last edge."""
    pairs = [(edge, count) for edge, count in histogram(buckets) or () if count > 0]
    if not pairs:
        return dict.fromkeys([*names, "max"])
    edges, totals = np.array([edge for edge, _ in pairs]), np.cumsum([count for _, count in pairs])
    result: dict[str, float | None] = {}
    for name, percent in names.items():
        rank = min(int(np.searchsorted(totals, totals[-1] * percent / 100)), len(edges) - 1)
        result[name] = float(edges[rank]) / 1e3
    return result | {"max": float(edges[-1]) / 1e3}


def lateness_max_ns(lateness: Any, *, collectors: bool, ports: set[str]) -> float | None:
    """The largest lateness, an upper edge, over the ports that postcards leave by, or over all others."""
    found = [
        histogram(buckets)
        for port, buckets in (lateness.items() if isinstance(lateness, dict) else ())
        if (port in ports) == collectors
    ]
    if not found or None in found:
        return None
    return max((edge for pairs in found for edge, count in pairs or () if count > 0), default=0)


def fidelity(run: Run, queue: dict[str, np.ndarray], port: int | None) -> dict[str, Any]:
    """What the switch says of its bottleneck port, and what its postcards say of each other. None: not recorded."""
    switch = run.documents["switch"]
    found = switch.get("stats")
    stats: dict[str, Any] = found if isinstance(found, dict) else {}
    lateness = switch.get("lateness")
    buckets = lateness.get(str(port)) if isinstance(lateness, dict) else None
    frames, off = number(stats, f"gap_frames.{port}"), number(stats, f"gap_error_over_10pct.{port}")
    real, virtual = number(stats, f"real_span_ns.{port}"), number(stats, f"virtual_span_ns.{port}")
    clamped, arrived = number(stats, "arrivals_clamped"), sum_stats(switch, "rx_frames")
    loop_gap_ns = number(stats, "loop_gap_max_ns")
    collectors = ports_with_packets(switch, "postcards_made")
    delay = queue["rx_mono_ns"] - queue["enqueue_mono_ns"] - queue["sojourn_ns"]
    return {
        "departures": number(stats, f"departures.{port}"),
        "lateness_frames": sum(count for _, count in pairs) if (pairs := histogram(buckets)) is not None else None,
        "lateness_us": histogram_percentiles(buckets, p50=50, p99=99, p999=99.9),
        "lateness_max_ns": lateness_max_ns(lateness, collectors=False, ports=collectors),
        "postcard_lateness_max_ns": lateness_max_ns(lateness, collectors=True, ports=collectors),
        "gap_error_max_ns": number(stats, f"gap_error_max_ns.{port}"),
        "gap_error_over_10pct_fraction": off / frames if frames and off is not None else None,
        "back_to_back_ns": virtual if real is not None else None,  # no frames back to back: 0, and no rate error
        "rate_error_fraction": real / virtual - 1 if virtual and real is not None else None,
        "loop_gap_max_us": None if loop_gap_ns is None else loop_gap_ns / 1e3,
        "clock_steps": number(stats, "clock_steps"),
        "realtime_step_max_ns": number(stats, "realtime_step_max_ns"),
        "arrivals_clamped_fraction": clamped / arrived if arrived and clamped is not None else None,
        **cpu_fractions(run.documents["environment"]),
        "postcard_delay_us": {"min": float(delay.min()) / 1e3, "max": float(delay.max()) / 1e3} if len(delay) else None,
        "depth_mismatches": depth_mismatches(queue),
    }


def cpu_fractions(environment: dict[str, Any]) -> dict[str, float | None]:
    """Shares of all processors' time during the traffic: busy (with anything), and taken away by the hypervisor."""
    load = environment.get("load")
    before, after = (
        found if isinstance(load, dict) and isinstance(found := load.get(when), dict) else {}
        for when in ("before", "after")
    )
    spent = {
        name: value - (number(before, "cpu", name) or 0)
        for name in (after["cpu"] if isinstance(after.get("cpu"), dict) else ())
        if before and (value := number(after, "cpu", name)) is not None
    }
    total = sum(spent.values())
    if total <= 0:
        return {"cpu_busy_fraction": None, "cpu_steal_fraction": None}
    idle = spent.get("idle_ns", 0) + spent.get("iowait_ns", 0)
    return {"cpu_busy_fraction": 1 - idle / total, "cpu_steal_fraction": spent.get("steal_ns", 0) / total}


def depth_mismatches(queue: dict[str, np.ndarray]) -> int:
    """Packets whose depth is not what arrivals and departures of the others make it: an independent recount.

    Packets that came at the same ns as another are left out: their order is not known here.
    """
    came, flags = queue["enqueue_mono_ns"], queue["flags"]
    if not len(came):
        return 0
    both = np.uint8(CARD["POSTCARD_DROPPED"] | CARD["POSTCARD_AT_INGRESS"])
    admitted = (flags & both) != both
    left = (came + queue["sojourn_ns"])[admitted]
    if (left[1:] < left[:-1]).any():
        left = np.sort(left)
    gone = np.searchsorted(left, came, side="right")
    depth = np.cumsum(admitted) - admitted - gone + int(queue["depth_packets"][0])
    wrong = queue["depth_packets"] != depth
    suspects = np.flatnonzero(wrong)
    if len(left):  # one that leaves in the very ns of an arrival may be counted either way
        leaving = (gone[suspects] > 0) & (left[np.maximum(gone[suspects] - 1, 0)] == came[suspects])
        wrong[suspects[leaving & (queue["depth_packets"][suspects] == depth[suspects] + 1)]] = False
    same = came[1:] == came[:-1]
    wrong[1:] &= ~same
    wrong[:-1] &= ~same
    return int(np.count_nonzero(wrong))


def fidelity_reasons(run: Run, facts: dict[str, Any], port: int | None, complete: bool) -> list[str]:
    """One line for each limit that was passed.

    `complete`: no postcard is missing, so they can be held against each other.
    """
    reasons = inexact(run, facts) if in_virtual_time(run) else _real_time_reasons(run, facts, port)
    return reasons + _common_reasons(run, facts, port, complete)


def _real_time_reasons(run: Run, facts: dict[str, Any], port: int | None) -> list[str]:
    reasons = []
    late, allowed = facts["lateness_us"]["p99"], MAX_LATENESS_RTT_FRACTION * run.spec["rtt_ns"] / 1e3
    if late is not None and late > allowed:
        reasons.append(
            f"fidelity: 1 % of frames left port {port} {late:.0f} us late or later; allowed are {allowed:.0f} us (5 % "
            "of the base RTT): lower RATE, raise RTT, or leave the machine idle"
        )
    error = facts["rate_error_fraction"]
    span_ns, gap_ns = facts["back_to_back_ns"], run.spec["wire_bytes"] * 8e9 / run.spec["rate_bps"]
    if error is not None and span_ns >= MIN_RATE_GAPS * gap_ns and abs(error) > MAX_RATE_ERROR:
        reasons.append(f"fidelity: the link's real rate was off by {-error:+.3%}; allowed is 0.1 %: lower RATE")
    clamped = facts["arrivals_clamped_fraction"]
    if clamped is not None and clamped > MAX_CLAMPED_FRACTION:
        reasons.append(
            f"fidelity: {clamped:.2%} of arrivals were read too late and moved to a later virtual time; allowed is "
            f"{MAX_CLAMPED_FRACTION:.1%}: lower RATE, or leave the machine idle"
        )
    return reasons


def _common_reasons(run: Run, facts: dict[str, Any], port: int | None, complete: bool) -> list[str]:
    reasons = []
    late = facts["lateness_us"]["p99"]
    known = {
        "lateness": late, "departures": facts["departures"], "rate error": facts["back_to_back_ns"],
        "clock steps": facts["clock_steps"], "clamped arrivals": facts["arrivals_clamped_fraction"],
    }  # fmt: skip
    if in_virtual_time(run):
        known["gap error"] = facts["gap_error_max_ns"]
    unknown = [name for name, value in known.items() if value is None]
    if unknown and "switch" not in run.unread:
        reasons.append(f"switch.json: does not say {', '.join(unknown)} of port {port}; fidelity is unknown")
    departures, counted = facts["departures"], facts["lateness_frames"]
    if late is not None and departures is not None and departures != counted:
        reasons.append(
            f"switch.json: its lateness histogram of port {port} counts {counted:.0f} frames, {departures:.0f} "
            "departed; it is damaged"
        )
    if facts["clock_steps"]:
        reasons.append(
            f"fidelity: CLOCK_REALTIME stepped {facts['clock_steps']} times (by up to {facts['realtime_step_max_ns']} "
            "ns) under the switch's arrival stamps: stop whatever sets the clock"
        )
    delay, (low, high) = facts["postcard_delay_us"], (limit / 1e3 for limit in POSTCARD_DELAY_NS)
    if delay and not (low <= delay["min"] and delay["max"] <= high):
        reasons.append(
            f"clocks: postcards were received {delay['min']:.0f} to {delay['max']:.0f} us after departure; allowed are "
            f"{low:.0f} to {high:.0f} us: switch and collector are not on one clock, or the collector stood still"
        )
    if complete and facts["depth_mismatches"]:
        reasons.append(
            f"queue: {facts['depth_mismatches']} packets report a depth that the others' arrivals and departures "
            "contradict; a fault of the switch: please report it with this run"
        )
    return reasons
