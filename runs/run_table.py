# SPDX-License-Identifier: MIT
"""The table of all runs, one row per analysed repetition: `results/index.parquet`, made from summary.json and
environment.json.

The index is a cache: a row is reused only while its place and the times and sizes of all files that it is made from, or
that they are checked with, are the same. All other summaries are read again. Rows of deleted repetitions are dropped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars

from hosts.tune.tcp_options import LINUX, profile
from lib import files, parquet, regular
from lib.errors import InputError
from model.experiment import Experiment
from model.groups import OPEN_LOOP, Long
from runs import environment_file, group_columns, note, plan_file, record, spec_file, verdict
from runs.environment_file import RunEnvironment
from runs.names import (
    EARLIER_ATTEMPTS,
    ENVIRONMENT,
    INDEX,
    JOB_NAME,
    LATEST,
    RECORD,
    REPETITION_NAME,
    SPEC_FILE,
    SUMMARY,
    SWEEP_RUNS,
)
from runs.quantities import BY_NAME, QUANTITIES, Kind, at, is_number
from runs.thinned import kept

_TYPES: dict[type, polars.DataType] = {
    str: polars.String(), int: polars.Int64(), float: polars.Float64(), bool: polars.Boolean(),
}  # fmt: skip
SCHEMA = {quantity.name: _TYPES[quantity.kind] for quantity in QUANTITIES if quantity.column}
COLUMNS = tuple(SCHEMA)
STAMP = "stamp"  # only in the index: the times and sizes of the files OF_ROW
OF_ROW = (SUMMARY, ENVIRONMENT, SPEC_FILE, RECORD)
KEY = ("sweep", "point", "seed", "repetition")  # of a run of a sweep


class Place(NamedTuple):
    """The columns that follow from a repetition's place in the results: the summary does not have them."""

    run: str  # path below the results
    sweep: str | None
    repetition: int
    attempt: int  # more than 1 if earlier attempts were not valid
    kept: str  # one of runs.thinned.KEEP
    summary_mtime_ns: int | None
    note: str | None = None


OF_THE_RUN = (*Place._fields, "valid", "reasons")  # columns that are known whatever is damaged


def row(summary: Mapping[str, Any], source: RunEnvironment, place: Place) -> dict[str, Any]:
    """The row of one repetition; None for values that were not measured or have a wrong type. Raises ValueError if
    `summary` is not a summary.
    """
    spec = verdict.check(summary)
    imported = summary.get("imported") is not None  # from another tool's captures, without a ledger
    lost = [at(summary, f"ledger.{name}") for name in ("postcards_missing", "tcp_events_lost")]
    values = {name: BY_NAME[name].of(summary) for name in COLUMNS if BY_NAME[name].path} | place._asdict() | {
        "point": spec.point,
        "clock": spec.clock,
        "target": spec.target,
        "valid": summary.get("valid") is True,
        "reasons": "; ".join(map(str, summary.get("reasons") or [])),
        "imported": imported,
        "cc": mix(spec.long),
        "flows": spec.flows,
        "traffic": spec.traffic,
        "finite_cc": _joined(group.cc for group in spec.finite),
        "load": next((group.load for group in (*spec.finite, spec.open_loop) if group and group.load), None),
        "users": sum(group.users for group in spec.finite) or None,
        "flow_sizes": _joined(group.sizes_given for group in spec.finite),
        "offloads": None if spec.imported else "off" if spec.offloads is None else "on",
        **group_columns.of_experiment(spec),
        **_tcp(spec),
        **link_and_queue(spec),
        "ledger_missing": sum(lost) if all(is_number(value) for value in lost) else None,
        "wall_s": source.wall_s,
        "commit": source.commit,
        "p4_digest": source.p4_digest,
        "kernel_digest": source.kernel_digest,
    }  # fmt: skip
    return {name: _typed(values[name], BY_NAME[name].kind) for name in COLUMNS}


def planned_points(sweep: Path) -> frozenset[str] | None:
    """The points in a sweep's plan. A stored run of another point belongs to an earlier spec. None if the plan cannot
    be read, or if the sweep is a search: a search plans its points as it goes.
    """
    try:
        plan = plan_file.read(sweep)
        if plan.sweep.search or plan_file.misplaced(sweep, plan):
            return None
        return frozenset(job.experiment.point for job in plan.jobs.values())
    except (OSError, ValueError):
        return None


def mix(groups: Sequence[Long]) -> str | None:
    """One algorithm's name, or cubic:8,bbr:8; None without groups."""
    if len(groups) == 1:
        return groups[0].cc
    return ",".join(f"{group.cc}:{group.flows}" for group in groups) or None


