# SPDX-License-Identifier: MIT
"""python -m softswitch.translate PROGRAM.json --digest HEX -o pipeline.c"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

from lib import files

from .errors import BadProgram, ManyProblems
from .translate import translate


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m softswitch.translate",
        description=(
            "Writes a P4 program, compiled by p4c-bm2-ss, as one C file that implements softswitch/runtime/pipeline.h."
        ),
    )
    parser.add_argument("program", type=Path, metavar="PROGRAM.json", help="the output of p4c-bm2-ss")
    parser.add_argument("--digest", required=True, metavar="HEX", help="SHA-256 of the sources, from p4src.compile")
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="FILE.c")
    given = parser.parse_args(arguments)
    if not re.fullmatch(r"[0-9a-f]{64}", given.digest):
        return _fail(f"--digest {given.digest}: must be 64 hexadecimal digits (0-9, a-f), as in PROGRAM.sha256")
    try:
        program = json.loads(given.program.read_text(encoding="utf-8"))
    except OSError as error:
        return _fail(f"reading {given.program}: {error.strerror}")
    except ValueError as error:
        return _fail(f"reading {given.program}: not JSON ({error}); compile the P4 program with p4c-bm2-ss")
    try:
        result = translate(program, given.digest)
    except ManyProblems as problems:
        print(problems, file=sys.stderr)
        return 1
    except BadProgram as error:
        return _fail(f"{given.program}: not what p4c-bm2-ss writes ({error}); compile the P4 program again")
    for warning in result.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    try:
        files.write_text(given.output, result.c_text)
    except OSError as error:
        return _fail(f"writing {given.output}: {error.strerror}")
    return 0


def _fail(message: str) -> int:
    print(message, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
