# SPDX-License-Identifier: MIT
"""BMv2 in virtual time: whether its runs are valid and its depths exact, at a rate that it reaches in real time and at
ten times that rate. A run of the soft switch with the same parameters stands beside the depths.
"""

from __future__ import annotations

from bench import lab
from bench.lab import BenchRun
from bench.part import Part
from bench.report import BenchRow
from experiments.setup import missing

RUNS = 3
RATES = ("50mbit", "500mbit")
EXPERIMENT = ("CC=cubic", "FLOWS=4", "RTT=20ms", "DURATION=100rtt", "WARMUP=50rtt")


def measure(short: bool) -> list[BenchRow]:
    lab.prepare("bmv2")
    runs = 1 if short else RUNS
    rows = []
    for rate in RATES:
        words = (*EXPERIMENT, f"RATE={rate}")
        ran = lab.run("bmv2", *words, "TARGET=bmv2", f"REPS={runs}", f"NAME=bmv2-{rate}")
        (soft,) = lab.run("bmv2", *words, f"NAME=soft-{rate}")
        rows += _rows(rate, ran, soft)
    return rows


PART = Part(measure, goals=("kernel",), absent=lambda: "; ".join(missing.programs("bmv2")))


def _rows(rate: str, ran: list[BenchRun], soft: BenchRun) -> list[BenchRow]:
    off = [outcome.summary["fidelity"]["depth_mismatches"] for outcome in ran]
    where, peer = f"bmv2: 4 Cubic at {rate}, 20 ms, virtual time", f"soft switch: {_figures(soft)}"
    return [
        BenchRow(f"{where}: valid runs", sum(outcome.valid for outcome in ran), f"of {len(ran)}", must=len(ran),
                 note="; ".join(outcome.why_not for outcome in ran if outcome.why_not)),
        BenchRow(f"{where}: depths that differ from a recount", max(off), "packets", must=0, better="lower",
                 samples=off, peer=peer, note=f"{_figures(ran[0])}; {ran[0].pace}"),
    ]  # fmt: skip


def _figures(outcome: BenchRun) -> str:
    summary = outcome.summary
    depth = summary["queue_depth_packets"]
    return (
        f"utilization {summary['utilization']['mean']:.4f}, depth mean {depth['mean']:.2f}, max {depth['max']}, "
        f"{summary['drops']} drops"
    )
