# SPDX-License-Identifier: MIT
"""The virtual-time lab as users run it: wall time, exactness, and determinism (a seed decides every byte).

Each run is a whole experiment, analysis included. Other work on the machine would distort the wall times.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from analysis.read.raw import load_postcards
from bench import lab
from bench.lab import BenchRun
from bench.part import Part
from bench.report import BenchRow
from runs.names import GOODPUT_FILE, POSTCARDS_FILE, TCP_FILE

RUNS = 3
RAW_FILES = (POSTCARDS_FILE, TCP_FILE, GOODPUT_FILE)
DEFAULT = ("CC=cubic", "FLOWS=16")
PAPER = ("RATE=10gbit", "RTT=1ms", "MTU=9000", "BUF=1bdp")  # Spang et al. (2021), section 3.6
# How far the queue falls after a loss, as a share of the BDP, for one flow and B = BDP, in the same section.
DRAINED = {"reno": "about all", "cubic": "60-70 %", "bbr": "about 25 %", "scalable": "11-25 %"}
FLOWS = (1, 16)


def run(*parameters: str, clock: str = "virtual") -> BenchRun:
    """Runs an experiment with one repetition. Raises RuntimeError with the experiment's stderr if it fails."""
    (outcome,) = lab.run("virtual", *parameters, clock=clock)
    return outcome


def measure(short: bool) -> list[BenchRow]:
    lab.prepare("virtual")
    outcomes: list[BenchRun] = []
    rows = [
        *_default(short, outcomes),
        *_at_once(short, outcomes),
        *_sweep_at_once(short),
        *_papers(short, outcomes),
        *_many_flows(short, outcomes),
        *_executors(short, outcomes),
        *_beside_ns3(short, outcomes),
        *_exactness(outcomes),
        *_determinism(short),
    ]
    valid = sum(outcome.valid for outcome in outcomes)
    why = "; ".join(outcome.why_not for outcome in outcomes if outcome.why_not)
    return [
        _row("runs that are valid", valid / len(outcomes), "of 1", must=1, note=f"{valid} of {len(outcomes)} {why}"),
        *rows,
    ]


PART = Part(measure, goals=("kernel", "simulator"))


def _row(name: str, value: float, unit: str, **more: Any) -> BenchRow:
    return BenchRow(name=f"virtual: {name}", value=value, unit=unit, **more)


def _default(short: bool, outcomes: list[BenchRun]) -> list[BenchRow]:
    length = ["DURATION=100rtt", "WARMUP=20rtt"] if short else []
    runs = [run(*DEFAULT, "NAME=default", *length) for _ in range(1 if short else RUNS)]
    outcomes += runs
    peer = "real time: needs root"
    if os.geteuid() == 0:
        real = run(*DEFAULT, "NAME=default-real", *length, clock="real")
        valid = "valid" if real.valid else "not valid"
        peer = (
            f"real time: {real.wall_s:.0f} s, {valid}, lateness p99 {real.summary['fidelity']['lateness_us']['p99']} us"
        )
    walls = [outcome.wall_s for outcome in runs]
    overheads = [outcome.wall_s - outcome.traffic_wall_s for outcome in runs]
    return [
        _row("make experiment CC=cubic FLOWS=16, wall of all but the traffic", statistics.median(overheads), "s",
             must=5, aim=3, better="lower", samples=overheads, note=_phases(runs[0])),
        _row("make experiment CC=cubic FLOWS=16, wall", statistics.median(walls), "s", must=60, aim=40, better="lower",
             samples=walls, peer=peer, note=runs[0].pace)
    ]  # fmt: skip


def _phases(outcome: BenchRun) -> str:
    """The wall time of each phase of a run."""
    environment = json.loads((outcome.repetition / "environment.json").read_text())
    phases = environment["phases_s"]
    machine_s = phases["machine"] - outcome.traffic_wall_s
    analysis_s = outcome.wall_s - phases["plan"] - phases["machine"]
    return f"plan {phases['plan']:.1f} s, machine {machine_s:.1f} s, commands and analysis {analysis_s:.1f} s"


def _at_once(short: bool, outcomes: list[BenchRun]) -> list[BenchRow]:
    """Two concurrent runs against a single run, measured alternately. Needs two processors or more."""
    if len(os.sched_getaffinity(0)) < 2:
        print("bench: this machine has one processor, so no two runs are timed at once", file=sys.stderr)
        return []
    length = ["DURATION=100rtt", "WARMUP=20rtt"] if short else []

    def one(number: int) -> BenchRun:
        (outcome,) = lab.run(f"virtual/at-once-{number}", *DEFAULT, "NAME=at-once", *length)
        return outcome

    ratios, alone_s = [], []
    for _ in range(1 if short else RUNS):
        alone = one(0)
        with ThreadPoolExecutor(2) as threads:
            both = list(threads.map(one, (0, 1)))
        outcomes += [alone, *both]
        alone_s.append(alone.wall_s)
        ratios.append(max(outcome.wall_s for outcome in both) / alone.wall_s)
    return [
        _row("two runs at once: the slower one's wall time over a run's alone", statistics.median(ratios), "x",
             must=1.15, better="lower", samples=ratios, peer=f"alone: {statistics.median(alone_s):.1f} s",
             note="a run alone draws its figures on two processors")
    ]  # fmt: skip


