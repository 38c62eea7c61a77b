# SPDX-License-Identifier: MIT
"""Repetitions of which a sweep kept only a part, to save room: THINNED says what, and that this was on purpose."""

from __future__ import annotations

from pathlib import Path

THINNED = "THINNED"  # its first line: tables or summary


def kept(repetition: Path) -> str:
    """What of a repetition was kept: tables, summary; all where it was not thinned."""
    try:
        return (repetition / THINNED).read_text().split("\n", 1)[0].strip()
    except OSError:
        return "all"
