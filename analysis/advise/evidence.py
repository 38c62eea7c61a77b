# SPDX-License-Identifier: MIT
"""Our own runs, from run tables (Parquet or CSV, a row a repetition) and from summary.json files, anywhere below a
directory. Only valid runs of long flows of one congestion control count; judge.py holds them against rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from analysis.advise.link import Link
from analysis.advise.rule import Rule
from runs import run_table
from runs.names import INDEX

TABLES = (".parquet", ".csv")
OTHER_TABLES = ("least_buffer", "distributions")  # of a sweep and of a repetition, not of runs
MEASURED = ("utilization_mean", "utilization_p01", "queue_nonempty_fraction", "delta", "flows_losing_per_rtt")
# Columns of a run table (runs/run_table.py) that are asked; other tables need only these.
COLUMNS = (
    "valid", "cc", "flows", "traffic", "mode", "rate_bps", "rtt_ns", "mtu_bytes", "buffer_packets", *MEASURED,
)  # fmt: skip
ALSO = ("clock", "seed", "repetition")  # by which a run that was done twice is known, where a table has them


class StoredRun(NamedTuple):
    """One repetition."""

    cc: str
    flows: int
    rate_bps: int
    rtt_ns: int
    mtu_bytes: int
    buffer_packets: float
    utilization_mean: float | None
    utilization_p01: float | None
    nonempty: float | None
    delta: float | None
    flows_losing: float | None  # in an RTT with a loss, mean

    def link(self, asked: Link) -> Link:
        """This run's own rate, RTT, MTU and flows, and else `asked`; no limit of the windows."""
        return replace(
            asked, rate_bps=self.rate_bps, rtt_ns=self.rtt_ns, flows=self.flows, mtu_bytes=self.mtu_bytes,
            window_bytes=None,
        )  # fmt: skip

    def tells(self, rule: Rule) -> bool:
        """Whether all is measured of it that the rule assumes."""
        return not (rule.needs_delta and self.delta is None) and not (rule.most_losing and self.flows_losing is None)


ASKED = 6  # the first fields of a StoredRun: what was asked of it


class Evidence(NamedTuple):
    """Runs that count, how many did not, the files they came from, and what could not be read, a line each."""

    runs: list[StoredRun]
    left_out: int
    sources: list[str]
    problems: list[str]


def load(directory: Path) -> Evidence:
    """Every run below `directory`; none if it does not exist. What cannot be read is a problem, not an error. A run
    that several sweeps did counts once.
    """
    runs: dict[object, StoredRun] = {}
    sources, problems, left_out = [], [], 0
    for path in _files(directory):
        try:
            rows = list(_rows(path))
        except (OSError, ValueError) as error:
            problems.append(f"{path}: {str(error).splitlines()[0]}")
            continue
        before = len(runs)
        for row in rows:
            if (run := _run(row)) is not None:
                drawn = run_table.drawn_alike(row)
                runs.setdefault((run[:ASKED], drawn) if drawn else object(), run)
        left_out += len(rows) - (len(runs) - before)
        sources.append(str(path))
    return Evidence(list(runs.values()), left_out, sources, problems)


def _files(directory: Path) -> list[Path]:
    """Summaries and tables, but not what was made of a summary: tables beside it, the index of a directory above."""
    found = sorted(path for path in directory.rglob("*") if path.name == "summary.json" or path.suffix in TABLES)
    repetitions = {path.parent for path in found if path.name == "summary.json"}
    above = {parent for repetition in repetitions for parent in repetition.parents}
    return [
        path
        for path in found
        if path.name == "summary.json"
        or not (
            path.parent in repetitions or path.stem in OTHER_TABLES or (path.name == INDEX and path.parent in above)
        )
    ]


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Rows of a table that has all columns, or the one of a summary. ValueError says what is wrong."""
    if path.suffix == ".json":
        yield run_table.read_repetition(path.parent, path.parent)
    else:
        yield from run_table.read_table(path, COLUMNS, ALSO).iter_rows(named=True)


def _run(row: Mapping[str, Any]) -> StoredRun | None:
    """The run of a row, None if it does not count."""
    numbers = [row[name] for name in ("flows", "rate_bps", "rtt_ns", "mtu_bytes", "buffer_packets")]
    usable = all((number := _number(value)) is not None and number > 0 for value in numbers)
    cc = row["cc"] if isinstance(row["cc"], str) else ""
    long_flows = row["traffic"] == "long" and row["mode"] == "tail-drop"
    if row["valid"] is not True or not long_flows or not usable or not cc or "," in cc:
        return None
    return StoredRun(
        str(cc), int(numbers[0]), int(numbers[1]), int(numbers[2]), int(numbers[3]), float(numbers[4]),
        *(_number(row[name]) for name in MEASURED),
    )  # fmt: skip


def _number(value: object) -> float | None:
    """None for what is no number, and for NaN and infinity, with which tables write what was not measured."""
    number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    return number if math.isfinite(number) else None
