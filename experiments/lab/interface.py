# SPDX-License-Identifier: MIT
"""`Lab`: where an experiment is recorded, as the runner sees it.

To add a lab, write a subclass of `Lab` in a module of this package, and choose it in choice.py. A lab whose hosts are
namespaces of one kernel also has a subclass of `Kernel` (kernel.py) and shares repetition.py. Any other lab needs no
`Kernel`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.machine import reservation as machine
from experiments.setup import missing
from model.experiment import Experiment


class Lab(ABC):
    """The defaults are those of a lab that needs this machine for itself."""

    def __init__(self, spec: Experiment) -> None:
        self.spec = spec
        self.slow = 1.0  # this machine's time divided by the reference machine's time (machine_speed.py)

    def missing(self) -> list[str]:
        """The experiment's requirements that this machine lacks, one line each with what to do."""
        return missing.of(self.spec)

    def memory_shortage(self, at_once: int, beside_mib: int = 0) -> str | None:
        """The message if memory does not suffice for `at_once` repetitions at the same time, with `beside_mib` for the
        programs around each; None if it does.
        """
        return None

    @contextmanager
    def processors(self, wait: bool = True) -> Iterator[list[int]]:
        """Holds the processors of the experiment. Yields one processor for each repetition that may run at the same
        time; none if repetitions run one after the other. Without `wait`, raises RunError if other experiments have the
        processors.
        """
        with machine.for_real_time(machine.NAME, machine.Asking(self.spec.name or "", wait)):
            yield []

    @abstractmethod
    def record(self, number: int, directory: Path, processor: int | None) -> None:
        """Writes the raw files of repetition `number` (from 1) to `directory`, and then calls results.record. Raises
        RunError, Interrupted.
        """


class ParallelLab(Lab):
    """A lab in virtual time. Repetitions run in parallel, one per processor: they do not disturb each other."""

    @contextmanager
    def processors(self, wait: bool = True) -> Iterator[list[int]]:
        asking = machine.Asking(self.spec.name or "", wait)
        with machine.for_virtual_time(machine.NAME, self.spec.reps or 1, asking) as numbers:
            yield numbers
