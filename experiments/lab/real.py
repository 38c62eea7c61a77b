# SPDX-License-Identifier: MIT
"""The lab in real time: a cell of namespaces of this machine's kernel."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from experiments.lab import repetition
from experiments.lab.interface import Lab
from experiments.lab.kernel import Kernel
from experiments.lab.progress import RunProgress
from experiments.machine import cell, processors
from experiments.machine.cell import RUNTIME
from experiments.machine.leftovers import REMOVE_INSTANCES
from experiments.plan import bpf_programs
from experiments.plan.run_plan import plan_run
from experiments.plan.sizes import sizes
from experiments.plan.switches import SWITCH_DAEMONS
from experiments.setup import environment, playbooks
from experiments.spec import topology
from experiments.spec.topology import RECEIVER, SENDER
from hosts.congestion_bpf.objects import ObjectError
from lib.errors import RunError
from runs import results
from virtual import memory

# Time for the traffic program to start before the first flow. On an idle machine the program needs a tenth of this.
LEAD_NS = 400_000_000


class RealLab(Lab):
    """One experiment at a time: any other work on the machine disturbs real time."""

    def missing(self) -> list[str]:
        lines = super().missing()
        return lines or bpf_programs.load_and_check(self.spec)

    def memory_shortage(self, at_once: int, beside_mib: int = 0) -> str | None:
        return memory.group_problem(sizes(self.spec).machine_mib + beside_mib)

    def record(self, number: int, directory: Path, processor: int | None) -> None:
        try:
            programs = bpf_programs.programs(self.spec, number)
        except ObjectError as error:
            raise RunError(str(error)) from None
        plan = plan_run(self.spec, number, programs)
        repetition.write_spec(plan, directory)
        cell.run(lambda: repetition.run(plan, directory, RealKernel(plan)), REMOVE_INSTANCES)


class RealKernel(Kernel):
    """This machine's kernel."""

    tick_s = 1.0

    def progress(self) -> RunProgress:
        durations = self.plan.durations
        return RunProgress(self.plan.title, durations.repetition_s - durations.analysis_s)

    def start_programs(self, directory: Path) -> None:
        playbooks.run(playbooks.SETUP, self.plan.variables(directory), directory / "logs/ansible.log")

    def traffic_start_ns(self) -> int:
        return time.monotonic_ns() + LEAD_NS + self.plan.durations.connect_ns

    def record(self, directory: Path, world: dict[str, Any]) -> None:
        repetition.match_frames(self.plan, directory)
        results.record(directory, world)

    def claim_processors(self) -> dict[str, list[int]]:
        return processors.keep_one_free()

    def settle(self, division: dict[str, list[int]]) -> None:
        processors.move(int((RUNTIME / "softswitch.pid").read_text()), division["switch"])
        for file in (RUNTIME / f"{name}.pid" for name in SWITCH_DAEMONS):
            if file.exists():  # the daemon has threads, which would wait for each other on one processor
                processors.move(int(file.read_text()), sorted({*division["switch"], *division["others"]}))

    def silence_hosts(self) -> None:
        topology.silence(SENDER.name, RECEIVER.name)

    def describe(self, program: dict[str, str]) -> dict[str, Any]:
        return super().describe(program) | environment.machine()
