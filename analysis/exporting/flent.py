# SPDX-License-Identifier: MIT
"""Exports a run as a Flent data file (format 4) of Flent's test tcp_nup, with the data of all its plots: each flow's
goodput, their sum, mean and Jain's index, and a computed ping.

A step is ten base RTTs, the window of utilization. Goodput is new payload that left the queue. "Ping" is the base RTT
plus the mean sojourn time in the queue: no ping was sent.
"""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from analysis.exporting import tables
from analysis.measure.metrics import UTILIZATION_WINDOW_RTTS, bottleneck, jain_index, measurement_window
from analysis.read import complete_run
from analysis.read.columns import rows_of, slabs
from analysis.read.load import Run
from analysis.read.raw import known
from lib import parquet, regular
from lib.errors import InputError
from runs.names import POSTCARDS_FILE
from wire import wire

FORMAT_VERSION = 4  # of flent/resultset.py
TEST = "tcp_nup"
PING, FAIRNESS = "Ping (ms) ICMP", "TCP upload fairness"
UNITS = {PING: "ms", FAIRNESS: "Idx"}  # of Flent's test; all other series are in Mbits/s
MAX_FLOWS = 10_000  # with 100 steps these are 100 MB of JSON
LONGEST_UNLIMITED = 0x7FFFFFFF
TRACED = ("cwnd_packets", "srtt_us", "ssthresh_packets")


def write(repetition: Path, output: Path) -> int:
    """Exports the run from the start of its traffic, warm-up included, to the end of its measurement window. Returns
    the number of steps. Raises InputError, OSError.
    """
    document = data(repetition)
    with output.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file:
        file.write(json.dumps(document, indent=1, allow_nan=False).encode())
    return len(document["x_values"])


def data(repetition: Path) -> dict[str, Any]:
    """The Flent document. Raises InputError."""
    complete_run.check(repetition, derived=["joined.parquet"])
    run = complete_run.load_complete(repetition)
    _, queue = bottleneck(run)
    window = measurement_window(run, queue)
    start, end = window.traffic_start_ns, window.end_ns
    step = UTILIZATION_WINDOW_RTTS * run.experiment.rtt_ns
    steps = (end - start) // step
    joined = repetition / "joined.parquet"
    if len(run.traffic) > MAX_FLOWS:
        raise InputError(
            f"{repetition}: has {len(run.traffic)} flows, and a Flent file has a series for each; allowed are at most "
            f"{MAX_FLOWS}: export it as parquet"
        )
    if steps < 1 or not joined.is_file() or not run.traffic:
        raise InputError(
            f"{repetition}: has no joined.parquet, or no flows, or ended within {step} ns; allowed: a run that is "
            "analysed, with a flow"
        )
    x = [(index + 0.5) * step / 1e9 for index in range(steps)]
    offset = realtime_minus_mono_ns(repetition)
    t = [(start + offset + int(value * 1e9)) / 1e9 for value in x]
    row_of = np.full(len(run.flows) + 1, -1)  # by flow number, the place in Run.traffic
    row_of[[entry.number for entry in run.traffic]] = np.arange(len(run.traffic))
    row_of[-1] = -1  # the place of flows without packets
    fresh = np.zeros(len(run.traffic) * steps)  # sums of whole numbers below 2^53, in any order
    counts, delay = np.zeros(steps, dtype=np.int64), np.zeros(steps)
    with tables.readable(joined):
        for table in parquet.slabs(joined, ["enqueue_mono_ns", "flow", "sojourn_ns", "new_bytes", "dropped"]):
            sojourn = table["sojourn_ns"].fill_null(0).to_numpy()
            at = (table["enqueue_mono_ns"].to_numpy() + sojourn - start) // step
            row, inside = row_of[table["flow"].to_numpy()], (at >= 0) & (at < steps)
            sent, stayed = inside & (row >= 0), inside & ~table["dropped"].to_numpy()
            payload = table["new_bytes"].to_numpy()[sent]
            fresh += np.bincount((row * steps + at)[sent], weights=payload, minlength=len(fresh))
            counts += np.bincount(at[stayed], minlength=steps)
            delay += np.bincount(at[stayed], weights=sojourn[stayed], minlength=steps)
    rates = fresh.reshape(-1, steps) * 8e3 / step  # Mbit/s
    has_sojourn = "sojourn_ns" not in run.experiment.unknown_columns
    ping = [
        run.experiment.rtt_ns / 1e6 + d / c / 1e6 if c and has_sojourn else None
        for d, c in zip(delay.tolist(), counts.tolist(), strict=True)
    ]
    results: dict[str, list[float | None]] = {
        "TCP upload avg": rates.mean(axis=0).tolist(),
        "TCP upload sum": rates.sum(axis=0).tolist(),
        FAIRNESS: [jain_index(rates[:, index]) for index in range(steps)],
        PING: ping,
    }
    raw: dict[str, list[dict[str, float]]] = {
        PING: [{"t": when, "val": value} for when, value in zip(t, ping, strict=True) if value is not None]
    }
    last = _last_records(run, row_of, start, step, steps)
    for row in range(len(run.traffic)):
        name = f"TCP upload::{row + 1}"
        results[name] = rates[row].tolist()
        raw[name] = _raw(run, last[row], t, rates[row])
    return {
        "version": FORMAT_VERSION,
        "metadata": _metadata(run, start + offset, steps * step / 1e9, step / 1e9, results, repetition),
        "x_values": x,
        "results": results,
        "raw_values": raw,
    }


