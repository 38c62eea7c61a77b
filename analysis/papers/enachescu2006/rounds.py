# SPDX-License-Identifier: MIT
"""The rounds of a run's periodic datagrams (hosts/traffic/schedule.h)."""

from __future__ import annotations

from analysis.papers.stored_runs import StoredRun
from hosts.traffic.open_loop import Arrivals, read_arrivals
from lib.errors import InputError


def _parts(run: StoredRun) -> Arrivals:
    parts = read_arrivals(run.experiment.arrivals)
    if parts is None:
        raise InputError(f"{run.label}: summary.json: spec.arrivals is not a kind of arrivals; replay the run")
    return parts


def packets(run: StoredRun) -> int:
    """W: packets of a flow in a round."""
    return _parts(run).round_packets or 1


def spacing(run: StoredRun) -> float | None:
    """S as the spec gives it, in slots; None: evenly spaced."""
    ppm = _parts(run).spacing_ppm
    return None if ppm is None else ppm / 1e6


def slots(run: StoredRun) -> float:
    """S: slots between a flow's packets."""
    given = spacing(run)
    return float(run["flows"] / run["load"]) if given is None else given
