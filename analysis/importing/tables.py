# SPDX-License-Identifier: MIT
"""Reads the published data set's tables from a running PostgreSQL, from a plain pg_dump, or from a directory of
`<table>.csv` (gzipped or not) or `<table>.parquet`.

Of the large tables, only the rows of one experiment are held in memory, so a table may be larger than the memory.
DuckDB filters table files, Python a dump, and PostgreSQL its own tables.

DuckDB's extension for PostgreSQL must be downloaded from DuckDB's server, which some machines cannot reach. psycopg
therefore asks a running PostgreSQL to COPY the experiment's rows, in the same text format as a dump.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, Protocol

import duckdb
import polars as pl
import psycopg

from analysis.importing import address
from analysis.importing.fields import LINE
from lib import leftovers, regular
from lib.errors import InputError
from lib.terminal import one_line

EXPERIMENTS, TRACES, POSTCARDS = "experiments", "traces", "postcard_traces"
RETRANSMITS, HISTOGRAMS = "retransmits", "queue_depth_histograms"
TABLES = (EXPERIMENTS, TRACES, POSTCARDS, RETRANSMITS, HISTOGRAMS)
SUFFIXES = (".csv", ".csv.gz", ".parquet")
NULL = "\\N"
UNREADABLE = (OSError, EOFError, zlib.error)  # errors of a damaged file, gzipped or not
_WILDCARD = re.compile(r"([*?\[])")  # characters that DuckDB takes for patterns in a path
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}


class Database(Protocol):
    """A source of tables. Rows are text, with the column `line` for messages."""

    where: str

    def rows(self, table: str, experiment: str | None) -> tuple[pl.DataFrame, str] | None:
        """The rows of an experiment (None: of all) and their place for messages; None without such a table."""


def opened(source: str) -> Database | None:
    """The database that `source` names; None if `source` is not a database. Raises InputError."""
    if source.startswith(address.SCHEMES):
        return DatabaseServer(source)
    address.check_no_address(source)
    path = Path(source)
    if path.is_dir():
        return (
            TableFiles(path) if any((path / f"{table}{end}").exists() for table in TABLES for end in SUFFIXES) else None
        )
    if path.is_file() and any(b"PostgreSQL database dump" in line for line in _head(path)):
        return Dump(path)
    return None


def _head(path: Path) -> list[bytes]:
    try:
        with _open(path) as file:
            return [file.readline(4096) for _ in range(10)]
    except UNREADABLE:
        return []


def _open(path: Path) -> IO[bytes]:
    file = regular.opened(path)
    return _Unpacked(file) if path.name.endswith(".gz") else file  # type: ignore[return-value]


class _Unpacked(gzip.GzipFile):
    """The decompressed content of a gzip file. close() also closes the gzip file."""

    def __init__(self, packed: BinaryIO) -> None:
        super().__init__(fileobj=packed)
        self.packed = packed

    def close(self) -> None:
        super().close()
        self.packed.close()


class TableFiles:
    """A directory with a file per table: CSV as psql's \\copy ... csv header writes it, or Parquet."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.where = directory, str(directory)
        self._whole: set[Path] = set()  # files that end with a newline

    def rows(self, table: str, experiment: str | None) -> tuple[pl.DataFrame, str] | None:
        paths = [path for end in SUFFIXES if (path := self.directory / f"{table}{end}").exists()]
        if not paths:
            return None
        if len(paths) > 1:
            raise InputError(
                f"{self.directory}: has {table} as {' and '.join(p.name for p in paths)}; allowed: one of them"
            )
        path = paths[0]
        try:
            regular.check(path)
        except OSError as error:
            raise InputError(f"{path}: {one_line(error)}; allowed: a file with the table's rows") from None
        if path.suffix == ".parquet":
            reader = "read_parquet(?)"
        else:
            if path not in self._whole:
                _check_end(path)
                self._whole.add(path)
            compression = "gzip" if path.suffix == ".gz" else "none"
            reader = (
                "read_csv(?, header = true, all_varchar = true, nullstr = '', quote = '\"', strict_mode = true, "
                f"compression = '{compression}')"
            )
        return _query(path, reader, table, experiment), str(path)


