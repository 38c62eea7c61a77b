# SPDX-License-Identifier: MIT
"""The default experiment as a newcomer runs it, after set-up: time beyond its traffic, fidelity, utilization."""

from __future__ import annotations

import json
import statistics

from bench import lab
from bench.part import Part
from bench.report import BenchRow

RUNS = 3
STATIONS = ("postcards_sent", "postcards_received", "postcards_stored", "postcards_rows")


def measure(short: bool) -> list[BenchRow]:
    parameters = ["CC=cubic", "FLOWS=16", "NAME=bench-default", *(["DURATION=100rtt"] if short else [])]
    lab.prepare("experiment")
    overheads, summaries = [], []
    for _ in range(1 if short else RUNS):
        (outcome,) = lab.run("experiment", *parameters, clock="real")
        summaries.append(outcome.summary)
        traffic = json.loads((outcome.repetition / "traffic.json").read_text())
        overheads.append(outcome.wall_s - (traffic["end_mono_ns"] - traffic["start_mono_ns"]) / 1e9)
    return _rows(overheads, summaries)


PART = Part(measure, needs_root=True)


def _rows(overheads: list[float], summaries: list[dict]) -> list[BenchRow]:
    def column(pick) -> list[float]:
        return [pick(summary) for summary in summaries]

    def row(name: str, values: list[float], unit: str, **bounds) -> BenchRow:
        return BenchRow(f"default run: {name}", statistics.median(values), unit, samples=values, **bounds)

    ledgers = [summary["ledger"] for summary in summaries]
    lost = [
        max(abs(ledger["switch_packets"] - ledger[station]) for station in STATIONS) + ledger["tcp_events_lost"]
        for ledger in ledgers
    ]
    reasons = "; ".join(sorted({reason for summary in summaries for reason in summary["reasons"]}))
    return [
        row("time beyond the traffic", overheads, "s", must=20, aim=10, better="lower"),
        row("valid", column(lambda s: float(s["valid"])), "of 1", must=1, note=reasons),
        row("ledger, lost", lost, "records", must=0, better="lower"),
        row("utilization, mean", column(lambda s: s["utilization"]["mean"]), "", must=0.98),
        row(
            "queue above the buffer",
            column(lambda s: max(0, s["queue_depth_packets"]["max"] - s["buffer_packets"])),
            "packets",
            must=0,
            better="lower",
        ),
        row("rate error", column(lambda s: abs(s["fidelity"]["rate_error_fraction"])), "", must=1e-3, better="lower"),
        row(
            "lateness p99",
            column(lambda s: s["fidelity"]["lateness_us"]["p99"]),
            "us",
            must=500,
            better="lower",
            peer="Mininet-HiFi, 20 flows: 66 us at 62 Mb/s",
        ),
        row("lateness p99.9", column(lambda s: s["fidelity"]["lateness_us"]["p999"]), "us", better="lower"),
        row(
            "departures more than 10 % off the ideal gap",
            column(lambda s: s["fidelity"]["gap_error_over_10pct_fraction"]),
            "of 1",
            better="lower",
            peer="Mininet-HiFi, 20 flows: 0.077 at 62 Mb/s",
        ),
    ]
