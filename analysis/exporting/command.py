# SPDX-License-Identifier: MIT
"""The command `export`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from analysis.read import complete_run
from lib import files
from lib.errors import InputError
from lib.keys import Keys, Wrong, field
from lib.terminal import located, say
from runs import verdict
from runs.names import SUMMARY
from runs.spec_file import the_repetition

FORMATS = ("csv", "parquet", "pcap", "pcapng", "flent", "telemetry-report", "qlog")
DIRECTORIES = ("csv", "parquet", "pcap")  # these formats write a directory, all others a file
UNITS = {"csv": "rows", "parquet": "rows", "pcap": "frames", "flent": "steps", "qlog": "events"}


class Asked(Keys):
    run: Path = field("a repetition, or a run with one: results/latest/rep-1", default=None)
    format: str = field(
        "csv or parquet: every table and schema.json, which says what columns mean, into a new directory; pcap: what "
        "two taps before and behind the queue saw, of a run with TAPS=1, into a new directory; pcapng: the postcards "
        "as datagrams with times in ns (wire/postcard.lua shows their fields in Wireshark); "
        "telemetry-report: the postcards as reports of P4.org's Telemetry Report Format 2.0, in a pcapng file; flent: "
        "a data file for Flent's plots of its test tcp_nup; qlog: segments, losses and the sender's metrics by flow, "
        "for qvis (docs/formats.md)", default=None, values=FORMATS,
    )  # fmt: skip
    output: Path = field(
        "the new file or directory; for flent its name ends with .flent.gz, for qlog with .sqlog", default=None
    )

    def check(self, wrong: Wrong) -> None:
        if self.format == "flent" and not self.output.name.endswith(".flent.gz"):
            wrong("output", "must end with .flent.gz, else Flent does not open it")
        if self.format == "qlog" and self.output.suffix != ".sqlog":
            wrong("output", "must end with .sqlog, else qvis takes it for another form of qlog")


def run(asked: Asked) -> int:
    """Writes the whole export or nothing, and warns on stderr if the run is not valid. Returns the exit status. Raises
    InputError.
    """
    try:
        return _export(the_repetition(asked.run), asked.format, asked.output)
    except OSError as error:
        raise InputError(f"{located(error, asked.output)}; nothing was exported") from None


def _export(repetition: Path, kind: str, output: Path) -> int:
    """Writes into a temporary directory beside `output`, then renames the result."""
    if os.path.lexists(output):
        raise InputError(f"{output}: exists already; allowed: a new name, or remove it")
    if not output.absolute().parent.is_dir():
        raise InputError(f"{output}: there is no directory {output.parent}; make it first")
    complete_run.check(repetition, derived=[SUMMARY])
    with files.complete(output) as part:
        if kind in DIRECTORIES:
            part.mkdir()
        count = _writer(kind)(repetition, part)
    say(f"{output}: {count} {UNITS.get(kind, 'postcards')}")
    verdict.say_doubts(repetition)
    return 0


def _writer(kind: str) -> Callable[[Path, Path], int]:
    from analysis.exporting import flent, pcapng, qlog, tables, taps, telemetry_report

    return {
        "csv": lambda source, target: tables.write(source, target, "csv"),
        "parquet": lambda source, target: tables.write(source, target, "parquet"),
        "pcap": taps.write,
        "pcapng": pcapng.write,
        "flent": flent.write,
        "telemetry-report": telemetry_report.write,
        "qlog": qlog.write,
    }[kind]
