# SPDX-License-Identifier: MIT
"""Distributions over flows, for runs with too many flows to list each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from runs.quantities import FLOWS

MANY_FLOWS = 64  # if a run has more, summary, report and figures show distributions over flows
PERCENTILES = {"min": 0, "p01": 1, "p10": 10, "p25": 25, "p50": 50, "p75": 75, "p90": 90, "p99": 99, "max": 100}
ALL = "all"


def flows_distribution(flows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """{"all" or an algorithm: {quantity of flow_rows: its distribution over flows}}; algorithms only if there are
    several.
    """
    kinds = list(dict.fromkeys(flow["cc"] for flow in flows if flow["cc"]))
    groups = {ALL: flows}
    if len(kinds) > 1:
        groups |= {kind: [flow for flow in flows if flow["cc"] == kind] for kind in kinds}
    return {name: {quantity: _of(group, quantity) for quantity in FLOWS} for name, group in groups.items()}


def _of(flows: Sequence[Mapping[str, Any]], quantity: str) -> dict[str, float | int | None]:
    """Mean and percentiles. Each percentile is the value of one flow, without interpolation. The entry `flows` counts
    the flows whose value is known.
    """
    values = np.array([value for flow in flows if (value := flow[quantity]) is not None])
    if not len(values):
        return {"flows": 0, "mean": None, **dict.fromkeys(PERCENTILES)}
    cuts = np.percentile(values, list(PERCENTILES.values()), method="inverted_cdf")
    return {
        "flows": len(values),
        "mean": float(values.mean(dtype=np.float64)),
        **{name: cut.item() for name, cut in zip(PERCENTILES, cuts, strict=True)},
    }
