# SPDX-License-Identifier: MIT
"""Runs and times whole experiments for the bench, as a user runs them, analysis included."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.report import RESULTS
from experiments.machine.host import CHECKOUT
from runs.names import LATEST, SUMMARY

RUN_DIRECTORIES = RESULTS / "runs"  # keeps only the runs of each part's last bench, because runs are large


@dataclass(frozen=True)
class BenchRun:
    """One repetition."""

    repetition: Path
    wall_s: float  # of the whole experiment, divided by the number of repetitions
    summary: dict[str, Any]

    @property
    def valid(self) -> bool:
        return bool(self.summary["valid"])

    @property
    def why_not(self) -> str:
        return "" if self.valid else f"{self.summary['spec']['name']} NOT VALID: {'; '.join(self.summary['reasons'])}"

    @property
    def traffic_wall_s(self) -> float:
        """Wall time of the traffic of a repetition in virtual time."""
        traffic = json.loads((self.repetition / "traffic.json").read_text())
        seconds = (traffic["end_mono_ns"] - traffic["start_mono_ns"]) / 1e9
        return float(self.summary["lab"]["wall_s_per_traffic_s"]) * seconds

    @property
    def packet_us(self) -> float:
        """Wall time of the traffic, divided by the packets that arrived at the queue."""
        return 1e6 * self.traffic_wall_s / self.summary["ledger"]["switch_packets"]

    @property
    def pace(self) -> str:
        per_second = self.summary["lab"]["wall_s_per_traffic_s"]
        return f"{per_second} s per second of traffic, {self.packet_us:.0f} us per packet"


def sweep_s(part: str, buffers: tuple[str, ...], jobs: int, *parameters: str) -> float:
    """Wall time of a sweep over `buffers` with `jobs` runs at a time. Raises RuntimeError with the sweep's stderr
    unless every run is valid.
    """
    results = CHECKOUT / RUN_DIRECTORIES / part
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    spec = results / "bench.yaml"
    given = {"clock": "virtual"} | {key.lower(): value for key, value in (word.split("=") for word in parameters)}
    content = {"name": "bench", "about": "runs of the bench", "keep": "summary", "reps": 1, "base": given}
    spec.write_text(yaml.safe_dump(content | {"grid": {"buf": list(buffers)}}))
    return command_s("sweep", f"SPEC={spec}", f"JOBS={jobs}", f"RESULTS={results}", allowed=(0,))


def command_s(*words: str, allowed: tuple[int, ...] = (0, 2)) -> float:
    """Runs a command of bufferscope; returns its wall time. Raises RuntimeError with its stderr if its exit status is
    not among `allowed`.
    """
    begin = time.monotonic()
    result = subprocess.run(
        [sys.executable, "-m", "bufferscope", *words], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    wall_s = time.monotonic() - begin
    if result.returncode not in allowed:
        raise RuntimeError(f"{' '.join(words)}: {result.stderr.strip() or result.stdout.strip()}")
    print(f"  {wall_s:5.1f} s  {' '.join(words)}", file=sys.stderr, flush=True)
    return wall_s


def prepare(part: str) -> None:
    """Removes the part's old runs."""
    shutil.rmtree(CHECKOUT / RUN_DIRECTORIES / part, ignore_errors=True)


def run(part: str, *parameters: str, clock: str = "virtual") -> list[BenchRun]:
    """Runs an experiment; returns all repetitions. Raises RuntimeError with the experiment's stderr if it fails."""
    results = CHECKOUT / RUN_DIRECTORIES / part
    wall_s = command_s("experiment", f"CLOCK={clock}", "YES=1", *parameters, f"RESULTS={results}")
    paths = sorted((results / LATEST).resolve().glob("rep-*"), key=lambda path: int(path.name[4:]))
    return [BenchRun(path, wall_s / len(paths), json.loads((path / SUMMARY).read_text())) for path in paths]
