# SPDX-License-Identifier: MIT
"""Analysis of a run far larger than the default: 10 M postcards and 5 M trace records to joined Parquet tables. Its
join, of each TCP packet with the flow's latest trace record before it, stands beside those of polars and DuckDB.
"""

from __future__ import annotations

import importlib.util
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from analysis.tests.synthesize import write_big
from bench.part import Part
from bench.report import BenchRow
from runs.names import REPETITION
from wire.formats import POSTCARD

POSTCARDS, RECORDS, FLOWS, RUNS = 10_000_000, 5_000_000, 16, 3
HAS_TCP = POSTCARD.const["POSTCARD_HAS_TCP"]
Joined = tuple[float, int, int]  # seconds, packets with a record, and the sum of these records' windows


def measure(short: bool) -> list[BenchRow]:
    postcards, records, runs = (100_000, 50_000, 1) if short else (POSTCARDS, RECORDS, RUNS)
    with tempfile.TemporaryDirectory(dir="build") as directory:
        big, tables = Path(directory) / REPETITION, Path(directory) / "tables"
        write_big(big, postcards, records, FLOWS)
        tables.mkdir()
        results = [_once("convert", big, tables) for _ in range(runs)]
        joins = [{name: _once(name, big, tables) for name in JOINS} for _ in range(runs)]
    for join in joins:
        if len({tuple(each["found"]) for each in join.values()}) > 1:
            raise RuntimeError(f"the joins differ in packets or windows: {join}")
    seconds, gigabytes = [result["seconds"] for result in results], [result["gigabytes"] for result in results]
    rows = [
        BenchRow("analysis: load, join, Parquet of 10 M x 5 M rows", sorted(seconds)[runs // 2], "s", must=10,
            better="lower", samples=seconds, note=f"rows written: {results[0]['found'][0]}"),
        BenchRow("analysis: memory for that", max(gigabytes), "GB", must=1, better="lower", samples=gigabytes),
    ]  # fmt: skip
    for peer in list(JOINS)[1:]:
        ratios = [join["ours"]["seconds"] / join[peer]["seconds"] for join in joins]
        said = {name: [statistics.median(join[name][of] for join in joins) for of in ("seconds", "gigabytes")]
                for name in ("ours", peer)}  # fmt: skip
        texts = ["{:.2f} s, {:.2f} GB".format(*said[name]) for name in ("ours", peer)]
        rows.append(
            BenchRow(f"analysis: time of the join / of {peer}'s", statistics.median(ratios), "", better="lower",
                samples=ratios, peer=f"{peer}: {texts[1]}",
                note=f"{texts[0]}, with the ACK and the retransmission of each packet")
        )  # fmt: skip
    return rows


PART = Part(measure)


def _once(name: str, run: Path, tables: Path) -> dict[str, Any]:
    """Calls a function in a new process, to measure its memory alone."""
    program = [sys.executable, "-m", "bench.analysis", name, str(run), str(tables)]
    return json.loads(subprocess.run(program, capture_output=True, text=True, check=True).stdout)


def _convert(run: Path, tables: Path) -> tuple[float, dict[str, int]]:
    begin = time.monotonic()
    from analysis.replay.derive import convert  # here, because a user also waits for the imports

    rows = convert(run, tables)
    return time.monotonic() - begin, rows


def _ours(run: Path, tables: Path) -> Joined:
    import numpy as np

    from analysis.join.join import join
    from analysis.measure.metrics import bottleneck
    from analysis.read.columns import slabs
    from analysis.read.load import load

    loaded = load(run)
    _, queue = bottleneck(loaded)
    begin = time.monotonic()
    segments = join(loaded, queue)[0]
    seconds, count, total = time.monotonic() - begin, 0, 0
    for part in slabs(len(segments.trace_row)):
        rows = segments.trace_row[part]
        rows = rows[rows >= 0]
        count += len(rows)
        total += int(loaded.tcp["cwnd_packets"][rows].sum(dtype=np.int64))
    return seconds, count, total


def _polars(run: Path, tables: Path) -> Joined:
    import polars as pl

    begin = time.monotonic()
    cards = pl.scan_parquet(tables / "postcards.parquet").filter((pl.col("flags") & HAS_TCP) > 0)
    trace = pl.scan_parquet(tables / "tcp.parquet").filter(pl.col("in_flight_packets").is_not_null())
    joined = cards.select("enqueue_mono_ns", "flow").join_asof(
        trace.select("mono_ns", "flow", "cwnd_packets"), left_on="enqueue_mono_ns", right_on="mono_ns", by="flow"
    )
    table = joined.collect(engine="streaming")
    return time.monotonic() - begin, len(table) - table["cwnd_packets"].null_count(), int(table["cwnd_packets"].sum())


def _duckdb(run: Path, tables: Path) -> Joined:
    import duckdb  # type: ignore[import-not-found, import-untyped, unused-ignore]

    begin = time.monotonic()
    database = duckdb.connect()
    database.execute(f"SET temp_directory = '{tables}'")
    database.execute(
        "CREATE TABLE joined AS SELECT c.enqueue_mono_ns, t.mono_ns, t.cwnd_packets "
        f"FROM (SELECT * FROM '{tables}/postcards.parquet' WHERE flags & {HAS_TCP} > 0) c "
        f"ASOF LEFT JOIN (SELECT * FROM '{tables}/tcp.parquet' WHERE in_flight_packets IS NOT NULL) t "
        "ON c.flow = t.flow AND c.enqueue_mono_ns >= t.mono_ns"
    )
    seconds = time.monotonic() - begin
    ((count, total),) = database.execute("SELECT count(cwnd_packets), sum(cwnd_packets) FROM joined").fetchall()
    return seconds, int(count), int(total)


JOINS: dict[str, Callable[[Path, Path], Joined]] = {"ours": _ours, "polars": _polars}
if importlib.util.find_spec("duckdb"):  # from requirements-dev.txt
    JOINS["DuckDB"] = _duckdb


if __name__ == "__main__":
    seconds, *found = (JOINS | {"convert": _convert})[sys.argv[1]](*map(Path, sys.argv[2:]))
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": seconds, "gigabytes": peak_kib * 1024 / 1e9, "found": found}))
