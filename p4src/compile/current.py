# SPDX-License-Identifier: MIT
"""Whether p4src/build is what the P4 sources say. Every build, deployment and run asks, so that no edit is ignored.

`python -m p4src.compile.current` compiles the v1model program again if its sources changed and p4c is installed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from p4src.compile import v1model
from p4src.compile.sources import CannotCompile, changed, digests, find_compiler

ROOT = Path(__file__).parents[2]
PROGRAM, BUILD = ROOT / "p4src/v1model/bufferscope.p4", ROOT / "p4src/build"
DIGEST = BUILD / f"{PROGRAM.stem}.sha256"


def stale() -> str:
    """What is not as in the last compilation, in one line with what to do; '' if nothing. Raises CannotCompile."""
    if not v1model.check(PROGRAM, BUILD, ROOT):
        return ""
    names = changed(PROGRAM, ROOT, DIGEST) if DIGEST.exists() else []
    what = ", ".join(names) or "p4src/build is incomplete"
    return f"changed since the P4 program was compiled: {what}: make p4; to go back: {_way_back(names)}"


def ensure() -> bool:
    """Makes p4src/build current; returns whether that needed a compilation. Raises CannotCompile."""
    problem = stale()
    if not problem:
        return False
    try:
        find_compiler("P4C", v1model.COMPILERS, v1model.P4C_PAGE)
    except CannotCompile as error:
        raise CannotCompile(f"{problem} ({error})") from error
    print(problem.partition(": make p4")[0] + ": compiling it again", flush=True)
    v1model.compile_p4(PROGRAM, BUILD, ROOT)
    return True


def _way_back(names: list[str]) -> str:
    """The command that restores the sources of the last committed compilation."""
    log = subprocess.run(
        ["git", "log", "-1", "--format=%h", "--", str(DIGEST)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    commit = log.stdout.strip()
    known = [name for name in names if name in digests(DIGEST)] if DIGEST.exists() else ["p4src/build"]
    return f"git checkout {commit} -- {' '.join(known)}" if commit else "take the released sources again"


def main() -> int:
    try:
        ensure()
    except (CannotCompile, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
