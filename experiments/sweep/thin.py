# SPDX-License-Identifier: MIT
"""Thins valid runs. KEEP=all keeps everything; `tables` removes raw files; `flows` also removes tables of packets, logs
and figures; `summary` also removes the table of finite flows and the traffic programs' reports. The analysis of a valid
job does not write the tables and figures that thinning would remove.

A run that is not valid keeps everything, so that its reasons can be examined. THINNED in the repetition lists the
removed files. THINNED is written first, so that the next call completes thinning that was killed.
"""

from __future__ import annotations

from pathlib import Path

from lib import files, regular
from runs.names import THINNED
from runs.thinned import KEEP, REMOVED, kept, mark


def thin(repetition: Path, keep: str) -> None:
    """Removes the files that `keep` does not keep. Raises OSError."""
    before = kept(repetition)
    if keep == KEEP[0] or (before in KEEP and KEEP.index(keep) < KEEP.index(before)):  # removed files do not come back
        return
    names, text = REMOVED[keep], mark(keep)
    file = repetition / THINNED
    if file.exists() and regular.read_text(file) == text and not any((repetition / name).exists() for name in names):
        return
    with files.directory(repetition) as place:
        files.write_text(THINNED, text, place)
        for name in names:
            files.remove(name, place)
