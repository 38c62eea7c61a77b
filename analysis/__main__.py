# SPDX-License-Identifier: MIT
"""python -m analysis DIRECTORY [--force]: every derived file of a repetition, or of each one of a run, from raw files.

python -m analysis advise [KEY=VALUE]...: what buffer each rule asks for (analysis/advise/; a directory of that name is
./advise).

Exit status: 0 analysed (the verdict is in summary.json), 1 not analysed and nothing changed, 2 wrong usage, 3 raw files
are damaged: what could be read was analysed and is marked not valid.

python -m analysis import FROM=... OUTPUT=...: captures of others as run directories (analysis/importing/).

python -m analysis export RUN --format F --output PATH: a run in the formats of others (analysis/exporting/).

python -m analysis sweep-report DIRECTORY [--figures DIRECTORY]: the page of a sweep (analysis/sweep_report/).

python -m analysis import-artifact FILE [--output TABLE]: reads postcards of the first seed paper's artifact.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from pathlib import Path

from analysis.replay import drawing_pool, replay


def main(arguments: list[str] | None = None) -> int:
    """Analyses what the command line names. Prints one line a repetition; errors on stderr, one line each."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == ["advise"]:
        from analysis.advise.command import main as advise

        return advise(words[1:])
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["import"]:
        from analysis.importing.command import main as import_

        return import_(arguments[1:])
    if arguments[:1] == ["export"]:
        from analysis.exporting.command import main as export

        return export(arguments[1:])
    if words[:1] == ["sweep-report"]:
        from analysis.sweep_report.command import main as sweep_report

        return sweep_report(words[1:])
    if arguments[:1] == ["import-artifact"]:
        from analysis import import_artifact

        return import_artifact.main(arguments[1:])
    parser = argparse.ArgumentParser(prog="python -m analysis", description=__doc__.splitlines()[0])
    parser.add_argument(
        "directory", type=Path, help="a repetition (results/<run>/rep-1), or a run with repetitions in it"
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace earlier results even if raw files are damaged since, or the new ones are not valid",
    )
    parser.add_argument(
        "--alone",
        action="store_true",
        help="draw in this process: slower for one, faster where many are analysed at once",
    )
    options = parser.parse_args(words)
    with nullcontext() if options.alone else drawing_pool() as pool:
        return max(replay(directory, pool, options.force) for directory in _repetitions(options.directory))


def _repetitions(directory: Path) -> list[Path]:
    if (directory / "spec.yaml").exists():
        return [directory]
    found = sorted(path for path in directory.glob("rep-*") if path.is_dir())
    return found or [directory]


if __name__ == "__main__":
    sys.exit(main())
