# SPDX-License-Identifier: MIT
"""Throughput of the transfers in runs with users, timed from the SYN: by range of size, by number of congestion events,
and in bins of size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import polars as pl

from analysis.arithmetic.statistics import Interval, mean_interval
from analysis.papers.paper_runs import PaperRun
from analysis.theory import capacity_ratio

PAYLOAD_BYTES = 1448
SMALL, LARGE = (45_000, 50_000), (1_000_000, 2**63 - 1)  # sizes in bytes, ends included (Figures 4 and 5)
BINS_A_DECADE = 4
LEAST_IN_BIN = 3
EVENTS = "congestion_events"
S_MOST_EVENTS = 4  # congestion events: an S-flow has at most this many, an L-flow more
EARLY = 0.7  # share of the measurement window: transfers that began after this part are left out, ended or not


def early(run: PaperRun) -> pl.DataFrame:
    """Transfers that began early in the measurement window, with `throughput_bps`. A transfer that did not finish
    counts, with its acknowledged bytes over the time until the window's end: without it, the sample would be biased
    against slow transfers. Raises InputError.
    """
    start, end = run.summary["measurement_window_mono_ns"]
    flows = run.table("flows").filter("measured", pl.col("syn_mono_ns") < start + int(EARLY * (end - start)))
    is_done = pl.col("end") == "finished"
    took = pl.when(is_done).then(pl.col("ended_mono_ns")).otherwise(end) - pl.col("syn_mono_ns")
    sent = pl.when(is_done).then(pl.col("size_bytes")).otherwise(pl.col("acked_bytes"))
    flows = flows.with_columns(took_ns=took, size_bytes=pl.col("size_bytes").cast(pl.Int64), sent_bytes=sent)
    flows = flows.filter(pl.col("took_ns") > 0, pl.col("size_bytes").is_not_null())
    return flows.with_columns(throughput_bps=8e9 * pl.col("sent_bytes") / pl.col("took_ns"))


def of_sizes(flows: pl.DataFrame, sizes: tuple[int, int]) -> pl.DataFrame:
    """The transfers with these sizes, ends included."""
    return flows.filter(pl.col("size_bytes").is_between(*sizes))


def s_flows(flows: pl.DataFrame) -> pl.DataFrame:
    """Transfers with few congestion events."""
    return flows.filter(pl.col(EVENTS) <= S_MOST_EVENTS)


def l_flows(flows: pl.DataFrame) -> pl.DataFrame:
    """Transfers with many congestion events."""
    return flows.filter(pl.col(EVENTS) > S_MOST_EVENTS)


def median_bps(runs: Iterable[PaperRun], sizes: tuple[int, int]) -> Interval | None:
    """Median throughput of transfers with these sizes: the mean over runs of each run's median."""
    name = f"median_bps, {sizes[0]} to {sizes[1]} bytes"
    medians = [
        run.measure(name, float | None, lambda run: of_sizes(early(run), sizes)["throughput_bps"].median())
        for run in runs
    ]
    return mean_interval(value for value in medians if value is not None)


def mean_bps(name: str, runs: Iterable[PaperRun], pick: Callable[[pl.DataFrame], pl.DataFrame]) -> Interval | None:
    """Mean throughput of the transfers that `pick` selects; `name` names the selection. The paper's models predict
    means.
    """
    means = [
        run.measure(f"mean_bps, {name}", float | None, lambda run: pick(early(run))["throughput_bps"].mean())
        for run in runs
    ]
    return mean_interval(value for value in means if value is not None)


class Bin(NamedTuple):
    """Means over transfers of similar sizes. Models are evaluated for each transfer, with its own size and its smoothed
    RTT at the end.
    """

    size_bytes: float
    throughput_bps: float
    transfers: int
    bytes_share: float  # the bin's share of the bytes of all transfers with a smoothed RTT
    slow_start_bps: float
    small_bps: float  # S-model with v = 1
    large_bps: float | None  # L-model; None without loss
    fitted_bps: float  # S-model with the fitted v


def segments(size_bytes: np.ndarray) -> np.ndarray:
    """Segments of each transfer, the last one not always full; at least one."""
    return np.maximum(-(-size_bytes // PAYLOAD_BYTES), 1).astype(np.int64)


def slow_start_rtts(count: np.ndarray) -> np.ndarray:
    """D of transfers with these numbers of segments (section 4)."""
    return np.array([capacity_ratio.slow_start_rtts(int(each)) for each in count])


def bins(flows: pl.DataFrame, loss: float, v: float | None = None) -> list[Bin]:
    """Transfers in logarithmic bins of size. `loss` is p, the dropped share of all packets, and `v` the fitted v of the
    S-model. Transfers without a smoothed RTT, and bins of fewer than LEAST_IN_BIN transfers, are left out.
    """
    v = capacity_ratio.S_MODEL_V if v is None else v
    flows = flows.filter(pl.col("srtt_us").is_not_null())
    sizes = flows["size_bytes"].to_numpy().astype(np.float64)
    rtts_s = flows["srtt_us"].to_numpy() / 1e6
    count = segments(sizes)
    rtts = slow_start_rtts(count)
    large = 8 * capacity_ratio.L_MODEL_K * PAYLOAD_BYTES / (rtts_s * np.sqrt(loss)) if loss else None
    values = {
        "size": sizes, "bps": flows["throughput_bps"].to_numpy(), "slow_start": 8 * sizes / (rtts_s * rtts),
        "small": 8 * sizes / (rtts_s * (rtts + capacity_ratio.S_MODEL_V * loss * count)),
        "fitted": 8 * sizes / (rtts_s * (rtts + v * loss * count)),
    }  # fmt: skip
    numbers = np.floor(np.log10(sizes) * BINS_A_DECADE)
    result = []
    for number in np.unique(numbers):
        mine = numbers == number
        if mine.sum() >= LEAST_IN_BIN:
            means = {name: float(of[mine].mean()) for name, of in values.items()}
            result.append(
                Bin(
                    means["size"], means["bps"], int(mine.sum()), float(sizes[mine].sum() / sizes.sum()),
                    means["slow_start"], means["small"], None if large is None else float(large[mine].mean()),
                    means["fitted"],
                )
            )  # fmt: skip
    return result


def fitted_v(flows: pl.DataFrame, loss: float) -> float | None:
    """v of the S-model: the RTTs that a lost packet costs, fitted to all finished transfers below 1 MB that have a
    smoothed RTT. None without loss or without such a transfer.
    """
    small = flows.filter(pl.col("srtt_us").is_not_null(), pl.col("size_bytes") < LARGE[0], pl.col("end") == "finished")
    if not loss or not len(small):
        return None
    count = segments(small["size_bytes"].to_numpy().astype(np.float64))
    took_rtts = (small["took_ns"] / 1e3 / small["srtt_us"]).to_numpy()
    return float((took_rtts - slow_start_rtts(count)).sum() / (loss * count.sum()))
