# SPDX-License-Identifier: MIT
"""`python -m analysis export RUN --format F --output PATH`: the command line behind `make export`.

Exit status: 0 written, whole (of a run that is not valid stderr says so); 1 nothing was written, and why is on stderr.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from analysis import whole
from lib.errors import BadValue, InputError, SpecError
from lib.terminal import printable
from lib.words import made, read_words
from runs import record, verdict
from runs.names import SUMMARY
from runs.spec_file import check_name

FORMATS = ("csv", "parquet", "pcapng", "flent", "telemetry-report")
DIRECTORIES = ("csv", "parquet")  # which are several files
KEYS = ("run", "format", "output")
USAGE = """\
usage: python -m analysis export RUN --format FORMAT --output PATH
       python -m analysis export --make      take RUN, FORMAT and OUTPUT from the command line of the make that calls
FORMAT: csv, parquet          every table and schema.json, which says what columns mean, into the new directory PATH
        pcapng                the postcards as datagrams, with ns; wire/postcard.lua shows their fields in Wireshark
        telemetry-report      the same as reports of P4.org's Telemetry Report Format 2.0, in a pcapng file
        flent                 a data file of Flent (PATH ends with .flent.gz), for its plots of the test tcp_nup
docs/formats.md says what is in each."""


def main(words: list[str]) -> int:
    """Writes what was asked for; returns the exit status."""
    if {"-h", "--help", "help"} & set(words):
        print(USAGE)
        return 0
    try:
        if words and "=" not in words[0] and not words[0].startswith("--"):
            words = [f"RUN={words[0]}", *words[1:]]
        given, options, errors = read_words(made() if words == ["--make"] else words)
        return _export(*_read({key: str(value) for key, value in (given | options).items()}, errors))
    except SpecError as error:
        lines = error.lines()
    except InputError as error:
        lines = [str(error)]
    except OSError as error:
        lines = [f"{error.filename or 'OUTPUT'}: {error.strerror}; nothing was exported"]
    for line in lines:
        print(printable(f"error: {line}"), file=sys.stderr)
    return 1


def _read(given: dict[str, str], errors: list[BadValue]) -> tuple[Path, str, Path]:
    errors += [
        BadValue(key.upper(), None, f"is no parameter of export; allowed: {', '.join(KEYS).upper()}")
        for key in given
        if key not in KEYS
    ]
    errors += [BadValue(key.upper(), None, "is missing") for key in KEYS if key not in given]
    kind, output = given.get("format", FORMATS[0]).lower(), Path(given.get("output", "x.flent.gz"))
    if kind not in FORMATS:
        errors.append(BadValue("FORMAT", given["format"], f"is not known; allowed: {', '.join(FORMATS)}"))
    elif kind == "flent" and not output.name.endswith(".flent.gz"):
        errors.append(BadValue("OUTPUT", str(output), "must end with .flent.gz, else Flent does not open it"))
    if errors:
        raise SpecError(errors)
    return _repetition(Path(given["run"])), kind, output


def _repetition(run: Path) -> Path:
    """The repetition that `run` is, or its only one."""
    check_name(run)
    if (run / "spec.yaml").is_file():
        return run
    found = sorted(path for path in run.glob("rep-*") if (path / "spec.yaml").is_file())
    if len(found) != 1:
        what = f"has {len(found)} repetitions" if found else "is no run"
        raise InputError(f"{run}: {what}; allowed: one repetition, as results/latest/rep-1")
    return found[0]


def _export(repetition: Path, kind: str, output: Path) -> int:
    """Beside its place first, then into it."""
    if output.exists():
        raise InputError(f"{output}: is there already; allowed: a new name, or remove it")
    if not output.absolute().parent.is_dir():
        raise InputError(f"{output}: there is no directory {output.parent}; make it first")
    whole.check(repetition, derived=[SUMMARY])
    # A directory of our own: in /tmp, another user could have made a link of any name that can be guessed.
    with tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.absolute().parent) as own:
        part = Path(own) / output.name
        if kind in DIRECTORIES:
            part.mkdir()
        count = _writer(kind)(repetition, part)
        part.replace(output)
    unit = "steps" if kind == "flent" else "rows" if kind in DIRECTORIES else "postcards"
    print(printable(f"{output}: {count} {unit}"))
    if doubt := verdict.doubt(repetition):
        print(printable(doubt), file=sys.stderr)
    if unknown := record.unrecorded(repetition):
        print(printable(f"note: {unknown}"), file=sys.stderr)
    return 0


def _writer(kind: str) -> Callable[[Path, Path], int]:
    from analysis.exporting import flent, pcapng, tables, telemetry_report

    return {
        "csv": lambda source, target: tables.write(source, target, "csv"),
        "parquet": lambda source, target: tables.write(source, target, "parquet"),
        "pcapng": pcapng.write,
        "flent": flent.write,
        "telemetry-report": telemetry_report.write,
    }[kind]
