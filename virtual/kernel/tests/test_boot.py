# SPDX-License-Identifier: MIT
"""Boots the built kernel: is time exact to the ns, and does the same seed give the same run?"""

import json
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hosts.tests.patience import wait_until
from hosts.tests.processes import processes
from virtual import offers
from virtual.kernel import config
from virtual.kernel.tests.booted import KERNEL, boot

pytestmark = pytest.mark.virtual

Observe = Callable[[Path, int], dict[str, Any]]


@pytest.fixture(scope="module")
def observe(tmp_path_factory: pytest.TempPathFactory) -> Observe:
    """Boots in a directory with a seed, and returns the content of observed.json."""
    registers = tmp_path_factory.mktemp("bin") / "registers"
    source = Path(__file__).with_name("registers.c")
    subprocess.run(["gcc", "-O1", "-march=native", "-Wall", "-Wextra", "-o", registers, source, "-pthread"], check=True)

    def observed(directory: Path, seed: int) -> dict[str, Any]:
        directory.mkdir(exist_ok=True)
        (directory / "registers").hardlink_to(registers)
        # The parameter lets the command line's length depend on the directory.
        boot(directory, "virtual.kernel.tests.inside", seed, {"unused.directory": str(directory)})
        content: dict[str, Any] = json.loads((directory / "observed.json").read_text())
        return content

    return observed


@pytest.fixture(scope="module")
def first(observe: Observe, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return observe(tmp_path_factory.mktemp("first"), 7)


def gone(session: int) -> bool:
    """Whether all processes of a session have ended. Zombies have ended, even if the host has not reaped them yet."""

    def is_left(stat: bytes) -> bool:
        state, _, _, its_session = stat.rpartition(b")")[2].split()[:4]
        return int(its_session) == session and state not in b"ZX"

    return not processes("stat", is_left)


def test_kernel__killed_in_its_first_5_ms_leaves_no_process() -> None:
    for tenths_ms in range(0, 50, 2):
        kernel = subprocess.Popen(
            [KERNEL, "mem=64M"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        time.sleep(tenths_ms / 10_000)
        kernel.kill()
        kernel.wait()
        wait_until(partial(gone, kernel.pid))


def test_time__is_exact(first: dict[str, Any]) -> None:
    assert first["times"]["steps_ns"] == [1]  # what a reading of the clock costs
    # The timers fire in time: the reading of the clock that follows costs 1 ns.
    assert set(first["times"]["late_ns"]) == {1}
    # 1 ns of timer slack, and 1 ns for each reading of the clock by Python.
    assert 12_345_679 <= first["times"]["slept_ns"] <= 12_345_679 + 10


def test_machine__keeps_registers_frees_memory_and_carries_all_frames(first: dict[str, Any]) -> None:
    assert first["registers"]["status"] == 0, first["registers"]["output"]
    assert first["memory_taken_kib"] < 8_000  # while nothing waits; 30,000 sockets are 60 MB
    assert (first["traffic"]["lost"], first["traffic"]["frames"] > 20) == (0, True)


def test_seed__the_same_one_gives_the_same_world(observe: Observe, first: dict[str, Any], tmp_path: Path) -> None:
    again = observe(tmp_path / "of-quite-another-length", 7)
    # Only log lines that name the directory, or depend on its length, may differ.
    assert {**again, "log": ""} == {**first, "log": ""}


def test_seed__another_one_gives_another_world(observe: Observe, first: dict[str, Any], tmp_path: Path) -> None:
    other = observe(tmp_path / "other", 8)
    assert other["random"] != first["random"]
    assert other["addresses"] != first["addresses"]
    assert other["traffic"]["links"] != first["traffic"]["links"]
    assert other["traffic"]["sha256"] != first["traffic"]["sha256"]
    assert other["times"] == first["times"]


def test_seed__bad_numbers_are_refused() -> None:
    for bad in ("", "x", "-1", "7y", "18446744073709551616"):
        result = subprocess.run([KERNEL, f"bufferscope.seed={bad}"], capture_output=True, text=True, timeout=60)
        assert result.returncode == 1
        assert "not a number from 0 to 2^64 - 1" in result.stderr


def test_congestion_controls__are_those_that_are_known_without_booting() -> None:
    assert set(offers.ask(KERNEL).congestion_controls) >= {*config.OF_LINUX, *config.OURS}


def test_panic__ends_the_process_and_leaves_nothing(tmp_path: Path) -> None:
    words = ["mem=64M", "root=none", "rootfstype=hostfs", "ro", "time-travel=inf-cpu", "con=null", "con0=null,fd:1"]
    words += ["panic=-1", "noreboot"]
    machine = subprocess.Popen(
        [KERNEL, *words, f"uml_dir={tmp_path}", "init=/bin/true"], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    console, _ = machine.communicate(timeout=120)
    assert "Kernel panic - not syncing: Attempted to kill init!" in console
    assert machine.returncode != 0
    wait_until(partial(gone, machine.pid))
