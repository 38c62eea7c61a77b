# SPDX-License-Identifier: MIT
"""`make replay RUN=... [FORCE=1]`: the analysis again, in this process. RUN comes as a word, never through a shell.
With BUF=, MODE=, ECN_THRESHOLD= or RATE= a what-if instead (whatif.py).
"""

from __future__ import annotations

from pathlib import Path

from experiments import whatif
from lib.errors import BadValue, RunError, SpecError

KEYS = ("run", "force", *whatif.KEYS)
EXAMPLE = "make replay RUN=results/latest"


def replay(given: dict[str, object], errors: list[BadValue]) -> int:
    """Derives every file of the run or repetition `given` again. Returns the analysis's exit status; raises SpecError
    with `errors` and its own, RunError.
    """
    errors += [
        BadValue(key.upper(), None, f"is no parameter of replay; allowed: {', '.join(KEYS).upper()}")
        for key in given
        if key not in KEYS
    ]
    force = str(given.get("force", "0"))
    if force not in ("0", "1"):
        errors.append(
            BadValue(
                "FORCE", force, "is neither; allowed: 0, 1 (replace good results though raw files are damaged since)"
            )
        )
    if "run" not in given:
        errors = [error for error in errors if error.key != "RUN"]  # it was given, with nothing in it
        errors.append(BadValue("RUN", None, f"is missing; say after make which run to analyse again: {EXAMPLE}"))
    if errors:
        raise SpecError(errors)
    run = Path(str(given["run"]))
    if not is_run(run):
        line = f"RUN={run} is no run directory; allowed: one in results/, or a rep-<k> of one, as in {EXAMPLE}"
        raise RunError(line if line.isprintable() else ascii(line))
    asked = {key: str(given[key]) for key in whatif.KEYS if key in given}
    if asked:
        return whatif.whatif(run, asked)
    from analysis.__main__ import main

    return main([*(["--force"] if force == "1" else []), "--", str(run)])


def is_run(directory: Path) -> bool:
    """Whether `directory` is a repetition, or a run with repetitions in it."""
    try:
        return (directory / "spec.yaml").exists() or any(path.is_dir() for path in directory.glob("rep-*"))
    except (OSError, ValueError):
        return False
