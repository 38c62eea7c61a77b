# SPDX-License-Identifier: MIT
"""One virtual-time machine as a process of this one: boots it, listens to its console, sees to its end.

Everything it starts ends with it, and it ends with the process that booted it, however that ends: the kernel sends
SIGKILL (PR_SET_PDEATHSIG) to it, and when it is gone, to the processes that it runs user space in. Its memory is a file
without a name (O_TMPFILE), so nothing is left of that either.
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

from virtual import PYTHON_ALONE, memory
from virtual.endings import Silence, said_last, why_it_ended
from virtual.messages import heard

PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h
ADDR_NO_RANDOMIZE = 0x0040000  # include/uapi/linux/personality.h
POLL_S = 0.05
# A fixed time of day, so that what programs make of it is the same in every run: 2025-01-01T00:00:00Z.
START_REALTIME_NS = 1_735_689_600 * 10**9
MAX_COMMAND_LINE = 4000  # COMMAND_LINE_SIZE of arch/um is 4096

_libc = ctypes.CDLL(None, use_errno=True)


class MachineError(Exception):
    """The machine did not come to its end by itself; one line says why."""


@dataclass(frozen=True)
class Job:
    """What one machine is to do. `directory` is writable inside, as virtual.RUN_DIRECTORY; all else is read-only."""

    kernel: Path
    init: list[str]  # the program that is PID 1, and its arguments
    directory: Path
    console: Path  # gets all that the console shows
    memory_mib: int
    seed: int
    processor: int | None = None  # the only one it may use: its processes take turns, and other caches only cost
    parameters: dict[str, str] = field(default_factory=dict)  # more of the kernel command line
    environment: dict[str, str] = field(default_factory=dict)  # of init


def command_line(job: Job) -> list[str]:
    """The kernel's arguments. Raises MachineError for what cannot stand in one, such as a path with a quote."""
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
    if sum(map(len, line)) + len(line) > MAX_COMMAND_LINE:
        raise MachineError(f"the paths are too long for a kernel's command line: {' '.join(line)}")
    return line


def _quoted(text: str) -> str:
    """As the kernel reads parameters: double quotes hold spaces, and nothing stands for a quote (lib/cmdline.c)."""
    if any(character in text for character in '"\n\t') or not text:
        raise MachineError(f"{text!r} cannot be passed to a kernel: choose paths without quotes and line ends")
    return f'"{text}"' if " " in text else text


class Machine:
    """A running machine. Entered as a context, it is gone when the context is."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.command = [str(job.kernel), *command_line(job)]

    def __enter__(self) -> Machine:
        shortage = memory.problem(self.job.memory_mib)
        if shortage:
            raise MachineError(shortage)
        runner = os.getpid()

        def prepare() -> None:
            _libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
            if os.getppid() != runner:
                os._exit(1)  # the runner ended before the line above
            _libc.personality(ctypes.c_ulong(ADDR_NO_RANDOMIZE))
            if self.job.processor is not None:
                os.sched_setaffinity(0, {self.job.processor})

        with self.job.console.open("wb") as console:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=console, stderr=console, cwd=self.job.directory,
                env=self._environment(), preexec_fn=prepare, start_new_session=True,
            )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        """Ends what is left, by the process group: a machine that switched itself off has left nothing."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _environment(self) -> dict[str, str]:
        """The same for everybody, as far as it reaches the inside; where its memory is kept is the host's affair."""
        kept = {name: os.environ[name] for name in ("TMPDIR",) if name in os.environ}
        return {"PATH": os.defpath, "HOME": "/", **kept}

    def messages(self) -> Iterator[dict[str, Any]]:
        """What the inside says, as it says it, until the machine has ended. Raises MachineError if it hangs, or ends
        other than by switching itself off.
        """
        silence = Silence(self.process.pid)
        last_message: dict[str, Any] = {}
        with self.job.console.open("rb") as console:
            left = b""
            while True:
                ended = self.process.poll() is not None
                data = console.read()
                if data:
                    silence.broken()
                    *lines, left = (left + data).split(b"\n")
                    for line in lines:
                        message = heard(line.decode(errors="replace").rstrip("\r"))
                        if message is not None:
                            last_message = message
                            yield message
                if ended:
                    break
                reason = silence.too_long()
                if reason:
                    raise MachineError(f"the virtual machine was ended{said_last(last_message)}: {reason}")
                time.sleep(POLL_S)
        if "end" not in last_message:
            text = self.job.console.read_text(errors="replace")
            raise MachineError(why_it_ended(self.process.returncode, text, memory.place()))
