# SPDX-License-Identifier: MIT
"""Thinned repetitions: a sweep kept a part of their files to save room. THINNED shows that this was on purpose."""

from __future__ import annotations

from pathlib import Path

from lib import regular
from runs.names import FLOWS_FILE, GOODPUT_FILE, POSTCARDS_FILE, TCP_FILE, THINNED

RAW = (POSTCARDS_FILE, TCP_FILE, GOODPUT_FILE, FLOWS_FILE)
TABLES = ("postcards.parquet", "tcp.parquet", "joined.parquet", "flows.parquet")
LOGS_AND_FIGURES = ("logs", "figures")
REMOVED = {"tables": RAW, "summary": (*RAW, *TABLES, *LOGS_AND_FIGURES)}  # by the kept part


def kept(repetition: Path) -> str:
    """The kept part of a repetition: tables or summary; all if it was not thinned."""
    try:
        return regular.read_text(repetition / THINNED, "replace").split("\n", 1)[0].strip()
    except OSError:
        return "all"


def removed(repetition: Path) -> tuple[str, ...]:
    """Names of files and directories that are missing on purpose."""
    return REMOVED.get(kept(repetition), ())
