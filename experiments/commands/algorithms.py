# SPDX-License-Identifier: MIT
"""The command `cc`: the congestion controls of each clock, where they come from, and the parameters of those that the
virtual-time kernel has.
"""

from __future__ import annotations

import platform

from experiments.lab import virtual as virtual_lab
from experiments.machine import host
from hosts.congestion_bpf import objects
from lib.errors import RunError
from lib.keys import NoKeys
from lib.terminal import say
from virtual import offers
from virtual.kernel import config, digests
from virtual.machine import MachineError

ABSENT = "-"
NOT_BUILT = "the kernel is not built yet, so its parameters are not known: make kernel"


def show(asked: NoKeys) -> int:
    """The command `cc`. Returns the exit status. Raises RunError."""
    built = virtual_lab.KERNEL.exists()
    try:
        offer = offers.ask(virtual_lab.KERNEL) if built else offers.Offer(config.OF_LINUX, {})
    except MachineError as error:
        raise RunError(str(error)) from None
    lacks, in_kernel, own_sources = objects.lacking(), host.in_kernel(), objects.own_sources()
    rows = [("name", "virtual time", "real time", "parameters in virtual time (CC_PARAMETERS=name.parameter=value)")]
    for name in sorted({*offer.congestion_controls, *config.OURS, *in_kernel, *own_sources}):
        virtual = "ours" if name in config.OURS else "Linux" if name in offer.congestion_controls else ABSENT
        real = "this kernel" if name in in_kernel else "ours, as BPF" if name in own_sources and not lacks else ABSENT
        defaults = offer.parameters.get(name, {})
        rows.append((name, virtual, real, " ".join(f"{key}={value}" for key, value in defaults.items())))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        first = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        say(f"{first}  {row[3]}".rstrip())
    say("")
    say(f"virtual time: {_virtual_kernel()}" if built else f"virtual time: {NOT_BUILT}")
    as_bpf = f"no congestion control runs as BPF, which needs {lacks}" if lacks else "ours and CC=./mycc.c run as BPF"
    say(f"real time: Linux {platform.release()}; {as_bpf}")
    return 0


def _virtual_kernel() -> str:
    """The version and the origin of the kernel that is built."""
    record = digests.read_json(virtual_lab.KERNEL.with_name("kernel.json"))
    return f"Linux {record.get('version', 'unknown')} from {record.get('source', {}).get('name', 'unknown')}"
