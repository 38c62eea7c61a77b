# SPDX-License-Identifier: MIT
"""Shows the progress of a sweep: on a terminal a bar with the time left, otherwise a plain line now and then."""

from __future__ import annotations

import time

from analysis.wording.formats import duration
from experiments.machine.terminal import Terminal

PLAIN_EVERY_S = 30.0


class SweepProgress(Terminal):
    """`cost_s` is the time that the jobs of this call would take one after the other (cost.py). `done` counts finished
    jobs, earlier calls included. The pace is wall time per cost: at first `slow` (machine_speed.py) / `at_once`. The
    measured pace of the finished jobs replaces this value gradually, until a tenth of the cost is done.
    """

    def __init__(self, title: str, at_once: int, slow: float = 1.0) -> None:
        super().__init__(PLAIN_EVERY_S)
        self.title = title
        self.at_once = at_once
        self.slow = slow
        self.jobs = self.done = self.not_valid = self.tried_again = 0
        self.cost_s = self.done_cost_s = 0.0
        self.ended_s = 0.0  # from the beginning to the end of the last finished job

    def expect(self, jobs: int, done: int, cost_s: float) -> None:
        """Sets the number of jobs, the number of done jobs, and the expected cost of the other jobs."""
        self.jobs, self.done, self.cost_s = jobs, done, self.done_cost_s + cost_s

    def finished(self, cost_s: float, valid: bool, ended_s: float | None = None) -> None:
        """Counts a finished job of that cost. `ended_s` is the time of its end since the beginning; None: now."""
        self.done += 1
        self.not_valid += not valid
        self.done_cost_s += cost_s
        self.ended_s = time.monotonic() - self.begin_s if ended_s is None else ended_s

    def again(self, jobs: int, cost_s: float) -> None:
        """Takes back finished jobs that were not valid: they are tried again at that cost."""
        self.done -= jobs
        self.not_valid -= jobs
        self.tried_again += jobs
        self.cost_s += cost_s

    def left_s(self, elapsed_s: float, running_cost_s: float = 0.0) -> float:
        """The time left. The time since `ended_s` counts as progress of the running jobs, but not as more than
        `running_cost_s`.
        """
        left_s = max(0.0, self.cost_s - self.done_cost_s)
        trust = min(1.0, self.done_cost_s / max(self.cost_s, 1e-9) * 10)  # full after a tenth of the cost
        measured = self.ended_s / self.done_cost_s if self.done_cost_s else 0.0
        pace = trust * measured + (1 - trust) * self.slow / self.at_once
        return max(pace * left_s - (elapsed_s - self.ended_s), pace * max(0.0, left_s - running_cost_s))

    def show(self, running: list[str], running_cost_s: float = 0.0) -> None:
        """Shows the progress, if its time has come. `running_cost_s`: the expected cost of the running jobs."""
        elapsed_s = time.monotonic() - self.begin_s
        left_s = self.left_s(elapsed_s, running_cost_s)
        bad = f", {self.not_valid} not valid" if self.not_valid else ""
        bad += f", {self.tried_again} tried again" if self.tried_again else ""
        times = f"{duration(elapsed_s)}, about {duration(left_s)} left"
        head = f"{self.title}: {self.done} of {self.jobs} runs{bad}, {times}"
        passed = max(self.done / max(self.jobs, 1), elapsed_s / max(elapsed_s + left_s, 1e-9)) if running else 1.0
        self.write(passed, head, ", ".join(running), head)
