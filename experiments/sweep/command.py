# SPDX-License-Identifier: MIT
"""The command `sweep`: runs a sweep, or with SHOW=1 lists its runs. Exit status: 0 all runs are valid; 2 some are not
valid; 3 an expectation failed; 1 no run is valid, or an error ended the command; 128 plus the number of the signal that
stopped the command.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from analysis.figures.printed import Printing, begin
from experiments.run.expectations import Expecting
from experiments.spec.keys import Spec
from experiments.sweep.engines import ENGINES, PARALLEL, SLURM
from lib.errors import BadValue, SpecError
from lib.keys import field, flag, take
from lib.terminal import say
from lib.values import whole_number
from lib.words import PATHS
from runs import note
from runs.thinned import KEEP

MOST_JOBS, MOST_ATTEMPTS = 1024, 100


class Options(Expecting, Printing):
    """The keys of the command that are neither in a sweep's spec nor keys of an experiment."""

    spec: Path = field("the sweep's file, such as experiments/specs/spang2021/twenty-packets.yaml", default=None)
    results: Path = field("the directory that the sweep's directory is made in", default="results")
    inventory: str | None = field("a file whose group labs has machines that run the sweep's jobs", values=PATHS)
    note: str | None = field(note.MEANING, note.line)
    smoke: bool = flag("1: the short version of the sweep")
    engine: str = field(f"what runs the jobs: {' or '.join(ENGINES)}", default=PARALLEL, values=ENGINES)
    jobs: int | None = field(
        "runs at once, with INVENTORY on each machine (default: in real time 1, else as many as processors and memory "
        "allow)",
        whole_number(1, MOST_JOBS),
    )
    attempts: int | None = field(
        "how often a run is tried, in total, until it is valid (default 3; in virtual time once if the run completed, "
        "because the same spec gives the same bytes)",
        whole_number(1, MOST_ATTEMPTS),
    )
    watch: bool = flag("1: a page on this machine shows the points as they come in; its address is printed")
    show: bool = flag("1: list the sweep's runs, their time and disk space, and run nothing")


class Asked(Options, Spec):
    """All keys of the command."""

    name: str | None = field("name of the sweep and of its directory (default: from the file, with the changed keys)")
    reps: Any = field("repetitions of each point (default: from the file)")
    seed: Any = field("seed of the sweep; the seed of each run is derived from it (default: from the file)")
    keep: str | None = field(
        "files that stay of each valid run: all, tables, flows, summary (default: from the file)", values=KEEP
    )


def run(words: dict[str, Any], errors: list[BadValue]) -> int:
    """Returns the exit status. Raises SpecError, RunError, Interrupted."""
    from experiments.sweep import needs, plan, run, slurm, spec
    from runs import run_table

    asked = take(Options, words, errors)
    begin(asked)
    if asked.inventory and asked.engine != PARALLEL:
        errors.append(BadValue("ENGINE", asked.engine, "has machines of its own; leave INVENTORY out"))
    if errors:
        raise SpecError(errors)
    probe = prober(build=not asked.show, ns3=str(words.get("switch", "")).strip().lower() == "ns3")
    sweep = plan.offered(spec.read(asked.spec, words, asked.smoke), probe)
    if sweep.note:
        say(f"note: {sweep.note}")
    chosen = run.Options(
        asked.results.absolute(), asked.jobs, asked.attempts, inventory=asked.inventory or "", engine=asked.engine,
        expecting=asked, note=asked.note, watch=asked.watch,
    )  # fmt: skip
    if asked.show:
        table = run_table.read(chosen.results)
        for job in run.planned(sweep, probe).next(table, set()).jobs:
            say(f"{job.id}  {plan.describe(job.point)}")
        need = run.missing(sweep, probe, chosen, table, run.slowness(chosen))
        say(needs.headline(sweep, need, chosen.results / sweep.name))
        if asked.engine == SLURM:
            say(slurm.state(chosen.results / sweep.name))
        return 0
    return run.run(sweep, probe, chosen)


def prober(build: bool, ns3: bool = False):  # type: ignore[no-untyped-def]
    """A function that returns the Host for a clock, or with `ns3` the Host of ns-3. With `build` the function first
    builds what is missing: our programs, and the virtual-time kernel if the clock is virtual.
    """
    from experiments.lab import ns3 as ns3_lab
    from experiments.lab import virtual as virtual_lab
    from experiments.machine import host
    from experiments.setup import deploy

    def probe(clock: str) -> host.Host:
        if ns3:
            return ns3_lab.probe()
        if build:
            deploy.ensure()
        if (clock or host.default_clock()) != "virtual":
            return host.probe(want_netem=True)
        if build:
            virtual_lab.prepare()
        return virtual_lab.probe()

    return probe
