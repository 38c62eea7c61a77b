# SPDX-License-Identifier: MIT
"""Loads stored runs from run tables (Parquet or CSV, one row per repetition) and from summary.json files anywhere below
a directory. A run counts only if it is valid, has only long flows of one congestion control and tail drop, and no
pacing, window limit or access links. judge.py judges rules by these runs.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from analysis.advise.link import Link
from analysis.advise.rule import Rule
from analysis.papers.paper import NS3
from lib.terminal import one_line
from model.experiment import Experiment
from runs import run_table
from runs.names import INDEX, SUMMARY

TABLES = (".parquet", ".csv")
OTHER_TABLES = ("least_buffer", "distributions")  # tables of a sweep and of a repetition, without runs
MEASURED = ("utilization_mean", "utilization_p01", "queue_nonempty_fraction", "delta", "flows_losing_per_rtt")
# The columns of a run table (runs/run_table.py) that any table must have.
COLUMNS = (
    "valid", "cc", "flows", "traffic", "mode", "rate_bps", "rtt_ns", "mtu_bytes", "buffer_packets", *MEASURED,
)  # fmt: skip
# Set if something besides the queue and congestion control limits the senders.
HELD_BACK = ("window_packets", "access_bps", "link_loss", "jitter_ns")
# Set if the queue or the link is of another kind, or the flows' RTTs are not evenly between two.
OTHER_QUEUE_OR_LINK = ("rate_changes", "p4", "queue", "rtts_ns")
# Settings of hosts and switch that differ between runs of the same link.
SETTING = tuple(
    name
    for name in run_table.COLUMNS[run_table.COLUMNS.index("profile") : run_table.COLUMNS.index("groups") + 1]
    if name not in (*HELD_BACK, *OTHER_QUEUE_OR_LINK)
)
# Optional columns: the first three identify a run that several sweeps made.
ALSO = (
    "clock", "seed", "repetition", "sweep", *SETTING, *HELD_BACK, "depth_p99_packets", "arrivals", "drops",
    "rtt_spread_ns", "spec", *OTHER_QUEUE_OR_LINK,
)  # fmt: skip


class EvidenceRun(NamedTuple):
    """One repetition."""

    cc: str
    flows: int
    rate_bps: int
    rtt_ns: int  # mean over the flows
    mtu_bytes: int
    buffer_packets: float
    utilization_mean: float | None
    utilization_p01: float | None
    nonempty: float | None
    delta: float | None
    flows_losing: float | None  # mean over RTTs with a loss
    depth_p99: float | None = None  # packets
    loss: float | None = None  # drops over arrivals
    setting: tuple[object, ...] = ()  # SETTING, and the clock

    def link(self, asked: Link) -> Link:
        """`asked` with this run's rate, RTT, MTU and flows, and without a window limit."""
        return replace(
            asked, rate_bps=self.rate_bps, rtt_ns=self.rtt_ns, flows=self.flows, mtu_bytes=self.mtu_bytes,
            window_bytes=None,
        )  # fmt: skip

    def tells(self, rule: Rule) -> bool:
        """Whether the run has a measurement of each quantity that the rule assumes."""
        return not (rule.needs_delta and self.delta is None) and not (rule.most_losing and self.flows_losing is None)


ASKED = 6  # the first fields of an EvidenceRun are parameters; the others are measured


class Evidence(NamedTuple):
    """The runs that count, the number of other rows, the files read, and one line for each unreadable file."""

    runs: list[EvidenceRun]
    left_out: int
    sources: list[str]
    problems: list[str]


def load(directory: Path) -> Evidence:
    """All runs below `directory`; none if it does not exist. An unreadable file is a problem, not an error. A run that
    several sweeps made counts once.
    """
    runs: dict[object, EvidenceRun] = {}
    sources, problems, left_out = [], [], 0
    for path in _files(directory):
        try:
            rows = [(row, _run(row)) for row in _rows(path)]
        except (OSError, ValueError) as error:
            problems.append(f"{path}: {one_line(error)}")
            continue
        before = len(runs)
        for row, run in rows:
            if run is not None:
                drawn = run_table.drawn_alike(row)
                runs.setdefault((run[:ASKED], run.setting, drawn) if drawn else object(), run)
        left_out += len(rows) - (len(runs) - before)
        sources.append(str(path))
    return Evidence(list(runs.values()), left_out, sources, problems)


