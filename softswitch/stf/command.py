# SPDX-License-Identifier: MIT
"""The command `stf`: p4c's STF programs for v1model, from a checkout that the user has, through this switch.

Each program is compiled by the user's p4c, translated, built as a library, and plays its STF file. A program whose
frames differ from the file's makes the command fail.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from lib.errors import InputError
from lib.exit_codes import Exit
from lib.keys import Keys, field
from lib.terminal import counted, say
from p4src.compile import v1model
from p4src.compile.sources import CannotCompile, find_compiler, read_digest
from softswitch import library
from softswitch.stf.language import BadStatement, read
from softswitch.stf.play import CannotPlay, play
from softswitch.translate.errors import BadProgram, ManyProblems
from softswitch.translate.translate import translate

COMPILED = library.BUILD / "stf"
V1MODEL = "v1model.p4"
PASSED, REFUSED, WRONG, NOT_COMPILED = "passed", "refused", "wrong", "not compiled"


class Asked(Keys):
    programs: Path = field(
        "a checkout of p4c, a directory of programs with STF files beside them, or a program", default=None
    )


class Result(NamedTuple):
    """`reasons`: kinds of constructs that are refused, or what was not as expected."""

    program: str
    verdict: str
    reasons: tuple[str, ...] = ()


def run(asked: Asked) -> int:
    """Prints the table. Returns the exit status. Raises InputError."""
    programs, others = _programs(asked.programs)
    try:
        find_compiler("P4C", v1model.COMPILERS, v1model.P4C_PAGE)
        library.library("p4")  # builds the core, which all programs share, once
    except (CannotCompile, library.BuildError) as error:
        raise InputError(str(error)) from None
    width = max(len(program.stem) for program in programs)
    results = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for result in pool.map(_result, programs):
            results.append(result)
            say(f"{result.program:{width}}  {result.verdict:12}  {'; '.join(result.reasons)}".rstrip())
    verdicts = Counter(result.verdict for result in results)
    say(f"{counted(len(results), 'program')}: " + ", ".join(f"{verdicts[each]} {each}" for each in _order(verdicts)))
    refused = Counter(reason for result in results if result.verdict == REFUSED for reason in result.reasons)
    for reason, number in refused.most_common():
        say(f"  refused for {reason}: {number}")
    if others:
        say(f"left out, because they do not include {V1MODEL}: {others}")
    return Exit.NOTHING if verdicts[WRONG] else Exit.DONE


def _order(verdicts: Counter[str]) -> Iterator[str]:
    yield from (PASSED, REFUSED, WRONG)
    if verdicts[NOT_COMPILED]:
        yield NOT_COMPILED


def _programs(path: Path) -> tuple[list[Path], int]:
    """The v1model programs with an STF file, and the number of other programs with one."""
    files = [path.with_suffix(".stf")] if path.is_file() else sorted(path.rglob("*.stf"))
    found = [file.with_suffix(".p4") for file in files if file.is_file() and file.with_suffix(".p4").is_file()]
    programs = [each for each in found if V1MODEL in each.read_text(encoding="utf-8", errors="replace")]
    if not programs:
        raise InputError(f"{path}: has no P4 program for v1model with an STF file beside it (NAME.p4, NAME.stf)")
    return programs, len(found) - len(programs)


def _result(program: Path) -> Result:
    try:
        statements = read(program.with_suffix(".stf"))
        compiled = v1model.compile_p4(program, COMPILED, program.parent, warnings=False)[0][0]
        tree = json.loads(compiled.read_text())
        translate(tree, read_digest(compiled.with_suffix(".sha256")))
        wrong = play(compiled, statements)
    except CannotCompile as error:
        return Result(program.stem, NOT_COMPILED, (str(error),))
    except ManyProblems as error:
        kinds = dict.fromkeys(_kind(problem.construct, _names(tree)) for problem in error.problems)
        return Result(program.stem, REFUSED, tuple(kinds))
    except CannotPlay as error:
        return Result(program.stem, REFUSED, (str(error),))
    except (BadStatement, BadProgram, library.BuildError, OSError) as error:
        wrong = [str(error)]
    return Result(program.stem, WRONG if wrong else PASSED, tuple(wrong[:3]))


def _kind(construct: str, names: set[str]) -> str:
    """A construct without the names that the program gave to its parts."""
    return " ".join(word for word in construct.split() if word not in names)


def _names(tree: Any) -> set[str]:
    """Every name in a compiled program."""
    if isinstance(tree, dict):
        own = {tree["name"]} if isinstance(tree.get("name"), str) else set()
        return own.union(*(_names(each) for each in tree.values()))
    return set().union(*(_names(each) for each in tree)) if isinstance(tree, list) else set()
