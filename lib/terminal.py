# SPDX-License-Identifier: MIT
"""Text for a terminal."""

from __future__ import annotations


def printable(line: str) -> str:
    """Escapes control characters: text from a file or command line must not control the terminal."""
    return line if line.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
