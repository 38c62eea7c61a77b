# SPDX-License-Identifier: MIT
"""The published data set's tables, from where anybody has them: a running PostgreSQL, a plain pg_dump, or a directory
of `<table>.csv` or `<table>.parquet`, gzipped or not.

DuckDB reads the files, so that of tables larger than the memory only one experiment's rows are taken. Its extension
for PostgreSQL must be downloaded from DuckDB's own server, which not every machine may reach; so psycopg asks the
database to COPY these rows, and they come as the same text that a dump has.
"""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Protocol

import duckdb
import polars as pl
import psycopg

from analysis.importing.fields import LINE
from analysis.raw import InputError

EXPERIMENTS, TRACES, POSTCARDS = "experiments", "traces", "postcard_traces"
RETRANSMITS, HISTOGRAMS = "retransmits", "queue_depth_histograms"
TABLES = (EXPERIMENTS, TRACES, POSTCARDS, RETRANSMITS, HISTOGRAMS)
SCHEMES = ("postgresql://", "postgres://")
SUFFIXES = (".csv", ".csv.gz", ".parquet")
NULL = "\\N"
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}


class Database(Protocol):
    """Where tables come from. Rows are text; `line` says where each stood."""

    where: str

    def rows(self, table: str, experiment: str | None) -> tuple[pl.DataFrame, str] | None:
        """(the rows of an experiment, or all; where they stand), or None without such a table."""


def opened(source: str) -> Database | None:
    """The database that `source` names; None if it is none. Raises InputError."""
    if source.startswith(SCHEMES):
        return Server(source)
    path = Path(source)
    if path.is_dir():
        return Files(path) if any((path / f"{table}{end}").exists() for table in TABLES for end in SUFFIXES) else None
    if path.is_file() and any(b"PostgreSQL database dump" in line for line in _head(path)):
        return Dump(path)
    return None


def _head(path: Path) -> list[bytes]:
    try:
        with _open(path) as file:
            return [file.readline(4096) for _ in range(10)]
    except OSError:
        return []


def _open(path: Path) -> IO[bytes]:
    return gzip.open(path) if path.name.endswith(".gz") else path.open("rb")  # type: ignore[return-value]


