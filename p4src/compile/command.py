# SPDX-License-Identifier: MIT
"""`make p4`: compiles the program for every architecture whose compiler is installed, and prints one line for each."""

from __future__ import annotations

import sys
from pathlib import Path

from p4src.compile import policy, tofino, v1model
from p4src.compile.sources import CannotCompile

ROOT = Path()
V1MODEL = Path("p4src/v1model/bufferscope.p4")
TESTS = Path("p4src/tests/programs")  # the TNA program's controls as v1model programs: tests/test_tna_pipelines.py


def run() -> int:
    failed = not _attempt("v1model", _v1model)
    try:
        compiler = tofino.find()
    except CannotCompile as error:
        return int(_without_tofino(str(error)) or failed)
    for generation in tofino.GENERATIONS:
        failed |= not _attempt(generation.target, lambda chip=generation: _tofino(chip, compiler))
    return int(failed)


def _attempt(name: str, compile_one) -> bool:
    try:
        print(f"{name}: {compile_one()}", flush=True)
    except CannotCompile as error:
        print(f"{name}: {error}", file=sys.stderr)
        return False
    except OSError as error:
        print(f"{name}: writing {error.filename}: {error.strerror}", file=sys.stderr)
        return False
    return True


def _v1model() -> str:
    files = v1model.compile_p4(V1MODEL, tofino.BUILD, ROOT)
    for generation in tofino.GENERATIONS:
        program = TESTS / f"{generation.target}.p4"
        files += v1model.compile_p4(program, TESTS / "build", ROOT, warnings=False)
    files += v1model.compile_p4(policy.PROGRAM, tofino.BUILD, ROOT, warnings=False)
    files += policy.write(TESTS / "decides.p4", TESTS / "build")
    for path in policy.POLICIES.glob("*.p4"):
        files += policy.write(path, policy.POLICIES / "build")
    changes = _changes([str(path) for path, changed in files if changed])
    return f"compiled, as are the policies and the tests' programs; {changes}"


def _tofino(generation: tofino.Generation, compiler: str) -> str:
    changed = tofino.compile_tofino(generation, ROOT, compiler)
    return f"compiled; {_changes([str(path) for path in changed])}"


def _changes(names: list[str]) -> str:
    return f"changed: {', '.join(names)}" if names else "nothing changed"


def _without_tofino(missing: str) -> bool:
    """Whether the committed Tofino output is stale. Prints the problems, or that nothing needs compiling."""
    problems = [problem for generation in tofino.GENERATIONS if (problem := tofino.check(generation, ROOT))]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"tofino, tofino2: {missing if problems else 'up to date, not compiled again: no bf-p4c, no $P4C_TOFINO'}")
    return bool(problems)
