# SPDX-License-Identifier: MIT
"""The two interfaces of this package. `Lab`: where an experiment is recorded, as the runner sees it. `Kernel`: what a
repetition takes as given in a lab of network namespaces.

To add a lab, write a subclass of `Lab` in a module of this package, and choose it in choice.py. A lab whose hosts are
namespaces of one kernel also has a subclass of `Kernel` and shares repetition.py. Any other lab needs no `Kernel`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from experiments import environment, machine, missing
from experiments.resolve import Resolved
from experiments.run_plan import RunPlan
from experiments.sample import Sample
from experiments.switches import CONTROL_SOCKET


class Lab(ABC):
    """The defaults are those of a lab that needs this machine for itself."""

    def __init__(self, spec: Resolved) -> None:
        self.spec = spec

    def missing(self) -> list[str]:
        """What the experiment needs and this machine lacks, one line each with what to do."""
        return missing.of(self.spec)

    def memory_shortage(self, at_once: int) -> str | None:
        """What to tell the user if there is no memory for `at_once` repetitions at once; None if there is."""
        return None

    @contextmanager
    def processors(self) -> Iterator[list[int]]:
        """Holds the processors of the experiment. Gives one for each repetition that may run at once; none if
        repetitions run one after the other. RunError if other experiments have the processors.
        """
        with machine.all_processors(machine.NAME):
            yield []

    @abstractmethod
    def record(self, number: int, directory: Path, processor: int | None) -> None:
        """Leaves the raw files of repetition `number` (from 1) in `directory`, the last one by results.record. Raises
        RunError, Interrupted.
        """


class ProgressDisplay(Protocol):
    """Where a repetition says how far it is."""

    def phase(self, text: str) -> None: ...
    def sample(self, sample: Sample) -> None: ...


class Kernel(ABC):
    """The kernel whose namespaces a repetition runs in, and its clock. The defaults are those of virtual time."""

    control_socket = CONTROL_SOCKET  # of the soft switch

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan

    @property
    @abstractmethod
    def tick_s(self) -> float:
        """Time between two looks at the traffic."""

    @abstractmethod
    def progress(self) -> AbstractContextManager[ProgressDisplay]: ...

    @abstractmethod
    def start_programs(self, directory: Path) -> None:
        """Prepares the hosts and starts the programs of a run in `directory`."""

    @abstractmethod
    def traffic_start_ns(self) -> int:
        """A time of CLOCK_MONOTONIC by which all flows can be connected. May wait."""

    @abstractmethod
    def record(self, directory: Path, world: dict[str, Any]) -> None:
        """Called last, when all raw files are closed."""

    def claim_processors(self) -> dict[str, list[int]]:
        """Who may use which processor."""
        return {}

    def settle(self, division: dict[str, list[int]]) -> None:
        """Called when all programs run."""
        return

    def align(self) -> None:
        """Waits for a time that does not depend on how long the steps before took."""
        return

    def describe(self, program: dict[str, str]) -> dict[str, Any]:
        """The kernel that results come from; `program` is the switch's description of its P4 program."""
        return environment.describe(program)