def place(repetition: Path, results: Path) -> Place:
    """The place of a repetition below `results`, from names and files of its directory and its neighbours."""
    run = repetition.parent
    of_sweep = run.parent.name == SWEEP_RUNS
    number = (JOB_NAME.fullmatch(run.name) if of_sweep else None) or REPETITION_NAME.fullmatch(repetition.name)
    try:
        changed = (repetition / SUMMARY).stat().st_mtime_ns
    except FileNotFoundError:
        changed = None
    return Place(
        run=str(repetition.relative_to(results)),
        sweep=run.parent.parent.name if of_sweep else None,
        repetition=int(number[1]) if number else 1,
        attempt=1 + len(list(run.glob(EARLIER_ATTEMPTS))),
        kept=kept(repetition),
        summary_mtime_ns=changed,
        note=note.read(run),
    )


def read_repetition(repetition: Path, results: Path) -> dict[str, Any]:
    """The row of a directory with a summary. Raises ValueError if the summary cannot be read, if the summary or the
    environment differs from the record, or if a job's directory holds the run of another job; OSError.
    """
    return row(verdict.read(repetition), environment_file.read(repetition), place(repetition, results))


def unreadable(repetition: Path, results: Path, error: OSError | ValueError) -> dict[str, Any]:
    """The row of a directory whose summary cannot be read: not valid, with the reason, and with values of spec.yaml."""
    try:
        whole = not {damage.name for damage in record.damage(repetition)} & {SPEC_FILE, RECORD}
        spec = spec_file.read(repetition / SPEC_FILE).dump() if whole else None
    except InputError:
        spec = None
    # Without the summary's time, the next reading ignores this row of the index and tries the summary again.
    where = place(repetition, results)._replace(summary_mtime_ns=None)
    said = {"valid": False, "reasons": verdict.unread(error)}
    made = dict.fromkeys(COLUMNS) | where._asdict()
    if spec is not None:
        made = row({"spec": spec, "utilization": {}}, of_run(repetition), where)
    return {name: _typed(value, BY_NAME[name].kind) for name, value in (made | said).items()}


def of_run(repetition: Path) -> RunEnvironment:
    """environment.json of a repetition; knows nothing if the file cannot be read, or differs from the record."""
    return RunEnvironment() if record.damage(repetition) else environment_file.read(repetition)


def repetitions(results: Path) -> Iterator[Path]:
    """Every analysed repetition of a results directory, a sweep's directory or a run's directory, sorted by name. A
    link to a repetition gives no second one.
    """
    inside, seen = results.resolve(), set[Path]()
    for repetition in _linked(results):
        target, place = repetition.resolve(), inside / repetition.relative_to(results)
        if target not in seen and (target == place or not target.is_relative_to(inside)):
            seen.add(target)
            yield repetition


def _linked(results: Path) -> Iterator[Path]:
    for directory in _directories(results):
        if REPETITION_NAME.fullmatch(directory.name):
            if (directory / SUMMARY).exists():
                yield directory
            continue
        jobs = directory if directory.name == SWEEP_RUNS else directory / SWEEP_RUNS
        for run in [directory][jobs is directory :] + _directories(jobs):
            yield from _of_run(run)


def read(results: Path) -> polars.DataFrame:
    """The table of every analysed repetition below `results`. If a summary cannot be read, its row is not valid."""
    return _read(results).drop(STAMP)


def _read(results: Path) -> polars.DataFrame:
    """The table, with STAMP."""
    known = _index(results)
    cached = {} if known is None else {entry["run"]: entry for entry in known.iter_rows(named=True)}
    rows = []
    for repetition in repetitions(results):
        earlier = cached.get(str(repetition.relative_to(results)))
        now = place(repetition, results)._asdict() | {STAMP: _stamp(repetition)}
        if earlier and all(earlier[name] == value for name, value in now.items()):
            rows.append(earlier)
            continue
        try:
            made = read_repetition(repetition, results)
        except FileNotFoundError:
            continue  # removed meanwhile
        except (OSError, ValueError) as error:
            made = unreadable(repetition, results, error)
        rows.append(made | {STAMP: now[STAMP]})
    return polars.DataFrame(rows, schema=SCHEMA | {STAMP: polars.String()})


def _stamp(repetition: Path) -> str:
    """The times and sizes of OF_ROW, taken before they are read. Copying a directory with its times keeps them."""
    stamps = []
    for name in OF_ROW:
        try:
            status = (repetition / name).stat()
            stamps.append(f"{status.st_mtime_ns}:{status.st_size}")
        except OSError:
            stamps.append("")
    return " ".join(stamps)


def with_more(table: polars.DataFrame, more: polars.DataFrame) -> polars.DataFrame:
    """`table` and those rows of `more` whose run `table` does not have. Runs are the same if KEY is: a point's values,
    not names.
    """
    return polars.concat([table, lacking(more, table)])


def lacking(rows: polars.DataFrame, table: polars.DataFrame) -> polars.DataFrame:
    """The rows whose run `table` does not have."""
    return rows.join(table, on=KEY, how="anti", nulls_equal=True, maintain_order="left")


