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
from analysis.verdict import SUMMARY

PARTS = {"setting", "run_measures", "whatif_measures", "asked"}
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
        if isinstance(summary, dict) and summary.keys() >= PARTS:
            result.append(summary | {"name": path.name})
    return result


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
