# SPDX-License-Identifier: MIT
"""The tracer at more than 200 k events/s: losses, and the cost of an event in the traced kernel and in the reader.

Measures BPF and trace events, if this kernel has them. Only BPF reports the cost in the kernel.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path

from bench import processes
from bench.part import Part
from bench.report import BenchRow
from experiments.machine import cell
from experiments.setup import missing
from experiments.spec import topology

SECONDS, RUNS = 10, 3
SENDS_PER_S = 250_000  # each send causes one or two events


def measure(short: bool) -> list[BenchRow]:
    return [BenchRow(**row) for row in cell.run(lambda: _in_cell(2 if short else SECONDS, 1 if short else RUNS))]


PART = Part(measure, needs_root=True, goals=("bench-programs",))


def _in_cell(seconds: int, runs: int) -> list[dict]:
    topology.build(topology.Network(1500))
    sources = [
        source
        for source, available in (
            ("bpf", missing.BTF.exists()),
            ("tracefs", "tracefs" in missing.FILE_SYSTEMS.read_text().split()),
        )
        if available
    ]
    return [row for source in sources for row in _of(source, seconds, runs)]


def _of(source: str, seconds: int, runs: int) -> list[dict]:
    summaries = [_once(source, seconds) for _ in range(runs)]
    name_of = "tracer" if source == "bpf" else f"tracer ({source})"

    def row(name: str, pick, unit: str, **bounds) -> dict:
        values = [pick(summary) for summary in summaries]
        return dict(name=f"{name_of}: {name}", value=statistics.median(values), unit=unit, samples=values, **bounds)

    rows = [
        row("events per second", lambda s: s["events"] / seconds, "1/s", must=200_000),
        row("lost", lambda s: float(s["lost"]), "events", must=0, better="lower"),
        row("in the reader, an event", lambda s: s["user_ns_per_event"], "ns", better="lower"),
    ]
    if all(summary.get("bpf_ns_per_event") is not None for summary in summaries):  # None: no BPF statistics
        rows.append(
            row("in the kernel, an event", lambda s: s["bpf_ns_per_event"], "ns", aim=300, better="lower",
                peer="ftrace event of 128 B: 273-290 ns (published)")
        )  # fmt: skip
    return rows


def _once(source: str, seconds: int) -> dict:
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
                "--source",
                source,
            ]
            with processes.daemon("sender", "build/tcp_trace", *arguments):
                processes.run("sender", "build/tcp_event_generator", *load)
        return json.loads(summary.read_text())
