# SPDX-License-Identifier: MIT
"""The file ABORTED of a repetition that did not finish. Its first line is the cause: one word, for programs. The rest
is the reason, for people.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import NamedTuple

from lib import regular
from lib.terminal import one_line
from runs.names import ABORTED


class Cause(Enum):
    """Why a repetition ended early. In a sweep, a stopped repetition does not count as an attempt: its job
    runs again. A failed or killed repetition counts.
    """

    FAILED = "failed"
    STOPPED = "stopped"  # by a signal
    KILLED = "killed"  # together with the runner; a later run writes the mark (results.mark_killed)


class Aborted(NamedTuple):
    """`reason` is one line; empty if the disk was too full for it."""

    cause: Cause
    reason: str


def text(cause: Cause, reason: str) -> str:
    """The content of the file."""
    return f"{cause.value}\n{reason}\n"


def read(repetition: Path) -> Aborted | None:
    """The content of ABORTED; None if the repetition has no such file. A file that cannot be read, or without a known
    cause, means FAILED."""
    try:
        content = regular.read_text(repetition / ABORTED, "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        return Aborted(Cause.FAILED, f"{ABORTED} cannot be read: {one_line(error)}")
    word, _, reason = content.partition("\n")
    if word in {cause.value for cause in Cause}:
        return Aborted(Cause(word), " ".join(reason.split()))
    return Aborted(Cause.FAILED, " ".join(content.split()))
