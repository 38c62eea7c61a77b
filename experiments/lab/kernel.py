# SPDX-License-Identifier: MIT
"""`Kernel`: the kernel and the clock of a repetition in a lab of network namespaces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from experiments.lab.run_state import RunState
from experiments.plan.repetition_plan import RunPlan
from experiments.plan.switches import CONTROL_SOCKET
from experiments.setup import environment
from lib import owner


class ProgressDisplay(Protocol):
    """Receives the progress of a repetition."""

    def phase(self, text: str) -> None: ...
    def show_state(self, state: RunState) -> None: ...


class Kernel(ABC):
    """The kernel whose namespaces a repetition runs in, and its clock. A step that only one kind of kernel needs does
    nothing by default.
    """

    control_socket = CONTROL_SOCKET  # of the soft switch

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan

    @property
    @abstractmethod
    def tick_s(self) -> float:
        """Time between two readings of the traffic's counters."""

    @abstractmethod
    def progress(self) -> AbstractContextManager[ProgressDisplay]: ...

    @abstractmethod
    def start_programs(self, directory: Path) -> None:
        """Prepares the hosts and starts the programs of a run in `directory`."""

    @abstractmethod
    def traffic_start_ns(self) -> int:
        """The CLOCK_MONOTONIC time at which the traffic starts: all flows can be connected by then. May wait."""

    @abstractmethod
    def record(self, directory: Path, world: dict[str, Any]) -> None:
        """Stores `world`, the facts for environment.json. Called last, when all raw files are closed."""

    def user(self) -> owner.User:
        """The user that the programs of TRAFFIC=program run as: the user of this process, or the caller of sudo."""
        return owner.caller()

    def claim_processors(self) -> dict[str, list[int]]:
        """The processors that each program may use."""
        return {}

    def settle(self, division: dict[str, list[int]]) -> None:
        """Called when the programs of start_programs run, before the traffic."""
        return

    def silence_hosts(self) -> None:
        """Keeps sender and receiver from sending anything more, if they could send at an unforeseen time."""
        return

    def align(self) -> None:
        """Waits until a time that does not depend on the duration of earlier steps."""
        return

    def describe(self, program: dict[str, str]) -> dict[str, Any]:
        """The kernel and its congestion controls; `program` is the switch's description of its P4 program."""
        return environment.describe(program) | {"congestion_controls": environment.congestion_controls(self.plan)}
