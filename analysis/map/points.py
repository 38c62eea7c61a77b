# SPDX-License-Identifier: MIT
"""Least buffers by three criteria, from the published run tables of long flows.

Runs that differ in nothing but the buffer and the repetition form a group. Each group gives at most one point per
criterion: the bounds of analysis/papers/least_buffer.py. A group with a single buffer gives one bound; the bound
counts only if no group with more buffers has the same paper, algorithm, flows, senders and BDP.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from analysis.arithmetic.statistics import Bounds
from analysis.papers import published, registry
from analysis.papers.least_buffer import bounds, by_buffer
from analysis.papers.paper import NS3
from analysis.theory.single_flow import bdp_packets
from controlplane.policy import MARKING_MODES
from lib.errors import InputError
from lib.frames import wire_bytes_of_ip
from runs.run_table import drawn_alike

MEAN_RTT, PIPE = "mean_rtt_ns", "pipe_packets"
UNPACED, PACED, SLOW_ACCESS, BBR = "unpaced", "paced", "behind slower links", "BBR"
SENDERS = (UNPACED, PACED, SLOW_ACCESS, BBR)
BBRS = "bbr"  # prefix of the names of all versions of BBR, which pace themselves
NO_SETTING = frozenset({"buffer_packets", "buffer_over_bdp", "bdp_packets", "ecn_threshold_packets"})
OTHER_LINK_OR_QUEUE = ("rtts_ns", "rate_changes", "link_loss", "p4", "queue")
FIRST_SETTING, LAST_SETTING = "cc", "groups"  # the run table's columns from one to the other are settings

Spreads = Mapping[tuple[str, int], int]  # (sweep, least RTT in ns) -> spread of the RTTs in ns


class Criterion(NamedTuple):
    """A buffer is enough if the mean of `column` over the repetitions, with its interval, is `least` or more."""

    key: str
    column: str
    least: float
    text: str


CRITERIA = (
    Criterion("mean utilization 98 %", "utilization_mean", 0.98, "the link is busy for 98 % of the time"),
    Criterion("mean utilization 80 %", "utilization_mean", 0.8, "the link is busy for 80 % of the time"),
    Criterion("99 % find a queue", "queue_nonempty_fraction", 0.99, "99 % of the packets find a queue"),
)


class MapPoint(NamedTuple):
    """The `bounds` of the least buffer of one group, in packets (analysis/papers/least_buffer.py)."""

    criterion: Criterion
    paper: str
    cc: str
    flows: int
    senders: str
    drops: str  # the mode of the queue: where packets are dropped
    rate_bps: int
    mean_rtt_ns: int
    access_bps: int | None
    window_packets: int | None  # the flows' largest window, if it has a limit
    bdp: float  # C x mean RTT, packets
    bounds: Bounds
    buffers: int
    runs: tuple[str, ...]  # their names
    sweeps: str

    @property
    def gamma(self) -> float | None:
        """Output capacity / input capacity = rate / ACCESS; None without access links."""
        return self.rate_bps / self.access_bps if self.access_bps else None


def read(docs: Path, spreads: Spreads) -> list[MapPoint]:
    """The points of all published runs in `docs`, sorted by criterion, senders, flows and algorithm. Runs count if they
    are valid, not imported, in virtual time but not in ns-3, with long flows of one algorithm and evenly spread RTTs, a
    link of constant rate without random loss, and our queue that does not mark. Raises InputError.
    """
    points = []
    for paper, table in tables(docs).items():
        runs = table.filter(
            pl.col("valid"), ~pl.col("imported"), pl.col("clock") == "virtual", pl.col("traffic") == "long",
            ~pl.col("mode").is_in(MARKING_MODES), ~pl.col("cc").str.contains(","), pl.col("groups").is_null(),
            ~pl.col("sweep").str.ends_with(NS3), *(pl.col(name).is_null() for name in OTHER_LINK_OR_QUEUE),
        )  # fmt: skip
        settings = _settings(table)
        for group in _groups(runs, settings, spreads, paper):
            points += [point for criterion in CRITERIA if (point := _point(criterion, paper, group)) is not None]
    return sorted(_without_variants(points), key=_order)


def _without_variants(points: list[MapPoint]) -> list[MapPoint]:
    """Leaves out groups with a single buffer that vary a detail of hosts or switch, if a group with several buffers has
    the same criterion, paper, algorithm, flows, senders and BDP.
    """

    def kind(point: MapPoint) -> tuple[Any, ...]:
        return point.criterion.key, point.paper, point.cc, point.flows, point.senders, point.bdp

    searched = {kind(point) for point in points if point.buffers > 1}
    return [point for point in points if point.buffers > 1 or kind(point) not in searched]


def tables(docs: Path) -> dict[str, pl.DataFrame]:
    """The rows of the published runs, by paper, without papers' second sets. Raises InputError if there are none."""
    directories = published.directories(docs)
    if not directories:
        raise InputError(f"{docs}: no published runs *{published.END}/; allowed: docs/results of a checkout")
    second = [f"{paper.second.suffix}$" for paper in registry.installed().values() if paper.second]
    not_second = ~pl.col("sweep").str.contains("|".join(second) or "^$")
    return {paper: published.rows(directory).filter(not_second) for paper, directory in directories.items()}


