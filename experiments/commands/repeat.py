# SPDX-License-Identifier: MIT
"""Repeats a stored run, `bufferscope experiment SPEC=results/X`, or one of its repetitions, `SPEC=results/X/rep-2`. The
resolved experiment is that of spec.yaml, so changed defaults change nothing. The numbers also depend on the commit, the
P4 program and the kernel: these are compared with what is here now.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.read import complete_run
from controlplane.identity import committed_digest
from experiments.lab import own_kernel
from experiments.setup import environment
from experiments.spec import congestion, own_p4
from lib import regular, sources
from lib.errors import BadValue, InputError
from lib.terminal import one_line
from model.experiment import OF_A_REPETITION, Experiment, Source
from p4src.compile import policy
from p4src.compile.sources import CannotCompile
from runs import environment_file, record
from runs.environment_file import RunEnvironment
from runs.names import RATE_DIRECTORY, REPETITION_NAME, SPEC_FILE
from runs.spec_file import check_name, load_spec, repetitions
from virtual.kernel.digests import read_json

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
SHOWN = 12  # digits of a digest
OF_A_RUN = ("switch", "delay", "buffer_given", "start_spread_ns", "seed", "reps")  # an import may lack these


def stored(file: str) -> Path | None:
    """The stored run that SPEC= names, by its directory or by its spec.yaml; None for a spec that a user wrote."""
    path = Path(file)
    if path.name == SPEC_FILE and REPETITION_NAME.fullmatch(path.absolute().parent.name):
        path = path.parent
    return path if file and path.is_dir() else None


def read(run: Path, words: Mapping[str, object], errors: list[BadValue]) -> tuple[Experiment, int]:
    """The experiment of a stored run or repetition, and the number of its first repetition. Adds an error for each of
    `words`. Raises InputError.
    """
    errors += [
        BadValue(key.upper(), str(value), f"cannot change {run}, which is repeated as it was; leave {key.upper()} out")
        for key, value in words.items()
    ]
    check_name(run)
    first = repetitions(run)[0]
    if not (first / SPEC_FILE).is_file():
        raise InputError(
            f"{run}: is not a run; allowed: the path of one, or of a repetition, such as results/latest/rep-1"
        )
    complete_run.check(first)
    if problem := record.unrecorded(first):
        raise InputError(f"{problem}; it cannot be repeated")
    stored = load_spec(first)
    if stored.imported:
        raise InputError(f"{first}: was imported, not run here; allowed: runs of bufferscope")
    reps = 1 if first == run else stored.reps or 1
    return _resolved(first, stored).model_copy(update={"reps": reps}), stored.repetition


def _resolved(repetition: Path, stored: Experiment) -> Experiment:
    """The experiment without what a repetition adds. Raises InputError if it lacks what every run has."""
    known = stored.model_dump(exclude_unset=True, exclude=OF_A_REPETITION)
    if stored.congestion_sources:
        known["congestion_sources"] = [
            _with_text(repetition / congestion.DIRECTORY, source) for source in stored.congestion_sources
        ]
    if stored.rate_trace:
        known["rate_trace"] = _with_text(repetition / RATE_DIRECTORY, stored.rate_trace)
    if stored.p4:
        compiled = _with_text(repetition / own_p4.DIRECTORY, stored.p4.compiled)
        try:
            policy.check_json(compiled.text or "")
        except CannotCompile as error:
            raise InputError(f"{repetition / own_p4.DIRECTORY / compiled.file}: {error}") from None
        tables = stored.p4.tables and _with_text(repetition / own_p4.DIRECTORY, stored.p4.tables)
        known["p4"] = stored.p4.model_copy(update={"compiled": compiled, "tables": tables})
    if not NAME.fullmatch(stored.name or ""):
        raise InputError(f"{repetition / SPEC_FILE}: name is not that of a run, so it cannot be repeated")
    if lacks := [f"{name} is missing" for name in OF_A_RUN if getattr(stored, name) is None]:
        raise InputError(f"{repetition / SPEC_FILE}: {'; '.join(lacks)}, so it cannot be repeated")
    return Experiment.model_validate(known)


def _with_text(directory: Path, source: Source) -> Source:
    """A user's own file as it was in the run. Raises InputError."""
    path = directory / Path(source.file).name
    try:
        text = regular.read_text(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({one_line(error)}); the run needs this file") from None
    if hashlib.sha256(text.encode()).hexdigest() != source.sha256:
        raise InputError(f"{path}: is not the file of the run: its SHA-256 is not that in {SPEC_FILE}")
    return source.model_copy(update={"text": text})


def compared(run: Path, spec: Experiment) -> tuple[list[str], list[str]]:
    """(what is the same as in the run, what differs) of all that its numbers depend on, in words. Builds the kernel of
    users' own congestion controls. Raises RunError.
    """
    then = _world(environment_file.read(repetitions(run)[0]))
    facts = {
        "git": sources.commit(),
        "program": {"digest": spec.p4.compiled.sha256 if spec.p4 else committed_digest()},
        "kernel": environment.kernel_names(),
        "virtual_machine": _virtual_machine(spec),
    }
    now = _world(environment_file.of(facts))
    same, different = [], []
    for name, value in then.items():
        if value is None:
            continue
        if value == now[name] and "uncommitted" not in value:
            same.append(f"{name} {value}")
        else:
            different.append(f"{name}: {value} in {run}, {now[name] or 'none'} now")
    return same, different


def _virtual_machine(spec: Experiment) -> dict[str, Any]:
    if spec.clock != "virtual" or spec.switch == "ns3":
        return {}
    return {"kernel": read_json(own_kernel.kernel_of(spec) / "kernel.json")}


def _world(source: RunEnvironment) -> dict[str, str | None]:
    """What a run's numbers depend on beside its spec; None if it is not known."""
    commit, program, kernel = source.commit, source.p4_digest, source.kernel_digest
    return {
        "commit": commit and commit[:SHOWN] + " with uncommitted changes" * bool(source.has_uncommitted_changes),
        "P4 program": program and program[:SHOWN],
        "kernel": kernel[:SHOWN] if kernel else None if source.virtual_machine else source.kernel_release,
    }
