# SPDX-License-Identifier: MIT
"""Text for a terminal. `say` and `complain` escape control characters. Use them for every line that has the name of a
file, or words of a command line or of another program.
"""

from __future__ import annotations

import sys

THIN_SPACE = "\u2009"  # between thousands; Python calls no space but " " printable


def printable(line: str) -> str:
    """Escapes control characters: text from a file or command line must not control the terminal."""
    line = line.replace(THIN_SPACE, " ")
    return line if line.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def say(line: str) -> None:
    """Prints a line on stdout and flushes it."""
    print(printable(line), flush=True)


def complain(line: str) -> None:
    """Prints a line on stderr."""
    print(printable(line), file=sys.stderr, flush=True)


def one_line(error: object) -> str:
    """The text of any object as one line of at most 200 characters."""
    return " ".join(str(error).split())[:200]


def counted(number: int, name: str) -> str:
    """ "1 run", "2 runs", "1,000 runs"."""
    return f"{number:,} {name}{'' if number == 1 else 's'}"
