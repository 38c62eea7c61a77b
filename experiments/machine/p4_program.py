# SPDX-License-Identifier: MIT
"""The P4 program of a run is the one of the P4 sources: compiled and built again before anything starts, or refused."""

from __future__ import annotations

import os
import subprocess

from controlplane.identity import committed_digest
from experiments.machine import host
from p4src.compile import current
from p4src.compile.sources import CannotCompile

SWITCH = host.BUILD / "softswitch"


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
