# SPDX-License-Identifier: MIT
"""The P4 program of a run: ours, compiled and built again before anything starts, or refused; or the user's (P4=)."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from controlplane.identity import committed_digest
from controlplane.soft import SoftSwitch
from controlplane.tables_file import Request
from experiments.machine import host
from lib.errors import RunError
from model.experiment import Program
from p4src.compile import current
from p4src.compile.sources import CannotCompile
from softswitch import library
from softswitch.translate.errors import BadProgram, ManyProblems
from softswitch.translate.translate import Translation, translate

SWITCH = host.BUILD / "softswitch"
OWN = host.BUILD / "p4"  # switches with a user's program, by the digest of its JSON
MOST_SHOWN = 3


def out_of_date() -> list[str]:
    """Compiles changed P4 sources again and builds the switch again. One line with what to do if that is impossible."""
    try:
        compiled = current.ensure()
    except (CannotCompile, OSError) as error:
        return [str(error)]
    if SWITCH.exists() and (compiled or not is_built()):
        without = {name: value for name, value in os.environ.items() if name not in ("CC", "MAKEFLAGS", "MFLAGS")}
        command = ["make", "--no-print-directory", "build"]
        done = subprocess.run(command, cwd=host.CHECKOUT, env=without, capture_output=True, text=True, check=False)
        if done.returncode:
            why = (done.stderr.strip() or done.stdout.strip()).splitlines()
            return [f"{SWITCH} has another P4 program than p4src/build: make build ({why[0] if why else 'failed'})"]
    return []


def is_built() -> bool:
    """Whether the switch was built from p4src/build. A translated program holds the digest of its sources."""
    return committed_digest().encode() in SWITCH.read_bytes()


def translated(program: Program) -> Translation:
    """The user's program as C. Raises RunError with the constructs that the switch does not have."""
    source = program.compiled
    return _translated(source.text or "", source.sha256, source.file)


@cache
def _translated(text: str, digest: str, file: str) -> Translation:
    try:
        return translate(json.loads(text), digest)
    except ManyProblems as problems:
        lines = str(problems).splitlines()
        more = f" (and {len(lines) - MOST_SHOWN} more)" if len(lines) > MOST_SHOWN else ""
        raise RunError(f"P4={file}: {'; '.join(lines[:MOST_SHOWN])}{more}") from None
    except (BadProgram, ValueError) as error:
        raise RunError(f"P4={file}: not what p4c-bm2-ss writes ({error}); compile it again") from None


def switch_of(program: Program | None) -> Path:
    """The switch as a process, with the user's program if there is one, built if it is out of date. Raises RunError."""
    if not program:
        return SWITCH
    compiled = _stored(program)
    directory = compiled.parent
    built = directory / "softswitch"
    with _building(program):
        library.make(f"P4_JSON={compiled}", f"PROGRAM_OBJ={directory}/obj", f"BIN={built}")
    return built


def check_tables(program: Program, requests: Iterable[Request], ports: Iterable[int]) -> None:
    """Makes the requests of the user's tables at a switch in this process, which has the ports of a run. Raises
    RunError, SwitchError.
    """
    compiled = _stored(program)
    with _building(program):
        core = library.Core(str(compiled), tuple(ports), packets=1)
    SoftSwitch("this process", _InThisProcess(core)).install(requests)


class _InThisProcess:
    """A controlplane.soft.Transport."""

    def __init__(self, core: library.Core) -> None:
        self._core = core

    def exchange(self, request: bytes) -> bytes:
        return "\n".join(self._core.control(request.decode())).encode()

    def close(self) -> None:
        pass


def _stored(program: Program) -> Path:
    """The program's JSON, in a directory of its own, with its digest beside it. Raises RunError."""
    source = program.compiled
    compiled = OWN / source.sha256[:16] / "program.json"
    digest = compiled.with_suffix(".sha256")
    translated(program)
    if not digest.exists():
        compiled.parent.mkdir(parents=True, exist_ok=True)
        compiled.write_text(source.text or "", encoding="utf-8")
        digest.write_text(f"{source.sha256}\n", encoding="utf-8")
    return compiled


@contextlib.contextmanager
def _building(program: Program) -> Iterator[None]:
    try:
        yield
    except library.BuildError as error:
        raise RunError(f"P4={program.compiled.file}: building the switch failed: {str(error).strip()}") from None
