# SPDX-License-Identifier: MIT
"""The error of a what-if, which replays arrivals, where it is known: docs/results/open-loop.csv has what-ifs of our own
runs beside runs whose senders met that queue (python -m bench.open_loop makes it). A row: the arrivals of a run with
1 BDP, replayed through `bdp`, and the run with `bdp` itself.
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
    return tuple(Row(int(row["flows"]), *(float(row[name]) for name in Row._fields[1:])) for row in read)


def near(flows: float, load: float, bdp: float) -> Row:
    """The row nearest to a link: of long flows if its load is FULL, else of flows that come and go."""
    is_full = load >= FULL
    of_kind = [row for row in rows() if (row.flows > 0) == is_full]

    def apart(row: Row) -> tuple[float, float]:
        traffic = abs(math.log(row.flows / max(flows, 1))) if is_full else abs(row.load - load)
        return traffic, abs(math.log(row.bdp / max(bdp, 1e-6)))

    return min(of_kind, key=apart)


class Spread(NamedTuple):
    """The least and the largest error of what-ifs: measured less what-if (utilization), measured over what-if."""

    utilization: tuple[float, float]
    delay: tuple[float, float]
    loss: tuple[float, float]


def spread(flows: float, load: float, bdp: float) -> Spread | None:
    """The errors of all rows of this kind of traffic whose buffer is the nearest; None without a table."""
    try:
        nearest = near(flows, load, bdp)
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


def text(row: Row) -> str:
    traffic = f"{row.flows} long flows" if row.flows else f"flows that come and go at load {row.load:g}"
    return (
        f"open loop, where its error is known: with {traffic}, arrivals at 1 BDP replayed through {row.bdp:g} BDP lost "
        f"{100 * row.loss_whatif:.2g} %, used {100 * row.utilization_whatif:.1f} % and waited "
        f"{row.delay_p99_ms_whatif:.3g} ms at p99; senders that met this queue: {100 * row.loss:.2g} %, "
        f"{100 * row.utilization:.1f} %, {row.delay_p99_ms:.3g} ms (docs/results/open-loop.csv)"
    )
