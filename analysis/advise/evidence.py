# SPDX-License-Identifier: MIT
"""What our own runs say of a rule: of those with as much buffer as it asks for, how many did what it promises.

Runs come from run tables (Parquet or CSV, a row a repetition) and from summary.json files, anywhere below a directory.
Only valid runs of long flows of one congestion control count. A rule is asked about each run's own rate, RTT, number of
flows, Delta and losers, and judged by what it promises (Rule.promise); runs that break one of its assumptions say
nothing of it, and are told apart. Nothing is known of a rule without such runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from analysis import run_table
from analysis.advise.link import Link
from analysis.advise.rule import Advice, Rule
from analysis.run_table import INDEX

NEAR = 1.25  # times what a rule asks for: a run with more buffer is no support
TABLES = (".parquet", ".csv")
OTHER_TABLES = ("least_buffer", "distributions")  # of a sweep and of a repetition, not of runs
MEASURED = ("utilization_mean", "utilization_p01", "queue_nonempty_fraction", "delta", "flows_losing_per_rtt")
# Columns of a run table (analysis/run_table.py) that are asked; other tables need only these.
COLUMNS = (
    "valid", "cc", "flows", "traffic", "mode", "rate_bps", "rtt_ns", "mtu_bytes", "buffer_packets", *MEASURED,
)  # fmt: skip
ALSO = ("clock", "seed", "repetition")  # by which a run that was done twice is known, where a table has them


class Run(NamedTuple):
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
        """This run's own link, with `asked`'s wishes; Delta and losers as measured, no limit of the windows."""
        own = replace(
            asked, rate_bps=self.rate_bps, rtt_ns=self.rtt_ns, flows=self.flows, mtu_bytes=self.mtu_bytes,
            delta=max(self.delta or 1.0, 1.0), window_bytes=None,
        )  # fmt: skip
        few = self.flows**2 / (own.delta * own.bdp)
        return replace(own, losing=None if self.flows_losing is None else max(self.flows_losing - few, 0.0))

    def tells(self, rule: Rule) -> bool:
        """Whether all is known of it that the rule asks about."""
        known = {"delta": self.delta is not None, "losing": self.flows_losing is not None}
        return all(known[name] for name in rule.needs)


ASKED = 6  # the first fields of a Run: what was asked of it


class Runs(NamedTuple):
    """Runs that count, how many did not, the files they came from, and what could not be read, a line each."""

    runs: list[Run]
    left_out: int
    sources: list[str]
    problems: list[str]


class Verdict(NamedTuple):
    """`enough` runs had the buffer that the rule asks for, `kept` of them did what it promises; `less` had less, and
    `kept_with_less` of them did it all the same. `nearest` is the least buffer of the former over what the rule asks
    for. Ranges of all those runs' flows and BDPs, packets (None: no runs). `outside` more break an assumption of the
    rule: of `outside_enough` with as much buffer `outside_kept` did it.
    """

    enough: int
    kept: int
    less: int
    kept_with_less: int
    nearest: float | None
    flows: tuple[int, int] | None
    bdp: tuple[float, float] | None
    outside: int = 0
    outside_enough: int = 0
    outside_kept: int = 0

    @property
    def word(self) -> str:
        """supported, contradicted, or why neither can be said; far more buffer than is asked for supports nothing."""
        if not self.enough:
            if self.less:
                return "not measured with so much"
            return "measured outside its assumptions" if self.outside else "not measured yet"
        if self.kept < self.enough:
            return "contradicted"
        return "supported" if self.nearest is not None and self.nearest <= NEAR else "not measured near it"

    def elsewhere(self, asked: Link) -> str:
        """Of what other links these runs are, "" if they are about as the one that is asked about."""
        if self.flows is None or self.bdp is None:
            return ""
        (fewest, most), (least, largest) = self.flows, self.bdp
        found = []
        if not fewest <= asked.flows <= most:
            found.append(f"n = {span_of(fewest, most)}")
        if not least / NEAR <= asked.bdp <= largest * NEAR:
            found.append(f"BDP = {span_of(round(least), round(largest))}")
        return ", ".join(found)


def span_of(least: int, most: int) -> str:
    """3, or 3 to 8."""
    return str(least) if least == most else f"{least} to {most}"


def load(directory: Path) -> Runs:
    """Every run below `directory`; none if it does not exist. What cannot be read is a problem, not an error. A run
    that several sweeps did counts once.
    """
    runs: dict[object, Run] = {}
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
    return Runs(list(runs.values()), left_out, sources, problems)


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
    # [runs with as much buffer, of these kept, with less, of these kept]: within the assumptions, and outside
    within, outside = [0, 0, 0, 0], [0, 0, 0, 0]
    ratios: list[float] = []
    flows: list[int] = []
    bdps: list[float] = []
    for run in runs:
        if run.cc != asked.cc or (run.flows == 1) != (rule.runs_of == "one") or not run.tells(rule):
            continue
        link = run.link(asked)
        reached = _reached(rule, link, run)
        if reached is None or not rule.applies(link):
            continue
        advice = Advice(rule, rule.ask(link), rule.conditions(link))
        enough = run.buffer_packets >= advice.packets - 0.5  # a buffer given in BDP is rounded to the nearest packet
        counts, at = outside if advice.holds is False else within, 0 if enough else 2
        counts[at] += 1
        counts[at + 1] += reached
        if counts is outside:
            continue
        flows.append(run.flows)
        bdps.append(link.bdp)
        if enough:
            ratios.append(run.buffer_packets / max(advice.packets, 1))
    return Verdict(
        enough=within[0],
        kept=within[1],
        less=within[2],
        kept_with_less=within[3],
        nearest=min(ratios, default=None),
        flows=(min(flows), max(flows)) if flows else None,
        bdp=(min(bdps), max(bdps)) if bdps else None,
        outside=outside[0] + outside[2],
        outside_enough=outside[0],
        outside_kept=outside[1],
    )


def _reached(rule: Rule, link: Link, run: Run) -> bool | None:
    """Whether the run did what the rule promises; None if this is not measured."""
    if rule.promise is None:
        return None
    promise = rule.promise(link)
    value = getattr(run, promise.measure)
    return None if value is None else value >= promise.least


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Rows of a table that has all columns, or the one of a summary. ValueError says what is wrong."""
    if path.suffix == ".json":
        yield run_table.read_repetition(path.parent, path.parent)
    else:
        yield from run_table.read_table(path, COLUMNS, ALSO).iter_rows(named=True)


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
        *(_number(row[name]) for name in MEASURED),
    )  # fmt: skip


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
