# SPDX-License-Identifier: MIT
"""Builds the map from the published tables: map.svg, map.png, map.csv, and the table of the map's regions in
docs/results/README.md, between two comments.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from analysis.map import figure, points, ratio, rules
from analysis.map.points import CRITERIA, SENDERS, MapPoint, Spreads
from analysis.map.ratio import BestBuffer
from analysis.papers import look
from lib.errors import InputError

NAME = "map"
NUMBERS = f"{NAME}.csv"
REFRESH = "make figures PAPER=all PUBLISH=1"
PAGE, BEGIN, END = "README.md", f"<!-- map: written by {REFRESH} -->", "<!-- end of map -->"


def build(docs: Path, output: Path, spreads: Spreads, *, only_svg: bool = False) -> list[Path]:
    """Draws the map of the tables in `docs` into `output`; returns the files to look at. Raises InputError, OSError."""
    map_points, bests = points.read(docs, spreads), ratio.read(docs)
    output.mkdir(parents=True, exist_ok=True)
    data = {"points": map_points, "bests": bests, "provenance": _provenance(docs, map_points, bests)}
    look.render(NAME, figure.draw, data, output, only_svg=only_svg)
    return [output / f"{NAME}.svg", write_numbers(map_points, bests, output)]


def publish(docs: Path, spreads: Spreads) -> list[Path]:
    """Draws the map into `docs`, and writes its table into the page there."""
    files = build(docs, docs, spreads, only_svg=True)
    path = docs / PAGE
    path.write_text(with_table(path, points.read(docs, spreads)), encoding="utf-8")
    return [*files, path]


def table(map_points: list[MapPoint]) -> str:
    """One row per rule and kind of senders, one column per criterion."""
    lines = [
        f"| rule | senders | {' | '.join(criterion.key for criterion in CRITERIA)} |",
        f"|---|---|{'---|' * len(CRITERIA)}",
    ]
    for rule in rules.RULES:
        for senders in SENDERS:
            cells = [
                rules.region(rule, [p for p in map_points if p.criterion == criterion and p.senders == senders]).text
                for criterion in CRITERIA
            ]
            who = f"**{senders}**" if senders in rule.senders else senders
            lines.append(f"| {rule.name} ({rule.paper}) | {who} | {' | '.join(cells)} |")
    return "\n".join(lines)


def with_table(path: Path, map_points: list[MapPoint]) -> str:
    """The page with the table of these points. Raises InputError if the page has no place for it."""
    text = path.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"{path}: has no {BEGIN} ... {END}; put both lines where the table belongs")
    return f"{before}{BEGIN}\n{table(map_points)}\n{END}{after}"


def write_numbers(map_points: list[MapPoint], bests: list[BestBuffer], output: Path) -> Path:
    """Writes the CSV, and returns it."""
    path = output / NUMBERS
    numbers(map_points, bests).write_csv(path, float_precision=4)
    return path


def numbers(map_points: list[MapPoint], bests: list[BestBuffer]) -> pl.DataFrame:
    """One row per point or best buffer: criterion, conditions, bounds; for a point also the verdict on each rule."""
    rows = [_row_of_point(point) for point in map_points] + [_row_of_best(best) for best in bests]
    return pl.DataFrame(rows, infer_schema_length=None)


def _row_of_point(point: MapPoint) -> dict[str, object]:
    return {
        "criterion": point.criterion.key, "paper": point.paper, "cc": point.cc, "flows": point.flows,
        "senders": point.senders, "drops": point.drops, "rate_bps": point.rate_bps, "rtt_ns": point.mean_rtt_ns,
        "access_bps": point.access_bps, "capacity_ratio": point.gamma,
        "window_packets": point.window_packets, "bdp_packets": point.bdp,
        "more_than_packets": point.bounds.low, "at_most_packets": point.bounds.high,
        "more_than_bdp": point.bounds.low / point.bdp, "at_most_bdp": point.bounds.high / point.bdp,
        "buffers": point.buffers, "runs": len(point.runs), "source": point.sweeps,
        **{rule.column: rules.judge(rule, point) for rule in rules.RULES},
    }  # fmt: skip


def _row_of_best(best: BestBuffer) -> dict[str, object]:
    return {
        "criterion": f"{best.transfers}: {ratio.CRITERION}", "paper": ratio.PAPER, "flows": best.users,
        "senders": "closed loop of users", "rate_bps": best.rate_bps, "rtt_ns": best.rtt_ns,
        "capacity_ratio": best.gamma, "bdp_packets": best.bdp, "best_packets": best.buffer,
        "more_than_packets": best.low, "at_most_packets": best.high, "more_than_bdp": best.low / best.bdp,
        "at_most_bdp": best.high / best.bdp, "runs": len(best.runs), "source": f"figure {best.figure}",
    }  # fmt: skip


def _provenance(docs: Path, map_points: list[MapPoint], bests: list[BestBuffer]) -> dict[str, object]:
    """The runs that the map shows, for the figure's footer."""
    used = {run for point in map_points for run in point.runs} | {run for best in bests for run in best.runs}
    rows = pl.concat(points.tables(docs).values())
    rows = rows.filter(pl.col("run").is_in(sorted(used)))
    return {
        "used": sorted(used), "left_out": [], "clocks": ["virtual"], "imported": 0,
        "commits": sorted({(commit or "unknown")[:10] for commit in rows["commit"]}),
    }  # fmt: skip
