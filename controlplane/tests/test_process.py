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
from hosts.tests.patience import wait_until
from softswitch.tests.ring_lab import Lab, Switch, build, mac

pytestmark = [
    pytest.mark.software,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for network namespaces"),
]
FRAME = bytes.fromhex("02bf0000000202bf00000001") + b"\x88\xb5" + bytes(86)


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Lab, Switch]]:
    build()
    lab = Lab()
    try:
        with Switch(lab, "--no-watch", "--no-boost") as switch:
            yield lab, switch
    finally:
        lab.close()


def command(*words: str, path: Path) -> subprocess.CompletedProcess[str]:
    which = ("--file", str(EXAMPLE), "--address", str(path))
    return subprocess.run([sys.executable, "-m", "controlplane", *words, *which], capture_output=True, text=True)


def test_apply__makes_a_started_switch_forward(running: tuple[Lab, Switch]) -> None:
    lab, switch = running
    first = command("apply", path=switch.control_path)
    assert (first.returncode, first.stderr) == (0, "")
    assert "changed  port 2 policy: unwatched -> tail-drop from 163 packets" in first.stdout
    again = command("apply", path=switch.control_path)
    assert again.stdout.splitlines()[-1] == f"nothing to change on soft switch at {switch.control_path}"
    with lab.packet_socket(1) as sender, lab.packet_socket(2) as receiver, switch.client() as client:
        sender.send(FRAME)
        assert receiver.recv(2000) == FRAME
        wait_until(lambda: client.counters()["postcards_made"] == {3: Count(1, 100)})
        assert [entry for entry in client.histogram(2) if entry[1]] == [(0, 1)]
    assert mac(2) in EXAMPLE.read_text()


def test_writers__in_two_processes_are_one_at_a_time(running: tuple[Lab, Switch], monkeypatch) -> None:
    _, switch = running
    monkeypatch.setattr(lock, "DIRECTORIES", (Path("/run/lock"), Path("/tmp")))  # the directories of the command
    with SoftSwitch(switch.control_path) as client, client.writing():
        before = client.policy(2)
        done = command("threshold", "set", "2", "40p", path=switch.control_path)
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"error: soft switch at {switch.control_path}: process {os.getpid()} is writing to it")
        assert client.policy(2) == before
    done = command("threshold", "set", "2", "40p", path=switch.control_path)
    assert (done.returncode, done.stderr) == (0, "")
    with SoftSwitch(switch.control_path) as client:
        assert client.policy(2) == TailDrop(40)
