# SPDX-License-Identifier: MIT
"""For tests of the cell and of whole runs: lists everything that such a test could leave behind on this host."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.machine import reservation as machine
from experiments.run import analysis_process
from hosts.tests.processes import processes

# Every process of the tests inherits this variable. Other users' experiments on this host do not have it.
os.environ["BUFFERSCOPE_TESTS"] = str(os.getpid())
MARK = f"BUFFERSCOPE_TESTS={os.getpid()}".encode()
# First words of reasons that a busy machine can cause: a run in real time is then late.
LATE = ("fidelity: ", "delay: ")
# On a busy machine the kernel may withhold events from a tracer that lost none itself (NOTES.md).
HIDDEN = "have no trace event"
LAB_NAMES = {"sender", "receiver", "collector", "switch", "bmv2_switch", "line"}


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves figures and pages out of the analyses of runs."""
    monkeypatch.setattr(analysis_process, "REPLAY", ("analysis.tests.undrawn", "replay"))


def world() -> dict[str, set[str]]:
    """Processes that these tests started in a cell, and the lab's namespaces, interfaces, mounts and files.

    BPF programs need no check: unless pinned, a cell's BPF program ends with the cell's processes. A pinned program
    would be in bpffs, which is listed.
    """
    own = Path("/proc/self/ns/pid").readlink()
    inside = set()
    for pid in processes("environ", lambda text: MARK in text.split(b"\0")):
        with contextlib.suppress(OSError):  # the process has just ended
            if Path(f"/proc/{pid}/ns/pid").readlink() != own:
                inside.add(str(pid))
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout.splitlines()
    return {
        "processes": inside,
        "namespaces": names("/run/netns") & LAB_NAMES,
        "interfaces": {line for line in links if any(f"to_{name}@" in line for name in LAB_NAMES)},
        "mounts": {line for line in Path("/proc/mounts").read_text().splitlines() if line.startswith("bufferscope ")},
        "files": {str(path) for path in Path("/run").glob("bufferscope*")} | names("/sys/fs/bpf"),
        "trace_instances": names("/sys/kernel/tracing/instances"),
    }


def names(directory: str) -> set[str]:
    path = Path(directory)
    return {entry.name for entry in path.iterdir()} if path.is_dir() else set()


def faults(summary: dict[str, Any], *late: str) -> list[str]:
    """Reasons against a run that are faults of our code: losses, and deviations from the spec. Lateness is not a fault.

    `late`: first words of further reasons that a busy machine excuses on the run's target.
    """
    said = (reason for reason in summary["reasons"] if not reason.startswith((*LATE, *late)))
    return [reason for reason in said if HIDDEN not in reason]


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def free_machine() -> None:
    """Waits until no other experiment runs on this machine: the test's limits of time are those of its own run."""
    with machine.for_real_time(machine.NAME, machine.Asking("a test")):
        pass


@pytest.fixture
def unchanged_world() -> Iterator[None]:
    """Fails a test that left something behind. The kernel takes a moment to tear interfaces down."""
    before = world()
    yield
    assert wait_for(lambda: world() == before), (before, world())
