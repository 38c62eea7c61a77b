# SPDX-License-Identifier: MIT
"""Decides which imported runs of a results directory belong to a sweep of a paper.

Figures ask for runs by sweep, but imported runs name no sweep. An imported run therefore belongs to every sweep whose
conditions it meets: number of flows, buffer, and marking or not, as far as all runs of the sweep share them. The other
parameters may have any value: figures themselves choose among their values, and among algorithms.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from analysis.papers.columns import BDP, IS_MARKED, OF_THE_LINK, is_near
from lib.errors import InputError
from lib.units import Quantity

OUTSIDE_SWEEPS = r"^(runs/[^/]+/)?rep-[0-9]+$"  # directly in the results directory, where `make import` puts runs


class SweepConditions(NamedTuple):
    """Parameters that all runs of a sweep share; None: the sweep varies the parameter, or searches for it."""

    flows: int | None
    is_marked: bool | None
    buffer: Quantity | None  # packets or BDPs


def outside_sweeps(table: pl.DataFrame) -> pl.DataFrame:
    """The rows of imported runs that lie directly in the results directory. Raises InputError if their links
    differ: no figure tells links apart.
    """
    rows = table.filter(pl.col("run").str.contains(OUTSIDE_SWEEPS), pl.col("imported"))
    for name in OF_THE_LINK:
        if rows[name].n_unique() > 1:
            values = ", ".join(map(str, rows[name].unique().sort().to_list()[:4]))
            raise InputError(
                f"imported runs differ in {name}: {values}; allowed: one link; "
                "import the runs of each link into a results directory of their own"
            )
    return rows


def meeting(rows: pl.DataFrame, conditions: SweepConditions | None) -> pl.DataFrame:
    """The rows that meet a sweep's conditions. None of them if `conditions` is None, as for a version in real time."""
    if conditions is None:
        return rows.clear()
    flows, is_marked, buffer = conditions
    wanted = []
    if flows is not None:
        wanted.append(pl.col("flows") == flows)
    if is_marked is not None:
        wanted.append(IS_MARKED if is_marked else ~IS_MARKED)
    if buffer is not None:
        packets = float(buffer.amount) * (BDP if buffer.dimension == "bdp" else pl.lit(1.0))
        wanted.append(is_near(pl.col("buffer_packets"), packets))
    return rows.filter(*wanted)
