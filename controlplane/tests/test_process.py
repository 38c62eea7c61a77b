# SPDX-License-Identifier: MIT
"""The command as users run it, on a soft switch process: apply, apply again, two writers at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane import lock
from controlplane.policy import TailDrop
from controlplane.soft import SoftSwitch
from controlplane.switch import Count
from controlplane.tests.test_spec import EXAMPLE
from hosts.tests.patience import SECONDS, wait_until
from softswitch.library import make
from softswitch.tests.ring_lab import Lab, Switch

pytestmark = [
    pytest.mark.software,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for network namespaces"),
]
FRAME = bytes.fromhex("02bf0000000202bf00000001") + b"\x88\xb5" + bytes(86)


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Lab, Switch]]:
    make("all")
    lab = Lab()
    try:
        with Switch(lab, "--no-watch", "--no-boost") as switch:
            yield lab, switch
    finally:
        lab.close()


def command(*words: str, path: Path) -> subprocess.CompletedProcess[str]:
    which = ("--file", str(EXAMPLE), "--address", str(path))
    return subprocess.run([sys.executable, "-m", "controlplane", *words, *which], capture_output=True, text=True)


def test_apply__makes_a_started_switch_forward_and_a_second_writer_is_refused(
    running: tuple[Lab, Switch], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, switch = running
    first = command("apply", path=switch.control_path)
    assert (first.returncode, first.stderr) == (0, "")
    again = command("apply", path=switch.control_path)
    assert again.stdout.splitlines()[-1] == f"nothing to change on soft switch at {switch.control_path}"
    with switch.client() as client:
        lab.ports.send(1, FRAME)
        assert (2, FRAME) in lab.ports.receive(SECONDS)
        wait_until(lambda: client.counters()["postcards_made"] == {3: Count(1, 100)})
    monkeypatch.setattr(lock, "DIRECTORIES", (Path("/run/lock"), Path("/tmp")))  # the directories of the command
    with SoftSwitch(switch.control_path) as client:
        with client.writing():
            done = command("threshold", "set", "2", "40p", path=switch.control_path)
            (line,) = done.stderr.splitlines()
            assert (done.returncode, f"process {os.getpid()} is writing to it" in line) == (1, True)
            assert client.policy(2) == TailDrop(163)
        assert command("threshold", "set", "2", "40p", path=switch.control_path).returncode == 0
        assert client.policy(2) == TailDrop(40)
