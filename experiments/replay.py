# SPDX-License-Identifier: MIT
"""The command `replay`: repeats the analysis of a run. With BUF=, MODE=, ECN_THRESHOLD= or RATE= the command makes a
what-if instead (whatif.py).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from experiments import parameters, whatif
from lib import owner
from lib.errors import BadValue, RunError, SpecError
from lib.words import FOREIGN, PATHS, SWITCH, Key, require
from runs.names import REPETITION_NAME, SPEC_FILE
from runs.thinned import KEEP

KEYS = {
    "run": Key("a run, or a repetition of one: results/latest, results/latest/rep-1", values=PATHS),
    "force": Key("1: replace earlier results even if raw files were damaged since, or the new results are not valid",
                 "0", SWITCH),
    "keep": Key("of a valid run, write only the files that a sweep with this KEEP keeps: all, tables, flows, summary",
                KEEP[0], KEEP),
    "wait": Key("1: load all modules, then wait for a line on standard input; without a line, analyse nothing", "0",
                SWITCH),
    "foreign": FOREIGN,
    "alone": Key("1: draw in this process: slower for one run, faster where many are analysed at once", "0", SWITCH),
    **{
        key: Key(f"what-if: {parameters.KEYS[key].meaning} (default: as in the run"
                 f"{', unless BUF is given' * (key == 'ecn_threshold')})", values=parameters.KEYS[key].values)
        for key in whatif.KEYS
    },
}  # fmt: skip
EXAMPLE = "make replay RUN=results/latest"


def run(given: dict[str, Any], errors: list[BadValue]) -> int:
    """Derives every file of the given run or repetition again, or makes the what-if that `given` asks for. Returns the
    exit status. Raises SpecError for `errors`, a missing RUN or an unknown KEEP, and RunError.
    """
    require(given, errors, run=f"say which run to analyse again: {EXAMPLE}")
    keep = given.get("keep", KEEP[0])
    if keep not in KEEP:
        errors.append(BadValue("KEEP", keep, f"is not known; allowed: {', '.join(KEEP)}"))
    if errors:
        raise SpecError(errors)
    run = Path(given["run"])
    if not is_run(run):
        line = f"RUN={run} is not a run directory; allowed: one in results/, or a rep-<k> of one, as in {EXAMPLE}"
        raise RunError(line if line.isprintable() else ascii(line))
    if given.get("foreign") == "1":
        owner.allow_others()
    asked = {key: given[key] for key in whatif.KEYS if key in given}
    if asked:
        return whatif.whatif(run, asked)
    from analysis.replay import replay_all

    return replay_all(
        run,
        force=given.get("force") == "1",
        alone=given.get("alone") == "1",
        keep=keep,
        ready=(lambda: bool(sys.stdin.readline())) if given.get("wait") == "1" else lambda: True,
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
