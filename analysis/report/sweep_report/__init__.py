# SPDX-License-Identifier: MIT
"""results/<sweep>/report.html: one page about a whole sweep, from stored files only.

`write` draws the figures that every sweep has (analysis/figures/sweep) into <sweep>/figures, and adds the figures of
papers from the directories in which they were drawn. It embeds figures, up to MOST_BYTES together, in one file that
opens offline.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from analysis.figures.common import plain
from analysis.figures.sweep.registry import FIGURES
from analysis.papers import registry
from analysis.papers.paper import Paper
from analysis.read.documents import facts
from analysis.report import page
from analysis.report.page.figure import Figure, embed
from analysis.report.sweep_report import means
from analysis.report.sweep_report.columns import LABELS, table, value_text
from analysis.wording.formats import count, number
from lib import files
from runs import note, run_table
from runs.lock import TOLD
from runs.names import PAGE
from runs.stored_sweep import COLUMN, MISSING, NOT_VALID, VALID, Row, Stored, earlier_reasons, kind, read

TEMPLATE = Path(__file__).with_name("sweep_report.html.j2")
MOST_BYTES = 8_000_000  # limit of all embedded figures together; the page only names those that do not fit
# First words of the facts of environment.json that the page shows.
OF_MACHINE = ("cpu", "kernel", "versions", "memory", "program", "virtual")
SCRATCH = ".report"
MOST_KINDS = 12  # most kinds of reasons in each list at the top; the table has each run's reasons


class ShownFigure(NamedTuple):
    """A figure with its caption."""

    image: Figure
    caption: str


def write(directory: Path, figures: Path | None = None, papers: Iterable[Paper] | None = None) -> Path:
    """Writes the page of a sweep and returns its path. `figures` is a directory with <name>.svg of a paper's figures;
    the default is the output directory of `make figures`, if it exists. `papers` defaults to all installed papers.

    Raises InputError if the directory is not a sweep, or if a table or a figure is malformed; OSError if a file cannot
    be read or written.
    """
    sweep = read(directory)
    of_papers = from_papers(sweep, figures, registry.installed().values() if papers is None else papers)
    with files.claimed(directory, follow=True, remedy=TOLD) as place, files.scratch(SCRATCH, place) as made:
        scratch = files.path_of(made)
        text = render(sweep, draw(sweep, scratch / "figures"), of_papers)
        (scratch / PAGE).write_text(text, encoding="utf-8")
        files.deliver(files.names(scratch), made, place)
    return sweep.directory / PAGE


def draw(sweep: Stored, directory: Path) -> list[ShownFigure]:
    """Draws the figures that every sweep has, except those without data."""
    from analysis.figures.drawing import save_both, warm_up

    shown = []
    for name, figure in FIGURES.items() if sweep.valid else ():
        data = figure.prepare(sweep)
        if data is None:
            continue
        warm_up()
        directory.mkdir(exist_ok=True)
        save_both(figure.draw, plain(data), directory, name)
        shown.append(ShownFigure(embed(directory / f"{name}.svg"), figure.caption))
    return shown


def from_papers(sweep: Stored, figures: Path | None, papers: Iterable[Paper]) -> list[ShownFigure]:
    """The papers' figures that are drawn from this sweep. Figures that compare clocks are left out. The figures
    are read from `figures`; without it, from the output directory of `make figures` beside the sweep.
    """
    shown = []
    for paper, smoke in itertools.product(papers, (False, True)):
        drawn = figures or sweep.directory.parent / "figures" / paper.output_name(smoke)
        for figure in paper.figures:
            path, names = drawn / f"{figure.name}.svg", {paper.sweep_name(stem, smoke) for stem in figure.sweeps}
            if sweep.name in names and not figure.compares_clocks and path.exists():
                shown.append(ShownFigure(embed(path), f"{figure.title}: {figure.caption}"))
    return shown


def render(sweep: Stored, of_sweep: list[ShownFigure], of_papers: list[ShownFigure]) -> str:
    """The page as HTML."""
    columns, filters, lines = table(sweep, lambda path: (sweep.directory / path).is_file())
    small, large = _that_fit([*of_papers, *of_sweep])
    counts = Counter(row["verdict"] for row in sweep.rows)
    retried = [row for row in sweep.rows if (row["attempt"] or 1) > 1]
    return page.render(
        TEMPLATE,
        ("runs.js",),
        name=sweep.name,
        about=sweep.plan.sweep.about or "",
        note=note.read(sweep.directory),
        clocks=_distinct(sweep.rows, "clock"),
        setting=setting(sweep),
        varied={
            _label(key): [_setting_text(sweep, key, value) or "none" for value in values]
            for key, values in sweep.parameters.items()
        },
        total=len(sweep.rows),
        points=len({(row["point"], row["buffer_packets"]) for row in sweep.rows}),
        counts={verdict: counts[verdict] for verdict in (VALID, NOT_VALID, MISSING)},
        retried=len(retried),
        retried_kinds=_kinds(reason for row in retried for reason in earlier_reasons(sweep.directory, row)),
        kinds={
            verdict: _kinds(
                reason for row in sweep.rows if row["verdict"] == verdict for reason in row["reasons"].split("; ")
            )
            for verdict in (NOT_VALID, MISSING)
        },
        kept=_distinct([row for row in sweep.rows if row["verdict"] != MISSING], "kept"),
        papers=[shown for shown in of_papers if shown in small],
        figures=[shown for shown in of_sweep if shown in small],
        large=[shown.image.name for shown in large],
        searched=[_with_bounds(row) for row in sweep.searched],
        sought=f"{sweep.searched[0]['criterion']} at least {sweep.searched[0]['least']:g}" if sweep.searched else "",
        means=_means(sweep),
        columns=columns,
        filters=filters,
        lines=lines,
        spec=specification(sweep),
        worlds=worlds(sweep),
        environment=environment(sweep),
    )


def setting(sweep: Stored) -> list[str]:
    """The parameters with one value in all runs, in words."""
    rows = sweep.rows
    keys = [key for key in COLUMN if key not in sweep.parameters and key not in ("clock", "target")]
    same = {key: {sweep.value(row, key) for row in rows} for key in keys}
    texts = [_setting_text(sweep, key, next(iter(values))) for key, values in same.items() if len(values) == 1]
    return [text for text in texts if text]


def specification(sweep: Stored) -> list[tuple[str, str]]:
    """The sweep's spec with its base, without the points, whose values the page lists."""
    planned = sweep.plan.sweep
    spec = {key: value for key, value in planned.dump().items() if key not in ("points", "base", "about", "name")}
    spec |= {f"base: {key}": value for key, value in planned.base.items()}
    return [(key, _flat(value)) for key, value in spec.items() if value is not None]


