# SPDX-License-Identifier: MIT
"""The lab in virtual time, from outside: plans a repetition, boots a machine for it, shows its progress.

Needs no privileges: every namespace, qdisc and interface belongs to the virtual machine's kernel, and ends with it.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.lab import own_kernel, repetition, virtual_inside
from experiments.lab.interface import ParallelLab
from experiments.lab.progress import RunProgress
from experiments.lab.run_state import RunState
from experiments.machine import host
from experiments.machine.host import Host
from experiments.plan.repetition_plan import Durations, RunPlan
from experiments.plan.run_plan import plan_run
from experiments.plan.sizes import sizes
from experiments.setup import environment, playbooks, setup_cache
from experiments.spec import cc_parameters
from experiments.spec.lab_ports import Ports
from lib import owner, places
from lib.errors import RunError
from model.experiment import Experiment
from runs import results
from virtual import RUN_DIRECTORY, memory, offers
from virtual.kernel import choice, config
from virtual.kernel.build import BUILD, INTERRUPTED, ensure
from virtual.kernel.digests import read_json
from virtual.kernel.errors import KernelError
from virtual.kernel.progress import BuildProgress
from virtual.machine import MachineError, MachineJob, VirtualMachine

KERNEL = BUILD / "linux"
KERNEL_JSON = BUILD / "kernel.json"
PORTS = 3
FLOWS = 16384


def probe() -> Host:
    """The features of the virtual-time kernel: from the built kernel, else from its source. A kernel package that is
    not built yet counts as OF_LINUX. Raises RunError.
    """
    chosen = choice.remembered(BUILD)
    try:
        if KERNEL.exists() and built_from(chosen):
            known: tuple[str, ...] | None = offers.congestion_controls(KERNEL)
        elif choice.SOURCE not in chosen:
            known = config.OF_LINUX
        else:
            source = Path(chosen[choice.SOURCE])
            known = config.offered(source) if source.is_dir() else None
    except (MachineError, KernelError) as error:
        raise RunError(str(error)) from None
    if known is not None:  # a run rebuilds a kernel that is older than our congestion controls
        known = tuple(sorted({*known, *config.OURS}))
    return Host(known, netem=True, clock="virtual", kernel="the virtual-time kernel")


def built_from(chosen: Mapping[str, str]) -> bool:
    """Whether the kernel is the chosen one, or was built from the source that is chosen now."""
    if choice.FINISHED in chosen:
        return True
    source = read_json(KERNEL_JSON).get("source")
    return isinstance(source, dict) and source.get("name") in chosen.values()


def has_usual_kernel(spec: Experiment) -> bool:
    """Whether the run is in the virtual-time kernel without code of the user's (own_kernel.py)."""
    return spec.clock == "virtual" and spec.switch != "ns3" and not own_kernel.sources(spec)


