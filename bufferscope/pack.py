# SPDX-License-Identifier: MIT
"""The command `pack`: one file with a run or a sweep, and the program that made it, for `verify` on another machine.

results/NAME/...     the run's files, without scratch and links; with KEEP= the files that a sweep with this KEEP keeps
program/...          of runs in virtual time: our sources, and in program/build the built programs and kernels, with the
                     users' congestion controls and P4: a checkout that needs no build

The programs are left out if they are not those that made the run.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.commands import repeat
from experiments.lab import own_kernel
from experiments.machine import host
from experiments.setup import missing
from lib import files, sources
from lib.errors import InputError, RunError
from lib.keys import Keys, field
from lib.terminal import complain, counted, one_line, say
from runs import environment_file, packed, thinned, verdict
from runs.names import EARLIER_ATTEMPTS, ENVIRONMENT, REPETITION_NAME, SWEEP_RUNS, THINNED
from runs.spec_file import repetitions

SUFFIX = ".packed"
RESULTS, PROGRAM = "results", "program"
KERNEL_FILES = ("linux", "kernel.json", "choice.json", "offers.json", "named.json")
PROGRAM_DOCS = "docs/"  # no program reads them


class Asked(Keys):
    run: Path = field("a run, a repetition of one, or a sweep: results/latest, results/NAME", default=None)
    output: Path | None = field(f"the packed file (default: NAME{SUFFIX} in this directory)")
    keep: str = field(
        "the files of each valid run that are packed: all, tables, flows, summary. Of raw files that are left out "
        "`verify` still knows the digests", default=thinned.KEEP[0], values=thinned.KEEP,
    )  # fmt: skip


def run(asked: Asked) -> int:
    """Returns the exit status. Raises InputError, RunError."""
    top = asked.run.resolve()
    found = of(top)
    if not found:
        raise InputError(f"{asked.run}: has no recorded run; allowed: a run or a sweep, such as results/latest")
    name = f"{top.parent.name}-{top.name}" if REPETITION_NAME.fullmatch(top.name) else top.name
    root = top.parent.parent if REPETITION_NAME.fullmatch(top.name) else top.parent
    contents: dict[str, Path | bytes] = dict(_results(root, top, found, asked.keep))
    about: dict[str, Any] = {
        "name": name,
        "repetitions": [str(Path(RESULTS, path.relative_to(root))) for path in found],
        "commit": environment_file.read(found[0]).document.get("git"),
        "processor": platform.machine(),
        "programs": "",
    }
    kernels, why_not = _kernels(found)
    if why_not:
        complain(f"note: packed without programs: {why_not}")
    else:
        contents |= program(kernels)
        about["programs"] = PROGRAM
    output = asked.output or Path(f"{name}{SUFFIX}")
    try:
        with files.replacing(output) as file:
            content = packed.write(file, about, contents)
    except (OSError, ValueError) as error:
        raise InputError(f"{output}: {one_line(error)}") from None
    programs = "and the programs that made it " if about["programs"] else ""
    what = f"{counted(len(found), 'run')} of {name} {programs}".rstrip()
    say(f"{output}: {what}, {output.stat().st_size / 1e6:.1f} MB ({content.bytes / 1e6:.1f} MB unpacked)")
    say(f"on another machine: bufferscope verify {output.name}")
    return 0


def of(top: Path) -> list[Path]:
    """The recorded repetitions of a run, a repetition or a sweep."""
    runs = sorted((top / SWEEP_RUNS).iterdir()) if (top / SWEEP_RUNS).is_dir() else [top]
    return [each for run in runs for each in repetitions(run) if (each / ENVIRONMENT).is_file()]


def _results(root: Path, top: Path, found: list[Path], keep: str) -> Iterator[tuple[str, Path | bytes]]:
    """The files, by their paths in the packed run."""
    for path in sorted(top.rglob("*")):
        within = path.relative_to(root)
        if path.is_symlink() or not path.is_file() or any(part.startswith(".") for part in within.parts):
            continue
        if any(part.match(EARLIER_ATTEMPTS) for part in map(Path, within.parts)):
            continue
        repetition = next((each for each in found if path.is_relative_to(each)), None)
        thin = keep if repetition and _may_thin(repetition, keep) else thinned.KEEP[0]
        if repetition and thinned.removes(thin, path.relative_to(repetition).parts[0]):
            continue
        yield str(RESULTS / within), path
    for repetition in found:
        if _may_thin(repetition, keep):
            yield str(RESULTS / repetition.relative_to(root) / THINNED), thinned.mark(keep).encode()


def _may_thin(repetition: Path, keep: str) -> bool:
    """Whether `keep` keeps less of a valid repetition than it has."""
    order = thinned.KEEP.index
    had = thinned.kept(repetition)
    try:
        return had in thinned.KEEP and order(keep) > order(had) and bool(verdict.read(repetition)["valid"])
    except (OSError, ValueError):
        return False


def _kernels(found: list[Path]) -> tuple[set[Path], str]:
    """The directories of the runs' kernels, and why the programs are not those of the runs; '' if they are."""
    kernels: set[Path] = set()
    for repetition in found:
        try:
            spec, _ = repeat.read(repetition, {}, [])
            if spec.clock != "virtual" or spec.switch == "ns3" or spec.target != "soft":
                return (
                    kernels,
                    f"{repetition} was not made in virtual time by our switch, which alone repeats to the byte",
                )
            if lacking := missing.unbuilt():
                return kernels, f"{', '.join(lacking)} are not built here"
            _, different = repeat.compared(repetition, spec)
            kernel = own_kernel.kernel_of(spec)
        except (InputError, RunError) as error:
            return kernels, str(error)
        if lines := [line for line in different if not _is_only_uncommitted(repetition, line)]:
            return kernels, lines[0]
        kernels.add(kernel)
    return kernels, ""


def _is_only_uncommitted(repetition: Path, line: str) -> bool:
    """Whether the line only says that the same commit had uncommitted changes: nobody knows whether these differ."""
    now = sources.commit() or {}
    same = environment_file.read(repetition).commit == now.get("commit")
    return same and line.startswith("commit: ")


def program(kernels: set[Path]) -> Iterator[tuple[str, Path | bytes]]:
    for name, path in sources.of_a_copy().items():
        if not name.startswith(PROGRAM_DOCS):
            yield f"{PROGRAM}/{name}", path
    yield f"{PROGRAM}/commit.json", json.dumps(sources.commit()).encode()
    build = f"{PROGRAM}/build"
    yield f"{build}/deployed", b""
    for name in missing.BINARIES:
        yield f"{build}/{name}", host.BUILD / name
    generated = "obj/softswitch/bufferscope.c"
    yield f"{build}/{generated}", host.BUILD / generated
    for kernel in {host.BUILD / "virtual", *kernels}:
        for name in KERNEL_FILES:
            if (kernel / name).is_file():
                yield f"{build}/{kernel.relative_to(host.BUILD)}/{name}", kernel / name
