# SPDX-License-Identifier: MIT
"""What passed a captured link (an import of one capture): its rate at several time scales, how many connections there
were, their sizes and RTTs, and what limited them. Numbers are of the forward way, from the files that the import made
(analysis/read/connections.py); the memory is that of a few columns.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from analysis.read.connections import BIN_NS, BINS_FILE, LIMITS, collect, of_data, scan
from lib.errors import InputError
from lib.terminal import one_line

SCALES_S = (0.001, 0.01, 0.1, 1.0)
LEAST_WINDOWS = 5  # of a scale: with fewer it has no spread
GRID = 4096  # equal parts of the capture in which connections are counted
SHARES = (0.1, 0.5, 0.9)
SIZES = (0.1, 0.5, 0.9, 0.99)


def load(directory: Path) -> tuple[int, np.ndarray, np.ndarray]:
    """(ns of a bin, bytes on the link, packets) of the forward way, by bin. Raises InputError."""
    try:
        bins = pl.read_parquet(directory / BINS_FILE, columns=["start_ns", "wire_bytes_forward", "packets_forward"])
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{directory / BINS_FILE}: cannot be read: {one_line(error)}; import it again") from None
    starts, sizes, packets = (bins[name].to_numpy().astype(np.int64) for name in bins.columns)
    return int(starts[1] - starts[0]) if len(starts) > 1 else BIN_NS, sizes, packets


def at_scale(values: np.ndarray, step_ns: int, scale_s: float) -> np.ndarray | None:
    """Sums over windows of this length; None if the bins are longer, or the windows too few."""
    bins = round(scale_s * 1e9 / step_ns)
    if not bins or len(values) // bins < LEAST_WINDOWS:
        return None
    return values[: len(values) // bins * bins].reshape(-1, bins).sum(axis=1)


def dispersion(packets: np.ndarray) -> float | None:
    """The index of dispersion for counts, Var(N) / E(N): 1 for a Poisson process, at every scale."""
    mean = packets.mean()
    return float(packets.var() / mean) if mean else None


def dispersions(directory: Path) -> tuple[list[float], list[float]]:
    """Windows in s, doubling from a bin on, and their index of dispersion."""
    step_ns, _, packets = load(directory)
    scales, result = [], []
    while len(packets) >= LEAST_WINDOWS:
        if (index := dispersion(packets)) is not None:
            scales.append(step_ns / 1e9)
            result.append(index)
        packets = packets[: len(packets) // 2 * 2].reshape(-1, 2).sum(axis=1)
        step_ns *= 2
    return scales, result


def at_a_time(directory: Path, limit: str | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Over GRID equal parts of the capture: (times in s since its start; connections with data forward; their
    effective number (sum of rates)^2 / (sum of squares), of each connection's mean rate over its life); with
    `limit`, of the connections that it limits.
    """
    step_ns, sizes, _ = load(directory)
    start_ns = collect(pl.scan_parquet(directory / BINS_FILE).select(pl.col("start_ns").first())).item()
    chosen = pl.col("forward") & (pl.lit(True) if limit is None else pl.col("limit") == limit)
    rows = collect(of_data(scan(directory)).filter(chosen).select("start_ns", "duration_ns", "data_bytes"))
    length = max(len(sizes) * step_ns, 1)
    begin, took, data = (rows[name].to_numpy() for name in rows.columns)
    part_ns = -(-length // GRID)
    first = np.clip((begin - start_ns) // part_ns, 0, GRID - 1)
    last = np.clip((begin + took - start_ns) // part_ns, first, GRID - 1) + 1
    rate = data / np.maximum(took, part_ns)
    open_, sums, squares = (_between(first, last, weights) for weights in (np.ones(len(rate)), rate, rate**2))
    effective = np.where(open_ > 0, sums**2 / np.maximum(squares, 1e-300), 0)
    return (np.arange(GRID) + 0.5) * part_ns / 1e9, open_, np.minimum(effective, open_)


def _between(first: np.ndarray, last: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The sum of the weights of all intervals that have each part of the grid."""
    steps = np.bincount(first, weights, GRID + 1) - np.bincount(last, weights, GRID + 1)
    return np.maximum(np.cumsum(steps)[:GRID], 0)


def summarize(directory: Path, rate_bps: int) -> dict[str, Any]:
    """The block `captured_link` of the summary."""
    step_ns, sizes, packets = load(directory)
    scales = []
    for scale_s in SCALES_S:
        window = at_scale(sizes, step_ns, scale_s)
        if window is None:
            continue
        bps = 8 * window / scale_s
        counts = at_scale(packets, step_ns, scale_s)
        p01, p50, p99 = np.percentile(bps, (1, 50, 99)).tolist()
        scales.append({
            "window_s": scale_s, "p01_bps": p01, "p50_bps": p50, "p99_bps": p99, "max_bps": float(bps.max()),
            "above_the_rate": float((bps > rate_bps).mean()),
            "dispersion": None if counts is None else dispersion(counts),
        })  # fmt: skip
    flows = of_data(scan(directory)).filter(pl.col("forward"))
    _, open_, effective = at_a_time(directory)
    weight = pl.col("data_bytes")
    known = flows.filter(pl.col("rtt_ns").is_not_null())
    limits = collect(
        flows.group_by("limit").agg(
            pl.len().alias("flows"), weight.sum(), (weight * 8e9 / pl.col("duration_ns").clip(1)).sum().alias("bps")
        )
    )
    by_limit = {row["limit"]: row for row in limits.iter_rows(named=True)}
    total = max(int(limits["data_bytes"].sum()), 1)
    seconds = max(len(sizes) * step_ns, 1) / 1e9
    return {
        "connections": collect(scan(directory).select(pl.len())).item(),
        "with_data_forward": int(limits["flows"].sum()),
        "mean_bps": 8 * float(sizes.sum()) / seconds,
        "load": 8 * float(sizes.sum()) / seconds / rate_bps,
        "rates": scales,
        "at_a_time": {
            "mean": float(open_.mean()), "max": int(open_.max(initial=0)), "effective": _mean(effective, open_),
            "effective_of_this_link": _mean(*at_a_time(directory, LIMITS["link_ns"])[:0:-1]),
        },
        "size_bytes": _quantiles(flows, "data_bytes", SIZES),
        "rtt_ns": {
            "harmonic_mean": _harmonic(known), **_quantiles(known, "rtt_ns", SHARES),
            "known": float(collect(known.select(weight.sum())).item() or 0) / total,
        },
        "limits": {
            name: {"flows": int(by_limit[name]["flows"]), "bytes": by_limit[name]["data_bytes"] / total}
            for name in LIMITS.values() if name in by_limit
        },
    }  # fmt: skip


def _mean(values: np.ndarray, weights: np.ndarray) -> float | None:
    """The mean over the times at which there are connections."""
    return float(values[weights > 0].mean()) if (weights > 0).any() else None


def _harmonic(known: pl.LazyFrame) -> float | None:
    data, inverse = collect(
        known.select(pl.col("data_bytes").sum(), (pl.col("data_bytes") / pl.col("rtt_ns")).sum().alias("inverse"))
    ).row(0)
    return data / inverse if inverse else None


def _quantiles(flows: pl.LazyFrame, name: str, shares: tuple[float, ...]) -> dict[str, Any]:
    row = collect(flows.select(pl.col(name).quantile(q).alias(f"p{100 * q:02.0f}") for q in shares))
    return row.row(0, named=True)
