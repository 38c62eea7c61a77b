# SPDX-License-Identifier: MIT
"""Errors as values: a command prints one line for each, and no traceback."""

from __future__ import annotations

import signal
from typing import NamedTuple

from lib.exit_codes import Exit
from lib.terminal import complain

MOST_CHARACTERS = 2000  # of an error


class BadValue(NamedTuple):
    """An error in a command's parameters, or in a spec.

    `value` is as the user gave it (None: no value); `origin` is the file that has the key ('': no file).
    """

    key: str
    value: object
    problem: str
    origin: str = ""

    def __str__(self) -> str:
        line = f"{self.origin}: {self._without_origin()}" if self.origin else self._without_origin()
        if len(line) > MOST_CHARACTERS:  # a word from a file may be long: what is allowed stands at the end
            line = f"{line[: MOST_CHARACTERS // 2]} ... {line[-MOST_CHARACTERS // 2 :]}"
        return line if line.isprintable() else ascii(line)  # text from a file must not control the terminal

    def _without_origin(self) -> str:
        if self.value is None:
            return f"{self.key} {self.problem}"
        text = str(self.value) if isinstance(self.value, (str, int, float)) else f"a {type(self.value).__name__}"
        text = text if len(text) <= 60 else text[:57] + "..."
        return f"{self.key}={text} {self.problem}"


class SpecError(Exception):
    """All errors of a command's parameters, or of a spec, at once."""

    def __init__(self, errors: list[BadValue]) -> None:
        super().__init__("; ".join(map(str, errors)))
        self.errors = errors

    def lines(self) -> list[str]:
        """One line per error, in the order of `errors`."""
        return [str(error) for error in self.errors]


class RunError(Exception):
    """The run cannot start or go on. Each of `lines` says what failed, on which object, why, and what to do."""

    def __init__(self, *lines: str) -> None:
        super().__init__("; ".join(lines))
        self.lines = list(lines)


class InputError(Exception):
    """Stored files cannot be used at all. The text is one line: what is wrong, where, what to do."""


class Interrupted(BaseException):
    """A signal asked the run to end; `signal` is its number. Not an Exception: `except Exception` must not catch it."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.signal = number


def fail(lines: list[str], status: int = Exit.NOTHING) -> int:
    """Prints the lines to stderr; returns the exit status of the command."""
    for line in lines:
        complain(f"error: {line}")
    return status
