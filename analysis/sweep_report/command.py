# SPDX-License-Identifier: MIT
"""python -m analysis sweep-report results/<sweep> [--figures DIRECTORY]: makes results/<sweep>/report.html.

Exit status: 0 made, 1 not made and nothing changed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lib.errors import InputError
from lib.terminal import printable
from runs.spec_file import check_name


def main(arguments: list[str]) -> int:
    """Prints the page's path; errors on stderr, one line."""
    from analysis.sweep_report import write
    from runs import record, run_table

    parser = argparse.ArgumentParser(prog="python -m analysis sweep-report", description="The page of a whole sweep.")
    parser.add_argument("directory", type=Path, help="a sweep (results/<sweep>)")
    parser.add_argument(
        "--figures", type=Path, metavar="DIRECTORY", help="where figures of a paper were drawn (figure_*.svg)"
    )
    options = parser.parse_args(arguments)
    try:
        if options.figures is not None and not options.figures.is_dir():
            raise InputError(f"{options.figures}: is no directory; give the one with the figures, or none")
        check_name(options.directory)
        print(printable(str(write(options.directory, options.figures))))
        if unknown := record.unrecorded_among(run_table.repetitions(options.directory), options.directory):
            print(printable(f"note: {unknown}"), file=sys.stderr)
        return 0
    except InputError as error:
        line = str(error)
    except OSError as error:
        line = f"{error.filename or options.directory}: {error.strerror}"
    print(printable(f"sweep-report: {line}"), file=sys.stderr)
    return 1
