# SPDX-License-Identifier: MIT
"""The commands `experiment` and `show`: run or print an experiment. The command line's words override the spec file."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.figures.printed import Printing, begin
from experiments.run.expectations import Expecting
from experiments.spec.keys import Spec, load_yaml
from lib.errors import BadValue, RunError, SpecError
from lib.keys import field, flag, take
from lib.terminal import complain, say
from lib.words import PATHS
from runs import note

if TYPE_CHECKING:
    from model.experiment import Experiment


class Options(Expecting, Printing):
    """The keys of the command that are no keys of a spec."""

    spec: str | None = field(
        "a file with these keys, such as experiments/specs/default.yaml; the command line overrides it. Or a stored "
        "run or repetition, which is repeated as it was: results/latest, results/latest/rep-1",
        values=PATHS,
    )
    results: Path = field("the directory that run directories are made in", default="results")
    inventory: str | None = field(
        "machines of a testbed (TARGET=tofino has a default: ansible/inventories/testbed)", values=PATHS
    )
    note: str | None = field(note.MEANING, note.line)
    yes: bool = flag("1: start an experiment of more than 10 minutes (of an idle machine) or 5 GB without asking")
    watch: bool = flag(
        "1: a page on this machine shows depth, drops, throughput and windows while the run goes on; its address is "
        "printed"
    )
    wait: bool = flag("0: end with an error instead of waiting for another experiment on this machine", "1")


class Asked(Options, Spec):
    """All keys of the command."""


def run(words: dict[str, Any], errors: list[BadValue]) -> int:
    """Returns the exit status. Raises SpecError, RunError, Interrupted."""
    from experiments.commands import repeat
    from experiments.lab import virtual as virtual_lab
    from experiments.machine import p4_program
    from experiments.run import runner
    from experiments.setup import deploy

    typed = dict(words)
    asked = take(Options, words, errors)
    begin(asked)
    file, inventory, directory = asked.spec or "", asked.inventory or "", asked.results.absolute()
    if stale := p4_program.out_of_date():  # before programs and a kernel are built with the program
        raise RunError(*stale)
    deploy.ensure()
    if run := repeat.stored(file):
        spec, first = _repeated(run, words, errors)
        if spec.clock == "virtual" and spec.switch != "ns3":
            virtual_lab.prepare()
        same, different = repeat.compared(run, spec)
        say(f"repeats {run}, with the same {', '.join(same) or 'parameters'}")
        for line in different:
            complain(f"note: {line}; the numbers may differ")
        return runner.run(
            spec,
            directory,
            inventory,
            asked.yes,
            asked.wait,
            first=first,
            expecting=asked,
            note=asked.note,
            watch=asked.watch,
        )
    spec = _resolve(words, file, errors, inventory=inventory)
    if virtual_lab.has_usual_kernel(spec) and virtual_lab.prepare():
        spec = _resolve(words, file, errors)  # again: now the new kernel can be queried
    if spec.clock == "virtual" or inventory:
        return runner.run(
            spec, directory, inventory, asked.yes, asked.wait, expecting=asked, note=asked.note, watch=asked.watch
        )
    return runner.run(
        spec, directory, yes=asked.yes, wait=asked.wait, in_virtual_time=lambda: in_virtual_time(typed),
        expecting=asked, note=asked.note, watch=asked.watch,
    )  # fmt: skip


def in_virtual_time(typed: Mapping[str, str]) -> str | None:
    """The command of an experiment in virtual time, quoted for a shell, from the words of the same experiment in real
    time, with the first thing that this machine lacks for it. None if virtual time refuses the experiment.
    """
    from experiments.setup import missing

    for changed in ({"clock": "virtual"}, {"clock": "virtual", "generator": "epoll"}):
        given = {**typed, **changed}
        words = {key: value for key, value in given.items() if key not in Options.model_fields}
        try:
            spec = _resolve(words, given.get("spec", ""), [], only_show=True)
        except (SpecError, RunError):
            continue
        command = shlex.join(["make", "experiment", *(f"{key.upper()}={value}" for key, value in given.items())])
        return "; first: ".join([command, *missing.of(spec)[:1]])
    return None


def show(words: dict[str, Any], errors: list[BadValue]) -> int:
    """Prints the resolved spec as YAML. Returns the exit status. Raises SpecError, RunError."""
    import yaml

    from experiments.commands import repeat

    file = take(Options, words, errors).spec or ""
    run = repeat.stored(file)
    spec = _repeated(run, words, errors)[0] if run else _resolve(words, file, errors, only_show=True)
    print(yaml.safe_dump(spec.without_texts().dump(), sort_keys=False), end="")
    return 0


def _repeated(run: Path, words: dict[str, Any], errors: list[BadValue]) -> tuple[Experiment, int]:
    """The experiment of a stored run, and the number of its first repetition. Raises SpecError, InputError."""
    from experiments.commands import repeat

    spec, first = repeat.read(run, words, errors)
    if errors:
        raise SpecError(errors)
    return spec, first


def _resolve(
    words: dict[str, Any], file: str, errors: list[BadValue], only_show: bool = False, inventory: str = ""
) -> Experiment:
    """The experiment of file and words together. Raises SpecError with the errors of both, and `errors`."""
    from experiments.lab import ns3
    from experiments.lab import virtual as virtual_lab
    from experiments.machine import host
    from experiments.spec.resolve import resolve

    from_file = load_yaml(Path(file)) if file else {}
    given = from_file | words
    if str(given.get("switch", "")).strip().lower() == "ns3":
        probed = ns3.probe()
    elif inventory:
        probed = host.OF_TESTBED
    elif str(given.get("clock", _default_clock(given))).strip().lower() == "virtual":
        if not only_show:
            print("looking at the virtual-time kernel and the parameters", flush=True)
        probed = virtual_lab.probe()
    else:
        probed = host.probe(want_netem=str(given.get("delay", "")).strip().lower() == "tc")
    try:
        spec = resolve(given, probed)
    except SpecError as failure:
        for error in failure.errors:
            key = error.key.lower().partition("[")[0]
            errors.append(error._replace(origin=file) if key in from_file and key not in words else error)
    if errors:
        raise SpecError(errors)
    return spec


def _default_clock(given: dict[str, Any]) -> str:
    """The default of CLOCK: the user's default for the soft switch, real time for other targets."""
    from experiments.machine import host

    return host.default_clock() if str(given.get("target", "soft")).strip().lower() == "soft" else "real"