class Files:
    """A directory with a file a table, as \\copy ... csv header writes them."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.where = directory, str(directory)

    def rows(self, table: str, experiment: str | None) -> tuple[pl.DataFrame, str] | None:
        found = [path for end in SUFFIXES if (path := self.directory / f"{table}{end}").exists()]
        if not found:
            return None
        path = found[0]
        if path.suffix == ".parquet":
            reader = "read_parquet(?)"
        else:
            reader = "read_csv(?, header = true, all_varchar = true, nullstr = '', quote = '\"', strict_mode = true)"
        return _query(path, reader, table, experiment), str(path)


class Dump:
    """A plain dump: its COPY sections are read as they come, the rows of one experiment only."""

    def __init__(self, path: Path) -> None:
        self.path, self.where = path, str(path)

    def rows(self, table: str, experiment: str | None) -> tuple[pl.DataFrame, str] | None:
        with tempfile.TemporaryDirectory() as scratch:
            text = Path(scratch) / "rows"
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
                            yield number, b"", columns
                    elif line == b"\\.":
                        return
                    else:
                        if line.count(b"\t") + 1 != len(columns):
                            raise InputError(
                                f"{self.path}, line {number}: {line.count(bytes([9])) + 1} columns; allowed: the "
                                f"{len(columns)} of COPY {table}, then a line with \\."
                            )
                        yield number, line, columns
        except (OSError, EOFError) as error:
            raise InputError(f"{self.path}: damaged: {error}; get the dump again") from None
        if columns is not None:
            raise InputError(f"{self.path}: ends within COPY {table}; it was cut off: get the dump again")


def _copy_columns(line: bytes, table: str) -> list[str] | None:
    """The columns that a line of SQL begins to copy into `table`."""
    if not line.startswith(b"COPY "):
        return None
    head, _, rest = line[5:].decode("utf-8", errors="replace").partition(" (")
    if head.rpartition(".")[2].strip('"') != table or not rest.endswith(") FROM stdin;"):
        return None
    return [name.strip().strip('"') for name in rest.removesuffix(") FROM stdin;").split(",")]


def _is_of(line: bytes, columns: list[str], table: str, experiment: str | None) -> bool:
    if not line:
        return False
    key = "id" if table == EXPERIMENTS else "experiment_id"
    return experiment is None or line.split(b"\t")[columns.index(key)] == experiment.encode()


class Server:
    """A running PostgreSQL, by its URL."""

    def __init__(self, url: str) -> None:
        self.where = url.split("@")[-1]
        try:
            self.connection = psycopg.connect(url, connect_timeout=10)
        except psycopg.Error as error:
            raise InputError(f"{self.where}: {' '.join(str(error).split())}; allowed: a running PostgreSQL") from None

    def rows(self, table: str, experiment: str | None) -> tuple[pl.DataFrame, str] | None:
        key = "id" if table == EXPERIMENTS else "experiment_id"
        name = psycopg.sql.Identifier(table)
        try:
            with tempfile.TemporaryDirectory() as scratch, self.connection.cursor() as cursor:
                cursor.execute("select to_regclass(%s)", (table,))
                if (cursor.fetchone() or (None,))[0] is None:
                    return None
                cursor.execute(psycopg.sql.SQL("select * from {} limit 0").format(name))
                columns = [column.name for column in cursor.description or ()]
                query = psycopg.sql.SQL("copy (select * from {}{}) to stdout").format(
                    name,
                    psycopg.sql.SQL(" where {} = {}").format(
                        psycopg.sql.Identifier(key), psycopg.sql.Literal(experiment)
                    )
                    if experiment is not None
                    else psycopg.sql.SQL(""),
                )
                text = Path(scratch) / "rows"
                with text.open("wb") as output, cursor.copy(query) as copy:
                    for part in copy:
                        output.write(part)
                return _copied(text, columns, with_line=False), f"{self.where}, table {table}"
        except psycopg.Error as error:
            raise InputError(f"{self.where}, table {table}: {' '.join(str(error).split())}") from None


def _copied(text: Path, columns: list[str], with_line: bool) -> pl.DataFrame:
    """COPY's text format as a frame of text."""
    names = [LINE, *columns] if with_line else columns
    listed = ", ".join(f"{_quoted(name)}: 'VARCHAR'" for name in names)
    reader = (
        f"read_csv(?, delim = '\t', header = false, quote = '', escape = '', nullstr = '{NULL}', "
        f"columns = {{{listed}}}, auto_detect = false)"
    )
    if not text.stat().st_size:
        frame = pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    else:
        frame = _query(text, reader, None, None) if not with_line else _query(text, reader, None, None, numbered=False)
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
    """Rows as text. DuckDB hands them over as Parquet: what both it and polars read without a third library."""
    number = f"row_number() over () + {0 if table is None else 1} as {LINE}, " if numbered else ""
    where = ""
    values: list[str] = [str(path)]
    if table is not None and experiment is not None:
        where = f" where cast({'id' if table == EXPERIMENTS else 'experiment_id'} as varchar) = ?"
        values.append(experiment)
    with tempfile.TemporaryDirectory() as scratch:
        result = Path(scratch) / "rows.parquet"
        try:
            with duckdb.connect(config={"threads": 2}) as connection:
                rows = connection.execute(f"select * from (select {number}* from {reader}){where}", values)
                names = [name for name, *_ in rows.description or ()]
                shown = ", ".join(
                    f"cast({_quoted(name)} as varchar) as {_quoted(name)}" if name != LINE else LINE for name in names
                )
                chosen = f"select {shown} from (select {number}* from {reader}){where}"
                connection.execute(f"copy ({chosen}) to '{result}' (format parquet)", values)
            return pl.read_parquet(result)
        except duckdb.Error as error:
            first = str(error).strip().splitlines()[0][:200]
            raise InputError(f"{path}: {first}; allowed: what \\copy (...) csv header or COPY wrote") from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
