# SPDX-License-Identifier: MIT
"""The congestion controls that a run in real time loads as BPF: the users' algorithms, and our algorithms that this
kernel lacks.

The kernel has one list of congestion controls for the whole machine, and two runs may be active at once. So each run
registers its algorithms under unique kernel names. Tables, summaries and figures have the plain names.
"""

from __future__ import annotations

import os
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.machine import host
from hosts.congestion_bpf import objects
from model.experiment import Experiment

MOST_NAME = 15  # TCP_CA_NAME_MAX is 16 with the zero
DIGITS = string.digits + string.ascii_lowercase
# The number in a name: the runner's process ID, the repetition, the algorithm's place. At most 7 digits of base 36.
REPETITION_BITS, PLACE_BITS = 10, 4
MOST_PROGRAMS = 1 << PLACE_BITS


@dataclass(frozen=True)
class BpfPrograms:
    """`objects` maps the plain name of each algorithm to its BPF object, `names` to its name in the kernel."""

    objects: Mapping[str, Path] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    def name(self, cc: str) -> str:
        """The name in the kernel of any congestion control."""
        return self.names.get(cc, cc)

    def of_traffic(self) -> dict[str, Any]:
        """The keys of the traffic program's plan."""
        return {"kernel_names": dict(self.names)} if self.names else {}

    def of_roles(self, windows: list[str], seed: int) -> dict[str, Any]:
        """The playbooks' variables. `windows` are upper bounds of the senders' congestion windows by range of server
        ports: FIRST-LAST=SEGMENTS.
        """
        wanted = [f"{self.names[name]}={path}" for name, path in self.objects.items()]
        return {
            **({"congestion_control_programs": wanted, "congestion_control_seed": seed} if wanted else {}),
            **({"congestion_control_windows": windows} if windows else {}),
        }


NO_PROGRAMS = BpfPrograms()


def texts(spec: Experiment) -> dict[str, tuple[str, str]]:
    """Name -> file and text of each algorithm of `spec` that must be loaded as BPF."""
    given = {source.name: (source.file, source.text or "") for source in spec.congestion_sources or ()}
    known, own_sources = host.in_kernel(), objects.own_sources()
    wanted = {group.cc for group in spec.tcp_groups}
    lacking = sorted(wanted & own_sources.keys() - given.keys() - {*known})
    return given | {name: (own_sources[name].name, own_sources[name].read_text()) for name in lacking}


def load_and_check(spec: Experiment) -> list[str]:
    """Compiles the algorithms of `spec` and has the kernel verify them; returns a line for each problem."""
    try:
        wanted = _objects(spec)
        if wanted:
            objects.verify({kernel_name(name, 0, place): path for place, (name, path) in enumerate(wanted.items())})
    except objects.ObjectError as error:
        return [f"CC: {error}"]
    return []


def programs(spec: Experiment, repetition: int) -> BpfPrograms:
    """The BPF programs of a repetition. Raises ObjectError."""
    wanted = _objects(spec)
    return BpfPrograms(wanted, {name: kernel_name(name, repetition, place) for place, name in enumerate(wanted)})


def _objects(spec: Experiment) -> dict[str, Path]:
    wanted = texts(spec)
    if len(wanted) > MOST_PROGRAMS:
        raise objects.ObjectError(f"{len(wanted)} algorithms as BPF; allowed: {MOST_PROGRAMS} in a run")
    return {name: objects.build(file, text) for name, (file, text) in wanted.items()}


def kernel_name(name: str, repetition: int, place: int) -> str:
    """A name that no other run on this machine has at the same time."""
    number = (os.getpid() << REPETITION_BITS | repetition % (1 << REPETITION_BITS)) << PLACE_BITS | place
    digits = ""
    while number:
        number, digit = divmod(number, len(DIGITS))
        digits = DIGITS[digit] + digits
    return f"{name[: MOST_NAME - 1 - len(digits)]}_{digits}"
