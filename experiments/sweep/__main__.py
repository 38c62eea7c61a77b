# SPDX-License-Identifier: MIT
"""`python -m experiments.sweep run SPEC=FILE [KEY=VALUE]...`: the command line behind `make sweep`.

Exit status: 0 all runs are valid, 2 some are not, 1 none is or nothing was begun; 128 + the signal's number when it was
stopped.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from experiments.cell import Interrupted
from lib.errors import BadValue, RunError, SpecError, fail
from lib.terminal import say
from lib.words import made, read_words

USAGE = """\
usage: python -m experiments.sweep run SPEC=FILE [KEY=VALUE]... [SMOKE=1] [RESULTS=DIRECTORY] | --make
       python -m experiments.sweep show SPEC=FILE ...     say what would be run, and run nothing
       python -m experiments.sweep job DIRECTORY JOB      one run of a sweep, as the sweep itself calls it
KEY=VALUE: a parameter that stays the same in the sweep, or NAME, KEEP (all, tables, summary), REPS, SEED of the sweep,
JOBS (how many runs at once), ATTEMPTS (for each run: default 3; one that is not valid in virtual time has one)."""


def main(arguments: list[str]) -> int:
    """Runs one command; returns the exit status."""
    command, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if command in ("-h", "--help", "help") or {"-h", "--help"} & set(rest):
        print(USAGE)
        return 0
    try:
        if command == "job" and len(rest) == 2:
            from experiments.sweep import job

            return job.run(Path(rest[0]), rest[1])
        if command not in ("run", "show"):
            raise RunError(*USAGE.splitlines())
        return _sweep(made() if rest == ["--make"] else rest, only_show=command == "show")
    except SpecError as error:
        return fail(error.lines())
    except RunError as error:
        return fail(error.lines)
    except KeyboardInterrupt:
        return fail(["ended by SIGINT; no run was begun"], 130)
    except Interrupted as interrupted:
        return fail([f"ended by {interrupted}"], 128 + interrupted.signal)


def _sweep(arguments: list[str], only_show: bool) -> int:
    from experiments import host
    from experiments.sweep import needs, plan, run, spec
    from runs import run_table

    words, options, errors = read_words(arguments)
    smoke, at_once, attempts = (whole(words, key, errors, most) for key, most in LIMITS.items())
    if "spec" not in options and not any(error.key == "SPEC" for error in errors):
        errors.append(BadValue("SPEC", None, "is missing; say which sweep: make sweep SPEC=experiments/specs/..."))
    if errors:
        raise SpecError(errors)
    sweep = spec.read(Path(options["spec"]), words, bool(smoke))
    probe = prober(build=not only_show)
    chosen = run.Options(Path(options.get("results") or host.CHECKOUT / "results").absolute(), at_once, attempts)
    chosen = chosen._replace(inventory=options.get("inventory", ""))
    if only_show:
        table = run_table.read(chosen.results)
        for job in run.planned(sweep, probe).next(table, set()).jobs:
            say(f"{job.id}  {plan.describe(job.point)}")
        say(needs.headline(sweep, run.missing(sweep, probe, chosen, table), chosen.results / sweep.name))
        return 0
    return run.run(sweep, probe, chosen)


LIMITS = {"smoke": 1, "jobs": 1024, "attempts": 100}


def whole(words: dict[str, object], key: str, errors: list[BadValue], most: int) -> int | None:
    """A word that is no parameter of an experiment, taken out of `words`."""
    value = words.pop(key, None)
    if value is None:
        return None
    low = 0 if key == "smoke" else 1
    if not re.fullmatch(r"[0-9]{1,4}", str(value)) or not low <= int(str(value)) <= most:
        errors.append(BadValue(key.upper(), value, f"is not allowed; allowed: {low} to {most}"))
        return None
    return int(str(value))


def prober(build: bool):  # type: ignore[no-untyped-def]
    """What the host of a clock offers; the kernel of virtual time is built first, unless nothing is to be run."""
    from experiments import host
    from experiments.lab import virtual as virtual_lab

    def probe(clock: str) -> host.Host:
        if (clock or host.default_clock()) != "virtual":
            return host.probe(want_netem=True)
        if build:
            virtual_lab.prepare()
        return virtual_lab.probe()

    return probe


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