def prepare() -> bool:
    """Builds the kernel if it is older than its sources; returns whether it did. Raises RunError."""
    before = read_json(KERNEL_JSON)
    try:
        with BuildProgress(sys.stdout) as progress:
            ensure(BUILD, {}, progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(INTERRUPTED) from None
    return read_json(KERNEL_JSON) != before


class VirtualLab(ParallelLab):
    """Each repetition is a virtual machine."""

    def missing(self) -> list[str]:
        lines = super().missing()
        if not lines:
            try:
                kernel = own_kernel.kernel_of(self.spec)
                lines = refused_parameters(self.spec, kernel / KERNEL.name)
            except RunError as error:
                lines = error.lines
        return lines

    def memory_shortage(self, at_once: int, beside_mib: int = 0) -> str | None:
        return memory.problem(sizes(self.spec).machine_mib, at_once, beside_mib)

    def record(self, number: int, directory: Path, processor: int | None) -> None:
        plan = plan_run(self.spec, number)
        kernel = own_kernel.kernel_of(self.spec)
        begin_s = time.monotonic()
        with RunProgress(plan.title, self.slow * plan.durations.repetition_s) as progress:
            progress.phase("planning the hosts' set-up")
            write_job(plan, directory)
            phases = {"plan": round(time.monotonic() - begin_s, 3)}
            job = machine_job(plan, directory, processor, kernel)
            pace = Pace()
            try:
                with VirtualMachine(job) as virtual_machine:
                    for message in virtual_machine.messages():
                        pace.hear(message)
                        show(progress, plan.durations, message, pace, self.slow)
            except MachineError as error:
                busy = busy_program(plan, error.busy_began_s, directory)
                raise RunError(*outcome_lines(directory), *(busy or failed(error, job))) from None
            phases["machine"] = round(time.monotonic() - begin_s - phases["plan"], 3)
        record(directory, job, phases, pace, plan)


def machine_job(plan: RunPlan, directory: Path, processor: int | None, kernel: Path = BUILD) -> MachineJob:
    """The virtual machine of a run: kernel, first program, memory and boot parameters."""
    sizes = {"packets": plan.sizes.pool_packets, "frame_bytes": plan.sizes.frame_bytes}
    switch: dict[str, int | str] = {"ports": PORTS, **sizes, "flows": FLOWS}
    if plan.settings.ports != Ports():
        switch["numbers"] = ",".join(map(str, plan.settings.ports))
    if plan.settings.rate_schedule:
        switch["rate_entries"] = len(plan.settings.rate_schedule.entries)
    if plan.settings.qdisc:
        switch["queue"] = plan.settings.ports.receiver
    if plan.stored_spec.get("taps"):
        switch["taps"] = f"{plan.settings.ports.sender},{plan.settings.ports.receiver}"
    parameters = {f"bufferscope_switch.{name}": str(value) for name, value in switch.items()}
    return MachineJob(
        kernel=kernel / KERNEL.name,
        init=[sys.executable, "-m", "virtual.init", "experiments.lab.virtual_inside"],
        directory=directory,
        console=directory / "logs/console.log",
        memory_mib=plan.sizes.machine_mib,
        seed=plan.machine_seed,
        processor=processor,
        parameters=(parameters if plan.network.driver else {})
        | dict(plan.kernel_parameters)
        | cc_parameters.boot_parameters(plan.cc_parameters),
        environment={"PYTHONPATH": str(host.CHECKOUT)} | places.for_programs(),
    )


def refused_parameters(spec: Experiment, kernel: Path) -> list[str]:
    """A line for the first parameter of `spec` that is malformed, that `kernel` lacks, or that `kernel` does not
    accept.
    """
    given = spec.cc_parameters
    if not given:
        return []
    try:
        if line := cc_parameters.malformed(given, offers.ask(kernel).parameters):
            return [line]
        after_boot = offers.ask(kernel, cc_parameters.boot_parameters(given)).parameters
    except MachineError as error:
        raise RunError(str(error)) from None
    return [line for line in (cc_parameters.refused(given, after_boot),) if line]


def write_job(plan: RunPlan, directory: Path) -> None:
    """Writes spec.yaml, and the file for virtual_inside.py: the plan, and the steps of the hosts' set-up."""
    scratch = directory / "logs/ansible"
    scratch.mkdir()
    try:
        variables = plan.variables(RUN_DIRECTORY)
        steps = setup_cache.plan(playbooks.SETUP, variables, directory / "logs/plan.log", scratch)
    finally:
        shutil.rmtree(scratch)
    repetition.write_spec(plan, directory)
    virtual_inside.write_job(directory, plan, steps, owner.caller())


def show(progress: RunProgress, durations: Durations, message: dict[str, Any], pace: Pace, slow: float) -> None:
    if "phase" in message:
        progress.phase(str(message["phase"]))
    elif "sample" in message:
        at_s, traffic_s = float(message["traffic_s"]), durations.traffic_ns / 1e9
        left_s = pace.left_s(traffic_s)
        if left_s is not None:
            progress.expect(left_s + slow * durations.analysis_s)
        part = "warm-up" if at_s < durations.unmeasured_ns / 1e9 else "traffic"
        progress.show_state(RunState(**message["sample"]), f"{part}, {at_s:.4g} of {traffic_s:g} virtual s")


class Pace:
    """Wall time per second of traffic, from the first sample to the last."""

    def __init__(self) -> None:
        self.samples: list[tuple[float, float]] = []

    def hear(self, message: dict[str, Any]) -> None:
        at_s = float(message.get("traffic_s") or 0)
        if at_s > 0:
            self.samples = [*self.samples[:1], (time.monotonic(), at_s)]

    def wall_s_per_traffic_s(self) -> float | None:
        pace = self._pace()
        return None if pace is None else round(pace, 3)

    def left_s(self, traffic_s: float) -> float | None:
        """Wall time until `traffic_s` of traffic are done; None before the second sample."""
        pace = self._pace()
        return None if pace is None else pace * max(0.0, traffic_s - self.samples[-1][1])

    def _pace(self) -> float | None:
        if len(self.samples) < 2:
            return None
        (first_s, from_s), (last_s, to_s) = self.samples
        return (last_s - first_s) / (to_s - from_s) if to_s > from_s else None


def record(directory: Path, job: MachineJob, phases: dict[str, float], pace: Pace, plan: RunPlan) -> None:
    """Writes environment.json with facts from inside and outside. Raises RunError if the inside reports a failure."""
    outcome = read_json(directory / virtual_inside.OUTCOME)
    if "world" not in outcome:
        raise RunError(*outcome_lines(directory) or [f"the virtual machine left no result: see {job.console}"])
    repetition.match_frames(plan, directory)
    inside = outcome["world"]
    virtual_machine = {
        "kernel": read_json(job.kernel.with_name(KERNEL_JSON.name)),
        "processor": job.processor,
        "memory_mib": job.memory_mib,
        "seed": job.seed,
        "host_kernel": environment.kernel_names(),
        "wall_s_per_traffic_s": pace.wall_s_per_traffic_s(),
    }
    phases |= {f"virtual_{name}": seconds for name, seconds in inside.pop("phases_s").items()}
    world = environment.machine() | inside | {"virtual_machine": virtual_machine, "phases_s": phases}
    results.record(directory, world)


def busy_program(plan: RunPlan, began_s: float | None, directory: Path) -> list[str]:
    """One line that names the user's program that stopped virtual time; empty if no program did. The busy process
    started at `began_s`. It belongs to the program whose plan was the last to be written before `began_s`.
    """
    started = [
        (path.stat().st_mtime, program)
        for program in plan.traffic.user
        if (path := directory / f"logs/{program.name}-plan.json").exists()
    ]
    started = [each for each in started if began_s is not None and each[0] <= began_s]
    if not started:
        return []
    _, program = max(started, key=lambda each: each[0])
    return [
        f"the {program.name} ({' '.join(program.options['argv'])}) stops virtual time, which stands still while a "
        "program computes: let it wait (sleep, select) instead of polling, or use CLOCK=real"
    ]


def failed(error: MachineError, job: MachineJob) -> list[str]:
    """The error lines of a machine that failed, with the path of its console log if the log exists."""
    return [str(error), *([f"its console is in {job.console}"] if job.console.exists() else [])]


def outcome_lines(directory: Path) -> list[str]:
    """The error lines of the inside, with paths of the outside."""
    lines = read_json(directory / virtual_inside.OUTCOME).get("lines")
    return [outside(str(line), directory) for line in lines] if isinstance(lines, list) else []


def outside(text: str, directory: Path) -> str:
    """Replaces the directory's name inside by its name outside."""
    return text.replace(str(RUN_DIRECTORY), str(directory))
