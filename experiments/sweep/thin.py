# SPDX-License-Identifier: MIT
"""What of a valid run stays (keep): `all`; `tables`, without raw files; `summary`, without tables of packets, logs and
the figures' own files too (report.html has them).

A run that is not valid keeps all: whoever wants to know why needs it. THINNED in the repetition says what was done, and
is written first: thinning that was killed is done to its end by the next.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from lib import files, regular
from runs.names import THINNED
from runs.thinned import REMOVED, kept


def thin(repetition: Path, keep: str) -> None:
    """Removes what `keep` says. Raises OSError."""
    if keep == "all" or (keep == "tables" and kept(repetition) == "summary"):  # what is gone does not come back
        return
    names = REMOVED[keep]
    mark = repetition / THINNED
    text = (
        f"{keep}\nremoved after a valid analysis: {', '.join(names)}\nspec.yaml has what it takes to measure it again\n"
    )
    if mark.exists() and regular.read_text(mark) == text and not any((repetition / name).exists() for name in names):
        return
    files.write_text(mark, text)
    for name in names:
        if (repetition / name).is_dir():
            shutil.rmtree(repetition / name)
        else:
            (repetition / name).unlink(missing_ok=True)
