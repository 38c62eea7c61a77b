# SPDX-License-Identifier: MIT
"""The command `sweep-report`: writes results/<sweep>/report.html. If it fails, an earlier page stays as it is."""

from __future__ import annotations

from pathlib import Path

from lib import owner
from lib.errors import InputError
from lib.keys import FOREIGN, Keys, field
from lib.terminal import complain, say
from runs.spec_file import check_name


class Asked(Keys):
    sweep: Path = field("a sweep: results/<sweep>", default=None)
    figures: Path | None = field("directory with the drawn figures of a paper (default: results/figures/<paper>)")
    foreign: bool = FOREIGN


def run(asked: Asked) -> int:
    """Prints the page's path; returns the exit status. Raises InputError, OSError."""
    from analysis.report.sweep_report import write
    from runs import record, run_table

    directory, figures = asked.sweep, asked.figures
    if figures is not None and not figures.is_dir():
        raise InputError(
            f"{figures}: is not a directory; give the directory with the figures of a paper, or leave FIGURES out"
        )
    check_name(directory)
    if asked.foreign:
        owner.allow_others()
    say(str(write(directory, figures)))
    if unknown := record.unrecorded_among(run_table.repetitions(directory), directory):
        complain(f"note: {unknown}")
    return 0