def _check_end(path: Path) -> None:
    """Raises InputError if the file is damaged or empty, or if the last row has no newline: a killed writer can leave
    half a row that looks whole.
    """
    last = b""
    try:
        with _open(path) as file:
            if path.suffix != ".gz" and path.stat().st_size:
                file.seek(-1, os.SEEK_END)
            while part := file.read(1 << 20):
                last = part[-1:]
    except UNREADABLE as error:
        raise InputError(f"{path}: damaged: {error}; get the file again") from None
    if last != b"\n":
        fault = "its last line does not end with a newline, so the file was cut off" if last else "is empty"
        raise InputError(f"{path}: {fault}; allowed: the output of \\copy (...) csv header; get the file again")


class Dump:
    """A plain pg_dump. Each table's COPY section is scanned for the rows of one experiment."""

    def __init__(self, path: Path) -> None:
        self.path, self.where = path, str(path)

    def rows(self, table: str, experiment: str | None) -> tuple[pl.DataFrame, str] | None:
        with leftovers.temporary() as scratch:
            text = scratch / "rows"
            columns = None
            with text.open("wb") as output:
                for number, line, named in self._lines(table):
                    columns = named
                    if _is_of(line, named, table, experiment):
                        output.write(b"%d\t%s\n" % (number, line))
            return None if columns is None else (_copied(text, columns, with_line=True), self.where)

    def _lines(self, table: str) -> Iterator[tuple[int, bytes, list[str]]]:
        columns: list[str] | None = None
        try:
            with _open(self.path) as file:
                for number, whole in enumerate(file, 1):
                    line = whole.rstrip(b"\r\n")
                    if columns is None:
                        columns = _copy_columns(line, table)
                        if columns is not None:
                            _check_key(f"{self.path}, line {number}", table, columns)
                            yield number, b"", columns
                    elif line == b"\\.":
                        return
                    else:
                        if line.count(b"\t") + 1 != len(columns):
                            raise InputError(
                                f"{self.path}, line {number}: {line.count(bytes([9])) + 1} columns; allowed: rows "
                                f"with the {len(columns)} columns of COPY {table}, and one line \\. after the last row"
                            )
                        yield number, line, columns
        except UNREADABLE as error:
            raise InputError(f"{self.path}: damaged: {error}; get the dump again") from None
        if columns is not None:
            raise InputError(f"{self.path}: ends within COPY {table}; it was cut off: get the dump again")


def _copy_columns(line: bytes, table: str) -> list[str] | None:
    """The columns of the COPY statement for `table`; None for any other line."""
    if not line.startswith(b"COPY "):
        return None
    head, _, rest = line[5:].decode("utf-8", errors="replace").partition(" (")
    if head.rpartition(".")[2].strip('"') != table or not rest.endswith(") FROM stdin;"):
        return None
    return [name.strip().strip('"') for name in rest.removesuffix(") FROM stdin;").split(",")]


def _key(table: str) -> str:
    """The column that holds the experiment of a row."""
    return "id" if table == EXPERIMENTS else "experiment_id"


def _check_key(where: str, table: str, columns: list[str]) -> None:
    if _key(table) not in columns:
        raise InputError(f"{where}: {table} has no column {_key(table)}; allowed: the published data set's tables")


def _is_of(line: bytes, columns: list[str], table: str, experiment: str | None) -> bool:
    if not line:
        return False
    return experiment is None or line.split(b"\t")[columns.index(_key(table))] == experiment.encode()


