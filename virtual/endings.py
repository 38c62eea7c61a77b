# SPDX-License-Identifier: MIT
"""How a machine may end, or not go on, other than it should; in plain lines for who started it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any

from virtual.messages import heard

# Neither a line on the console nor the end: between two messages, a lab takes about a tenth of this at most.
HANG_S = 120.0
IDLE_SHARE = 0.01  # of a processor: less is taken for none
LOOK_S = 2.0  # at the processes
LAST_LINES = 3
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")


class Silence:
    """Since when a machine has said nothing, and what it did meanwhile.

    Time that it computes counts against it, time that it waits for a processor of a busy computer does not.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.broken()

    def broken(self) -> None:
        """It has said something."""
        self.since_s = self.looked_s = time.monotonic()
        self.cpu_since_s = cpu_s(self.pid)

    def too_long(self) -> str | None:
        """Why it is not worth waiting on; None while it is."""
        now_s = time.monotonic()
        silent_s = now_s - self.since_s
        if silent_s < HANG_S or now_s - self.looked_s < min(LOOK_S, HANG_S):
            return None
        self.looked_s = now_s
        computed_s = cpu_s(self.pid) - self.cpu_since_s
        nothing = f"it has said nothing for {silent_s:.0f} s"
        if state(self.pid) in ("T", "t"):
            return f"{nothing}, because its process {self.pid} was stopped (SIGSTOP, or a debugger) and not continued"
        if computed_s >= HANG_S * (1 - IDLE_SHARE):
            return (
                f"{nothing}, and computed all the time: a program in it waits for time to pass without sleeping, and "
                "while it does, no time passes"
            )
        if computed_s < IDLE_SHARE * silent_s:
            return f"{nothing}, and did nothing either: what it waits for never comes"
        return None  # it computes, and others do, too


def said_last(message: dict[str, Any]) -> str:
    """At which point it was, as far as it said so: " while ...", or nothing."""
    if "phase" in message:
        return f" while {message['phase']}"
    if "sample" in message:
        return f" at {float(message.get('traffic_s', 0)):g} virtual s of the traffic"
    return ""


def why_it_ended(status: int, console: str, memory_place: Path) -> str:
    """Of a machine that ended with `status` (as subprocess has it) before its work was done: the cause, what was done
    then, and its last words. `memory_place` is where its memory was.
    """
    lines = [line.rstrip() for line in console.splitlines() if line.strip()]
    messages = [message for message in map(heard, lines) if message is not None]
    own = [line for line in lines if heard(line) is None]
    panic = [line for line in own if "Kernel panic" in line]
    how = f"was ended by signal {-status} ({_signal_name(-status)})" if status < 0 else f"ended with status {status}"
    during = said_last(next((message for message in reversed(messages) if said_last(message)), {}))
    if status == -signal.SIGBUS or any("signal 7" in line.lower() for line in (*panic, *own[-LAST_LINES:])):
        return (
            f"the virtual machine ended{during} because {memory_place}, where its memory is, is full "
            "(SIGBUS): make room there, or choose another directory with TMPDIR=DIRECTORY in the environment"
        )
    if status == -signal.SIGKILL:
        how += ", by someone, or by this computer's kernel because it ran out of memory"
    said = panic[-1:] or own[-LAST_LINES:]
    return f"the virtual machine {how}{during}, before its work was done; {_last_words(said)}"


def _last_words(lines: list[str]) -> str:
    return f"its last words: {' / '.join(lines)}" if lines else "it said nothing"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def state(pid: int) -> str:
    """The kernel's letter for what a process does (R, S, D, T, Z); empty if it is gone."""
    fields = _fields(PROC / str(pid))
    return fields[0] if fields else ""


def cpu_s(pid: int) -> float:
    """Processor time of a machine: of its kernel, of those in its session, and of those that have ended."""
    own = _fields(PROC / str(pid))
    if not own:
        return 0.0
    ticks = sum(map(int, own[13:15]))  # cutime, cstime: what it waited for
    for path in PROC.glob("[0-9]*"):
        fields = _fields(path)
        if fields and fields[3] == str(pid):
            ticks += sum(map(int, fields[11:13]))
    return ticks / TICKS_PER_S


def _fields(process: Path) -> list[str]:
    """/proc/PID/stat from the third field (state) on; [] if the process is gone. proc(5)"""
    with contextlib.suppress(OSError):
        return (process / "stat").read_text().rpartition(")")[2].split()
    return []
