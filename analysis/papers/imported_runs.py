# SPDX-License-Identifier: MIT
"""Runs of somebody else, imported into one results directory: for which sweeps of ours each of them stands.

Nobody else has our sweeps, but figures ask for runs by sweep. So an imported run stands for every sweep with whose runs
it shares what they have in common (flows, buffer, mode, as the sweep's spec says); what the sweep varies may be
anything: figures choose among its values, and among algorithms, themselves.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import polars as pl

from analysis import imported
from analysis.papers.series import BDP, IS_MARKED, is_near
from experiments.sweep import spec
from lib import units
from lib.errors import InputError

SPECS = Path(__file__).resolve().parents[2] / "experiments/specs/spang2021"
PLACE = r"^(runs/[^/]+/)?rep-[0-9]+$"  # right in the results directory, where `make import` puts them; in no sweep's
OF_THE_LINK = ("rate_bps", "rtt_ns", "mtu_bytes")
MODE = "tail-drop"  # of specs that say none


def of(table: pl.DataFrame) -> pl.DataFrame:
    """The rows of imported runs that lie right in the results directory. Raises InputError if they are of different
    links: no figure tells these apart.
    """
    rows = table.filter(pl.col("run").str.contains(PLACE), pl.col("reasons").str.starts_with(imported.REASON))
    for name in OF_THE_LINK:
        if rows[name].n_unique() > 1:
            found = ", ".join(map(str, rows[name].unique().sort().to_list()[:4]))
            raise InputError(f"imported runs differ in {name}: {found}; allowed: one link; import each into its own")
    return rows


def stand_for(rows: pl.DataFrame, stem: str) -> pl.DataFrame:
    """Those of the rows that stand for runs of a sweep; none for the other clock's version of one."""
    if rows.is_empty() or not (SPECS / f"{stem}.yaml").exists():
        return rows.clear()
    same = _in_common(stem)
    conditions = []
    if "flows" in same:
        conditions.append(pl.col("flows") == int(same["flows"]))
    if "mode" in same:
        conditions.append(IS_MARKED if same["mode"] == "ecn" else ~IS_MARKED)
    if "buf" in same:
        asked = units.parse(same["buf"], ("bdp", "packets"))
        times = BDP if asked.dimension == "bdp" else pl.lit(1.0)
        conditions.append(is_near(pl.col("buffer_packets"), float(asked.amount) * times))
    return rows.filter(*conditions)


@cache
def _in_common(stem: str) -> dict[str, str]:
    """The parameters that are the same in all runs of a sweep, as its spec says them."""
    sweep = spec.read(SPECS / f"{stem}.yaml", {}, smoke=False)
    varied = {key for point in sweep.points for key in point}
    found = {"mode": MODE} | sweep.base
    return {key: value for key, value in found.items() if key not in varied}