def worlds(sweep: Stored) -> list[tuple[str, list[tuple[str, int]]]]:
    """The values of commit, P4 program, kernel, clock and target, each with its number of runs."""
    names = {
        "commit": "commit", "P4 program (digest)": "p4_digest", "virtual-time kernel (digest)": "kernel_digest",
        "clock": "clock", "target": "target",
    }  # fmt: skip
    done = [row for row in sweep.rows if row["verdict"] != MISSING]
    counts = {
        title: Counter(row[column] for row in done if row[column] is not None).most_common()
        for title, column in names.items()
    }
    return [(title, values) for title, values in counts.items() if values]


def environment(sweep: Stored) -> list[tuple[str, str]]:
    """Machine and kernel of the first run that recorded them. `worlds` has the differences between runs."""
    for row in sweep.rows:
        if document := run_table.of_run(sweep.directory / row["directory"]).document:
            return [fact for fact in facts(document) if fact[0].split()[0] in OF_MACHINE]
    return []


def _means(sweep: Stored) -> tuple[list[str], list[str], list[tuple[list[str], int, list[str]]]]:
    """The titles of parameters and of numbers, and the lines of the table of means: parameters, valid runs, numbers."""
    found = means.of(sweep)
    lines = [
        (
            [value_text(sweep, line.row, key) for key in line.parameters],
            line.runs,
            [means.text(column, line.intervals[column.name]) for column in means.COLUMNS],
        )
        for line in found
    ]
    keys = found[0].parameters if found else ()
    return [_label(key) for key in keys], [column.mean for column in means.COLUMNS], lines


def _with_bounds(row: Row) -> dict[str, Any]:
    """A row of a search with the bounds of the least buffer in words, in packets and in BDP."""
    low, high, bdp = row["low_packets"], row["high_packets"], row["bdp_packets"]
    at_least, at_most = (number(bound and bound / bdp, 3) for bound in (low, high))
    if high is None:
        packets, of_bdp = ("not known", "–") if low is None else (f"more than {low}", f"more than {at_least}")
    elif low is None:
        packets, of_bdp = f"at most {high}", f"at most {at_most}"
    else:
        packets, of_bdp = f"{low} to {high}", f"{at_least} to {at_most}"
    return row | {"packets": packets, "of_bdp": of_bdp}


def _that_fit(shown: list[ShownFigure]) -> tuple[list[ShownFigure], list[ShownFigure]]:
    """The figures that fit into MOST_BYTES, smallest first, and the others."""
    small: list[ShownFigure] = []
    large: list[ShownFigure] = []
    used_bytes = 0
    for figure in sorted(shown, key=lambda figure: figure.image.embedded_bytes):
        used_bytes += figure.image.embedded_bytes
        (small if used_bytes <= MOST_BYTES else large).append(figure)
    return small, large


def _kinds(reasons: Iterable[str]) -> list[tuple[str, int]]:
    """(a reason, the number of reasons of its kind), the commonest kind first."""
    by_kind: dict[str, list[str]] = {}
    for reason in reasons:
        by_kind.setdefault(kind(reason), []).append(reason)
    ordered = sorted(by_kind.values(), key=len, reverse=True)
    listed = [(same[0], len(same)) for same in ordered[:MOST_KINDS]]
    if len(ordered) > MOST_KINDS:
        listed.append((f"and {count(len(ordered) - MOST_KINDS, 'more kind')} of reason", 1))
    return listed


def _distinct(rows: list[Row], column: str) -> list[Any]:
    return sorted({row[column] for row in rows if row[column]})


def _label(key: str) -> str:
    return LABELS.get(key, key.replace("_", " "))


def _setting_text(sweep: Stored, key: str, value: Any) -> str:
    """A parameter's value for a list of settings, with its name if the sweep does not vary it; "" if it is not set."""
    if value is None or (key == "traffic" and value == "long"):
        return ""
    row = next(row for row in sweep.rows if sweep.value(row, key) == value)
    text = value_text(sweep, row, key)
    if key in sweep.parameters:
        return text
    units = {"flows": count(value, "flow") if isinstance(value, int) else text, "buf": f"buffer {text} packets"}
    if text.replace("_", " ").startswith(_label(key)):
        return text
    return units.get(key, text if key in ("cc", "mode", "traffic", "rate") else f"{_label(key)} {text}")


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_flat(item)}" for key, item in value.items())
    return ", ".join(map(_flat, value)) if isinstance(value, list) else str(value)
