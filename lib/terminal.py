# SPDX-License-Identifier: MIT
"""What a terminal is given."""

from __future__ import annotations


def printable(line: str) -> str:
    """The line as a terminal may show it: it must not obey what a file or a command line says."""
    return line if line.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in line)
