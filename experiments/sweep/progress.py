# SPDX-License-Identifier: MIT
"""Shows the progress of a sweep: a bar with the time left on a terminal, otherwise a plain line now and then."""

from __future__ import annotations

import time

from analysis.amounts import duration
from experiments.terminal import Terminal

PLAIN_EVERY_S = 30.0


class SweepProgress(Terminal):
    """`cost_s` is the expected duration of all `jobs` one after the other, by cost.py. Finished jobs show how fast this
    machine is, and how many jobs run at once; before there are any, `slow` does (machine_speed.py). `done` jobs need
    nothing more.
    """

    def __init__(self, title: str, at_once: int, slow: float = 1.0) -> None:
        super().__init__(PLAIN_EVERY_S)
        self.title = title
        self.at_once = at_once
        self.slow = slow
        self.jobs = self.done = self.not_valid = self.tried_again = 0
        self.cost_s = self.done_cost_s = 0.0

    def expect(self, jobs: int, done: int, cost_s: float) -> None:
        """Sets the number of jobs, of done jobs, and the expected cost of the others."""
        self.jobs, self.done, self.cost_s = jobs, done, self.done_cost_s + cost_s

    def finished(self, cost_s: float, valid: bool) -> None:
        """Counts a finished job of that cost."""
        self.done += 1
        self.not_valid += not valid
        self.done_cost_s += cost_s

    def again(self, jobs: int, cost_s: float) -> None:
        """Counts finished jobs that were not valid, and are tried again at that cost."""
        self.done -= jobs
        self.not_valid -= jobs
        self.tried_again += jobs
        self.cost_s += cost_s

    def left_s(self, elapsed_s: float) -> float:
        """Time left if the finished jobs took `elapsed_s`: at first by expected costs, then by the measured pace."""
        left_s = max(0.0, self.cost_s - self.done_cost_s)
        trust = min(1.0, self.done_cost_s / max(self.cost_s, 1e-9) * 10)  # in the measured pace, after a tenth
        measured = elapsed_s / self.done_cost_s if self.done_cost_s else 0.0
        return left_s * (trust * measured + (1 - trust) * self.slow / self.at_once)

    def show(self, running: list[str]) -> None:
        """Shows the progress, if its time has come."""
        elapsed_s = time.monotonic() - self.begin_s
        bad = f", {self.not_valid} not valid" if self.not_valid else ""
        bad += f", {self.tried_again} tried again" if self.tried_again else ""
        times = f"{duration(elapsed_s)}, about {duration(self.left_s(elapsed_s))} left"
        head = f"{self.title}: {self.done} of {self.jobs} runs{bad}, {times}"
        self.write(self.done / max(self.jobs, 1), head, ", ".join(running), head)
