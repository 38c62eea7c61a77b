# SPDX-License-Identifier: MIT
"""`python -m experiments run KEY=VALUE...`: the command line behind `make experiment`.

Exit status: 0 complete and valid; 1 nothing came of it, and why is on stderr; 2 complete, but not valid (so says its
summary); 128 + the signal's number when it was asked to end.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.cell import Interrupted
from lib.errors import BadValue, RunError, SpecError, fail
from lib.words import made, read_words

if TYPE_CHECKING:
    from experiments.resolve import Resolved

USAGE = """\
usage: python -m experiments run [KEY=VALUE]... [--key VALUE]... [--spec FILE] [--results DIRECTORY]
       python -m experiments show [the same]     print what would be run, in SI units, and run nothing
       python -m experiments run --make          take KEY=VALUE from the command line of the make that calls
       python -m experiments replay RUN=DIRECTORY [FORCE=1] | --make   analyse a run again from its raw files
       python -m experiments deploy [TARGET=soft|bmv2|tofino] [INVENTORY=PATH] | --make   prepare machines for a target
       python -m experiments parameters          explain every KEY, with its default
What is on the command line wins over what is in the file (experiments/specs/*.yaml)."""


def main(arguments: list[str]) -> int:
    """Runs one command; returns the exit status."""
    command, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if command in ("-h", "--help", "help") or {"-h", "--help"} & set(rest):
        print(USAGE)
        return 0
    try:
        if command == "parameters" and not rest:
            from experiments.parameters import explain

            print(explain())
            return 0
        if command not in ("run", "show", "replay", "deploy"):
            raise RunError(*USAGE.splitlines())
        words, options, errors = read_words(made() if rest == ["--make"] else rest)
        if command == "replay":
            from experiments.replay import replay

            return replay(words | options, errors)
        if command == "deploy":
            from experiments.deploy import deploy

            return deploy(words, options, errors)
        return _run(words, options, errors, only_show=command == "show")
    except SpecError as error:
        return fail(error.lines())
    except RunError as error:
        return fail(error.lines)
    except KeyboardInterrupt as interrupt:  # before the run: after its begin it is an Interrupted
        return fail([str(interrupt) or "ended by SIGINT; no run was begun"], 128 + signal.SIGINT)
    except Interrupted as interrupted:
        return fail([f"ended by {interrupted}; no run was begun"], 128 + interrupted.signal)


def _run(words: dict[str, object], options: dict[str, str], errors: list[BadValue], only_show: bool) -> int:
    spec = _resolve(words, options.get("spec", ""), errors, only_show)
    if only_show:
        import yaml

        print(yaml.safe_dump(spec.to_dict(), sort_keys=False), end="")
        return 0
    from experiments import host, runner
    from experiments.lab import virtual as virtual_lab

    if spec.clock == "virtual" and virtual_lab.prepare():
        spec = _resolve(words, options.get("spec", ""), errors)  # once more, now that its kernel can be asked
    directory = Path(options.get("results") or host.CHECKOUT / "results").absolute()
    return runner.run(spec, directory, options.get("inventory", ""))


def _resolve(words: dict[str, object], file: str, errors: list[BadValue], only_show: bool = False) -> Resolved:
    """The experiment of the file and the words together. Raises SpecError with the errors of both, and `errors`."""
    from experiments import host
    from experiments.lab import virtual as virtual_lab
    from experiments.resolve import resolve
    from experiments.spec import load_yaml

    from_file = load_yaml(Path(file)) if file else {}
    given = from_file | words
    if str(given.get("clock", _default_clock(given))).strip().lower() == "virtual":
        if not only_show:
            print("looking at the virtual-time kernel and the parameters", flush=True)
        found = virtual_lab.probe()
    else:
        found = host.probe(want_netem=str(given.get("delay", "")).strip().lower() == "tc")
    try:
        spec = resolve(given, found)
    except SpecError as failure:
        for error in failure.errors:
            key = error.key.lower()
            errors.append(error._replace(origin=file) if key in from_file and key not in words else error)
    if errors:
        raise SpecError(errors)
    return spec


def _default_clock(given: dict[str, object]) -> str:
    """Only the soft switch has another time than the machine's."""
    from experiments import host

    return host.default_clock() if str(given.get("target", "soft")).strip().lower() == "soft" else "real"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
