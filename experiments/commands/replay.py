# SPDX-License-Identifier: MIT
"""The command `replay`: repeats the analysis of a run. With BUF=, MODE=, ECN_THRESHOLD= or RATE= the command makes a
what-if instead (whatif.py).
"""

from __future__ import annotations

import sys
from pathlib import Path

from analysis.figures.printed import Printing, begin
from experiments.commands.whatif import WhatIfKeys, given, whatif
from lib import owner
from lib.errors import RunError
from lib.keys import FOREIGN, Keys, field, flag
from runs.names import REPETITION_NAME, SPEC_FILE
from runs.thinned import KEEP

EXAMPLE = "make replay RUN=results/latest"


class ReplayKeys(Keys):
    run: Path = field("a run, or a repetition of one: results/latest, results/latest/rep-1", default=None)
    force: bool = flag(
        "1: replace earlier results even if raw files were damaged since, or the new results are not valid"
    )
    keep: str = field(
        "of a valid run, write only the files that a sweep with this KEEP keeps: all, tables, flows, summary",
        default=KEEP[0],
        values=KEEP,
    )
    wait: bool = flag("1: load all modules, then wait for a line on standard input; without a line, analyse nothing")
    foreign: bool = FOREIGN
    alone: bool = flag("1: draw in this process: slower for one run, faster where many are analysed at once")


class Asked(WhatIfKeys, ReplayKeys, Printing):
    pass


def run(asked: Asked) -> int:
    """Derives every file of the given run or repetition again, or makes the what-if that `asked` wants. Returns the
    exit status. Raises SpecError, RunError.
    """
    if not is_run(asked.run):
        line = f"RUN={asked.run} is not a run directory; allowed: one in results/, or a rep-<k> of one, as in {EXAMPLE}"
        raise RunError(line if line.isprintable() else ascii(line))
    if asked.foreign:
        owner.allow_others()
    begin(asked)
    if words := given(asked):
        return whatif(asked.run, asked, words)
    from analysis.replay.replay import replay_all

    return replay_all(
        asked.run,
        force=asked.force,
        alone=asked.alone,
        keep=asked.keep,
        ready=(lambda: bool(sys.stdin.readline())) if asked.wait else lambda: True,
    )


def is_run(directory: Path) -> bool:
    """Whether `directory` is a repetition, by its spec or its name, or a run with repetitions in it."""
    try:
        is_repetition = REPETITION_NAME.fullmatch(directory.name) and directory.is_dir()
        return (
            bool(is_repetition)
            or (directory / SPEC_FILE).exists()
            or any(path.is_dir() for path in directory.glob("rep-*"))
        )
    except (OSError, ValueError):
        return False
