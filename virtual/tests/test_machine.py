# SPDX-License-Identifier: MIT
"""The machine as a process: its command line, its messages, and the error for each way in which it can end.

A shell script replaces the kernel, because these tests need only a process that prints and ends; test_boot.py boots
the real kernel.
"""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hosts.tests.patience import wait_until
from virtual import endings, machine, memory
from virtual.machine import MachineError, MachineJob, VirtualMachine, command_line

CHECKOUT = Path(__file__).parents[2]


def job(tmp_path: Path, script: str = "exit 0") -> MachineJob:
    kernel = tmp_path / "kernel"
    kernel.write_text(f"#!/bin/sh\n{script}\n")
    kernel.chmod(0o755)
    (tmp_path / "logs").mkdir(exist_ok=True)
    return MachineJob(kernel, ["/bin/init", "word"], tmp_path, tmp_path / "logs/console.log", memory_mib=64, seed=7)


def test_command_line__refuses_what_the_kernel_does_not_read(tmp_path: Path) -> None:
    for word, said in (
        ('/a"b', "without double quotes"),
        ("/a\nb", "without double quotes"),
        ("x" * machine.MAX_COMMAND_LINE, "too long for a kernel's command line"),
    ):
        with pytest.raises(MachineError, match=said):
            command_line(replace(job(tmp_path), init=["/bin/init", word]))


def test_messages__come_until_the_end(tmp_path: Path) -> None:
    script = 'echo boot; echo \'bufferscope: {"phase":"a"}\'; echo \'bufferscope: {"end":0}\'; echo reboot: Power down'
    with VirtualMachine(job(tmp_path, script)) as running:
        assert list(running.messages()) == [{"phase": "a"}, {"end": 0}]
    ending = pytest.raises(MachineError, match=r"was ended by signal 9 .*: last words")
    with VirtualMachine(job(tmp_path, "echo last words; kill -9 $$")) as running, ending:
        list(running.messages())


def test_messages__a_machine_that_says_nothing_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endings, "HANG_S", 0.5)
    monkeypatch.setattr(endings, "IDLE_SHARE", 0.5)  # the script's start takes some processor time
    with VirtualMachine(job(tmp_path, "sleep 60")) as running:
        with pytest.raises(MachineError, match="has said nothing"):
            list(running.messages())
        pid = running.process.pid
    assert running.process.returncode == -signal.SIGKILL
    assert not Path(f"/proc/{pid}").exists()


def test_machine__without_room_for_its_memory_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "group_problem", lambda wanted_mib: f"no room for {wanted_mib} MiB")
    with pytest.raises(MachineError, match="no room for 80 MiB"), VirtualMachine(job(tmp_path)):
        pass
    assert not (tmp_path / "logs/console.log").exists()


def test_machine__ends_with_its_runner_even_after_sigkill(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from virtual.machine import MachineJob, VirtualMachine\n"
        f"d = Path({str(tmp_path)!r})\n"
        "with VirtualMachine(MachineJob(d / 'kernel', ['/i'], d, d / 'c', 64, 1)) as m:\n"
        "    print(m.process.pid, flush=True); m.process.wait()"
    )
    job(tmp_path, "sleep 60 & wait")
    with subprocess.Popen([sys.executable, "-c", program], cwd=CHECKOUT, stdout=subprocess.PIPE) as runner:
        assert runner.stdout
        pid = int(runner.stdout.readline())
        os.kill(runner.pid, signal.SIGKILL)
    wait_until(lambda: endings.state(pid) in ("", "Z"))
