# SPDX-License-Identifier: MIT
"""spec.yaml of a repetition: its experiment (model/), and the repetitions of a run."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from lib import strict_yaml
from lib.errors import InputError
from lib.terminal import one_line
from model.experiment import SPEC_VERSION, Experiment
from model.record import problems
from runs import record
from runs.names import REPETITION_NAME, SPEC_FILE

REMEDY = "restore it, it is a raw file"


def load_spec(directory: Path) -> Experiment:
    """The experiment of a repetition, whose record is checked, too. Raises InputError."""
    if damage := record.damage(directory):
        raise InputError(f"{directory}: {record.lines(damage)}")
    return read(directory / SPEC_FILE)


def check_name(directory: Path) -> None:
    """Raises InputError for a name that is not UTF-8: tables and pages could not contain it."""
    try:
        str(directory).encode()
    except UnicodeEncodeError:
        raise InputError(f"{directory}: its name is not UTF-8; rename it") from None


def repetitions(run: Path) -> list[Path]:
    """`run` itself if it is a repetition, by its spec or its name, else the repetitions in it."""
    if (run / SPEC_FILE).exists() or REPETITION_NAME.fullmatch(run.name):
        return [run]
    return sorted(path for path in run.glob("rep-*") if path.is_dir()) or [run]


def the_repetition(run: Path) -> Path:
    """`run` itself if it is a repetition, else its only repetition. Raises InputError."""
    check_name(run)
    if (run / SPEC_FILE).is_file():
        return run
    repetitions = sorted(path for path in run.glob("rep-*") if (path / SPEC_FILE).is_file())
    if len(repetitions) != 1:
        what = f"has {len(repetitions)} repetitions" if repetitions else "is not a run"
        example = repetitions[0] if repetitions else "results/latest/rep-1"
        raise InputError(f"{run}: {what}; allowed: one repetition, as {example}")
    return repetitions[0]


def read(path: Path) -> Experiment:
    """The experiment in a spec.yaml. Raises InputError."""
    check_name(path.parent)
    try:
        content = strict_yaml.load_typed(path)
    except FileNotFoundError:
        raise InputError(f"{path}: missing; give the directory of a repetition (results/<run>/rep-<k>)") from None
    except (OSError, strict_yaml.FormError) as error:
        what = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path}: {one_line(what)}; {REMEDY}") from None
    if content is None:
        raise InputError(f"{path}: holds no keys; {REMEDY}")
    version = content.get("spec_version")
    if type(version) is int and version > SPEC_VERSION:
        raise InputError(
            f"{path}: spec_version is {version}; this bufferscope reads {SPEC_VERSION}; use a newer bufferscope"
        )
    try:
        return Experiment.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{path}: {problems(error)}; {REMEDY}") from None
