# SPDX-License-Identifier: MIT
"""The exit statuses of all commands, in one table (docs/exit-codes.md)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class Exit(IntEnum):
    """A caller may rely on results only after DONE."""

    DONE = 0
    NOTHING = 1
    DOUBTFUL = 2
    FAILED = 3


MEANINGS = {
    "0": "done; for commands that run experiments: every run is valid",
    "1": "no result: wrong usage, bad input, or a failure that stderr names",
    "2": "done, but not valid, incomplete, or from damaged files",
    "3": "done, and an expectation (EXPECT) failed",
    "128 + N": "ended by signal N",
}


def of_signal(number: int) -> int:
    """The exit status after a signal, as a shell gives it."""
    return 128 + number


def of_parts(statuses: Iterable[int]) -> Exit:
    """The exit status of a command with several parts: NOTHING if every part failed, DOUBTFUL if some parts failed or
    are doubtful.
    """
    distinct = set(statuses)
    return Exit(distinct.pop()) if len(distinct) == 1 else Exit.DOUBTFUL if distinct else Exit.DONE
