# SPDX-License-Identifier: MIT
"""Explains in one plain line why a machine ended before its work was done, or why it hangs."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any

from virtual.messages import parse_message

# A machine that prints nothing for this long may hang: see Silence. Normally a lab prints its next message within a
# tenth of this time.
HANG_S = 120.0
IDLE_SHARE = 0.01  # a machine that uses a smaller share of a processor is idle
LOOK_S = 2.0  # interval between readings of processor time
LAST_LINES = 3
SAMPLE_S = 0.5  # duration of the search for the busiest process
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")


class Silence:
    """Detects a hang. A machine that prints nothing for HANG_S hangs if it is stopped (SIGSTOP), is idle, or has used
    about HANG_S of processor time meanwhile.

    Time in which the machine waits for a processor of a busy computer does not count.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.busy_began_s: float | None = None  # time.time() at the start of the program that computes all the time
        self.restart()

    def restart(self) -> None:
        """Call this when the machine prints."""
        self.since_s = self.looked_s = time.monotonic()
        self.cpu_since_s: float | None = None  # read when it has said nothing for LOOK_S: that looks at all processes

    def too_long(self) -> str | None:
        """The reason to stop waiting for the machine; None: wait on."""
        now_s = time.monotonic()
        silent_s = now_s - self.since_s
        is_due = self.cpu_since_s is None or silent_s >= HANG_S
        if not is_due or now_s - self.looked_s < min(LOOK_S, HANG_S):
            return None
        self.looked_s = now_s
        if self.cpu_since_s is None:
            self.cpu_since_s = cpu_s(self.pid)
            return None
        computed_s = cpu_s(self.pid) - self.cpu_since_s
        silent = f"it has said nothing for {silent_s:.0f} s"
        if state(self.pid) in ("T", "t"):
            return f"{silent}, because its process {self.pid} was stopped (SIGSTOP, or a debugger) and not continued"
        if computed_s >= HANG_S * (1 - IDLE_SHARE):
            self.busy_began_s = busiest_began_s(self.pid)
            return (
                f"{silent}, and computed for {computed_s:.0f} s: a program in it polls the clock instead of sleeping, "
                "and time stands still while a program runs; or its memory is full, and its kernel seeks free pages"
            )
        if computed_s < IDLE_SHARE * silent_s:
            return f"{silent}, and was idle all the time: the event that it waits for never comes"
        return None  # the machine shares the processor with other programs


def last_activity(message: dict[str, Any]) -> str:
    """The activity that a message reports: " while ...", " at ...", or ""."""
    if "phase" in message:
        return f" while {message['phase']}"
    if "sample" in message:
        return f" at {float(message.get('traffic_s', 0)):g} virtual s of the traffic"
    return ""


def why_it_ended(status: int, console: str) -> str:
    """Why a machine ended before its work was done: cause, activity, last lines of the console.

    `status` is subprocess's returncode.
    """
    lines = [line.rstrip() for line in console.splitlines() if line.strip()]
    messages = [message for message in map(parse_message, lines) if message is not None]
    kernel_lines = [line for line in lines if parse_message(line) is None]
    panic = [line for line in kernel_lines if "Kernel panic" in line]
    ending = f"was ended by signal {-status} ({_signal_name(-status)})" if status < 0 else f"ended with status {status}"
    during = last_activity(next((message for message in reversed(messages) if last_activity(message)), {}))
    if status == -signal.SIGBUS or any("signal 7" in line.lower() for line in (*panic, *kernel_lines[-LAST_LINES:])):
        return (
            f"the virtual machine ended{during} because this computer has no memory left for it (SIGBUS): end other "
            "programs, or add swap space (swapon)"
        )
    killer = ""
    if status == -signal.SIGKILL:
        killer = ": by a user, or by this computer's kernel because the computer ran out of memory"
    last_lines = panic[-1:] or kernel_lines[-LAST_LINES:]
    return f"the virtual machine {ending}{during}, before its work was done{killer}; {_last_words(last_lines)}"


def _last_words(lines: list[str]) -> str:
    return f"its last lines: {' / '.join(lines)}" if lines else "it gave no reason"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def state(pid: int) -> str:
    """The kernel's letter for the state of a process, such as R or S; empty if the process is gone. proc(5)"""
    fields = _fields(PROC / str(pid))
    return fields[0] if fields else ""


def cpu_s(pid: int) -> float:
    """Processor time of a machine: its kernel, the other processes of its session, and its ended children."""
    kernel = _fields(PROC / str(pid))
    if not kernel:
        return 0.0
    ticks = sum(map(int, kernel[13:15]))  # cutime, cstime: of children that it waited for
    for path in PROC.glob("[0-9]*"):
        fields = _fields(path)
        if fields and fields[3] == str(pid):
            ticks += sum(map(int, fields[11:13]))
    return ticks / TICKS_PER_S


def busiest_began_s(pid: int) -> float | None:
    """time.time() at the start of the machine's busiest user-space process; None: no user-space process computes.

    Each program inside is one process of the host.
    """
    before = _user_space(pid)
    time.sleep(SAMPLE_S)
    computed = {
        began: ticks - before[each][0] for each, (ticks, began) in _user_space(pid).items() if each in before
    }  # fmt: skip
    began_ticks = max(computed, key=lambda began: computed[began], default=None)
    if began_ticks is None or not computed[began_ticks]:
        return None
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + began_ticks / TICKS_PER_S


def _user_space(pid: int) -> dict[str, tuple[int, int]]:
    """Processor time and start, in ticks, of the processes in the machine's session except its kernel. proc(5)"""
    states = {}
    for path in PROC.glob("[0-9]*"):
        fields = _fields(path)
        if fields and fields[3] == str(pid) and path.name != str(pid):
            states[path.name] = (sum(map(int, fields[11:13])), int(fields[19]))
    return states


def _fields(process: Path) -> list[str]:
    """/proc/PID/stat from the third field (state) on; [] if the process is gone. proc(5)"""
    with contextlib.suppress(OSError):
        return (process / "stat").read_text().rpartition(")")[2].split()
    return []
