# SPDX-License-Identifier: MIT
"""Announces an experiment on the terminal: one line before it runs, a summary of a few lines afterwards."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from analysis.figures.common import sizes_text, transfers_text
from experiments.resolve import Resolved
from lib import units
from lib.terminal import complain, say

VIRTUAL = {
    "driver": "virtual time (the switch a driver)",
    "process": "virtual time (the switch a process)",
    "ns3": "simulated by ns-3",
}


def headline(spec: Resolved, directory: Path) -> str:
    """The experiment, and the directory of its files."""
    long_flows = [f"{group.flows} {group.cc}" for group in spec.groups]
    groups = " + ".join([*long_flows, *(transfers_text(asdict(group)) for group in spec.transfers)])
    if spec.load is not None:
        groups = f"{spec.load:g} of the rate in {sizes_text(str(spec.sizes))}, {spec.arrivals}, {spec.flows} flows,"
    clock = "real time" if spec.clock == "real" else VIRTUAL[spec.switch]
    seconds = "s" if spec.clock == "real" else "virtual s"
    links = f"{spec.access_links} access links of" if spec.access_links else "each flow behind"
    access = "" if spec.access_bps is None else f", {links} {units.show(spec.access_bps, 'rate')}"
    unit = "" if spec.threshold_bytes is None else f", {spec.threshold_bytes} bytes"
    return (
        f"{clock}: {groups} at {units.show(spec.rate_bps, 'rate')}, {units.show(spec.rtt_ns, 'time')}{access}: "
        f"BDP {spec.bdp_packets} packets, buffer {spec.buffer_packets} ({spec.buffer_given}{unit}), {spec.mode}, "
        f"{spec.traffic_ns / 1e9:g} {seconds} of traffic{f' x {spec.reps}' if spec.reps > 1 else ''} -> {directory}"
    )


def rows(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and value of the most important results; a key that the summary lacks has no row."""

    def at(*path: str) -> Any:
        value: Any = summary
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def say(pattern: str, *values: Any) -> str:
        return pattern.format(*values) if all(isinstance(value, (int, float)) for value in values) else ""

    percent = [100 * v if isinstance(v := at("utilization", key), (int, float)) else None for key in ("mean", "p01")]
    depth = [at("queue_depth_packets", key) for key in ("p01", "p50", "p99", "max")]
    ledger = [
        at("ledger", key) for key in ("postcards_sent", "postcards_received", "postcards_stored", "postcards_rows")
    ]
    theory = [at("open_loop", "mean_depth_packets", key) for key in ("measured", "theory", "standard_error")]
    late = [at("fidelity", "lateness_us", key) for key in ("p50", "p99", "max")]
    line_late = [at("fidelity", "line", "lateness_us", key) for key in ("p50", "p99", "max")]
    rate_error = at("fidelity", "rate_error_fraction")
    goodput = at("goodput_bps")
    after = " (after the warm-up)" if at("spec", "warmup_ns") else ""
    named = [
        ("utilization", say("{:.2f} % mean, {:.2f} % in the worst 1 % of windows", *percent)),
        ("goodput", say("{:.1f} Mb/s", goodput / 1e6 if isinstance(goodput, (int, float)) else None)),
        ("queue", say("{:.0f} / {:.0f} / {:.0f} / {:.0f} packets (p1, median, p99, most)", *depth)),
        ("theory", say("mean depth {:.3f} packets, expected {:.3f} (standard error {:.2g})", *theory)),
        ("drops", say(f"{{}} dropped, {{}} marked{after}", at("drops"), at("marks"))),
        ("fairness", say("{:.3f} (Jain)", at("jain_index"))),
        ("postcards", say("{} sent, {} received, {} stored, {} analysed", *ledger)),
        ("trace", say("{} records, {} lost", at("ledger", "tcp_events"), at("ledger", "tcp_events_lost"))),
        ("lateness", say("{:.0f} us median, {:.0f} p99, {:.0f} most", *late)),
        (
            "kept rate",
            say("{} packets/s; {:.1f} measured back to back", at("rate", "kept_pps"), at("rate", "measured_pps")),
        ),
        ("delay line", say("late {:.0f} us median, {:.0f} p99, {:.0f} most", *line_late)),
        ("rate error", say("{:.4f} %", 100 * rate_error if isinstance(rate_error, (int, float)) else None)),
    ]
    return [(name, value) for name, value in named if value]


def took(spec: Resolved, took_s: float) -> str:
    """The wall time of the repetition, and the duration of its traffic."""
    traffic_s = spec.traffic_ns / 1e9
    if spec.clock == "virtual":
        return f"{took_s:.1f} s, for {traffic_s:g} virtual s of traffic"
    return f"{took_s:.1f} s, {traffic_s:g} of them traffic"


def show(summary: dict[str, Any], repetition: Path, spec: Resolved, took_s: float) -> None:
    """Prints the summary; a run that is not valid says so last, on stderr, with every reason."""
    for name, value in rows(summary):
        say(f"  {name:<12} {value}")
    say(f"  {'took':<12} {took(spec, took_s)}")
    say(f"  {'report':<12} {repetition / 'report.html'}")
    if not summary.get("valid"):
        complain("NOT VALID: do not draw conclusions from this run")
        for reason in summary.get("reasons") or ["the summary gives no reason"]:
            complain(f"  because: {reason}")
