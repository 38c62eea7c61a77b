# SPDX-License-Identifier: MIT
"""The error of a what-if, which replays arrivals, where it is known: docs/results/open-loop.csv has what-ifs of our own
runs beside runs whose senders met that queue (python -m bench.open_loop makes it). A row: the arrivals of a run with
1 BDP, replayed through `bdp`, and the run with `bdp` itself, of one repetition (seed).
"""

from __future__ import annotations

import csv
import math
from functools import cache
from pathlib import Path
from typing import NamedTuple

from lib import regular

TABLE = Path(__file__).resolve().parents[2] / "docs/results/open-loop.csv"
FULL = 0.95  # a load from here on is of senders that fill the link


class Row(NamedTuple):
    """`flows` 0: flows that come and go, at that `load`; else long flows. All shares, and p99 of the delay in ms."""

    flows: int
    load: float
    bdp: float
    repetition: int
    loss_whatif: float
    loss: float
    utilization_whatif: float
    utilization: float
    delay_p99_ms_whatif: float
    delay_p99_ms: float


@cache
def rows(path: Path = TABLE) -> tuple[Row, ...]:
    """Raises OSError."""
    read = csv.DictReader(regular.read_text(path).splitlines())
    return tuple(
        Row(int(row["flows"]), float(row["load"]), float(row["bdp"]), int(row["repetition"]),
            *(float(row[name]) for name in Row._fields[4:]))
        for row in read
    )  # fmt: skip


def near(flows: float, load: float, bdp: float) -> list[Row]:
    """The repetitions nearest to a link: of long flows if its load is FULL, else of flows that come and go."""
    is_full = load >= FULL
    of_kind = [row for row in rows() if (row.flows > 0) == is_full]

    def apart(row: Row) -> tuple[float, float]:
        traffic = abs(math.log(row.flows / max(flows, 1))) if is_full else abs(row.load - load)
        return traffic, abs(math.log(row.bdp / max(bdp, 1e-6)))

    nearest = min(of_kind, key=apart)
    return [row for row in of_kind if apart(row) == apart(nearest)]


class Spread(NamedTuple):
    """The least and the largest error of what-ifs: measured less what-if (utilization), measured over what-if."""

    utilization: tuple[float, float]
    delay: tuple[float, float]
    loss: tuple[float, float]


def spread(flows: float, load: float, bdp: float) -> Spread | None:
    """The errors of all rows of this kind of traffic whose buffer is the nearest; None without a table."""
    try:
        nearest = near(flows, load, bdp)[0]
    except (OSError, ValueError, KeyError):
        return None
    alike = [
        row
        for row in rows()
        if (row.flows > 0) == (nearest.flows > 0) and math.isclose(row.bdp, nearest.bdp, rel_tol=0.1)
    ]
    used = [row.utilization - row.utilization_whatif for row in alike]
    delays = [row.delay_p99_ms / row.delay_p99_ms_whatif for row in alike if row.delay_p99_ms_whatif]
    losses = [row.loss / row.loss_whatif for row in alike if row.loss_whatif]
    return Spread(*((min(each, default=1), max(each, default=1)) for each in (used, delays, losses)))


def text(rows: list[Row]) -> str:
    """Of repetitions with one traffic and buffer."""
    row = rows[0]
    traffic = f"{row.flows} long flows" if row.flows else f"flows that come and go at load {row.load:g}"
    losses, used, delays = (
        [shown(rows, name) for name in (f"{of}_whatif", of)] for of in ("loss", "utilization", "delay_p99_ms")
    )
    seeds = "of one seed" if len(rows) == 1 else f"means of {len(rows)} seeds, and their range"
    return (
        f"open loop, where its error is known: with {traffic}, arrivals at 1 BDP replayed through {row.bdp:g} BDP lost "
        f"{losses[0]}, used {used[0]} and waited {delays[0]} at p99; senders that met this queue: {losses[1]}, "
        f"{used[1]}, {delays[1]} ({seeds}; docs/results/open-loop.csv)"
    )


def shown(rows: list[Row], name: str) -> str:
    """A measure's mean over repetitions, and its least and largest value."""
    scale, form, unit = (1, ".3g", "ms") if name.startswith("delay") else (100, ".1f", "%")
    form = ".2g" if name.startswith("loss") else form
    values = [scale * getattr(row, name) for row in rows]
    mean, low, high = (format(value, form) for value in (sum(values) / len(values), min(values), max(values)))
    return f"{mean} {unit}" if low == high else f"{mean} ({low} to {high}) {unit}"
