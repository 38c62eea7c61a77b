# SPDX-License-Identifier: MIT
"""Asks the virtual-time kernel for its abilities by booting it, which takes some tenths of a second."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from virtual.machine import Machine, MachineError, MachineJob
from virtual.messages import Speaker

CONGESTION_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
CHECKOUT = Path(__file__).parents[1]
MEMORY_MIB = 128


def congestion_controls(kernel: Path) -> tuple[str, ...]:
    """The names of all congestion controls of `kernel`. Raises MachineError."""
    with tempfile.TemporaryDirectory(prefix="bufferscope-") as directory:
        job_directory = Path(directory)
        (job_directory / "logs").mkdir()
        job = MachineJob(
            kernel,
            [sys.executable, "-m", "virtual.init", "virtual.offers"],
            job_directory,
            job_directory / "logs/console.log",
            MEMORY_MIB,
            seed=0,
            environment={"PYTHONPATH": str(CHECKOUT)},
        )
        try:
            with Machine(job) as machine:
                for message in machine.messages():
                    if "congestion_controls" in message:
                        return tuple(sorted(map(str, message["congestion_controls"])))
        except MachineError as error:  # the error quotes the console's log, which is deleted with the directory
            raise MachineError(f"asking {kernel} which congestion controls it has: {error}") from None
    raise MachineError(f"{kernel} did not say which congestion controls it has")


if __name__ == "__main__":  # inside
    Speaker().say(congestion_controls=CONGESTION_CONTROLS.read_text().split())
