# SPDX-License-Identifier: MIT
"""The command `import`. A damaged capture is imported up to the damage (exit status 2). An incomplete last line of a
text trace is left out and noted. Other damaged files are refused.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from analysis.importing import sources, write
from controlplane.policy import WATCHED_MODES
from lib import files, units
from lib.errors import BadValue, InputError, SpecError, fail
from lib.exit_codes import Exit, of_parts
from lib.terminal import located, say
from lib.values import choice, quantity, whole_number
from lib.words import PATHS, Key, require
from runs.names import PAGE, REPETITION

KEYS = {
    "from": Key(
        "one source, or several with commas: a directory with trace.tr, postcards.tr or config.json, such a file, a "
        "text trace of tcp_probe, or pcap or pcapng files with postcards; or a directory with the published data set's "
        "tables as CSV or Parquet alone", values=PATHS,
    ),
    "output": Key("the new directory of the run (of all runs with EXPERIMENT=all)", values=PATHS),
    "experiment": Key("which experiment of the tables: its id, or all (each into OUTPUT/runs/<id>)"),
    "rate": Key("rate of the bottleneck (default: the source's; if it states none, the published data's 10gbit)"),
    "rtt": Key("base RTT of the path (default: the source's; if it states none, the published data's 1.2ms)"),
    "mtu": Key("MTU in bytes (default: the source's; if it states none, 9000)"),
    "cc": Key("congestion control (default: the source's; if it states none, unknown)"),
    "mode": Key(
        f"mode of the queue: {', '.join(WATCHED_MODES)} (default: the source's; if it states none, {WATCHED_MODES[0]})",
        values=WATCHED_MODES,
    ),
    "buf": Key(
        "buffer in packets, such as 163p (default: the source's buffer, or the depth at which its switch dropped; if "
        "the source states neither, the deepest queue)"
    ),
    "flows": Key("number of flows (default: the source's; if it states none, all that send data)"),
    "warmup": Key(
        "time at the start that is not measured (default: the source's; if it states none, the first third, as in "
        "Spang et al.)"
    ),
    "duration": Key(
        "length of the measured part after WARMUP (default: the source's; if it states none, a third of the traffic)"
    ),
}  # fmt: skip
SCRATCH = ".importing"
MOST_TIME = f"{366 * 86_400}s"


def run(given: dict[str, Any], errors: list[BadValue]) -> int:
    """Imports and analyses; returns the exit status. Raises SpecError, InputError."""
    asked = _read(given, errors)
    try:
        return _import(asked)
    except REPORTED as error:
        raise InputError(_line(error)) from None


REPORTED = (InputError, MemoryError, OSError)  # reported in one line; no file of the experiment remains


def _line(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}; nothing was imported: measure less of the source (WARMUP, DURATION)"
    if isinstance(error, OSError):
        return f"{located(error, 'OUTPUT')}; nothing was imported"
    return str(error)


def _read(given: dict[str, str], errors: list[BadValue]) -> sources.ImportRequest:
    """Parses the command line. Raises SpecError with a line for each wrong or missing value."""

    def value(key: str, read):  # type: ignore[no-untyped-def]
        if key not in given:
            return None
        try:
            return read(given[key])
        except ValueError as error:
            errors.append(BadValue(key.upper(), given[key], str(error)))
            return None

    require(given, errors, from_="say what to import", output="say which new directory, as OUTPUT=results/theirs")
    asked = sources.ImportRequest(
        sources=[word for word in given.get("from", "").split(",") if word],
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


def _base_units(dimension: str, low: str, high: str, why: str = "") -> Callable[[object], int]:
    """A reader of quantities, as whole numbers of the base unit."""
    return lambda text: units.whole(quantity(dimension, low=low, high=high, why=why)(text))


def _import(asked: sources.ImportRequest) -> int:
    """Imports each experiment into its own directory, completely or not at all. With EXPERIMENT=all, an experiment that
    cannot be imported is reported, and the others are imported.
    """
    if asked.experiment != "all":
        if asked.output.exists() and any(asked.output.iterdir()):
            raise InputError(
                f"{asked.output}: exists and is not empty; allowed: a new directory, as OUTPUT=results/theirs"
            )
        ((_, read),) = sources.find(asked)
        experiment, repetition = read(), asked.output / REPETITION
        status = _experiment(experiment, asked.output)
        if repetition.exists():
            what_if = f", or ask for another buffer: make replay RUN={shlex.quote(str(repetition))} BUF=50p"
            say(f"next: open {shlex.quote(str(repetition / PAGE))}{what_if * experiment.can_replay}")
        return status
    statuses = []
    for name, read in sources.find(asked):
        run = asked.output / "runs" / name
        if (run / REPETITION).exists():
            say(f"{run}: is imported already")
            statuses.append(int(Exit.DONE))
            continue
        try:
            statuses.append(_experiment(read(), run))
        except REPORTED as error:
            statuses.append(fail([f"experiment {name}: {_line(error)}"]))
    if Exit.DONE in statuses or Exit.DOUBTFUL in statuses:
        say(f"next: make runs RESULTS={shlex.quote(str(asked.output))}")
    if failed := statuses.count(Exit.NOTHING):
        fail([f"{failed} of {len(statuses)} experiments were not imported"])
    return of_parts(statuses)


def _experiment(experiment: sources.Experiment, run: Path) -> int:
    status = _import_one(experiment, run / REPETITION)
    for line in (*experiment.source.remarks, *experiment.source.notes) if status == Exit.DONE else ():
        say(f"{run}: {line}")
    fail(experiment.damage)
    return Exit.DOUBTFUL if experiment.damage and status == Exit.DONE else status


def _import_one(experiment: sources.Experiment, repetition: Path) -> int:
    """Writes and analyses an experiment in a scratch directory, then renames the directory. After a failure nothing
    remains.
    """
    from analysis.replay import drawing_pool, replay

    made = [path for path in repetition.parents if not path.exists()]
    try:
        with files.claimed(repetition.parent, make=True) as run, files.scratch(SCRATCH, run) as within:
            scratch = files.path_of(within) / repetition.name
            scratch.mkdir()
            write.write(
                scratch, experiment.cards, experiment.events, experiment.depths, experiment.conditions,
                experiment.source,
            )  # fmt: skip
            with drawing_pool() as pool:
                status = replay(scratch, pool, shown=repetition)
            if status == Exit.DONE:
                files.deliver([repetition.name], within, run)
            return status
    finally:
        for path in made:
            with suppress(OSError):  # the directory is not empty
                path.rmdir()
