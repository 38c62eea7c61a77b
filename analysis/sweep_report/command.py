# SPDX-License-Identifier: MIT
"""The command `sweep-report`: writes results/<sweep>/report.html. If it fails, an earlier page stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lib import owner
from lib.errors import BadValue, InputError, SpecError
from lib.terminal import complain, say
from lib.words import FOREIGN, PATHS, Key, require
from runs.spec_file import check_name

KEYS = {
    "sweep": Key("a sweep: results/<sweep>", values=PATHS),
    "figures": Key("directory with the drawn figures of a paper (default: results/figures/<paper>)", values=PATHS),
    "foreign": FOREIGN,
}


def run(given: dict[str, Any], errors: list[BadValue]) -> int:
    """Prints the page's path; returns the exit status. Raises SpecError, InputError, OSError."""
    from analysis.sweep_report import write
    from runs import record, run_table

    require(given, errors, sweep="say which: bufferscope sweep-report results/<sweep>")
    if errors:
        raise SpecError(errors)
    directory, figures = Path(given["sweep"]), Path(given["figures"]) if "figures" in given else None
    if figures is not None and not figures.is_dir():
        raise InputError(
            f"{figures}: is not a directory; give the directory with the figures of a paper, or leave FIGURES out"
        )
    check_name(directory)
    if given.get("foreign") == "1":
        owner.allow_others()
    say(str(write(directory, figures)))
    if unknown := record.unrecorded_among(run_table.repetitions(directory), directory):
        complain(f"note: {unknown}")
    return 0
