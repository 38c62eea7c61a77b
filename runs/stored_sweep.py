# SPDX-License-Identifier: MIT
"""A stored sweep: its plan, a row for each of its jobs, and the parameters that it varies.

The row of a job without a summary has the values of the plan, the verdict MISSING, and the reason in ABORTED if there
is one. Without a plan (runs put together by hand) the parameters are the columns that differ between the runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from hosts.tune.tcp_options import LINUX
from lib import parquet
from lib.errors import InputError
from lib.terminal import one_line
from runs import aborted, plan_file, run_table, verdict
from runs.environment_file import RunEnvironment
from runs.names import EARLIER_ATTEMPTS, PLAN, REPETITION, SWEEP_RUNS
from runs.plan_file import Plan, PlannedJob

SEARCHED = "least_buffer.parquet"
SEARCHED_SCHEMA: dict[str, pl.DataType] = {
    name: run_table.SCHEMA[name]
    for name in ("point", "cc", "flows", "mode", "rate_bps", "rtt_ns", "mtu_bytes", "bdp_packets")
} | {
    "criterion": pl.String(), "least": pl.Float64(), "width": pl.Float64(), "low_packets": pl.Int64(),
    "high_packets": pl.Int64(), "runs": pl.Int64(), "note": pl.String(),
}  # fmt: skip
VALID, NOT_VALID, MISSING = "valid", "not valid", "missing"
# The column of a sweep's parameter in the run table. Other parameters have no column: their text is shown.
COLUMN = {
    "cc": "cc", "flows": "flows", "buf": "buffer_packets", "rate": "rate_bps", "rtt": "rtt_ns", "mtu": "mtu_bytes",
    "access": "access_bps", "finite_cc": "finite_cc", "load": "load", "users": "users", "mode": "mode",
    "queue": "queue", "ecn_threshold": "ecn_threshold_packets", "traffic": "traffic", "clock": "clock",
    "target": "target",
    "profile": "profile", "offloads": "offloads", "nic_rate": "nic_rate_bps", "coalesce": "coalesce_us",
    "pacing": "pacing", "window": "window_packets",
    **{name.removesuffix("_ns"): name for name in LINUX},
}  # fmt: skip
Row = dict[str, Any]


@dataclass
class Stored:
    """`directory` is results/<sweep>; `plan` plan.json, or a plan without jobs. `rows` have the run table's columns,
    and `verdict` (one of three), `point_words` (parameter -> text) and `directory` (of the repetition, relative
    to the sweep's directory).
    """

    directory: Path
    plan: Plan
    rows: list[Row]

    @property
    def name(self) -> str:
        return self.directory.name

    @cached_property
    def searched(self) -> list[Row]:
        """The results of a search for the least buffer, one row per point; none without a search. Raises InputError."""
        path = self.directory / SEARCHED
        try:
            return parquet.read(path, columns=list(SEARCHED_SCHEMA)).rows(named=True)
        except FileNotFoundError:
            return []
        except (OSError, pl.exceptions.PolarsError) as error:
            raise InputError(f"{path}: {one_line(error)}; run the sweep again to write it anew") from None

    @cached_property
    def valid(self) -> list[Row]:
        """Rows of valid runs, which figures may show."""
        return [row for row in self.rows if row["verdict"] == VALID]

    @cached_property
    def parameters(self) -> dict[str, list[Any]]:
        """The varied parameters: name -> values, in order. A value is a number of the run table, or text."""
        keys = list(dict.fromkeys(key for row in self.rows for key in row["point_words"])) or list(COLUMN)
        values_of = {key: list({self.value(row, key): None for row in self.rows}) for key in keys}
        return {key: sorted(values, key=rank) for key, values in values_of.items() if len(values) > 1}

    def value(self, row: Row, key: str) -> Any:
        """The value of a parameter in a row: from its column of the run table if there is one, else the spec's text. A
        text column may be empty although the spec has the parameter: a run with only finite flows has no `cc`.
        """
        column = COLUMN.get(key)
        if column is None or (row[column] is None and run_table.SCHEMA[column] == pl.String):
            return row["point_words"].get(key)
        return row[column]


def rank(value: Any) -> tuple[bool, Any]:
    """The sorting key of a parameter's value: numbers, then none, then texts."""
    return (isinstance(value, str), value) if value is not None else (True, "")


def read(directory: Path) -> Stored:
    """The sweep in a directory. Raises InputError if it has neither runs nor a plan, or if its plan is damaged."""
    plan = _plan(directory)
    directory = directory.resolve()
    table = run_table.read(directory.parent).filter(pl.col("sweep") == directory.name)
    rows = []
    for row in table.iter_rows(named=True):
        place = Path(row["run"]).relative_to(directory.name)
        name = place.parent.name
        job = plan.jobs.get(name)
        if job and row["point"] is None:  # its spec cannot be read: the plan has the same
            row = _planned(directory, name, job) | {key: row[key] for key in run_table.OF_THE_RUN}
        rows.append(
            row
            | {
                "verdict": VALID if row["valid"] else NOT_VALID,
                "point_words": job.words if job else {},
                "directory": str(place),
            }
        )
    there = {Path(row["directory"]).parent.name for row in rows}
    rows += [_missing(directory, name, job) for name, job in plan.jobs.items() if name not in there]
    if not rows:
        raise InputError(f"{directory}: is not a sweep: it has no runs/<job>/rep-1; give results/<sweep>")
    rows.sort(key=_order)
    return Stored(directory, plan, rows)


def earlier_reasons(directory: Path, row: Row) -> list[str]:
    """Why earlier attempts of a job were not valid, one text each."""
    reasons = []
    for attempt in sorted((directory / row["directory"]).parent.glob(EARLIER_ATTEMPTS)):
        try:
            reasons.append("; ".join(verdict.reasons(verdict.read(attempt))))
        except FileNotFoundError:
            mark = aborted.read(attempt)
            reasons.append((mark and mark.reason) or "it left no reason")
        except (OSError, ValueError) as error:
            reasons.append(verdict.unread(error))
    return reasons


def kind(reason: str) -> str:
    """The reason with an ellipsis for each number: reasons of one kind differ only in their numbers."""
    return re.sub(r"[+-]?\d[\d.,]*", "…", reason)


def _plan(directory: Path) -> Plan:
    try:
        plan = plan_file.read(directory)
    except FileNotFoundError:
        return Plan()
    except (OSError, ValueError) as error:
        raise InputError(f"{directory / PLAN}: {one_line(error)}; {plan_file.REMEDY}") from None
    if problem := plan_file.misplaced(directory, plan):
        raise InputError(f"{directory / PLAN}: {problem}; {plan_file.REMEDY}")
    return plan


def _planned(directory: Path, name: str, job: PlannedJob) -> Row:
    """The row of a job with its parameters from the plan, and no result."""
    place = Path(SWEEP_RUNS) / name / REPETITION
    where = run_table.Place(f"{directory.name}/{place}", directory.name, job.repetition, 1, "", None)
    try:
        return run_table.row({"spec": job.spec, "utilization": {}}, RunEnvironment(), where)
    except ValueError as error:
        raise InputError(f"{directory / PLAN}: job {name} has no spec: {error}; {plan_file.REMEDY}") from None


def _missing(directory: Path, name: str, job: PlannedJob) -> Row:
    """The row of a job without a result, with the reason in ABORTED."""
    place = Path(SWEEP_RUNS) / name / REPETITION
    mark = aborted.read(directory / place)
    return _planned(directory, name, job) | {
        "valid": None,
        "reasons": (mark.reason or "it left no reason") if mark else "has not been run",
        "verdict": MISSING,
        "point_words": job.words,
        "directory": str(place),
    }


def _order(row: Row) -> tuple[Any, ...]:
    return (
        row["cc"] or "", row["flows"] or 0, row["mode"] or "", row["rate_bps"] or 0, row["rtt_ns"] or 0,
        row["buffer_packets"] or 0, row["repetition"] or 0, row["run"],
    )  # fmt: skip
