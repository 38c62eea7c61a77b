# SPDX-License-Identifier: MIT
"""Expressions over the run table by which figures select runs."""

from __future__ import annotations

import polars as pl

from controlplane.policy import MARKING_MODES

NEAR = 0.02  # largest relative difference between buffers that count as equal
BDP = pl.col("buffer_packets") / pl.col("buffer_over_bdp")  # C x RTT in packets, not rounded
IS_MARKED = pl.col("mode").is_in(MARKING_MODES)
THRESHOLD = pl.when(pl.col("mode") == "ecn").then(pl.col("ecn_threshold_packets")).otherwise(pl.col("buffer_packets"))
OF_THE_LINK = ("rate_bps", "rtt_ns", "mtu_bytes")


def is_near(packets: pl.Expr, wanted: pl.Expr) -> pl.Expr:
    """Whether a buffer is `wanted` packets, to within NEAR or one packet: a buffer is rounded to whole packets, or to a
    switch's cells.
    """
    return (packets - wanted).abs() <= pl.max_horizontal(pl.lit(1.0), NEAR * wanted)


IS_ONE_BDP = is_near(THRESHOLD, BDP)  # packets are dropped or marked from one BDP on