def _last_records(run: Run, row_of: np.ndarray, start: int, step: int, steps: int) -> np.ndarray:
    """For each flow of Run.traffic and each step, the row of Run.tcp of the flow's last record up to the step's end
    that knows TRACED; -1: there is none.
    """
    result = np.full((len(run.traffic), steps), -1)
    for part in slabs(len(run.tcp["flow"])):
        tcp = rows_of({name: run.tcp[name] for name in ("mono_ns", "flow", "unknown_fields")}, part)
        row, at = row_of[tcp["flow"]], np.maximum(-(-(tcp["mono_ns"] - start) // step) - 1, 0)
        chosen = np.flatnonzero((row >= 0) & (at < steps) & known(tcp, *TRACED))
        result[row[chosen], at[chosen]] = part.start + chosen  # NumPy keeps the last of several assignments
    return np.maximum.accumulate(result, axis=1)


def _raw(run: Run, last: np.ndarray, t: list[float], rates: np.ndarray) -> list[dict[str, float]]:
    """Each step's rate of a flow, with cwnd, RTT and ssthresh of the flow's `last` records."""
    cwnd, srtt, ssthresh = (run.tcp[name][last] if (last >= 0).any() else last for name in TRACED)
    result = []
    for index, when in enumerate(t):
        point = {"t": when, "val": float(rates[index])}
        if last[index] >= 0:
            point |= {"tcp_cwnd": int(cwnd[index]), "tcp_rtt": int(srtt[index]) / 1e3}
            if ssthresh[index] < LONGEST_UNLIMITED:
                point["tcp_ssthresh"] = int(ssthresh[index])
        result.append(point)
    return result


def _metadata(
    run: Run, real_ns: int, length_s: float, step_s: float, results: dict[str, Any], repetition: Path
) -> dict[str, Any]:
    when = datetime.fromtimestamp(real_ns // 10**9, UTC).replace(microsecond=real_ns % 10**9 // 1000)
    text = when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = run.experiment
    mix = "+".join(group.cc for group in spec.long)
    title = f"{mix}, {len(run.traffic)} flows, buffer {spec.buffer_packets}"
    return {
        "NAME": TEST, "TITLE": title, "TIME": text, "T0": text, "LENGTH": length_s, "TOTAL_LENGTH": length_s,
        "STEP_SIZE": step_s, "HOST": "receiver", "HOSTS": ["receiver"], "LOCAL_HOST": "sender", "IP_VERSION": 4,
        "NOTE": f"exported by bufferscope from {repetition.parent.name}/{repetition.name}; Ping is the base RTT plus "
        "the mean time in the queue: no ping was sent",
        "TEST_PARAMETERS": {"upload_streams": str(len(run.traffic))},
        "SERIES_META": {name: {"UNITS": UNITS.get(name, "Mbits/s")} for name in results},
        "DATA_FILENAME": None, "BATCH_NAME": None, "BATCH_TIME": None, "BATCH_TITLE": None, "BATCH_UUID": None,
        "FLENT_VERSION": None, "HTTP_GETTER_URLLIST": None, "HTTP_GETTER_DNS": None, "HTTP_GETTER_WORKERS": None,
    }  # fmt: skip


def realtime_minus_mono_ns(repetition: Path) -> int:
    """CLOCK_REALTIME minus CLOCK_MONOTONIC of the first block; 0 without a block, so times stay CLOCK_MONOTONIC."""
    with regular.opened(repetition / POSTCARDS_FILE) as file:
        data = file.read(1 << 21)
    for block in wire.read_blocks(data, wire.BLOCK.const["BLOCK_POSTCARDS"]):
        return int(block.header["realtime_minus_mono_ns"]) & ((1 << 63) - 1)
    return 0
