# SPDX-License-Identifier: MIT
"""The what-ifs that lie beside a repetition, for its report: the page lists what is there when it is made, so whoever
adds one makes the page again, and a replay makes the same page.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from analysis import verdict
from analysis.report import PAGE, render
from analysis.run_table import is_number
from analysis.verdict import SUMMARY

MEASURES = (
    ("drops",), ("marks",), ("queue_depth_packets", "p50"), ("queue_depth_packets", "p99"),
    ("queue_nonempty_fraction",), ("utilization", "mean"),
)  # fmt: skip
NAME = re.compile(r"whatif-([0-9]{1,9})")


def found(repetition: Path) -> list[dict[str, Any]]:
    """The summary of each what-if, and its directory's `name`, by number; those that cannot be read are none."""
    numbered = [(int(match[1]), path) for path in repetition.glob("whatif-*") if (match := NAME.fullmatch(path.name))]
    result = []
    for _, path in sorted(numbered):
        try:
            summary = json.loads((path / SUMMARY).read_text())
        except (OSError, ValueError, RecursionError):
            continue
        if _is_shown(summary):
            result.append(summary | {"name": path.name})
    return result


def _is_shown(summary: Any) -> bool:
    """Whether it has what the page says of a what-if (report.html.j2)."""

    def at(*path: str) -> Any:
        value = summary
        for key in path:
            value = value.get(key, ...) if isinstance(value, dict) else ...
        return value

    values = [at(name, *path) for name in ("run_measures", "whatif_measures") for path in MEASURES]
    return (
        isinstance(at("asked"), dict)
        and all(isinstance(at("setting", name), str) for name in ("run", "whatif"))
        and all(value is None or is_number(value) for value in values)
    )


def write_page(repetition: Path, environment: dict[str, Any]) -> None:
    """Makes the report of an analysed repetition again, from what its analysis left; of another one there is none.
    Raises ValueError if that cannot be read, OSError.
    """
    page = repetition / PAGE
    if not page.exists():
        return
    summary = verdict.read(repetition)
    temporary = repetition / f".{PAGE}.{os.getpid()}"
    try:
        temporary.write_text(render(summary, environment, repetition / "figures", found(repetition)), encoding="utf-8")
        temporary.replace(page)
    finally:
        temporary.unlink(missing_ok=True)
