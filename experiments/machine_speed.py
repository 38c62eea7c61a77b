# SPDX-License-Identifier: MIT
"""How long this machine takes now for what takes the reference machine a second alone. Costs (cost.py) are processor
time of the reference machine; another processor, or other work beside a run, makes the time on the wall another one.

A fixed piece of work is timed in as many processes as will run at once. Its processor time shows the processor, and
other work on the processor's second thread; the time it waited shows other programs, and what a container or a
hypervisor grants.
"""

from __future__ import annotations

import subprocess
import sys
from typing import NamedTuple

WORK = """
import time
table, value, began, used = {}, 1, time.perf_counter(), time.process_time()
for number in range(600_000):
    value = (value * 48271 + number) % 2147483647
    table[value & 8191] = number
print(time.perf_counter() - began, time.process_time() - used)
"""
REFERENCE_S = 0.125  # processor time of WORK on the machine on which the costs were measured
# A run has about two processes that want a processor or have just slept, so a fair scheduler lets it wait less than
# WORK, which is one and never sleeps: measured on two processors with loads of 10 to 18, half as long.
SHARES = 2.0
MOST_PROCESSES = 8
NOTABLE = 1.2  # below, an announcement does not mention it


class Speed(NamedTuple):
    """`processor` is the processor time of WORK over that of the reference machine, `waiting` the time that WORK waited
    for a processor, over its processor time.
    """

    processor: float
    waiting: float

    @property
    def slowness(self) -> float:
        """1 on the idle reference machine; 2 where a run takes twice as long."""
        return self.processor * (1 + self.waiting / SHARES)


def measure(at_once: int) -> Speed:
    """Takes some 0.2 s, as long as WORK takes."""
    command = [sys.executable, "-I", "-S", "-c", WORK]
    count = min(max(at_once, 1), MOST_PROCESSES)
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    times = [tuple(map(float, process.communicate()[0].split())) for process in processes]
    wall_s, used_s = (sum(column) for column in zip(*times, strict=True))
    return Speed(used_s / count / REFERENCE_S, max(wall_s / used_s - 1, 0))


def slowness(at_once: int) -> float:
    return measure(at_once).slowness


def explained(slow: float) -> str:
    """The words after an expected time that differs notably from that of the reference machine."""
    return f" ({slow:.1f} times the time of the idle reference machine)" if slow >= NOTABLE else ""
