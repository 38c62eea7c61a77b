# SPDX-License-Identifier: MIT
r"""Reads the published data set's tables from a directory of `<table>.csv` (as psql's \copy TABLE to FILE csv header
writes it, gzipped or not) or `<table>.parquet`, some rows of one experiment at a time.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import polars as pl

from analysis.importing.fields import LINE
from lib import regular
from lib.errors import InputError
from lib.terminal import one_line

EXPERIMENTS, TRACES, POSTCARDS = "experiments", "traces", "postcard_traces"
RETRANSMITS, HISTOGRAMS = "retransmits", "queue_depth_histograms"
BATCH_ROWS = 1 << 16
TABLES = (EXPERIMENTS, TRACES, POSTCARDS, RETRANSMITS, HISTOGRAMS)
SUFFIXES = (".csv", ".csv.gz", ".parquet")


def are_in(directory: Path) -> bool:
    """Whether the directory has a table's file."""
    return directory.is_dir() and any((directory / f"{table}{end}").exists() for table in TABLES for end in SUFFIXES)


def batches(directory: Path, table: str, experiment: str | None) -> Iterator[tuple[pl.DataFrame, str]]:
    """The rows of an experiment (None: of all) as text, with the column `line`, some at a time, and their file; nothing
    without such a table. Raises InputError.
    """
    paths = [path for end in SUFFIXES if (path := directory / f"{table}{end}").exists()]
    if not paths:
        return
    if len(paths) > 1:
        raise InputError(f"{directory}: has {table} as {' and '.join(p.name for p in paths)}; allowed: one of them")
    path, key = paths[0], "id" if table == EXPERIMENTS else "experiment_id"
    try:
        regular.check(path)
        if path.suffix == ".parquet":
            scan = pl.scan_parquet(path, glob=False, row_index_name=LINE, row_index_offset=1)
        else:
            _check_end(path)
            scan = pl.scan_csv(path, glob=False, infer_schema=False, row_index_name=LINE, row_index_offset=2)
        if key not in scan.collect_schema().names():
            raise InputError(f"{path}: {table} has no column {key}; allowed: the published data set's tables")
        scan = scan.with_columns(pl.exclude(LINE).cast(pl.String))
        chosen = scan if experiment is None else scan.filter(pl.col(key) == experiment)
        for frame in chosen.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True, lazy=True, engine="streaming"):
            yield frame, str(path)
    except (OSError, EOFError, zlib.error, pl.exceptions.PolarsError) as error:
        allowed = "a Parquet file with the table's rows" if path.suffix == ".parquet" else r"the output of \copy"
        fault = one_line(str(error).partition("\n")[0])
        raise InputError(f"{path}: damaged: {fault}; allowed: {allowed}; get the file again") from None


def _check_end(path: Path) -> None:
    """Raises InputError if the last row has no newline: a killed writer can leave half a row that looks whole. Raises
    OSError, EOFError or zlib.error if the file is damaged.
    """
    with regular.opened(path) as packed, gzip.GzipFile(fileobj=packed) as unpacked:
        is_packed = path.suffix == ".gz"
        file = unpacked if is_packed else packed
        file.seek(0 if is_packed else max(path.stat().st_size - 1, 0))
        last = b""
        for part in iter(partial(file.read, 1 << 20), b""):
            last = part[-1:]
    if last != b"\n":
        fault = "its last line does not end with a newline, so the file was cut off" if last else "is empty"
        raise InputError(rf"{path}: {fault}; allowed: the output of \copy TABLE to FILE csv header; get the file again")
