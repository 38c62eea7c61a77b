# SPDX-License-Identifier: MIT
"""A virtual-time machine as a child process: boots it, reads its console, ends it.

The machine ends with the process that booted it, even if that process crashes: the host's kernel then sends SIGKILL to
the machine (PR_SET_PDEATHSIG), and when the machine has ended, to the processes that run its user space. The machine's
memory is a memfd, so no file of the memory is left.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lib import syscalls
from virtual import PYTHON_ALONE, memory
from virtual.endings import Silence, last_activity, why_it_ended
from virtual.messages import parse_message

ADDR_NO_RANDOMIZE = 0x0040000  # include/uapi/linux/personality.h
POLL_S = 0.05
# A fixed time of day, so that values derived from it are the same in every run: 2025-01-01T00:00:00Z.
START_REALTIME_NS = 1_735_689_600 * 10**9
MAX_COMMAND_LINE = 4000  # COMMAND_LINE_SIZE of arch/um is 4096

_libc = ctypes.CDLL(None, use_errno=True)


class MachineError(Exception):
    """The machine cannot boot, or did not end normally; the message is one line. `busy_began_s`: time.time() at the
    start of the program inside that stopped virtual time, if one did.
    """

    def __init__(self, message: str, busy_began_s: float | None = None) -> None:
        super().__init__(message)
        self.busy_began_s = busy_began_s


@dataclass(frozen=True)
class MachineJob:
    """The work of one machine. `directory` is writable inside, as virtual.RUN_DIRECTORY. All other files of the host
    are read-only.
    """

    kernel: Path
    init: list[str]  # the program that is PID 1, and its arguments
    directory: Path
    console: Path  # file for the console's output
    memory_mib: int
    seed: int
    processor: int | None = None  # CPU to pin to: the machine's processes take turns, so migration only costs time
    parameters: dict[str, str] = field(default_factory=dict)  # additional kernel parameters
    environment: dict[str, str] = field(default_factory=dict)  # of init


def command_line(job: MachineJob) -> list[str]:
    """The kernel's arguments. Raises MachineError for text that no parameter can hold, such as a path with a quote, and
    for arguments that are too long together.
    """
    words = {
        "mem": f"{job.memory_mib}M",
        "root": "none",
        "rootfstype": "hostfs",
        "rootflags": "/",
        "time-travel": "inf-cpu",
        "time-travel-start": str(START_REALTIME_NS),
        "bufferscope.seed": str(job.seed),
        "con": "null",
        "con0": "null,fd:1",
        "printk.devkmsg": "on",
        "panic": "-1",
        "uml_dir": "logs",  # under the job's directory, in which the kernel runs
        "umid": "machine",
        "init": job.init[0],
        **job.parameters,
        **PYTHON_ALONE,
        **job.environment,
    }
    line = ["ro", *(f"{name}={_quoted(value)}" for name, value in words.items()), "--", *map(_quoted, job.init[1:])]
    length = sum(map(len, line)) + len(line)
    if length > MAX_COMMAND_LINE:
        raise MachineError(
            f"too long for a kernel's command line: {length} characters, at most {MAX_COMMAND_LINE} are possible; "
            f"choose shorter paths: {' '.join(line)}"
        )
    return line


def _quoted(text: str) -> str:
    """Quotes a kernel parameter: double quotes protect spaces; a double quote cannot be escaped (lib/cmdline.c)."""
    if any(character in text for character in '"\n\t') or not text:
        raise MachineError(
            f"{text!r} cannot be passed to a kernel: allowed are texts that are not empty, without double quotes, tabs "
            "and line ends"
        )
    return f'"{text}"' if " " in text else text


class VirtualMachine:
    """A machine that runs while its context is open."""

    def __init__(self, job: MachineJob) -> None:
        self.job = job
        self.command = [str(job.kernel), *command_line(job)]

    def __enter__(self) -> VirtualMachine:
        if shortage := memory.problem(self.job.memory_mib):
            raise MachineError(shortage)
        runner = os.getpid()

        def prepare() -> None:
            syscalls.die_with_parent()
            if os.getppid() != runner:
                os._exit(1)  # the runner ended before the line above
            _libc.personality(ctypes.c_ulong(ADDR_NO_RANDOMIZE))
            if self.job.processor is not None:
                os.sched_setaffinity(0, {self.job.processor})

        with self.job.console.open("wb") as console:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=console, stderr=console, cwd=self.job.directory,
                env={"PATH": os.defpath, "HOME": "/"},  # the same in every run
                preexec_fn=prepare, start_new_session=True,
            )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        """Kills the process group, which is empty after a normal power-off."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yields messages from inside as they arrive, until the machine has ended. Raises MachineError if the machine
        hangs, or ends before init's last message.
        """
        silence = Silence(self.process.pid)
        last_message: dict[str, Any] = {}
        with self.job.console.open("rb") as console:
            partial_line = b""
            while True:
                ended = self.process.poll() is not None
                data = console.read()
                if data:
                    silence.restart()
                    *lines, partial_line = (partial_line + data).split(b"\n")
                    for line in lines:
                        message = parse_message(line.decode(errors="replace").rstrip("\r"))
                        if message is not None:
                            last_message = message
                            yield message
                if ended:
                    break
                reason = silence.too_long()
                if reason:
                    what = f"the virtual machine was ended{last_activity(last_message)}: {reason}"
                    raise MachineError(what, silence.busy_began_s)
                time.sleep(POLL_S)
        if "end" not in last_message:
            text = self.job.console.read_text(errors="replace")
            raise MachineError(why_it_ended(self.process.returncode, text))
