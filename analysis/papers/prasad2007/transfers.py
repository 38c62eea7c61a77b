# SPDX-License-Identifier: MIT
"""Transfers of runs with users: throughput from SYN to the last ACK, by classes of size and by bins of size."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import polars as pl

from analysis.papers.stored_runs import StoredRun
from analysis.statistics import Interval, mean_interval
from analysis.theory.capacity_ratio import slow_start_rtts

PAYLOAD_BYTES = 1448
SMALL, LARGE = (45_000, 50_000), (1_000_000, 2**63 - 1)  # bytes, of Figures 4 and 5
BINS_A_DECADE = 4
LEAST_IN_BIN = 3


def finished(run: StoredRun) -> pl.DataFrame:
    """Finished transfers that began in the measurement window, with `throughput_bps`. Raises InputError."""
    took = (pl.col("ended_mono_ns") - pl.col("syn_mono_ns")).alias("took_ns")
    flows = run.table("flows").filter("measured", pl.col("end") == "finished")
    flows = flows.with_columns(took, pl.col("size_bytes").cast(pl.Int64)).filter(pl.col("took_ns") > 0)
    return flows.with_columns(throughput_bps=8e9 * pl.col("size_bytes") / pl.col("took_ns"))


def of_sizes(flows: pl.DataFrame, sizes: tuple[int, int]) -> pl.DataFrame:
    """The transfers of such sizes, ends included."""
    return flows.filter(pl.col("size_bytes").is_between(*sizes))


def median_bps(runs: Iterable[StoredRun], sizes: tuple[int, int]) -> Interval | None:
    """Median throughput of transfers of such sizes: the mean over runs of each run's median."""
    medians = (of_sizes(finished(run), sizes)["throughput_bps"].median() for run in runs)
    return mean_interval(float(value) for value in medians if isinstance(value, float))


class Bin(NamedTuple):
    """Transfers of similar sizes. `bytes_share` is theirs of all bytes."""

    size_bytes: float  # mean
    throughput_bps: float  # mean
    transfers: int
    bytes_share: float
    inverse_rtt: float  # mean of 1/T over the transfers, 1/s; T is a transfer's smoothed RTT at its end
    loss: float  # dropped share of the transfers' packets


def bins(flows: pl.DataFrame) -> list[Bin]:
    """Mean throughput by size, in logarithmic bins."""
    total = flows["size_bytes"].sum()
    edges = np.floor(np.log10(flows["size_bytes"].to_numpy()) * BINS_A_DECADE).astype(np.int64)
    found = (
        flows.with_columns(bin=pl.Series(edges))
        .group_by("bin")
        .agg(
            pl.col("size_bytes").mean().alias("size"), pl.col("throughput_bps").mean().alias("bps"),
            pl.len().alias("transfers"), (pl.col("size_bytes").sum() / total).alias("share"),
            (1e6 / pl.col("srtt_us")).mean().alias("inverse_rtt"),
            (pl.col("drops").sum() / pl.col("packets").sum()).alias("loss"),
        )
        .sort("bin")
        .filter(pl.col("transfers") >= LEAST_IN_BIN)
    )  # fmt: skip
    return [
        Bin(row["size"], row["bps"], row["transfers"], row["share"], row["inverse_rtt"], row["loss"])
        for row in found.iter_rows(named=True)
    ]


def segments(size_bytes: float) -> int:
    """Full segments of a transfer."""
    return max(int(-(-size_bytes // PAYLOAD_BYTES)), 1)


def slow_start_bps(size_bytes: float, inverse_rtt: float) -> float:
    """Throughput without loss: D RTTs (section 4)."""
    return 8 * size_bytes * inverse_rtt / slow_start_rtts(segments(size_bytes))