class DatabaseServer:
    """A running PostgreSQL, by its URL."""

    def __init__(self, url: str) -> None:
        self.where = address.shown(url)
        try:
            self.connection = psycopg.connect(url, connect_timeout=10)
        except psycopg.Error as error:
            raise InputError(f"{self.where}: {' '.join(str(error).split())}; allowed: a running PostgreSQL") from None

    def rows(self, table: str, experiment: str | None) -> tuple[pl.DataFrame, str] | None:
        name = psycopg.sql.Identifier(table)
        try:
            with leftovers.temporary() as scratch, self.connection.cursor() as cursor:
                cursor.execute("select to_regclass(%s)", (table,))
                if (cursor.fetchone() or (None,))[0] is None:
                    return None
                cursor.execute(psycopg.sql.SQL("select * from {} limit 0").format(name))
                columns = [column.name for column in cursor.description or ()]
                _check_key(self.where, table, columns)
                query = psycopg.sql.SQL("copy (select * from {}{}) to stdout").format(
                    name,
                    psycopg.sql.SQL(" where {} = {}").format(
                        psycopg.sql.Identifier(_key(table)), psycopg.sql.Literal(experiment)
                    )
                    if experiment is not None
                    else psycopg.sql.SQL(""),
                )
                text = scratch / "rows"
                with text.open("wb") as output, cursor.copy(query) as copy:
                    for part in copy:
                        output.write(part)
                return _copied(text, columns, with_line=False), f"{self.where}, table {table}"
        except psycopg.Error as error:
            raise InputError(f"{self.where}, table {table}: {' '.join(str(error).split())}") from None


def _copied(text: Path, columns: list[str], with_line: bool) -> pl.DataFrame:
    """Reads COPY's text format into a frame of text."""
    names = [LINE, *columns] if with_line else columns
    listed = ", ".join(f"{_quoted(name)}: 'VARCHAR'" for name in names)
    reader = (
        f"read_csv(?, delim = '\t', header = false, quote = '', escape = '', nullstr = '{NULL}', "
        f"columns = {{{listed}}}, auto_detect = false)"
    )
    if not text.stat().st_size:
        frame = pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    else:
        frame = _query(text, reader, None, None, numbered=not with_line)
    frame = frame.with_columns(pl.col(LINE).cast(pl.Int64)) if LINE in frame.columns else frame.with_row_index(LINE, 1)
    return (
        frame.with_columns(pl.selectors.string().map_elements(_unescape, pl.String)) if _has_escapes(frame) else frame
    )


def _has_escapes(frame: pl.DataFrame) -> bool:
    texts = frame.select(pl.selectors.string())
    return any(texts[name].str.contains("\\", literal=True).any() for name in texts.columns)


def _unescape(value: str) -> str:
    parts = value.split("\\")
    result = [parts.pop(0)]
    pending = iter(parts)
    for part in pending:
        if part:
            result += [_ESCAPES.get(part[0], part[0]), part[1:]]
        else:  # an escaped backslash
            result += ["\\", next(pending, "")]
    return "".join(result)


def _query(path: Path, reader: str, table: str | None, experiment: str | None, numbered: bool = True) -> pl.DataFrame:
    """Rows as text. They pass from DuckDB to polars as a Parquet file, which needs no third library."""
    number = f"row_number() over () + {0 if table is None else 1} as {LINE}, " if numbered else ""
    rows = f"(select {number}* from {reader})"
    values = [_WILDCARD.sub(r"[\1]", str(path))]  # DuckDB interprets a path as a pattern
    where = ""
    with leftovers.temporary() as scratch:
        result = scratch / "rows.parquet"
        try:
            with duckdb.connect(config={"threads": 2}) as connection:
                description = connection.execute(f"select * from {rows} limit 0", values).description
                names = [name for name, *_ in description or ()]
                if table is not None:
                    _check_key(str(path), table, names)
                if table is not None and experiment is not None:
                    where = f" where cast({_key(table)} as varchar) = ?"
                    values.append(experiment)
                shown = ", ".join(
                    f"cast({_quoted(name)} as varchar) as {_quoted(name)}" if name != LINE else LINE for name in names
                )
                target = str(result).replace("'", "''")
                connection.execute(f"copy (select {shown} from {rows}{where}) to '{target}' (format parquet)", values)
            return pl.read_parquet(result, glob=False)
        except duckdb.Error as error:
            first = str(error).strip().splitlines()[0][:200]
            allowed = "the output of \\copy (...) csv header" if table is not None else "rows as COPY writes them"
            if path.suffix == ".parquet":
                allowed = "a Parquet file with the table's rows"
            raise InputError(f"{path}: {first}; allowed: {allowed}") from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