def _sweep_at_once(short: bool) -> list[BenchRow]:
    """The runs of a sweep, which draws no figures: two at a time against one at a time."""
    if len(os.sched_getaffinity(0)) < 2:
        return []
    buffers = ("0.5bdp", "1bdp") if short else ("0.5bdp", "0.6bdp", "0.7bdp", "0.8bdp", "0.9bdp", "1bdp")
    ratios, alone_s = [], []
    for _ in range(1 if short else RUNS):
        one, two = (lab.sweep_s("virtual/sweep", buffers, jobs, *DEFAULT) for jobs in (1, 2))
        alone_s.append(one / len(buffers))
        ratios.append(2 * two / one)
    return [
        _row("two runs of a sweep at once: a run's wall time over its time alone", statistics.median(ratios), "x",
             must=1.15, better="lower", samples=ratios, peer=f"alone: {statistics.median(alone_s):.1f} s")
    ]  # fmt: skip


def _papers(short: bool, outcomes: list[BenchRun]) -> list[BenchRow]:
    """The link of Spang et al. (2021). BBR's ProbeRTT comes every 10 s, so a run of 1 s has none."""
    length = ["DURATION=100rtt", "WARMUP=50rtt"] if short else ["DURATION=1000rtt"]
    rows = []
    for cc, paper in DRAINED.items():
        for flows in FLOWS:
            outcome = run(*PAPER, f"CC={cc}", f"FLOWS={flows}", f"NAME=paper-{cc}{flows}", *length)
            outcomes.append(outcome)
            name = f"10 Gb/s, 1 ms, MTU 9000, {flows} {cc}"
            rows.append(_row(f"{name}, wall", outcome.wall_s, "s", must=90, aim=40, better="lower", note=outcome.pace))
            if outcome.summary["drained_fraction"]["count"]:
                rows.append(_drained(name, outcome, paper if flows == 1 else ""))
    return rows


def _drained(name: str, outcome: BenchRun, paper: str) -> BenchRow:
    drained = outcome.summary["drained_fraction"]
    over_rtt = _range(drained["of_bdp_mean_over_rtt"])
    return _row(
        f"{name}, drained", drained["of_bdp"]["median"], "BDP", peer=f"Spang et al., 3.6: {paper}" if paper else "",
        note=f"{_range(drained['of_bdp'])} ({over_rtt} by the mean depth over an RTT) in {drained['count']} "
        f"{drained['basis']}; utilization {outcome.summary['utilization']['mean']:.4f}",
    )  # fmt: skip


def _range(share: dict[str, float | None]) -> str:
    return "none" if share["min"] is None else f"{share['min']:.2f} to {share['max']:.2f}"


def _many_flows(short: bool, outcomes: list[BenchRun]) -> list[BenchRow]:
    """A packet must not cost more wall time because there are many flows."""
    wide = ("RATE=100gbit", "RTT=1ms", "MTU=9000", f"DURATION={20 if short else 200}rtt", "WARMUP=20rtt")
    narrow = ("RATE=1gbit", *(("DURATION=50rtt", "WARMUP=20rtt") if short else ()))
    long = ("RATE=10gbit", "RTT=100ms", "WARMUP=2s", "DURATION=1s", "CC=reno")
    links = [("100 Gb/s, 1 ms, MTU 9000", wide, 100, 1.5, RUNS), ("1 Gb/s, 10 ms", narrow, 500, 1.5, RUNS)]
    rows = []
    for name, parameters, flows, must, runs in [*links, *([] if short else [("10 Gb/s, 100 ms", long, 10_000, 2, 1)])]:
        pairs = [
            [run(*parameters, f"FLOWS={count}", f"NAME=many-{count}") for count in (1, flows)]
            for _ in range(1 if short else runs)
        ]
        outcomes += [outcome for pair in pairs for outcome in pair]
        ratios = [many.packet_us / single.packet_us for single, many in pairs]
        single, many = pairs[0]
        rows.append(
            _row(f"{name}, {flows} flows: a packet's cost over one flow's", statistics.median(ratios), "x",
                 must=must, samples=ratios, better="lower",
                 peer=f"one flow: {single.packet_us:.0f} us per packet, {single.wall_s:.0f} s",
                 note=f"{many.pace}, {many.wall_s:.0f} s in all")
        )  # fmt: skip
    return rows


