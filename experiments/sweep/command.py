# SPDX-License-Identifier: MIT
"""The command `sweep`: runs a sweep, or with SHOW=1 lists its runs. Exit status: 0 all runs are valid; 2 some are not
valid; 1 none is valid, or an error ended the command; 128 plus the number of the signal that stopped the command.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from experiments import parameters
from experiments.sweep.engines import ENGINES, PARALLEL, SLURM
from lib.errors import BadValue, SpecError
from lib.terminal import say
from lib.words import PATHS, SWITCH, Key, require
from runs.thinned import KEEP

KEYS = parameters.KEYS | {
    "spec": Key("the sweep's file, such as experiments/specs/spang2021/twenty-packets.yaml", values=PATHS),
    "results": Key("the directory that the sweep's directory is made in", "results", PATHS),
    "inventory": Key("a file whose group labs has machines that run the sweep's jobs", values=PATHS),
    "name": Key("name of the sweep and of its directory (default: from the file, with the changed keys)"),
    "reps": Key("repetitions of each point (default: from the file)"),
    "seed": Key("seed of the sweep; the seed of each run is derived from it (default: from the file)"),
    "keep": Key("files that stay of each valid run: all, tables, flows, summary (default: from the file)", values=KEEP),
    "smoke": Key("1: the short version of the sweep", "0", SWITCH),
    "engine": Key(f"what runs the jobs: {' or '.join(ENGINES)}", PARALLEL, ENGINES),
    "jobs": Key(
        "runs at once, with INVENTORY on each machine (default: in real time 1, else as many as processors and memory "
        "allow)"
    ),
    "attempts": Key(
        "how often a run is tried, in total, until it is valid (default in virtual time: once if the run completed, "
        "because the same spec gives the same bytes)",
        "3",
    ),
    "show": Key("1: list the sweep's runs, their time and disk space, and run nothing", "0", SWITCH),
}


def run(words: dict[str, Any], errors: list[BadValue]) -> int:
    """Returns the exit status. Raises SpecError, RunError, Interrupted."""
    from experiments.sweep import needs, plan, run, slurm, spec
    from runs import run_table

    smoke, only_show = (words.pop(key, "0") == "1" for key in ("smoke", "show"))
    at_once, attempts = (whole(words, key, errors, most) for key, most in LIMITS.items())
    require(words, errors, spec="say which sweep: make sweep SPEC=experiments/specs/...")
    file, results, inventory = (words.pop(key, "") for key in ("spec", "results", "inventory"))
    engine = engine_of(words, errors, inventory)
    if errors:
        raise SpecError(errors)
    probe = prober(build=not only_show, ns3=str(words.get("switch", "")).strip().lower() == "ns3")
    sweep = plan.offered(spec.read(Path(file), words, smoke), probe)
    if sweep.note:
        say(f"note: {sweep.note}")
    chosen = run.Options(Path(results or "results").absolute(), at_once, attempts)
    chosen = chosen._replace(inventory=inventory, engine=engine)
    if only_show:
        table = run_table.read(chosen.results)
        for job in run.planned(sweep, probe).next(table, set()).jobs:
            say(f"{job.id}  {plan.describe(job.point)}")
        need = run.missing(sweep, probe, chosen, table, run.slowness(chosen))
        say(needs.headline(sweep, need, chosen.results / sweep.name))
        if engine == SLURM:
            say(slurm.state(chosen.results / sweep.name))
        return 0
    return run.run(sweep, probe, chosen)


def engine_of(words: dict[str, Any], errors: list[BadValue], inventory: str) -> str:
    """The engine that runs the jobs. Removes ENGINE from `words`."""
    engine = str(words.pop("engine", PARALLEL))
    if engine not in ENGINES:
        errors.append(BadValue("ENGINE", engine, f"is not known; allowed: {', '.join(ENGINES)}"))
    elif inventory and engine != PARALLEL:
        errors.append(BadValue("ENGINE", engine, "has machines of its own; leave INVENTORY out"))
    return engine


LIMITS = {"jobs": 1024, "attempts": 100}


def whole(words: dict[str, Any], key: str, errors: list[BadValue], most: int) -> int | None:
    """The whole number from 1 to `most` that `key` has in `words`; None if absent or wrong. Removes `key`."""
    value = words.pop(key, None)
    if value is None:
        return None
    if not re.fullmatch(r"[0-9]{1,4}", value) or not 1 <= int(value) <= most:
        errors.append(BadValue(key.upper(), value, f"is not allowed; allowed: 1 to {most}"))
        return None
    return int(value)


def prober(build: bool, ns3: bool = False):  # type: ignore[no-untyped-def]
    """A function that returns the Host for a clock, or with `ns3` the Host of ns-3. With `build` the function first
    builds the virtual-time kernel if the clock is virtual.
    """
    from experiments import host
    from experiments.lab import ns3 as ns3_lab
    from experiments.lab import virtual as virtual_lab

    def probe(clock: str) -> host.Host:
        if ns3:
            return ns3_lab.probe()
        if (clock or host.default_clock()) != "virtual":
            return host.probe(want_netem=True)
        if build:
            virtual_lab.prepare()
        return virtual_lab.probe()

    return probe
