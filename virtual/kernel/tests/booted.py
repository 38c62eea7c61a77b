# SPDX-License-Identifier: MIT
"""Boots the virtual-time kernel for a test. The job is a module, or a shell script that its directory has."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from virtual import RUN_DIRECTORY
from virtual.kernel.build import BUILD
from virtual.machine import MachineJob, VirtualMachine

KERNEL = BUILD / "linux"
CHECKOUT = Path(__file__).parents[3]
SCRIPT = "script"  # runs inside, if no module is given
NONE: Mapping[str, str] = MappingProxyType({})


def boot(directory: Path, module: str = __name__, seed: int = 1, parameters: Mapping[str, str] = NONE) -> str:
    """The console's output of a machine whose job ended well. The caller needs no root privilege: every user is root
    inside.
    """
    (directory / "logs").mkdir(parents=True)
    console = directory / "logs/console.log"
    job = MachineJob(
        KERNEL, [sys.executable, "-m", "virtual.init", module], directory, console, 512, seed,
        max(os.sched_getaffinity(0)), dict(parameters), {"PYTHONPATH": str(CHECKOUT)},
    )  # fmt: skip
    with VirtualMachine(job) as machine:
        assert list(machine.messages())[-1] == {"end": 0}, console.read_text(errors="replace")[-2000:]
    return console.read_text(errors="replace")


if __name__ == "__main__":
    subprocess.run(["sh", RUN_DIRECTORY / SCRIPT], check=True)
