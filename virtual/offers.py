# SPDX-License-Identifier: MIT
"""Boots a virtual-time kernel to ask for its congestion controls and their parameters. The names are stored beside the
kernel, because a boot takes a second.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from lib import places
from virtual.kernel import digests
from virtual.machine import MachineError, MachineJob, VirtualMachine
from virtual.messages import Speaker

CONGESTION_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
MODULES = Path("/sys/module")
MEMORY_MIB = 128
MEMORY = "offers.json"  # beside the kernel


class Offer(NamedTuple):
    """`parameters`: for each congestion control with parameters, the names and values of its parameters."""

    congestion_controls: tuple[str, ...]
    parameters: Mapping[str, Mapping[str, str]]


def congestion_controls(kernel: Path) -> tuple[str, ...]:
    """All congestion controls of `kernel`, from the stored answer or by booting it. Raises MachineError."""
    memory, digest = kernel.with_name(MEMORY), digests.of_file(kernel)
    known = digests.read_json(memory)
    names = known.get("congestion_controls")
    if known.get("kernel") == digest and isinstance(names, list):
        return tuple(map(str, names))
    asked = ask(kernel).congestion_controls
    with contextlib.suppress(OSError):  # a user who may not write there asks each time
        digests.write_json(memory, {"kernel": digest, "congestion_controls": list(asked)})
    return asked


def ask(kernel: Path, boot_parameters: Mapping[str, str] | None = None) -> Offer:
    """The congestion controls of `kernel` after a boot with additional kernel parameters. Raises MachineError."""
    from lib import leftovers  # here: imports take long inside a virtual machine, which imports this module, too

    with leftovers.temporary() as job_directory:
        (job_directory / "logs").mkdir()
        job = MachineJob(
            kernel,
            [sys.executable, "-m", "virtual.init", "virtual.offers"],
            job_directory,
            job_directory / "logs/console.log",
            MEMORY_MIB,
            seed=0,
            parameters=dict(boot_parameters or {}),
            environment={"PYTHONPATH": str(places.CHECKOUT)},
        )
        offered: dict[str, dict[str, str]] = {}
        status = None
        try:
            with VirtualMachine(job) as machine:
                for message in machine.messages():
                    status = message.get("end", status)
                    if "congestion_control" in message:
                        offered.setdefault(str(message["congestion_control"]), {}).update(message["parameters"])
        except MachineError as error:  # the error quotes the console's log, which is deleted with the directory
            raise MachineError(f"asking {kernel} which congestion controls it has: {error}") from None
    if status != 0 or not offered:
        raise MachineError(f"{kernel} did not finish the list of its congestion controls: the program inside failed")
    return Offer(tuple(sorted(offered)), {name: values for name, values in offered.items() if values})


def parameters(names: list[str]) -> dict[str, dict[str, str]]:
    """The parameters of the running kernel's congestion controls. A module is named like its file, tcp_cubic."""
    values = {}
    for name in names:
        directories = [MODULES / module / "parameters" for module in (f"tcp_{name}", name)]
        files = [file for directory in directories if directory.is_dir() for file in sorted(directory.iterdir())]
        if files:
            values[name] = {file.name: _value(file) for file in files}
    return values


def _value(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:  # a parameter that can only be written
        return ""


if __name__ == "__main__":  # inside
    speaker = Speaker()
    for cc in CONGESTION_CONTROLS.read_text().split():
        speaker.say(congestion_control=cc, parameters={})
        for parameter, value in parameters([cc]).get(cc, {}).items():  # one each: dozens do not fit into one message
            speaker.say(congestion_control=cc, parameters={parameter: value})
