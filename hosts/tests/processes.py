# SPDX-License-Identifier: MIT
"""Running programs: which, in which state, and with which rights; free ports for them; and those that cannot start."""

import contextlib
import random
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any


def processes(file: str, fits: Callable[[bytes], bool]) -> list[int]:
    """The processes whose /proc/PID/`file` fits. The environ and cmdline of a zombie are empty."""
    found = []
    for path in Path("/proc").glob(f"[0-9]*/{file}"):
        with contextlib.suppress(OSError):  # the process has just ended
            if fits(path.read_bytes()):
                found.append(int(path.parent.name))
    return found


def state(pid: int) -> str:
    """The kernel's letter for the state of a process; Z also if the process is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return "Z"


def free_port() -> int:
    """A port outside of net.ipv4.ip_local_port_range, so that the kernel gives it to no other program."""
    while True:
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as tcp:
            port = random.randrange(10_000, 32_000)
            tcp.bind(("::", port))
            with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as udp:
                udp.bind(("::", port))
                return port


def privileges_of(pid: int) -> tuple[set[int], int]:
    """(real, effective, saved and file system user IDs; the union of all capabilities of all threads)."""
    users, capabilities = set(), 0
    for status in Path("/proc", str(pid), "task").glob("*/status"):
        fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        users |= set(map(int, fields["Uid"].split()))
        for name in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
            capabilities |= int(fields[name], 16)
    return users, capabilities


def refused(*words: object, **more: Any) -> str:
    """The one line of error of a command that must not start. `more`: arguments of subprocess.run()."""
    command = list(map(str, words))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **more)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), (command, done)
    return done.stderr
