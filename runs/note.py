# SPDX-License-Identifier: MIT
"""NOTE: what the user says of a run or a sweep, one line in the file of this name beside its repetitions. Nobody
computes with it, so it may be edited at any time.
"""

from __future__ import annotations

from pathlib import Path

from lib import regular
from runs.names import NOTE, SWEEP_RUNS

MOST = 500  # characters
MEANING = (
    f'what you want to remember of it, in at most {MOST} characters, as NOTE="with new PIE": lists and pages show it'
)


def line(value: object) -> str:
    """Raises ValueError."""
    text = " ".join(str(value).split())
    if not text or len(text) > MOST or not text.isprintable():
        raise ValueError(f"is no note; allowed: a line of 1 to {MOST} printable characters")
    return text


def read(run: Path) -> str | None:
    """The note of a run, of the sweep of a job's run, or of a sweep; None without one."""
    place = run.parent.parent if run.parent.name == SWEEP_RUNS else run
    try:
        with regular.opened(place / NOTE) as file:
            text = " ".join(file.read(4 * MOST).decode(errors="replace").split())
    except OSError:
        return None
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:MOST] or None
