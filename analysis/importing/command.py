# SPDX-License-Identifier: MIT
"""The command `import`. A damaged capture is imported up to the damage (exit status 2). An incomplete last line of a
text trace is left out and noted. Other damaged files are refused.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path

from analysis.importing import sources, write
from controlplane.policy import WATCHED_MODES
from lib import files
from lib.errors import InputError, fail
from lib.exit_codes import Exit, of_parts
from lib.keys import Keys, field
from lib.quantities import Packets, Rate, Time
from lib.terminal import located, say
from lib.values import whole_number
from lib.words import PATHS
from runs.names import PAGE, REPETITION

SCRATCH = ".importing"
MOST_TIME = f"{366 * 86_400}s"


class Asked(Keys):
    """`from_`, the source, has everything that is not given."""

    from_: list[str] = field(
        "one source, or several with commas: a directory with trace.tr, postcards.tr or config.json, such a file, a "
        "text trace of tcp_probe, or pcap or pcapng files with postcards; or a directory with the published data set's "
        "tables as CSV or Parquet alone",
        lambda text: [word for word in text.split(",") if word], None, values=PATHS,
    )  # fmt: skip
    output: Path = field("the new directory of the run (of all runs with EXPERIMENT=all)", default=None)
    experiment: str | None = field("which experiment of the tables: its id, or all (each into OUTPUT/runs/<id>)")
    rate: Rate | None = field(
        "rate of the bottleneck (default: the source's; if it states none, the published data's 10gbit)",
        Rate.within("1bit", "1000tbit"),
    )
    rtt: Time | None = field(
        "base RTT of the path (default: the source's; if it states none, the published data's 1.2ms)",
        Time.within("1us", "1000s"),
    )
    mtu: int | None = field(
        "MTU in bytes (default: the source's; if it states none, 9000)", whole_number(*sources.MTU_BYTES)
    )
    cc: str | None = field("congestion control (default: the source's; if it states none, unknown)", sources.algorithm)
    mode: str | None = field(
        f"mode of the queue: {', '.join(WATCHED_MODES)} (default: the source's; if it states none, {WATCHED_MODES[0]})",
        values=WATCHED_MODES,
    )
    buf: Packets | None = field(
        "buffer in packets, such as 163p (default: the source's buffer, or the depth at which its switch dropped; if "
        "the source states neither, the deepest queue)",
        Packets.within("1p", f"{sources.MOST_PACKETS}p"),
    )
    flows: int | None = field(
        "number of flows (default: the source's; if it states none, all that send data)", whole_number(*sources.FLOWS)
    )
    warmup: Time | None = field(
        "time at the start that is not measured (default: the source's; if it states none, the first third, as in "
        "Spang et al.)",
        Time.within("0s", MOST_TIME, "a year"),
    )
    duration: Time | None = field(
        "length of the measured part after WARMUP (default: the source's; if it states none, a third of the traffic)",
        Time.within("1ns", MOST_TIME, "a year"),
    )


def run(asked: Asked) -> int:
    """Imports and analyses; returns the exit status. Raises InputError."""
    try:
        return _import(_request(asked))
    except REPORTED as error:
        raise InputError(_line(error)) from None


def _request(asked: Asked) -> sources.ImportRequest:
    return sources.ImportRequest(
        asked.from_, asked.output, asked.experiment, asked.rate and asked.rate.bps, asked.rtt and asked.rtt.ns,
        asked.mtu, asked.cc, asked.mode, asked.buf and asked.buf.whole, asked.flows,
        asked.warmup and asked.warmup.ns, asked.duration and asked.duration.ns,
    )  # fmt: skip


REPORTED = (InputError, MemoryError, OSError)  # reported in one line; no file of the experiment remains


def _line(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}; nothing was imported: measure less of the source (WARMUP, DURATION)"
    if isinstance(error, OSError):
        return f"{located(error, 'OUTPUT')}; nothing was imported"
    return str(error)


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
    from analysis.replay.replay import drawing_pool, replay

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