def write(results: Path) -> polars.DataFrame:
    """Updates `results/index.parquet` atomically; returns the table."""
    table = _read(results)
    with files.replacing(results / INDEX) as file:
        table.write_parquet(file)
    return table.drop(STAMP)


def read_table(path: Path, needed: tuple[str, ...], also: tuple[str, ...] = ()) -> polars.DataFrame:
    """The columns `needed`, and the existing columns of `also`, of any run table in Parquet or CSV. Columns may have
    the names of a summary (spec.rate_bps, utilization.p01). Raises ValueError if the file is not a run table, OSError.
    """
    regular.check(path)
    try:
        is_parquet = path.suffix == ".parquet"
        table = parquet.read(path) if is_parquet else polars.read_csv(path, infer_schema_length=None)
    except polars.exceptions.PolarsError as error:
        raise ValueError(f"is not a table: {error}") from None
    table = table.rename({name: name.replace(".", "_").removeprefix("spec_") for name in table.columns})
    missing = [name for name in needed if name not in table.columns]
    if missing:
        raise ValueError(f"is not a run table: it has no column {missing[0]}; needed: {', '.join(needed)}")
    return table.select(*needed, *(name for name in also if name in table.columns))


def drawn_alike(row: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """The key of identical runs: rows with the same conditions and the same key are one run that was done twice. In
    virtual time the same seed gives the same bytes, so the key is the seed and the number of the repetition. None: no
    other run is identical, as in real time.
    """
    drawn = row.get("seed"), row.get("repetition")
    return drawn if row.get("clock") == "virtual" and None not in drawn else None


def distinct(rows: Iterable[Mapping[str, Any]]) -> int:
    """The number of different runs: in virtual time a run that several sweeps did counts once."""
    return len({(row["point"], drawn) if (drawn := drawn_alike(row)) else row["run"] for row in rows})


def _directories(parent: Path) -> list[Path]:
    """The subdirectories, sorted. A link is followed if it leads out of `parent`, but not to one place twice."""
    try:
        found = {Path(entry.path): entry.is_symlink() for entry in os.scandir(parent) if entry.is_dir()}
        inside = parent.resolve()
    except OSError:
        return []
    links = sorted((path for path in found if found[path]), key=lambda path: (path.name != LATEST, path.name))
    elsewhere = {path.resolve(): path for path in links}
    followed = [path for target, path in elsewhere.items() if not target.is_relative_to(inside)]
    return sorted([*(path for path in found if not found[path]), *followed])


def _of_run(run: Path) -> Iterator[Path]:
    for directory in _directories(run):
        if REPETITION_NAME.fullmatch(directory.name) and (directory / SUMMARY).exists():
            yield directory


def _index(results: Path) -> polars.DataFrame | None:
    """The stored index; None if there is none with these columns."""
    try:
        table = parquet.read(results / INDEX)
    except (OSError, polars.exceptions.PolarsError):
        return None
    return table if dict(table.schema) == SCHEMA | {STAMP: polars.String()} else None


def _typed(value: Any, kind: Kind) -> Any:
    """The value if it has the column's type, else None: a summary of another version may contain any type."""
    if kind is str:
        return value.encode(errors="replace").decode() if isinstance(value, str) else None
    if kind is bool:
        return value if isinstance(value, bool) else None
    return kind(value) if is_number(value) else None


def _tcp(spec: Experiment) -> dict[str, Any]:
    """Profile and options of the hosts' TCP; all None if the options are unknown, or ns-3's defaults."""
    default_of_ns3 = spec.switch == "ns3" and spec.tcp is None
    if spec.imported or spec.traffic == OPEN_LOOP or default_of_ns3:
        return dict.fromkeys(("profile", *LINUX))
    values = spec.tcp or LINUX
    return {"profile": profile(values)} | values


def link_and_queue(spec: Experiment) -> dict[str, Any]:
    """The columns that say how a link and its queue differ from a constant rate and our own program. Published tables
    leave them out, because their rows have the spec.
    """
    return {
        "rate_changes": _rate_changes(spec),
        "link_loss": float(spec.loss.of_link.mean) if spec.loss else None,
        "jitter_ns": spec.jitter_ns or None,
        "p4": _p4(spec),
        "queue": spec.queue,
    }


def _rate_changes(spec: Experiment) -> str | None:
    """The steps of a rate as 0s:200000000,10s:50000000, or the trace's file; None of a constant rate."""
    if spec.rate_trace:
        return spec.rate_trace.file
    return _joined(f"{at_ns / 1e9:g}s:{bps}" for at_ns, bps in spec.rate_steps or ())


def _joined(values: Iterable[Any]) -> str | None:
    """The different values with commas; None without any."""
    return ",".join(dict.fromkeys(map(str, values))) or None


def _p4(spec: Experiment) -> str | None:
    """The user's P4 program, and a policy's parameters."""
    if not spec.p4:
        return None
    return " ".join([spec.p4.compiled.name, *(f"{name}={value}" for name, value in (spec.p4.parameters or {}).items())])
