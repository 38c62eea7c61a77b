# SPDX-License-Identifier: MIT
"""What our own runs say of a rule: of those with as much buffer as it asks for, how many did what it promises.

Runs come from run tables (Parquet or CSV, a row a repetition) and from summary.json files, anywhere below a directory.
Only valid runs of long flows of one congestion control count. A rule is judged at each run's own rate, RTT and number
of flows, by the first paper's two criteria (5.1): full use means that 99 % of packets found a non-empty queue; a wanted
utilization, that the 1st percentile over windows of ten RTTs has it. Nothing is known of a rule without such runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from analysis import run_table
from analysis.advise.link import Link
from analysis.advise.rule import Rule
from analysis.run_table import INDEX

NONEMPTY = 0.99
NEAR = 1.25  # times what a rule asks for: a run with more buffer is no support
TABLES = (".parquet", ".csv")
OTHER_TABLES = ("least_buffer", "distributions")  # of a sweep and of a repetition, not of runs
# Columns of a run table (analysis/run_table.py) that are asked; other tables need only these.
COLUMNS = (
    "valid", "cc", "flows", "traffic", "mode", "rate_bps", "rtt_ns", "mtu_bytes", "buffer_packets", "utilization_p01",
    "queue_nonempty_fraction",
)  # fmt: skip


class Run(NamedTuple):
    """One repetition."""

    cc: str
    flows: int
    rate_bps: int
    rtt_ns: int
    mtu_bytes: int
    buffer_packets: float
    utilization_p01: float | None
    nonempty: float | None


class Runs(NamedTuple):
    """Runs that count, how many did not, the files they came from, and what could not be read, a line each."""

    runs: list[Run]
    left_out: int
    sources: list[str]
    problems: list[str]


class Verdict(NamedTuple):
    """`enough` runs had the buffer that the rule asks for, `kept` of them did what it promises; `less` had less, and
    `kept_with_less` of them did it all the same. `nearest` is the least buffer of the former over what the rule asks
    for. Ranges of all those runs' flows and BDPs, packets (None: no runs).
    """

    enough: int
    kept: int
    less: int
    kept_with_less: int
    nearest: float | None
    flows: tuple[int, int] | None
    bdp: tuple[float, float] | None

    @property
    def word(self) -> str:
        """supported, contradicted, or why neither can be said; far more buffer than is asked for supports nothing."""
        if not self.enough:
            return "not measured yet" if not self.less else "not measured with so much"
        if self.kept < self.enough:
            return "contradicted"
        return "supported" if self.nearest is not None and self.nearest <= NEAR else "not measured near it"


def load(directory: Path) -> Runs:
    """Every run below `directory`; none if it does not exist. What cannot be read is a problem, not an error."""
    runs: list[Run] = []
    sources, problems, left_out = [], [], 0
    for path in _files(directory):
        try:
            rows = list(_rows(path))
        except (OSError, ValueError) as error:
            problems.append(f"{path}: {str(error).splitlines()[0]}")
            continue
        found = [run for row in rows if (run := _run(row)) is not None]
        runs += found
        left_out += len(rows) - len(found)
        sources.append(str(path))
    return Runs(runs, left_out, sources, problems)


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


def judge(rule: Rule, asked: Link, runs: list[Run]) -> Verdict:
    """The rule against the runs of `asked`'s congestion control, each with its own link but `asked`'s wishes."""
    counted = enough = kept = less = kept_with_less = 0
    ratios: list[float] = []
    flows: list[int] = []
    bdps: list[float] = []
    for run in runs:
        if run.cc != asked.cc or (run.flows == 1) != (rule.runs_of == "one"):
            continue
        link = replace(asked, rate_bps=run.rate_bps, rtt_ns=run.rtt_ns, flows=run.flows, mtu_bytes=run.mtu_bytes)
        reached = _reached(rule, link, run)
        if reached is None or not rule.applies(link):
            continue
        counted += 1
        flows.append(run.flows)
        bdps.append(link.bdp)
        # A buffer given in BDP is rounded to the nearest packet.
        asked_packets = rule.ask(link)
        if run.buffer_packets >= asked_packets - 0.5:
            enough, kept = enough + 1, kept + reached
            ratios.append(run.buffer_packets / max(asked_packets, 1))
        else:
            less, kept_with_less = less + 1, kept_with_less + reached
    ranges = ((min(flows), max(flows)), (min(bdps), max(bdps))) if counted else (None, None)
    return Verdict(enough, kept, less, kept_with_less, min(ratios, default=None), *ranges)


def _reached(rule: Rule, link: Link, run: Run) -> bool | None:
    """Whether the run did what the rule promises; None if this is not measured."""
    if rule.aim is None:
        return None
    if rule.aim == "full" or link.utilization == 1:
        return None if run.nonempty is None else run.nonempty >= NONEMPTY
    return None if run.utilization_p01 is None else run.utilization_p01 >= link.utilization


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Rows of a table that has all columns, or the one of a summary. ValueError says what is wrong."""
    if path.suffix == ".json":
        yield run_table.read_repetition(path.parent, path.parent)
    else:
        yield from run_table.read_table(path, COLUMNS).iter_rows(named=True)


def _run(row: Mapping[str, Any]) -> Run | None:
    """The run of a row, None if it does not count."""
    numbers = [row[name] for name in ("flows", "rate_bps", "rtt_ns", "mtu_bytes", "buffer_packets")]
    usable = all(isinstance(value, (int, float)) and value > 0 for value in numbers)
    cc = row["cc"]
    long_flows = row["traffic"] == "long" and row["mode"] == "tail-drop"
    if row["valid"] is not True or not long_flows or not usable or not cc or "," in cc:
        return None
    return Run(
        str(cc), int(numbers[0]), int(numbers[1]), int(numbers[2]), int(numbers[3]), float(numbers[4]),
        _number(row["utilization_p01"]), _number(row["queue_nonempty_fraction"]),
    )  # fmt: skip


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
