# SPDX-License-Identifier: MIT
"""Thins valid runs. KEEP=all keeps everything; `tables` removes raw files; `flows` also removes tables of packets, logs
and figures; `summary` also removes the table of finite flows. The analysis of a job does not write them at all.

A run that is not valid keeps everything, so that its reasons can be examined. THINNED in the repetition lists the
removed files. It is written first, so that the next call completes thinning that was killed.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from lib import files, regular
from runs.names import THINNED
from runs.thinned import KEEP, REMOVED, kept


def thin(repetition: Path, keep: str) -> None:
    """Removes the files that `keep` does not keep. Raises OSError."""
    before = kept(repetition)
    if keep == KEEP[0] or (before in KEEP and KEEP.index(keep) < KEEP.index(before)):  # removed files do not come back
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
