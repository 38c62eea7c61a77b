# SPDX-License-Identifier: MIT
"""Writes the derived files of a repetition: first all into a scratch directory, then each into its place, the summary
last. An error before the first move leaves earlier results unchanged.
"""

from __future__ import annotations

import filecmp
import json
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from analysis.figures.drawing import draw_all
from analysis.join.join import join
from analysis.judge.analyse import analyse
from analysis.measure import finite_flows
from analysis.measure.metrics import bottleneck
from analysis.read.load import Run, damage_of, load
from analysis.report.run_report import render
from analysis.results import distributions
from analysis.results.summary import summarize
from analysis.results.tables import write_frame, write_joined, write_raw_tables
from analysis.whatif.stored import what_ifs
from lib import files
from lib.errors import InputError
from runs import note, record, thinned, verdict
from runs.lock import only_one
from runs.names import PAGE, RECORD, SUMMARY
from runs.record import Damage

SCRATCH = ".derived"


def derive(
    directory: Path,
    force: bool = False,
    pool: Executor | None = None,
    keep: str = thinned.KEEP[0],
    when_compared: Callable[[int, list[str]], object] = lambda files, changed: None,
) -> tuple[dict[str, Any], list[str]]:
    """Analyses a repetition and writes its derived files. Returns the summary, and a line for each damaged raw file.

    The same raw files give the same bytes on every machine. If there are earlier results, `when_compared` is called
    with the number of derived files and the names of those that differ from the earlier ones.

    `pool` draws the figures; without a pool this process draws them. `keep`, one of thinned.KEEP: the repetition will
    be thinned to it, so files that thinning would remove are written only if the repetition is not valid.

    Raises InputError if the repetition cannot be analysed. Unless `force`, also raises InputError to keep earlier
    results: if a raw file is damaged, or if the earlier results are valid and the new ones are not. Raises OSError if a
    file cannot be written.
    """
    with only_one(directory) as place:
        damage = damage_of(directory)
        _keep_earlier(directory, [str(difference) for difference in damage], force)
        try:
            return _derive(directory, place, force, pool, keep, when_compared, damage)
        except (InputError, OSError, BrokenProcessPool):
            raise
        except Exception as error:  # a damaged raw file can hold any values
            if not damage:
                raise
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise InputError(
                f"{directory}: {record.lines(damage)}; what is left cannot be analysed ({reason})"
            ) from error


def _derive(
    directory: Path,
    place: int,
    force: bool,
    pool: Executor | None,
    keep: str,
    when_compared: Callable[[int, list[str]], object],
    damage: Sequence[Damage],
) -> tuple[dict[str, Any], list[str]]:
    # A thread writes tables during the analysis: polars releases the interpreter's lock.
    with files.scratch(SCRATCH, place) as made, ThreadPoolExecutor(1) as writer:
        scratch = files.path_of(made)
        figures = scratch / "figures"
        figures.mkdir()
        written = []
        has_tables = not thinned.removes(keep, thinned.OF_PACKETS[0])

        def write_early(run: Run) -> None:
            _keep_earlier(directory, run.damage(), force)
            if has_tables:
                written.append(writer.submit(write_raw_tables, scratch, run))

        def write_joined_early(*joined: Any) -> None:
            if has_tables:
                written.append(writer.submit(write_joined, scratch, *joined))

        analysis = analyse(directory, write_early, damage, write_joined_early)
        early_summary = None if has_tables else summarize(analysis)
        if early_summary and not early_summary["valid"]:  # such a repetition keeps everything
            keep, has_tables = thinned.KEEP[0], True
            written.append(writer.submit(write_raw_tables, scratch, analysis.run))
            write_joined_early(analysis.run, analysis.queue, analysis.segments, analysis.in_flight)
        written.append(
            writer.submit(lambda: write_frame(scratch / distributions.NAME, distributions.distributions(analysis)))
        )
        if analysis.run.flow_records is not None and not thinned.removes(keep, finite_flows.NAME):
            flows = finite_flows.table(analysis.run, analysis.queue, analysis.segments, analysis.window)
            written.append(writer.submit(write_frame, scratch / finite_flows.NAME, flows))
        has_figures = not thinned.removes(keep, figures.name)
        drawn = draw_all(analysis, figures, pool) if has_figures else []
        summary = early_summary or summarize(analysis)
        if not (force or summary["valid"]) and _was_valid(directory):
            raise InputError(
                f"{directory}: not valid now ({summary['reasons'][0]}), but the earlier results are; they are kept "
                "(--force replaces them)"
            )
        for job in (*written, *drawn):
            job.result()
        environment = analysis.run.documents.environment
        page = render(
            summary, environment, figures if has_figures else None, what_ifs(directory), note.read(directory.parent)
        )
        (scratch / PAGE).write_text(page, encoding="utf-8")
        (scratch / SUMMARY).write_text(json.dumps(summary, indent=1, allow_nan=False) + "\n")
        derived = files.names(scratch)
        text = record.with_derived(directory, record.digests(scratch, map(str, derived)))
        (scratch / RECORD).write_text(text)
        if (directory / SUMMARY).exists():
            when_compared(len(derived), [str(name) for name in derived if not _same(scratch / name, directory / name)])
        _refuse_in_the_way(directory, derived)
        last = Path(SUMMARY)  # marks the repetition as analysed: after a crash before, a replay derives it again
        files.deliver([*(name for name in derived if name != last), RECORD, last], made, place)
    return summary, analysis.run.damage()


def convert(directory: Path, output: Path) -> dict[str, int]:
    """Writes only postcards.parquet, tcp.parquet and joined.parquet, into `output`. Returns the number of rows of each.
    Raises InputError if the repetition cannot be loaded, OSError if a file cannot be written.
    """
    with ThreadPoolExecutor(1) as writer:
        run = load(directory)
        early = writer.submit(write_raw_tables, output, run)
        _, queue = bottleneck(run)
        segments, in_flight = join(run, queue)
        early.result()
        write_joined(output, run, queue, segments, in_flight)
    return {"postcards": len(run.postcards["flow"]), "tcp": len(run.tcp["flow"]), "joined": len(segments.rows)}


def _keep_earlier(directory: Path, damage: Sequence[str], force: bool) -> None:
    """Raises InputError if a raw file is damaged and earlier results exist, unless `force`."""
    if damage and (directory / SUMMARY).exists() and not force:
        raise InputError(f"{directory}: {damage[0]}; earlier results are kept (--force replaces them)")


def _was_valid(directory: Path) -> bool:
    """Whether earlier results are valid; False without a readable summary."""
    try:
        return not verdict.reasons(verdict.read(directory))
    except (OSError, ValueError):
        return False


def _same(derived: Path, earlier: Path) -> bool:
    return earlier.is_file() and filecmp.cmp(derived, earlier, shallow=False)


def _refuse_in_the_way(directory: Path, derived: list[Path]) -> None:
    """Raises InputError before the first move: a failure between moves would mix two analyses."""
    names = (directory / name for name in (*derived, Path(RECORD)))
    in_the_way = [path for path in names if path.is_dir()]
    figures = directory / "figures"
    if figures.is_symlink() or (figures.exists() and not figures.is_dir()):  # a link could lead to another run
        in_the_way.append(figures)
    if in_the_way:
        raise InputError(f"{in_the_way[0]}: is in the way of a result; remove it; earlier results are kept")
