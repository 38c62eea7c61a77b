# SPDX-License-Identifier: MIT
"""Announces an experiment on the terminal: one line before it runs, and how long a repetition took."""

from __future__ import annotations

from pathlib import Path

from analysis.wording.link_text import changes_text, rate_text
from analysis.wording.traffic_text import sizes_text, traffic_text
from experiments.spec.demand import traffic_ns
from lib import units
from model.experiment import Experiment

VIRTUAL = {
    "driver": "virtual time (the switch a driver)",
    "process": "virtual time (the switch a process)",
    "ns3": "simulated by ns-3",
}


def headline(spec: Experiment, directory: Path) -> str:
    """The experiment, and the directory of its files."""
    groups = traffic_text(spec)
    if alone := spec.open_loop:
        groups = f"{alone.load:g} of the rate in {sizes_text(alone.sizes)}, {alone.arrivals}, {spec.flows} flows,"
    clock = "real time" if spec.clock == "real" else VIRTUAL[spec.switch_kind]
    seconds = "s" if spec.clock == "real" else "virtual s"
    shared = spec.shared
    links = f"{shared.access_links} access links of" if shared.access_links else "each flow behind"
    access = "" if shared.access_bps is None else f", {links} {units.show(shared.access_bps, 'rate')}"
    rate = rate_text(spec) if spec.rate_changes else units.show(spec.rate_bps, "rate")
    reps = spec.reps or 1
    unit = "" if spec.threshold_bytes is None else f", {spec.threshold_bytes} bytes"
    return (
        f"{clock}: {groups} at {rate}, {units.show(spec.rtt_ns, 'time')}{access}"
        f"{changes_text(spec)}: "
        f"BDP {spec.bdp_packets} packets, buffer {spec.buffer_packets} ({spec.buffer_given}{unit}), {spec.queue_rule}, "
        f"{traffic_ns(spec) / 1e9:g} {seconds} of traffic{f' x {reps}' if reps > 1 else ''} -> {directory}"
    )


def took(spec: Experiment, took_s: float) -> str:
    """The wall time of the repetition, and the duration of its traffic."""
    traffic_s = traffic_ns(spec) / 1e9
    if spec.clock == "virtual":
        return f"{took_s:.1f} s, for {traffic_s:g} virtual s of traffic"
    return f"{took_s:.1f} s, {traffic_s:g} of them traffic"