def _settings(table: pl.DataFrame) -> list[str]:
    first, last = table.columns.index(FIRST_SETTING), table.columns.index(LAST_SETTING)
    return [name for name in table.columns[first : last + 1] if name not in NO_SETTING]


def _groups(runs: pl.DataFrame, settings: list[str], spreads: Spreads, paper: str) -> Iterable[list[dict[str, Any]]]:
    """Groups rows by settings and RTTs. A run that several sweeps made counts once."""
    groups: dict[tuple[Any, ...], dict[Any, dict[str, Any]]] = {}
    for row in runs.sort("sweep", "run").iter_rows(named=True):
        spread_ns = spreads.get((row["sweep"], row["rtt_ns"]))
        if spread_ns is None:
            raise InputError(
                f"{paper}{published.END}: no spec has {row['sweep']} with an RTT of {row['rtt_ns']} ns; publish again"
            )
        row[MEAN_RTT] = row["rtt_ns"] + spread_ns // 2
        row[PIPE] = bdp_packets(row["rate_bps"], row[MEAN_RTT], wire_bytes_of_ip(row["mtu_bytes"]))
        same = (*(row[name] for name in settings), spread_ns)
        alike = (row["buffer_packets"], drawn_alike(row) or row["run"])
        groups.setdefault(same, {}).setdefault(alike, row)
    return [list(group.values()) for group in groups.values()]


def _point(criterion: Criterion, paper: str, rows: list[dict[str, Any]]) -> MapPoint | None:
    """A group's point; None if its senders cannot fill more of the link than the criterion asks, if no run has the
    measurement, or if the runs give no bound.
    """
    first = rows[0]
    if offered(first) <= criterion.least:
        return None
    measured = by_buffer(rows, criterion.column)
    if not any(value is not None for values in measured.values() for value in values):
        return None
    bracket = bounds(measured, criterion.least)
    if bracket.low <= 0 and math.isinf(bracket.high):
        return None  # no bound: undecided, or contradictions
    return MapPoint(
        criterion, paper, first["cc"], first["flows"], senders(first), first["mode"], first["rate_bps"],
        first[MEAN_RTT], first["access_bps"], first["window_packets"], first[PIPE], bracket,
        len(measured), tuple(row["run"] for row in rows), " ".join(sorted({row["sweep"] for row in rows})),
    )  # fmt: skip


def offered(row: Mapping[str, Any]) -> float:
    """The largest share of the link that the senders' windows and access links can fill; infinite without limits."""
    shares = [math.inf]
    if row["window_packets"]:
        shares.append(row["flows"] * row["window_packets"] / row[PIPE])
    if row["access_bps"]:
        shares.append((row["access_links"] or row["flows"]) * row["access_bps"] / row["rate_bps"])
    return round(min(shares), 3)


def senders(row: Mapping[str, Any]) -> str:
    """How the packets of a flow reach the link."""
    if row["access_bps"] and row["access_bps"] < row["rate_bps"]:
        return SLOW_ACCESS
    if row["cc"].startswith(BBRS):
        return BBR
    return UNPACED if row["pacing"] in (None, "off") else PACED


def _order(point: MapPoint) -> tuple[Any, ...]:
    return (
        CRITERIA.index(point.criterion), SENDERS.index(point.senders), point.flows, point.cc, point.paper, point.drops,
        point.bdp, point.bounds, point.runs, point.sweeps,
    )  # fmt: skip
