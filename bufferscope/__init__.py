# SPDX-License-Identifier: MIT
"""bufferscope in a notebook: `import bufferscope as bs; run = bs.open("results/latest"); run.plot.queue_and_windows()`.

Every read of a run first compares the files with the run's record of digests. A damaged file raises InputError.
EXAMPLE is a notebook to copy and to run.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if (_tree := Path(__file__).resolve().parent / "tree").is_dir():  # installed by a wheel (lib/packaging.py)
    sys.path.insert(0, str(_tree))

from lib import places
from lib.errors import InputError

if TYPE_CHECKING:
    import polars

    from bufferscope.notebook_run import NotebookRun
    from bufferscope.notebook_sweep import NotebookSweep

__all__ = ["EXAMPLE", "InputError", "index", "open", "sweep"]

EXAMPLE = places.CHECKOUT / "docs/notebooks/compare_runs.ipynb"


def open(path: str | Path) -> NotebookRun:
    """An analysed run: a repetition (results/latest/rep-1), or a run directory with one (results/latest).

    Warns if the run is not valid, with its first reason, and if it has no digests of its raw files. Raises InputError
    for any other path, or a damaged summary.
    """
    from bufferscope.notebook_run import NotebookRun
    from runs.spec_file import the_repetition

    return NotebookRun(the_repetition(Path(path)))


def sweep(path: str | Path) -> NotebookSweep:
    """A stored sweep (results/<sweep>): its runs, means with intervals, and figures. Raises InputError if the directory
    is not a sweep.
    """
    from bufferscope.notebook_sweep import NotebookSweep

    return NotebookSweep(Path(path))


def index(results: str | Path = "results") -> polars.DataFrame:
    """The run table, a row for each analysed repetition below `results`. Units are in the columns' names (rate_bps,
    rtt_ns, queue_delay_p99_ns); `run` is the path below `results`; `valid` is false also for a repetition that cannot
    be read; `reasons` says why. Raises InputError if `results` is not a directory.
    """
    from runs import run_table

    if not Path(results).is_dir():
        raise InputError(f"{results}: is not a directory; allowed: a directory with runs, such as results")
    return run_table.read(Path(results))
