# SPDX-License-Identifier: MIT
"""What a repetition takes as given: the machine that its lab is made on, real or virtual.

Everything else about a repetition is the same in both, and is in repetition.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from experiments import environment, playbooks, processors
from experiments.cell import RUNTIME
from experiments.progress import Progress
from experiments.resolve import Resolved
from experiments.sample import Sample
from experiments.switches import SWITCH_DAEMONS, Switches, in_the_lab
from runs import results

CONTROL_SOCKET = RUNTIME / "switch.sock"
PLAYBOOKS = ("prepare", "start")
# Until the flows start, their program must be up and at its clock; its start takes a tenth of this on an idle machine.
LEAD_NS = 400_000_000
EXPECTED_OVERHEAD_S = 6.0


class Shown(Protocol):
    """Where a repetition says how far it is."""

    def phase(self, text: str) -> None: ...
    def sample(self, sample: Sample) -> None: ...


@dataclass(frozen=True)
class Lab:
    """The parts of a repetition that depend on the machine it runs on."""

    switches: Callable[[Resolved], AbstractContextManager[Switches]]  # connections to them, when they are started
    progress: Callable[[str, Resolved], AbstractContextManager[Shown]]
    claim_processors: Callable[[], dict[str, list[int]]]
    start_programs: Callable[[dict[str, Any], Path], None]  # the roles' variables, and where the log goes
    settle: Callable[[dict[str, list[int]]], None]  # when all programs run
    align: Callable[[], None]  # waits for a moment that does not tell how long it took to get there
    traffic_start_ns: Callable[[Resolved], int]  # on CLOCK_MONOTONIC; all flows are connected by then
    tick_s: Callable[[Resolved], float]  # how often the traffic is looked at
    describe: Callable[[dict[str, str]], dict[str, Any]]  # of the switch's program: the world that results come from
    record: Callable[[Path, dict[str, Any]], None]  # called last, when all raw files are closed


def real() -> Lab:
    """A cell of this machine, in real time."""

    def progress(title: str, spec: Resolved) -> Progress:
        return Progress(title, (spec.connect_ns + spec.traffic_ns) / 1e9 + EXPECTED_OVERHEAD_S)

    def settle(division: dict[str, list[int]]) -> None:
        processors.move(int((RUNTIME / "softswitch.pid").read_text()), division["switch"])
        for file in (RUNTIME / f"{name}.pid" for name in SWITCH_DAEMONS):
            if file.exists():  # a program of many threads, which one processor makes wait for each other
                processors.move(int(file.read_text()), sorted({*division["switch"], *division["others"]}))

    return Lab(
        switches=lambda spec: in_the_lab(spec, CONTROL_SOCKET),
        progress=progress,
        claim_processors=processors.keep_one_free,
        start_programs=lambda variables, log: playbooks.run(PLAYBOOKS, variables, log),
        settle=settle,
        align=lambda: None,
        traffic_start_ns=lambda spec: time.monotonic_ns() + LEAD_NS + spec.connect_ns,
        tick_s=lambda _: 1.0,
        describe=lambda program: environment.describe(program) | environment.machine(),
        record=results.record,
    )
