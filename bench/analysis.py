# SPDX-License-Identifier: MIT
"""Analysis of a run far larger than the default: 10 M postcards and 5 M trace records to joined Parquet tables."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from analysis.tests.synthesize import write_big
from bench.part import Part
from bench.report import BenchRow
from runs.names import REPETITION

POSTCARDS, RECORDS, FLOWS, RUNS = 10_000_000, 5_000_000, 16, 3


def measure(short: bool) -> list[BenchRow]:
    postcards, records, runs = (100_000, 50_000, 1) if short else (POSTCARDS, RECORDS, RUNS)
    with tempfile.TemporaryDirectory(dir="build") as directory:
        big = Path(directory) / REPETITION
        write_big(big, postcards, records, FLOWS)
        results = [_once(big, Path(directory) / f"tables-{number}") for number in range(runs)]
    seconds, gigabytes = [result["seconds"] for result in results], [result["gigabytes"] for result in results]
    return [
        BenchRow("analysis: load, join, Parquet of 10 M x 5 M rows", sorted(seconds)[runs // 2], "s", must=10,
            better="lower", samples=seconds, note=f"rows written: {results[0]['rows']}"),
        BenchRow("analysis: memory for that", max(gigabytes), "GB", must=1, better="lower", samples=gigabytes),
    ]  # fmt: skip


PART = Part(measure)


def _once(run: Path, output: Path) -> dict:
    """Runs the analysis in a new process, to measure its memory alone."""
    output.mkdir()
    program = [sys.executable, "-m", "bench.analysis", str(run), str(output)]
    return json.loads(subprocess.run(program, capture_output=True, text=True, check=True).stdout)


def _convert(run: Path, output: Path) -> dict:
    begin = time.monotonic()
    from analysis.replay.derive import convert  # here, because a user also waits for the imports

    rows = convert(run, output)
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": time.monotonic() - begin, "gigabytes": peak_kib * 1024 / 1e9, "rows": rows}


if __name__ == "__main__":
    print(json.dumps(_convert(Path(sys.argv[1]), Path(sys.argv[2]))))
