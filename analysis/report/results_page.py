# SPDX-License-Identifier: MIT
"""The command `results`: results/index.html, a line with a small picture for each run and sweep. One file that opens
offline; its size grows with the runs and sweeps, not with a sweep's jobs, which have the sweep's own page.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from analysis.report import page
from analysis.report.sweep_report.columns import Cell, Filter
from analysis.results.distributions import NAME as DISTRIBUTIONS
from analysis.wording import formats
from analysis.wording.formats import count
from lib import files, parquet, regular
from lib.errors import InputError
from lib.keys import FOREIGN, Keys, field
from lib.owner import allow_others
from lib.terminal import located, say
from runs import aborted, contents, note, plan_file, record, results, run_table
from runs.lock import TOLD
from runs.names import ENVIRONMENT, PAGE
from runs.quantities import BY_NAME

TEMPLATE = Path(__file__).with_name("results_page.html.j2")
PAGE_OF_ALL = "index.html"
VALID, NOT_VALID, NO_RESULT = "valid", "not valid", "no result"
BINS, WIDE, HIGH = 40, 120, 32
VARIED = ("buffer_over_bdp", "flows", "rate_bps", "rtt_ns")  # the first that a sweep varies is across its picture
SETTINGS = ("flows", "rate_bps", "rtt_ns", "buffer_over_bdp")
MEASURED = ("utilization_mean", "queue_delay_p99_ns", "drops")
TITLES = {"flows": "flows", "rate_bps": "rate", "rtt_ns": "RTT"}
Row = dict[str, Any]


class Asked(Keys):
    results: Path = field("the directory with the runs", default="results")
    foreign: bool = FOREIGN


class Column(NamedTuple):
    title: str
    about: str
    is_number: bool


class Picture(NamedTuple):
    """`path` is in a box of WIDE x HIGH; `form` a class of the style sheet."""

    about: str
    path: str
    form: str


class Line(NamedTuple):
    """A run or a sweep. `chosen` has its texts for each filter; `others` further pages."""

    name: str
    page: str
    others: list[tuple[str, str]]
    date: str  # when the newest file was written
    note: str
    verdict: str
    why: str
    picture: Picture | None
    chosen: list[list[str]]
    cells: list[Cell]


def run(asked: Asked) -> int:
    """Writes the page. Returns the exit status. Raises InputError."""
    if asked.foreign:
        allow_others()
    top = asked.results
    try:
        if contents.is_sweep(top) or contents.is_run(top):
            raise InputError(f"{top}: is a run or a sweep itself; allowed: the directory that has it, such as results")
        with files.claimed(top, follow=True, remedy=TOLD) as place:
            text, summary = render(top, run_table.write(top))
            files.write_text(PAGE_OF_ALL, text, place)
    except OSError as error:
        raise InputError(f"{located(error, top)}; allowed: a directory with runs, such as results") from None
    say(f"{top / PAGE_OF_ALL}: {summary}")
    return 0


def render(top: Path, table: pl.DataFrame) -> tuple[str, str]:
    """The page as HTML, and what it has in words. `table` is the run table. Raises OSError."""
    rows: dict[str, list[Row]] = {}
    for row in table.iter_rows(named=True):
        rows.setdefault(row["run"].split("/")[0], []).append(row)
    mine = {path.name for path in contents.entries(top)}
    places = [top / name for name in sorted({*mine, *rows})]
    size_of = {path: contents.used(path) if path.name in mine else contents.Used(0, 0) for path in places}
    first = {run: top / _counting(each)[0]["run"] for run, each in rows.items() if not each[0]["sweep"]}
    whole = [each for each in first.values() if not record.damage(each, derived=[DISTRIBUTIONS])]
    depths = _depths([each for each in whole if (each / DISTRIBUTIONS).is_file()])
    lines = [
        _line(path, rows.get(path.name, []), size_of[path], path.name in mine, depths.get(first.get(path.name, top)))
        for path in places
    ]
    newest = {path.name: max(size_of[path].newest_ns, *_times(rows.get(path.name, []))) for path in places}
    lines.sort(key=lambda line: newest[line.name], reverse=True)
    kinds = [line.chosen[1][0] for line in lines]
    counts = ", ".join(count(kinds.count(kind), kind) for kind in dict.fromkeys(("run", "sweep", *sorted(set(kinds)))))
    total = sum(used.bytes for used in size_of.values())
    options = [sorted({text for line in lines for text in line.chosen[number]}) for number in range(3)]
    html = page.render(
        TEMPLATE,
        ("runs.js",),
        name=f"Runs in {top.resolve().name}",
        counts=counts,
        bytes=float(total),
        written=time.strftime("%Y-%m-%d %H:%M"),
        filters=[Filter(*each) for each in zip(("algorithm", "kind", "verdict"), options, strict=True)],
        columns=COLUMNS,
        lines=lines,
    )
    return html, f"{counts}, {formats.si(float(total), 'B')} on disk"


def _times(rows: list[Row]) -> list[int]:
    return [0, *(row["summary_mtime_ns"] or 0 for row in rows)]


def _counting(rows: list[Row]) -> list[Row]:
    """The valid rows, or all if none is valid."""
    return [row for row in rows if row["valid"]] or rows


def _line(
    path: Path, rows: list[Row], used: contents.Used, is_here: bool, depths: tuple[np.ndarray, np.ndarray] | None
) -> Line:
    is_sweep = any(row["sweep"] for row in rows) or (is_here and contents.is_sweep(path))
    kind = "sweep" if is_sweep else "import" if any(row["imported"] for row in rows) else "run"
    valid = [row for row in rows if row["valid"]]
    shown = _counting(rows)
    picture = _of_sweep(shown) if is_sweep else None
    if depths:
        picture = _of_run(*depths, shown[0]["buffer_packets"])
    if is_sweep:
        planned = max(_planned(path), len(rows))
        said = f"{len(valid)} of {planned} valid"
        verdict = VALID if len(valid) == planned else NOT_VALID if len(valid) < len(rows) else NO_RESULT
        why = "" if verdict == VALID else _first_reason(rows) or "not every run has a result"
    else:
        verdict = VALID if len(valid) == len(rows) > 0 else NOT_VALID if rows else NO_RESULT
        said = verdict if len(rows) < 2 else f"{len(valid)} of {len(rows)} valid"
        why = _first_reason(rows) if rows else _without_result(path)
    pages = [PAGE] if is_sweep else [f"{Path(row['run']).name}/{PAGE}" for row in rows]
    pages = [f"{path.name}/{each}" for each in pages if (path / each).is_file()]
    algorithms = sorted({cc for row in rows for name in ("cc", "finite_cc") for cc in _algorithms(row[name])})
    newest = max(used.newest_ns, *_times(rows))
    date = time.strftime("%Y-%m-%d %H:%M", time.localtime(newest / 1e9)) if newest else ""
    cells = [Cell(kind, "", False), Cell(said, "", False), Cell(", ".join(algorithms) or "–", "", False)]
    cells += [_span(name, shown) for name in SETTINGS + MEASURED]
    size = formats.si(float(used.bytes), "B") if is_here else "elsewhere"
    cells.append(Cell(size, str(used.bytes), True))
    return Line(
        path.name, pages[0] if pages else "", [(Path(each).parent.name, each) for each in pages[1:]],
        date, note.read(path) or "", verdict, why, picture,
        [algorithms or ["–"], [kind], [verdict]], cells,
    )  # fmt: skip


def _algorithms(text: str | None) -> Iterable[str]:
    """The names of a mix such as cubic:8,bbr:8."""
    return [part.partition(":")[0] for part in (text or "").split(",") if part]


def _planned(sweep: Path) -> int:
    """The number of planned jobs, or of those that have begun."""
    try:
        return len(plan_file.read(sweep).jobs)
    except (OSError, ValueError):
        return len(contents.jobs(sweep))


def _first_reason(rows: list[Row]) -> str:
    reasons = [row["reasons"].split("; ")[0] for row in rows if not row["valid"]]
    return f"{reasons[0]}{f' (and {len(reasons) - 1} more)' if reasons[1:] else ''}" if reasons else ""


def _without_result(run: Path) -> str:
    """Why a run that has no row of the run table has no result."""
    if results.is_running(run):
        return "is running"
    for repetition in contents.repetitions(run):
        if mark := aborted.read(repetition):
            return mark.reason or mark.cause.value
        if (repetition / ENVIRONMENT).exists():
            return "recorded, not analysed: bufferscope replay does it"
    return "was killed"


def _span(name: str, rows: list[Row]) -> Cell:
    """The value of all rows, or the least and the most."""
    values = sorted(row[name] for row in rows if row[name] is not None)
    if not values:
        return Cell("–", "", True)
    quantity = BY_NAME[name]
    texts = [formats.text(quantity.unit, values[at], quantity.digits) for at in (0, -1)]
    least, most = (text.replace(" ", "\u00a0") for text in texts)  # lines break at "to" alone
    return Cell(least if least == most else f"{least} to {most}", f"{values[0]:.9g}", True)


def _depths(repetitions: list[Path]) -> dict[Path, tuple[np.ndarray, np.ndarray]]:
    """The queue depths that packets found and how many found each, of the repetitions with a whole table of them."""
    if not repetitions:
        return {}
    tables = {str(each / DISTRIBUTIONS): each for each in repetitions}
    try:
        for table in tables:
            regular.check(Path(table))
        with parquet.reading():  # all at once takes a fifth of the time
            rows = pl.scan_parquet([*tables], include_file_paths="path").filter(what="queue_depth_packets")
            found = rows.select("path", "value", "count").collect().partition_by("path", as_dict=True)
        return {tables[str(path)]: (each["value"].to_numpy(), each["count"].to_numpy())
                for (path,), each in found.items()}  # fmt: skip
    except (OSError, pl.exceptions.PolarsError):  # of one of them
        half = len(repetitions) // 2
        return _depths(repetitions[:half]) | _depths(repetitions[half:]) if half else {}


def _of_run(values: np.ndarray, counts: np.ndarray, buffer: int | None) -> Picture:
    """The histogram of queue depths."""
    most = max(int(values.max()), buffer or 0)
    bins = min(BINS, most + 1)
    share = np.bincount(values * bins // (most + 1), weights=counts, minlength=bins) / counts.sum()
    tops = HIGH - share / share.max() * (HIGH - 2)
    path = f"M0 {HIGH}" + "".join(f"V{y:.1f}h{WIDE / bins:.3g}" for y in tops) + f"V{HIGH}z"
    return Picture(f"queue depth that packets found, 0 to {most} packets", path, "area")


def _of_sweep(rows: list[Row]) -> Picture | None:
    """Utilization against the first parameter of VARIED with several values; None without one."""
    for name in VARIED:
        points = [(row[name], row["utilization_mean"]) for row in rows]
        points = [(x, y) for x, y in points if x is not None and x > 0 and y is not None]
        if len({x for x, _ in points}) > 1:
            break
    else:
        return None
    low, high = (f([math.log(x) for x, _ in points]) for f in (min, max))
    least = min(0.99, *(y for _, y in points))

    def at(x: float, y: float) -> str:
        across, up = (math.log(x) - low) / (high - low), (y - least) / (max(1, *(y for _, y in points)) - least)
        return f"M{3 + across * (WIDE - 6):.0f} {HIGH - 3 - up * (HIGH - 6):.0f}h0"

    title = TITLES.get(name) or BY_NAME[name].title
    about = f"utilization, {formats.percent(least, 0)} to 100 %, against {title}"
    return Picture(about, "".join(dict.fromkeys(at(*each) for each in points)), "dots")


def _column(name: str) -> Column:
    quantity = BY_NAME[name]
    return Column(TITLES.get(name) or quantity.title, quantity.about or "a setting", True)


COLUMNS = [
    Column("kind", "run, sweep, or import of another tool's captures", False),
    Column("verdict", "whether the runs are valid", False),
    Column("algorithm", "congestion controls", False),
    *map(_column, SETTINGS + MEASURED),
    Column("disk", "room on disk", True),
]
