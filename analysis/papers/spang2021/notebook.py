# SPDX-License-Identifier: MIT
"""Estimators of the published notebooks where they differ from the text's. The facts of Figures 2, 3 and 8 to 11 follow
both. The notebooks give buffers in packets of 112.5 cells; our packets have 114 cells (artifact.py).

figure     text                                          notebook
3          1st percentile over 10 RTTs                   10th percentile over pairs of iperf's 10 ms intervals
4, 6       BDP/sqrt(n) (caption of 4), 2 BDP/sqrt(n) (6)  2 BDP/sqrt(n) in both, of BDP = 166.66
5a         99 % of packets meet a queue                  p01 > 2 of depths rounded up, which is the same: a lone packet
                                                         reads 2; also a curve of 2 BDP/sqrt(n), linear axes, n <= 64
2          B = BDP                                       B = 178 packets, overlaid over 0.15 s
5a         10 RTTs, 1st percentile of utilization        85 % used at the 10th percentile over 20 ms
8          16 flows                                      32 flows
9          B = BDP                                       two traces at B = 178 packets, n = 2 and 4
10         flows with a loss in an RTT                   in 5 ms, at B = 133 packets
11a        1st and 99th percentile of windows            2.5th and 95th of snd_cwnd, mean over all buffers
11b        16 flows                                      mean over all n, for B below 180 packets
5a, 11     one thousand RTTs                             the middle third of a run
"""

from __future__ import annotations

import numpy as np
import polars as pl

from analysis.papers.paper_runs import PaperRun
from analysis.papers.series import bdp
from lib.errors import InputError

LOWER, UPPER = 2.5, 95.0  # percentiles of windows
LOSERS_BUFFER = 131  # packets: 15000 cells
SHADED = 2.0  # x BDP/sqrt(n)
NEAR_PACKETS = 3  # a published buffer that differs from ours by more is not compared with ours


def losers_in_5ms(run: PaperRun) -> float | None:
    """Mean number of flows with a drop, over the intervals of 5 ms that have a drop; None without drops or data."""
    try:
        mean: float | None = run.measure("mean losers in 5 ms", float | None, _losers)
    except InputError:  # only the run's row in the run table is stored
        return None
    return mean


def _losers(run: PaperRun) -> float | None:
    values, counts = run.distribution("flows_losing_5ms")
    return float((values * counts).sum() / counts.sum()) if len(counts) else None


def windows_over_share(run: PaperRun) -> tuple[float, float] | None:
    """The percentiles LOWER and UPPER of all congestion windows, in units of BDP/n; None without data."""
    try:
        ends = [run.percentile("cwnd_packets", percent) for percent in (LOWER, UPPER)]
    except InputError:
        return None
    low, high = ends
    share = bdp(run) / run["flows"]
    return None if low is None or high is None else (low / share, high / share)


def near(table: pl.DataFrame, buffer: float) -> pl.DataFrame:
    """The published rows of the buffer nearest to `buffer`; none if it is more than NEAR_PACKETS away."""
    off = (table["buffer_packets"] - buffer).abs()
    least = off.min() if len(off) else None
    if not isinstance(least, (int, float)) or least > NEAR_PACKETS:
        return table.clear()
    return table.filter(off == least)


def over_buffers(runs: list[PaperRun]) -> tuple[float, float] | None:
    """The percentiles of windows_over_share, each averaged over the runs; None without data."""
    ends = [pair for run in runs if (pair := windows_over_share(run)) is not None]
    if not ends:
        return None
    low, high = np.mean(ends, axis=0)
    return float(low), float(high)