def _below(directory: Path, seen: set[Path]) -> Iterator[Path]:
    """The files below a directory. Links are followed, but no directory is read twice (results/latest)."""
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: (entry.is_symlink(), entry.name))
    except OSError:
        return
    for entry in entries:
        if not entry.is_dir():
            yield Path(entry.path)
        elif (place := Path(entry.path).resolve()) not in seen:
            seen.add(place)
            yield from _below(Path(entry.path), seen)


def _files(directory: Path) -> list[Path]:
    """Summaries and run tables. Left out are tables derived from a summary (beside the summary, or the index above it)
    and the numbers of figures (beside their pictures).
    """
    files = sorted(
        path for path in _below(directory, {directory.resolve()}) if path.name == SUMMARY or path.suffix in TABLES
    )
    repetitions = {path.parent for path in files if path.name == SUMMARY}
    above = {parent for repetition in repetitions for parent in repetition.parents}
    return [
        path
        for path in files
        if path.name == SUMMARY
        or not (
            path.parent in repetitions
            or path.stem in OTHER_TABLES
            or _is_of_a_figure(path)
            or (path.name == INDEX and path.parent in above)
        )
    ]


def _is_of_a_figure(path: Path) -> bool:
    """Whether a table has the numbers or the points of a figure: x.csv and x-points.csv beside x.svg, table_1.csv."""
    if path.stem.startswith("table_"):
        return True
    of_points = path.with_stem(path.stem.removesuffix("-points"))
    return any(table.with_suffix(kind).exists() for table in (path, of_points) for kind in (".svg", ".png"))


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """The rows of a table, or the one row of a summary. Raises ValueError if columns are missing or unusable."""
    if path.suffix == ".json":
        yield run_table.read_repetition(path.parent, path.parent)
    else:
        yield from run_table.read_table(path, COLUMNS, ALSO).iter_rows(named=True)


def _run(row: Mapping[str, Any]) -> EvidenceRun | None:
    """The run in a row; None if the run does not count."""
    if isinstance(text := row.get("spec"), str):
        spec = Experiment.model_validate_json(text)
        row = {**row, **run_table.link_and_queue(spec), "rtt_spread_ns": spec.rtt_spread_ns}
    numbers = [row[name] for name in ("flows", "rate_bps", "rtt_ns", "mtu_bytes", "buffer_packets")]
    usable = all((number := _number(value)) is not None and number > 0 for value in numbers)
    cc = row["cc"] if isinstance(row["cc"], str) else ""
    long_flows = row["traffic"] == "long" and row["mode"] == "tail-drop"
    if str(row.get("sweep") or "").endswith(NS3):  # another TCP: no evidence for Linux's
        return None
    if row.get("pacing") not in (None, "", "off") or any(_number(row.get(name)) for name in HELD_BACK):
        return None
    if any(row.get(name) for name in OTHER_QUEUE_OR_LINK):
        return None
    if row["valid"] is not True or not long_flows or not usable or not cc or "," in cc:
        return None
    arrivals, drops = (_number(row.get(name)) for name in ("arrivals", "drops"))
    mean_rtt_ns = int(numbers[2]) + int(_number(row.get("rtt_spread_ns")) or 0) // 2  # the spread is even
    return EvidenceRun._make((
        str(cc), int(numbers[0]), int(numbers[1]), mean_rtt_ns, int(numbers[3]),
        float(numbers[4]), *(_number(row[name]) for name in MEASURED), _number(row.get("depth_p99_packets")),
        drops / arrivals if arrivals and drops is not None else None,
        tuple(row.get(name) for name in ("clock", *SETTING)),
    ))  # fmt: skip


def _number(value: object) -> float | None:
    """A finite number, else None: tables write NaN or infinity where a quantity was not measured."""
    number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    return number if math.isfinite(number) else None
