# SPDX-License-Identifier: MIT
"""Repetitions of which a sweep kept only a part, to save room: THINNED says what, and that this was on purpose."""

from __future__ import annotations

from pathlib import Path

from lib import regular
from runs.names import GOODPUT_FILE, POSTCARDS_FILE, TCP_FILE, THINNED

RAW = (POSTCARDS_FILE, TCP_FILE, GOODPUT_FILE)
TABLES = ("postcards.parquet", "tcp.parquet", "joined.parquet")
LOGS_AND_FIGURES = ("logs", "figures")
REMOVED = {"tables": RAW, "summary": (*RAW, *TABLES, *LOGS_AND_FIGURES)}  # by what is kept


def kept(repetition: Path) -> str:
    """What of a repetition was kept: tables, summary; all where it was not thinned."""
    try:
        return regular.read_text(repetition / THINNED, "replace").split("\n", 1)[0].strip()
    except OSError:
        return "all"


def removed(repetition: Path) -> tuple[str, ...]:
    """Names of files and directories that are missing on purpose."""
    return REMOVED.get(kept(repetition), ())
