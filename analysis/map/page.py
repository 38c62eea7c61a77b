# SPDX-License-Identifier: MIT
"""The table of the map's regions in docs/results/README.md, between two comments."""

from __future__ import annotations

from pathlib import Path

from analysis.map.points import CRITERIA, SENDERS, MapPoint
from analysis.map.rules import RULES, region
from lib.errors import InputError

NAME = "README.md"
BEGIN, END = "<!-- map: written by make figures PAPER=all PUBLISH=1 -->", "<!-- end of map -->"


def table(points: list[MapPoint]) -> str:
    """One row per rule and kind of senders, one column per criterion."""
    lines = [
        f"| rule | senders | {' | '.join(criterion.key for criterion in CRITERIA)} |",
        f"|---|---|{'---|' * len(CRITERIA)}",
    ]
    for rule in RULES:
        for senders in SENDERS:
            cells = [
                region(rule, [p for p in points if p.criterion == criterion and p.senders == senders]).text
                for criterion in CRITERIA
            ]
            who = f"**{senders}**" if senders in rule.senders else senders
            lines.append(f"| {rule.name} ({rule.paper}) | {who} | {' | '.join(cells)} |")
    return "\n".join(lines)


def with_table(path: Path, points: list[MapPoint]) -> str:
    """The page with the table of these points. Raises InputError if the page has no place for it."""
    text = path.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"{path}: has no {BEGIN} ... {END}; put both lines where the table belongs")
    return f"{before}{BEGIN}\n{table(points)}\n{END}{after}"
