# SPDX-License-Identifier: MIT
"""The tracer at more than 200 k events/s: nothing lost, and what an event costs the traced kernel and the reader."""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path

from bench import processes
from bench.report import Row
from experiments import cell, topology

SECONDS, RUNS = 10, 3
SENDS_PER_S = 250_000  # each is an event or two


def measure(short: bool) -> list[Row]:
    return [Row(**row) for row in cell.run(lambda: _in_cell(2 if short else SECONDS, 1 if short else RUNS))]


def _in_cell(seconds: int, runs: int) -> list[dict]:
    topology.build(1500)
    summaries = [_once(seconds) for _ in range(runs)]

    def row(name: str, pick, unit: str, **bounds) -> dict:
        values = [pick(summary) for summary in summaries]
        return dict(name=f"tracer: {name}", value=statistics.median(values), unit=unit, samples=values, **bounds)

    return [
        row("events a second", lambda s: s["events"] / seconds, "1/s", must=200_000),
        row("lost", lambda s: float(s["lost"]), "events", must=0, better="lower"),
        row("in the kernel, an event", lambda s: s["bpf_ns_per_event"], "ns", aim=300, better="lower",
            peer="ftrace event of 128 B: 273-290 ns (published)"),
        row("in the reader, an event", lambda s: s["user_ns_per_event"], "ns", better="lower"),
    ]  # fmt: skip


def _once(seconds: int) -> dict:
    with tempfile.TemporaryDirectory(dir=cell.RUNTIME) as scratch:
        summary = Path(scratch) / "tracer.json"
        load = ("--seconds", str(seconds), "--connections", "32", "--rate", str(SENDS_PER_S))
        with tempfile.TemporaryDirectory(dir="build") as disk:
            arguments: list[str | Path] = [
                "--output",
                f"{disk}/tcp.bst",
                "--summary",
                summary,
                "--netns",
                topology.netns("sender"),
            ]
            with processes.daemon("sender", "build/tcp_trace", *arguments):
                processes.run("sender", "build/tcp_event_generator", *load)
        return json.loads(summary.read_text())
