# SPDX-License-Identifier: MIT
"""A repetition inside the virtual-time kernel: the program that virtual.init runs there.

The job's directory is the repetition's directory, so raw files are written to their place. The hosts' set-up was
planned outside. The result of the repetition is in OUTCOME.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.lab import repetition
from experiments.lab.kernel import Kernel
from experiments.lab.run_state import RunState
from experiments.machine.cell import NETNS, RUNTIME
from experiments.plan.repetition_plan import RunPlan
from experiments.setup.steps import SetupStep, run_steps
from experiments.spec import cc_parameters
from hosts import aligned_start
from lib import files, owner
from lib.errors import RunError
from virtual import RUN_DIRECTORY, offers
from virtual.messages import Speaker

JOB = Path("logs/job.pickle")  # the plan and the steps of the hosts' set-up
OUTCOME = Path("logs/outcome.json")
DRIVER = Path("/dev/bufferscope-switch")
# The traffic starts at a fixed time, later than the end of any set-up. Every earlier step starts at a multiple of
# STEP_NS. So no result depends on the duration of a step. Waiting takes no wall time in virtual time.
START_MONO_NS = 60 * 10**9
STEP_NS = 200_000_000
LEAD_NS = 10**9  # for the traffic program to start, before it connects its flows
# TCP sockets together may have half of the memory, or more if the plan says so. By default TCP's memory pressure begins
# at a sixteenth of the memory, which would limit windows, because a virtual machine has little memory.
TCP_MEMORY = Path("/proc/sys/net/ipv4/tcp_mem")
TCP_MEMORY_SHARE = 0.5


def main(directory: Path) -> int:
    """Runs the job in `directory`; returns the exit status."""
    NETNS.mkdir(exist_ok=True)
    RUNTIME.mkdir(mode=0o700, exist_ok=True)
    outcome: dict[str, Any] = {}
    try:
        plan, steps, user = read_job(directory)
        allow_tcp_memory(plan)
        check_parameters(plan.cc_parameters)
        repetition.run(plan, directory, VirtualKernel(plan, steps, user, outcome))
    except RunError as error:
        outcome = {"lines": error.lines}
    except Exception as error:
        traceback.print_exc()
        outcome = {"lines": [f"internal error: {type(error).__name__}: {error}"]}
    files.write_json(directory / OUTCOME, outcome)
    return 0 if "world" in outcome else 1


def write_job(directory: Path, plan: RunPlan, steps: list[SetupStep], user: owner.User) -> None:
    """Called outside. The job is a pickle: importing a parser of specs would cost the virtual machine a second."""
    (directory / JOB).write_bytes(pickle.dumps((plan, steps, user)))


def read_job(directory: Path) -> tuple[RunPlan, list[SetupStep], owner.User]:
    plan, steps, user = pickle.loads((directory / JOB).read_bytes())
    return plan, steps, user


def allow_tcp_memory(plan: RunPlan) -> None:
    """Lets TCP's sockets have as much memory as the plan gives them."""
    half = int(os.sysconf("SC_PHYS_PAGES") * TCP_MEMORY_SHARE)
    pages = max(half, (plan.sizes.tcp_mib << 20) // os.sysconf("SC_PAGE_SIZE"))
    TCP_MEMORY.write_text(f"{pages} {pages} {pages}")


def check_parameters(given: Mapping[str, str]) -> None:
    """Raises RunError if this kernel has not accepted a parameter of a congestion control."""
    problem = cc_parameters.refused(given, offers.parameters([name.split(".")[0] for name in given]))
    if problem:
        raise RunError(problem)


class VirtualKernel(Kernel):
    """The kernel of this virtual machine. `steps` set its hosts up; `outcome` gets the facts for environment.json."""

    def __init__(self, plan: RunPlan, steps: list[SetupStep], user: owner.User, outcome: dict[str, Any]) -> None:
        super().__init__(plan)
        self.steps = steps
        self.caller = user
        self.outcome = outcome
        self.speaker = Speaker()
        if plan.network.driver:
            self.control_socket = DRIVER

    @property
    def tick_s(self) -> float:
        return self.plan.durations.tick_s

    @contextlib.contextmanager
    def progress(self) -> Iterator[_Progress]:
        yield _Progress(self.speaker, _start_mono_ns(self.plan))

    def start_programs(self, directory: Path) -> None:
        if self.plan.traffic.user:  # unprivileged programs may use only the algorithms that this namespace allows
            from experiments.machine import host  # here, so that other runs do not load the module

            host.ALLOWED.write_text(host.CONGESTION_CONTROLS.read_text())
        run_steps(self.steps, directory / "logs/ansible.log", self.align)

    def user(self) -> owner.User:
        return self.caller

    def align(self) -> None:
        aligned_start.wait_for_whole(STEP_NS)

    def traffic_start_ns(self) -> int:
        start_ns = _start_mono_ns(self.plan)
        begin_ns = start_ns - self.plan.durations.connect_ns - LEAD_NS
        if begin_ns < time.monotonic_ns():
            raise RunError(
                f"the set-up took {time.monotonic():.1f} s of virtual time; {start_ns / 1e9:.0f} s are reserved"
            )
        aligned_start.sleep_until(begin_ns)
        return start_ns

    def record(self, directory: Path, world: dict[str, Any]) -> None:
        self.outcome["world"] = world


def _start_mono_ns(plan: RunPlan) -> int:
    """START_MONO_NS plus the time that connecting takes, in whole seconds, rounded up."""
    return START_MONO_NS + -(-plan.durations.connect_ns // 10**9) * 10**9


class _Progress:
    """Sends the phase and the virtual time of the traffic to the outside."""

    def __init__(self, speaker: Speaker, start_mono_ns: int) -> None:
        self.speaker = speaker
        self.start_mono_ns = start_mono_ns

    def phase(self, text: str) -> None:
        self.speaker.say(phase=text)

    def show_state(self, state: RunState) -> None:
        traffic_s = max(0.0, round(time.monotonic() - self.start_mono_ns / 1e9, 6))
        self.speaker.say(sample=asdict(state), traffic_s=traffic_s)


if __name__ == "__main__":
    sys.exit(main(RUN_DIRECTORY))
