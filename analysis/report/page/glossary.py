# SPDX-License-Identifier: MIT
"""The terms of docs/glossary.md, for pages that open offline."""

from __future__ import annotations

import re
from pathlib import Path

GLOSSARY = Path(__file__).resolve().parents[3] / "docs/glossary.md"
_ROW = re.compile(r"\| \*\*(.+?)\*\* \| (.+) \|")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def terms() -> list[tuple[str, str]]:
    """(term, meaning) as plain text, in the order of the file; none if the checkout has no such file."""
    if not GLOSSARY.exists():
        return []
    rows = map(_ROW.fullmatch, GLOSSARY.read_text(encoding="utf-8").splitlines())
    return [(row[1], _LINK.sub(r"\1", row[2]).replace("`", "").replace("**", "")) for row in rows if row]
