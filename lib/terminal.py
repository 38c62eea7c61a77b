# SPDX-License-Identifier: MIT
"""Text for a terminal. `say` and `complain` escape control characters. Use them for every line that has the name of a
file, or words of a command line or of another program.
"""

from __future__ import annotations

import io
import re
import sys
from typing import cast

from lib.places import IS_INSTALLED

OUTPUT = "standard output"
GOAL = re.compile(
    r"\bmake (advise|build|cc|compare|deploy|doctor|experiment|export|figures|import|kernel|leftovers|parameters|"
    r"replay|results|rm|runs|sweep)\b"
)
THIN_SPACE = "\u2009"  # between thousands; Python calls no space but " " printable


class Output(io.TextIOWrapper):
    """Standard output. Its errors, as on a full disk, have its name, as those of other files have."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as error:
            error.filename = OUTPUT
            raise

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            error.filename = OUTPUT
            raise


def name_output() -> None:
    """Makes sys.stdout an Output, unless it is another program's object, as in a test."""
    if type(sys.stdout) is io.TextIOWrapper:
        encoding, buffered = sys.stdout.encoding, sys.stdout.line_buffering
        sys.stdout = Output(cast(io.BufferedWriter, sys.stdout.detach()), encoding, "replace", line_buffering=buffered)


def printable(line: str) -> str:
    """Escapes control characters: text from a file or command line must not control the terminal. An installed copy has
    no make: its commands have the same names.
    """
    line = line.replace(THIN_SPACE, " ")
    if IS_INSTALLED:
        line = GOAL.sub(lambda match: f"bufferscope {match[1].replace('build', 'deploy')}", line)
    return line if line.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def say(line: str) -> None:
    """Prints a line on stdout and flushes it."""
    print(printable(line), flush=True)


def complain(line: str) -> None:
    """Prints a line on stderr."""
    print(printable(line), file=sys.stderr, flush=True)


def agreed(question: str) -> bool | None:
    """Whether the user says yes; None if there is no terminal to ask at."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    print(f"{question} [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def one_line(error: object) -> str:
    """The text of any object as one line of at most 200 characters: of an OSError the reason alone, without its number
    and file.
    """
    reason = isinstance(error, OSError) and error.strerror
    return " ".join(str(reason or error).split())[:200] or type(error).__name__


def located(error: OSError, place: object) -> str:
    """The file that an error names, or else `place`, and the reason. Errors of libraries, of open files and of full
    disks may name no file.
    """
    return f"{error.filename or place}: {one_line(error)}"


def counted(number: int, name: str) -> str:
    """ "1 run", "2 runs", "1,000 runs"."""
    return f"{number:,} {name}{'' if number == 1 else 's'}"