def _executors(short: bool, outcomes: list[BenchRun]) -> list[BenchRow]:
    """The same experiment with the switch as a driver and as a process."""
    length = f"DURATION={100 if short else 500}rtt"
    driver, process = (
        run(*PAPER, "CC=reno", "FLOWS=1", length, f"SWITCH={kind}", f"NAME={kind}") for kind in ("driver", "process")
    )
    outcomes += [driver, process]
    paces = [outcome.summary["lab"]["wall_s_per_traffic_s"] for outcome in (driver, process)]
    fidelity = process.summary["fidelity"]
    drains = [outcome.summary["drained_fraction"]["of_bdp"]["median"] for outcome in (driver, process)]
    return [
        _row("10 Gb/s, 1 Reno: the driver's wall time over the process's", paces[0] / paces[1], "x", better="lower",
             peer=f"per second of traffic: process {paces[1]} s, driver {paces[0]} s",
             note=f"drained: process {drains[1]:.3f} BDP, driver {drains[0]:.3f} BDP"),
        _row("switch as a process: lateness, most", fidelity["lateness_max_ns"] / 1e3, "us", must=10, better="lower",
             peer="NetEm: 71 us median, 769 us worst; MoonEm on bare metal: 0.05 us, 0.08 us (published)",
             note=f"gap error {fidelity['gap_error_max_ns']:.0f} ns, rate error {fidelity['rate_error_fraction']:.1e}"),
    ]  # fmt: skip


def _beside_ns3(short: bool, outcomes: list[BenchRun]) -> list[BenchRow]:
    """One Reno flow in the lab and in ns-3, measured alternately. ns-3's time is that of its whole process."""
    length = f"DURATION={100 if short else 500}rtt"
    pairs = []
    for _ in range(1 if short else RUNS):
        outcome = run(*PAPER, "CC=reno", "FLOWS=1", length, "NAME=beside-ns3")
        outcomes.append(outcome)
        pairs.append((outcome.packet_us, run(*PAPER, "CC=reno", "FLOWS=1", length, "SWITCH=ns3", "NAME=ns3").packet_us))
    ratios = [lab_us / ns3_us for lab_us, ns3_us in pairs]
    return [
        _row("10 Gb/s, 1 ms, MTU 9000, 1 Reno: a packet's wall time over ns-3's", statistics.median(ratios), "x",
             must=0.2, aim=0.12, better="lower", samples=ratios,
             peer=f"ns-3: {statistics.median(pair[1] for pair in pairs):.1f} us per packet",
             note=f"{statistics.median(pair[0] for pair in pairs):.1f} us per packet")
    ]  # fmt: skip


def _exactness(outcomes: Iterable[BenchRun]) -> list[BenchRow]:
    """The worst values over all frames of all runs with the driver."""
    in_virtual = (outcome.summary for outcome in outcomes if outcome.summary["clock"] == "virtual")
    summaries = [summary for summary in in_virtual if summary["lab"]["switch"] == "driver"]
    frames = sum(summary["fidelity"]["lateness_frames"] for summary in summaries)

    def worst(name: str, pick: Any, unit: str, must: float, peer: str = "") -> BenchRow:
        value, note = max(abs(pick(summary)) for summary in summaries), f"of {len(summaries)} runs"
        return _row(f"driver: {name}", value, unit, must=must, better="lower", peer=peer, note=note)

    return [
        _row("driver: lateness, most of all frames", max(s["fidelity"]["lateness_max_ns"] for s in summaries), "ns",
             must=0, better="lower", peer="MoonEm on bare metal: 53 ns median, 80 ns worst (published)",
             note=f"{frames:.0f} frames of the bottleneck, and the frames of all other ports but the collector's"),
        worst("gap error, most", lambda s: s["fidelity"]["gap_error_max_ns"], "ns", 1,
              "Mininet-HiFi, 20 flows at 62 Mb/s: 7.7 % of gaps more than 10 % off"),
        worst("rate error", lambda s: s["fidelity"]["rate_error_fraction"], "", 1e-6,
              "Mininet against a testbed: up to 9 % (published)"),
        worst("idle RTT beyond an echo's time", lambda s: s["idle_rtt_ns"]["min"] - s["idle_rtt_ns"]["expected"], "ns",
              10, "two readings of the clock"),
    ]  # fmt: skip


def _determinism(short: bool) -> list[BenchRow]:
    """The same seed gives the same bytes. Another seed gives another queue, not only other port numbers."""
    length = f"DURATION={50 if short else 200}rtt"
    first, again, other = (
        run(*DEFAULT, length, "WARMUP=20rtt", f"SEED={seed}", f"NAME=seed-{seed}").repetition for seed in (7, 7, 8)
    )
    differ = sum(_digest(first / name) != _digest(again / name) for name in RAW_FILES)
    depths = [load_postcards(path / RAW_FILES[0])[0]["depth_packets"] for path in (first, other)]
    same = min(map(len, depths))
    apart = float(np.mean(depths[0][:same] != depths[1][:same]))
    return [
        _row("files that differ between two runs of one seed", differ, "of 3", must=0, better="lower",
             note=", ".join(RAW_FILES), peer="ns-3 DCE: fully deterministic, simulated links (published)"),
        _row("packets that find another depth with another seed", apart, "of 1", must=0.1),
    ]  # fmt: skip


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
