# SPDX-License-Identifier: MIT
"""Numbers of published figures (docs/results/PAPER/FIGURE.csv) that other parts of the analysis read. Each such number
has a key: a JSON object with the `quantity` and the entries below. The words beside the number are for people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import polars as pl

Key = Mapping[str, str | float]

# Quantities, and the other entries of their keys.
# transfers: small or large; scale: the figure's buffers divided by the runs' buffers; users: the number of users at the
# figure's scale, if the figure has several such numbers
BEST_BUFFER = "best_buffer"
# The decimal logarithm of the evidence ratio. gamma: the capacity ratio; sizes: the distribution, in the syntax of
# FLOW_SIZES; form: PL or EX
LOSS_EVIDENCE = "loss_evidence"
LOSS_FIT = "loss_fit"  # the coefficient b. gamma, sizes, form: as above; r_squared: R^2 of the fit


class PublishedNumber(NamedTuple):
    """`low` and `high` are None without an interval. `runs` is None if the table has no number of runs."""

    key: Key
    measured: float
    low: float | None
    high: float | None
    runs: int | None


def read(path: Path, quantity: str) -> list[PublishedNumber]:
    """The measured numbers of this quantity in a figure's table, in its order. Raises OSError and polars' errors."""
    table = pl.read_csv(path, infer_schema_length=None)
    if "key" not in table.columns:
        return []
    rows = table.drop_nulls(["key", "measured"]).select("key", "measured", "low", "high", "runs").iter_rows()
    numbers = [PublishedNumber(json.loads(key), *values) for key, *values in rows]
    return [number for number in numbers if number.key["quantity"] == quantity]
