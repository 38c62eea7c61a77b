# SPDX-License-Identifier: MIT
"""Did the emulation keep up? How well real time followed virtual time, and whether the postcards agree.

Limits that depend on the clock: those of real time are here, those of virtual time in exactness.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis import wall_clock
from analysis.exactness import in_virtual_time, inexact
from analysis.ledger import number, ports_with_packets, sum_stats
from analysis.load import Run
from analysis.targets import Rules, rules
from wire import wire

CARD = wire.POSTCARD.const
MAX_LATENESS_RTT_FRACTION = 0.05  # p99, of the base RTT
# Back-to-back time that a rate is judged by, in gaps of full frames: each end is off by up to one frame's lateness, so
# over fewer of them a tenth of a gap, which any scheduler takes, would pass for 0.1 % of the rate.
MIN_RATE_GAPS = 100
MAX_CLAMPED_FRACTION = 1e-3  # of the switch's arrivals: their times, and so depths, are a little off
PERCENTS = {"p50": 50.0, "p99": 99.0, "p999": 99.9}
LINE_PORT = 2  # of a delay line, towards the receiver: LINE_TO_RECEIVER of experiments/topology.py
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
    """What the switch says of its bottleneck port, and what its postcards say of each other. None: not recorded, or not
    known of this target; `absent` has the reasons of the latter.
    """
    delay = queue["rx_mono_ns"] - queue["enqueue_mono_ns"] - queue["sojourn_ns"]
    own = rules(run)
    soft = soft_facts(run.documents["switch"], port)
    if not own.exact_time:
        line = run.documents["switch"].get("line")
        known = wall_clock.link_facts(run, queue) | wall_clock.clock_facts(run)
        absent: dict[str, Any] = dict.fromkeys(wall_clock.NOT_KNOWN)
        absent["lateness_us"] = histogram_percentiles(None, **PERCENTS)
        found = absent | known | {
            "absent": wall_clock.NOT_KNOWN,
            "line": soft_facts(line, LINE_PORT) if isinstance(line, dict) else None,
        }  # fmt: skip
    else:
        found = soft | {"absent": {}, "line": None}
    errors = depth_errors(queue)
    return found | {
        **cpu_fractions(run.documents["environment"]),
        "postcard_delay_us": {"min": float(delay.min()) / 1e3, "max": float(delay.max()) / 1e3} if len(delay) else None,
        "depths": len(errors),
        "depth_mismatches": int(np.count_nonzero(errors > own.depth_error_packets)),
        "depth_error_packets": {"p99": float(np.percentile(errors, 99)), "max": int(errors.max())}
        if len(errors)
        else None,
    }


def soft_facts(switch: dict[str, Any], port: int | None) -> dict[str, Any]:
    """What our soft switch counts of a port: the bottleneck's, or that of a delay line."""
    found = switch.get("stats")
    stats: dict[str, Any] = found if isinstance(found, dict) else {}
    lateness = switch.get("lateness")
    buckets = lateness.get(str(port)) if isinstance(lateness, dict) else None
    frames, off = number(stats, f"gap_frames.{port}"), number(stats, f"gap_error_over_10pct.{port}")
    real, virtual = number(stats, f"real_span_ns.{port}"), number(stats, f"virtual_span_ns.{port}")
    clamped, arrived = number(stats, "arrivals_clamped"), sum_stats(switch, "rx_frames")
    loop_gap_ns = number(stats, "loop_gap_max_ns")
    collectors = ports_with_packets(switch, "postcards_made")
    return {
        "departures": number(stats, f"departures.{port}"),
        "lateness_frames": sum(count for _, count in pairs) if (pairs := histogram(buckets)) is not None else None,
        "lateness_us": histogram_percentiles(buckets, **PERCENTS),
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
    """Packets whose depth is not what arrivals and departures of the others make it."""
    return int(np.count_nonzero(depth_errors(queue)))


def depth_errors(queue: dict[str, np.ndarray]) -> np.ndarray:
    """By how many packets each depth is off what arrivals and departures of the others make it: an independent recount.

    Packets that came at the same ns as another are left out (0): their order is not known here.
    """
    came, flags = queue["enqueue_mono_ns"], queue["flags"]
    if not len(came):
        return np.zeros(0, dtype=np.int64)
    both = np.uint8(CARD["POSTCARD_DROPPED"] | CARD["POSTCARD_AT_INGRESS"])
    admitted = (flags & both) != both
    left = (came + queue["sojourn_ns"])[admitted]
    if (left[1:] < left[:-1]).any():
        left = np.sort(left)
    gone = np.searchsorted(left, came, side="right")
    depth = np.cumsum(admitted) - admitted - gone + int(queue["depth_packets"][0])
    error = np.abs(queue["depth_packets"].astype(np.int64) - depth)
    suspects = np.flatnonzero(error)
    if len(left):  # one that leaves in the very ns of an arrival may be counted either way
        leaving = (gone[suspects] > 0) & (left[np.maximum(gone[suspects] - 1, 0)] == came[suspects])
        error[suspects[leaving & (queue["depth_packets"][suspects] == depth[suspects] + 1)]] = 0
    same = came[1:] == came[:-1]
    error[1:][same] = 0
    error[:-1][same] = 0
    return error


def fidelity_reasons(run: Run, facts: dict[str, Any], port: int | None, complete: bool) -> list[str]:
    """One line for each limit that was passed.

    `complete`: no postcard is missing, so they can be held against each other.
    """
    own = rules(run)
    if in_virtual_time(run):
        reasons = inexact(run, facts)
    elif not own.exact_time:
        line = facts["line"]
        reasons = _rate_reasons(run, facts, own) + wall_clock.clock_reasons(facts)
        reasons += _lateness_reasons(run, line, "port 2 of the delay line") + _soft_reasons(line) if line else []
    else:
        reasons = _lateness_reasons(run, facts, f"port {port}") + _rate_reasons(run, facts, own) + _soft_reasons(facts)
    return reasons + _common_reasons(run, facts, port, complete, own)


def _lateness_reasons(run: Run, facts: dict[str, Any], where: str) -> list[str]:
    late, allowed = facts["lateness_us"]["p99"], MAX_LATENESS_RTT_FRACTION * run.spec["rtt_ns"] / 1e3
    if late is None or late <= allowed:
        return []
    return [
        f"fidelity: 1 % of frames left {where} {late:.0f} us late or later; allowed are {allowed:.0f} us (5 % "
        "of the base RTT): lower RATE, raise RTT, or leave the machine idle"
    ]


def _rate_reasons(run: Run, facts: dict[str, Any], own: Rules) -> list[str]:
    error, span_ns = facts["rate_error_fraction"], facts["back_to_back_ns"]
    gap_ns = run.spec["wire_bytes"] * 8e9 / run.spec["rate_bps"]
    if error is None or span_ns < MIN_RATE_GAPS * gap_ns or abs(error) <= own.max_rate_error:
        return []
    rate_error = 1 / (1 + error) - 1  # `error` is that of the time that packets take
    return [
        f"fidelity: the link's real rate was off by {rate_error:+.3%}; allowed is {100 * own.max_rate_error:g} %: "
        "lower RATE"
    ]


def _soft_reasons(facts: dict[str, Any]) -> list[str]:
    clamped = facts["arrivals_clamped_fraction"]
    if clamped is None or clamped <= MAX_CLAMPED_FRACTION:
        return []
    return [
        f"fidelity: {clamped:.2%} of arrivals were read too late and moved to a later virtual time; allowed is "
        f"{MAX_CLAMPED_FRACTION:.1%}: lower RATE, or leave the machine idle"
    ]


def _common_reasons(run: Run, facts: dict[str, Any], port: int | None, complete: bool, own: Rules) -> list[str]:
    reasons = []
    late = facts["lateness_us"]["p99"]
    soft = facts
    if not own.exact_time:
        soft = facts["line"] or {}
        known = {
            "rate error": facts["back_to_back_ns"], "its clock's offset": facts["clock_moved_ns"],
            "its clock's uncertainty": facts["clock_uncertainty_ns"],
        }  # fmt: skip
    else:
        known = {"lateness": late, "departures": facts["departures"], "rate error": facts["back_to_back_ns"]}
    if soft:
        known |= {"clock steps": soft["clock_steps"], "clamped arrivals": soft["arrivals_clamped_fraction"]}
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
    if soft and soft["clock_steps"]:
        reasons.append(
            f"fidelity: CLOCK_REALTIME stepped {soft['clock_steps']} times (by up to {soft['realtime_step_max_ns']} "
            "ns) under the switch's arrival stamps: stop whatever sets the clock"
        )
    delay, (low, high) = facts["postcard_delay_us"], (limit / 1e3 for limit in POSTCARD_DELAY_NS)
    if delay and not (low <= delay["min"] and delay["max"] <= high):
        reasons.append(
            f"clocks: postcards were received {delay['min']:.0f} to {delay['max']:.0f} us after departure; allowed are "
            f"{low:.0f} to {high:.0f} us: switch and collector are not on one clock, or the collector stood still"
        )
    wrong = facts["depth_mismatches"]
    if complete and wrong > own.depth_error_fraction * facts["depths"]:
        by = f" by more than {own.depth_error_packets} packets" if own.depth_error_packets else ""
        what = "a fault of the switch: please report it with this run"
        if own.depth_error_fraction:
            what = f"allowed are {own.depth_error_fraction:.0%} of them: lower RATE, or leave the machine idle"
        reasons.append(
            f"queue: {wrong} packets report a depth that the others' arrivals and departures contradict{by}; {what}"
        )
    return reasons
