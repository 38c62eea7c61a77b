# SPDX-License-Identifier: MIT
"""The collector from veth to disk, at a steady rate and at the generator's full speed, beside a sink that discards.

At full speed the generator takes nearly one core.
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
from experiments.spec import topology
from wire.wire import POSTCARD, STORED_POSTCARD

RATE_PER_S, SECONDS = 700_000, 60
FREE_SECONDS, RUNS = 8, 3
PORT = POSTCARD.const["POSTCARD_UDP_PORT"]


def measure(short: bool) -> list[BenchRow]:
    seconds, free_seconds, runs = (3, 2, 1) if short else (SECONDS, FREE_SECONDS, RUNS)
    return [BenchRow(**row) for row in cell.run(lambda: _in_cell(seconds, free_seconds, runs))]


PART = Part(measure, needs_root=True, goals=("bench-programs",))


def _in_cell(seconds: int, free_seconds: int, runs: int) -> list[dict]:
    topology.build(topology.Network(1500))
    # The generator takes the switch's place, at the other end of the collector's veth.
    collector = topology.COLLECTOR
    processes.run(
        topology.SWITCH, "ip", "address", "add", f"{topology.POSTCARD_SOURCE}/24", "dev", collector.switch_interface
    )
    steady = _store(RATE_PER_S * seconds, RATE_PER_S)
    stored, discarded = [], []
    for _ in range(runs):
        discarded.append(_discard(2_000_000 * free_seconds))
        stored.append(_store(2_000_000 * free_seconds, None)["stored_per_s"])
    gigabytes = steady["stored"] * STORED_POSTCARD.itemsize / 1e9
    ratio = [stored_per_s / sink for stored_per_s, sink in zip(stored, discarded, strict=True)]
    return [
        _row(f"stored at {RATE_PER_S / 1e3:.0f} k/s for {seconds} s, missing", [steady["missing"]], "postcards", must=0,
             better="lower", note=f"{steady['stored']} stored, {gigabytes:.1f} GB"),
        _row("stored per second in that run", [steady["stored_per_s"] / 1e3], "k/s", must=0.99 * RATE_PER_S / 1e3),
        _row("stored per second, sender unbounded", [rate / 1e6 for rate in stored], "M/s", aim=1.5,
             peer=f"a sink that discards: {statistics.median(discarded) / 1e6:.2f} M/s"),
        _row("stored over discarded", ratio, "x"),
    ]  # fmt: skip


def _row(name: str, values: list[float], unit: str, **more) -> dict:
    return dict(name=f"collector: {name}", value=statistics.median(values), samples=values, unit=unit, **more)


def _generate(count: int, rate: int | None) -> dict:
    bound = ["--rate", str(rate)] if rate else []
    target = f"{topology.COLLECTOR.ipv4}:{PORT}"
    return json.loads(
        processes.run(topology.SWITCH, "build/postcard_generator", "--to", target, "--count", str(count), *bound)
    )


def _store(count: int, rate: int | None) -> dict:
    with tempfile.TemporaryDirectory(dir="build") as disk:
        summary = Path(disk) / "collector.json"
        arguments: list[str | Path] = [
            "--listen",
            f":{PORT}",
            "--output",
            f"{disk}/postcards.bsp",
            "--summary",
            summary,
        ]
        with processes.daemon(topology.COLLECTOR.name, "build/collector", *arguments):
            sent = _generate(count, rate)
        counts = json.loads(summary.read_text())
    return {
        "stored": counts["stored"],
        "missing": sent["sent"] - counts["stored"],
        "stored_per_s": counts["stored"] / sent["seconds"],
    }


def _discard(count: int) -> float:
    """Postcards per second that a collector receives and discards."""
    argv = ["build/collector", "--listen", f":{PORT}", "--discard"]
    with processes.daemon(topology.COLLECTOR.name, *argv) as sink:
        sent = _generate(count, None)
    assert sink.stdout
    return json.loads(sink.stdout.read())["received"] / sent["seconds"]
