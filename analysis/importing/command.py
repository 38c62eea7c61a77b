# SPDX-License-Identifier: MIT
"""`python -m analysis import FROM=... OUTPUT=...`: the command line behind `make import`.

Exit status: 0 imported and analysed; 1 not, and why is on stderr; 3 a source was damaged: what stood before it is used.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from analysis.importing import address, sources, write
from controlplane.policy import WATCHED_MODES
from lib import units
from lib.errors import BadValue, InputError, SpecError
from lib.values import choice, quantity, whole_number
from lib.words import made, read_words

USAGE = """\
usage: python -m analysis import FROM=SOURCE[,SOURCE...] OUTPUT=DIRECTORY [KEY=VALUE]...
       python -m analysis import --make    take KEY=VALUE from the command line of the make that calls
SOURCE is a directory with trace.tr, postcards.tr and config.json; such a file, or a text trace of tcp_probe; a pcap or
pcapng file with postcards; postgresql://... of the published data set, its pg_dump, or a directory with its tables as
CSV or Parquet.
  EXPERIMENT  which one of a database: its id, or all (each into OUTPUT/runs/<id>)
  RATE RTT    of the bottleneck and of the path; sources do not tell. Default: the published data's, 10gbit and 1.2ms
  MTU CC MODE BUF FLOWS        what the source does not say, else 9000, unknown, tail-drop, the deepest queue, all flows
  WARMUP DURATION              the part to measure, else the middle third, as in the first seed paper"""
KEYS = ("from", "output", "experiment", "rate", "rtt", "mtu", "cc", "mode", "buf", "flows", "warmup", "duration")
OK, FAILED, DAMAGED = 0, 1, 3
MOST_TIME = f"{366 * 86_400}s"


def main(words: list[str]) -> int:
    """Imports and analyses; returns the exit status."""
    if {"-h", "--help", "help"} & set(words):
        print(USAGE)
        return OK
    try:
        given, options, errors = read_words(made() if words == ["--make"] else words)
        asked = _read({key: str(value) for key, value in (given | options).items()}, errors)
        return _import(asked)
    except SpecError as error:
        lines = error.lines()
    except TELL as error:
        lines = [_line(error)]
    for line in lines:
        print(f"error: {line}", file=sys.stderr)
    return FAILED


TELL = (InputError, MemoryError, OSError)  # said in a line; nothing of the experiment is left behind


def _line(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}; nothing was imported: measure less of it (WARMUP, DURATION)"
    if isinstance(error, OSError):
        return f"{error.filename or 'OUTPUT'}: {error.strerror}; nothing was imported"
    return str(error)


def _read(given: dict[str, str], errors: list[BadValue]) -> sources.ImportRequest:
    """Every value, or SpecError with a line for each that is wrong."""

    def value(key: str, read):  # type: ignore[no-untyped-def]
        if key not in given:
            return None
        try:
            return read(given[key])
        except ValueError as error:
            errors.append(BadValue(key.upper(), given[key], str(error)))
            return None

    errors += [
        BadValue(key.upper(), None, f"is no parameter of import; allowed: {', '.join(KEYS).upper()}")
        for key in given
        if key not in KEYS
    ]
    errors += [BadValue(key.upper(), None, "is missing") for key in ("from", "output") if key not in given]
    asked = sources.ImportRequest(
        sources=_sources(given.get("from", "")),
        output=Path(given.get("output", ".")),
        experiment=given.get("experiment"),
        rate_bps=value("rate", _base_units("rate", "1bit", "1000tbit")),
        rtt_ns=value("rtt", _base_units("time", "1us", "1000s")),
        mtu_bytes=value("mtu", whole_number(*sources.MTU_BYTES)),
        cc=value("cc", sources.algorithm),
        mode=value("mode", choice(*WATCHED_MODES)),
        buffer_packets=value("buf", _base_units("packets", "1p", f"{sources.MOST_PACKETS}p")),
        flows=value("flows", whole_number(*sources.FLOWS)),
        warmup_ns=value("warmup", _base_units("time", "0s", MOST_TIME, "a year")),
        duration_ns=value("duration", _base_units("time", "1ns", MOST_TIME, "a year")),
    )
    if errors:
        raise SpecError(errors)
    return asked


def _sources(text: str) -> list[str]:
    """Files; or a database alone, whose address may have commas (several hosts; a password)."""
    return [text] if text.startswith(address.SCHEMES) else [word for word in text.split(",") if word]


def _base_units(dimension: str, low: str, high: str, why: str = "") -> Callable[[object], int]:
    """A reader of quantities, as whole numbers of the base unit."""
    return lambda text: units.whole(quantity(dimension, low=low, high=high, why=why)(text))


def _import(asked: sources.ImportRequest) -> int:
    """Each experiment into a directory of its own, whole or not at all; of all, one that cannot be imported is told and
    keeps no other from it.
    """
    if asked.experiment != "all":
        if asked.output.exists() and any(asked.output.iterdir()):
            raise InputError(
                f"{asked.output}: is there and not empty; allowed: a new directory, as OUTPUT=results/theirs"
            )
        ((_, read),) = sources.find(asked)
        return _experiment(read, asked.output)
    statuses = []
    for name, read in sources.find(asked):
        try:
            statuses.append(_experiment(read, asked.output / "runs" / name))
        except TELL as error:
            print(f"error: experiment {name}: {_line(error)}", file=sys.stderr)
            statuses.append(FAILED)
    if FAILED in statuses:
        print(f"error: {statuses.count(FAILED)} of {len(statuses)} experiments were not imported", file=sys.stderr)
        return FAILED
    return max(statuses, default=OK)


def _experiment(read: Callable[[], sources.Experiment], run: Path) -> int:
    if (run / "rep-1").exists():
        print(f"{run}: is there already")
        return OK
    found = read()
    status = _one(found, run / "rep-1")
    for line in (*found.source.remarks, *found.source.notes) if status == OK else ():
        print(f"{run}: {line}")
    for line in found.damage:
        print(f"error: {line}", file=sys.stderr)
    return max(status, DAMAGED if found.damage else OK)


def _one(found: sources.Experiment, repetition: Path) -> int:
    """Written and analysed beside its place, then put there; whatever goes wrong, what was made for it goes again."""
    from analysis.replay import drawing_pool, replay

    scratch = repetition.with_name(".importing")
    made = [path for path in (scratch, *scratch.parents) if not path.exists()]
    try:
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        write.write(scratch, found.cards, found.events, found.depths, found.conditions, found.source)
        with drawing_pool() as pool:
            status = replay(scratch, pool, shown=repetition)
        if status == OK:
            scratch.rename(repetition)
        return status
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        for path in made:
            with suppress(OSError):  # it has something else in it
                path.rmdir()
