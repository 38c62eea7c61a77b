# SPDX-License-Identifier: MIT
"""How much slower this machine is now than the idle reference machine. Costs (cost.py) are processor time of the
reference machine. The wall time of a run differs from its cost if this machine has another processor, or if other
programs run at the same time.

A fixed piece of work is timed in as many processes as will run at once. Its processor time depends on the processor,
and on other work on the same core's second thread. The time that it waits depends on other programs, and on the share
that a container or a hypervisor grants.
"""

from __future__ import annotations

import subprocess
import sys
from typing import NamedTuple

from lib.errors import RunError

WORK = """
import time
table, value, began, used = {}, 1, time.perf_counter(), time.process_time()
for number in range(600_000):
    value = (value * 48271 + number) % 2147483647
    table[value & 8191] = number
print(time.perf_counter() - began, time.process_time() - used)
"""
REFERENCE_S = 0.125  # processor time of WORK on the machine on which the costs were measured
# WORK waits longer for a processor than a run does: WORK is one process that never sleeps. A run has about two
# processes that are ready or have just slept, and a fair scheduler prefers these. Measured on two processors with loads
# of 10 to 18, a run waits half as long.
SHARES = 2.0
MOST_PROCESSES = 8
NOTABLE = 1.2  # below this slowness, an announcement does not mention it


class Speed(NamedTuple):
    """`processor` is the processor time of WORK on this machine, divided by REFERENCE_S. `waiting` is the time that
    WORK waited for a processor, divided by its processor time.
    """

    processor: float
    waiting: float

    @property
    def slowness(self) -> float:
        """1 on the idle reference machine; 2 where a run takes twice as long."""
        return self.processor * (1 + self.waiting / SHARES)


def measure(at_once: int) -> Speed:
    """Times WORK in `at_once` processes, MOST_PROCESSES at most. Takes some 0.2 s. Raises RunError."""
    command = [sys.executable, "-I", "-S", "-c", WORK]
    count = min(max(at_once, 1), MOST_PROCESSES)
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    said = [process.communicate()[0].split() for process in processes]
    if failed := next((process for process in processes if process.returncode), None):
        raise RunError(
            f"a process that measures this machine's speed ended with status {failed.returncode}: was it killed, or is "
            "the memory exhausted? run the command again"
        )
    times = [tuple(map(float, words)) for words in said]
    wall_s, used_s = (sum(column) for column in zip(*times, strict=True))
    return Speed(used_s / count / REFERENCE_S, max(wall_s / used_s - 1, 0))


def slowness(at_once: int) -> float:
    return measure(at_once).slowness


def explained(slow: float) -> str:
    """The words after an expected time if this machine is slower than the reference machine by NOTABLE; else ""."""
    return f" ({slow:.1f} times the time of the idle reference machine)" if slow >= NOTABLE else ""
