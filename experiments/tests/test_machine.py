# SPDX-License-Identifier: MIT
"""At most one experiment in real time holds the machine. The machine is free again however the experiment ends. The
tests use a lock with another name.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from experiments import machine, missing, runner
from experiments.host import CHECKOUT, Host
from experiments.resolve import resolve
from lib.errors import RunError

NAME = f"\0bufferscope-test-{os.getpid()}"
HOLD = f"import time; from experiments import machine\nwith machine.alone({NAME!r}): print(flush=True); time.sleep(600)"


def test_alone__refuses_a_second_names_the_first_and_is_free_again_after_sigkill() -> None:
    with machine.alone(NAME):
        for _ in range(20):
            with pytest.raises(RunError, match=rf"is running \(pid {os.getpid()}\)"), machine.alone(NAME):
                pass
    with subprocess.Popen([sys.executable, "-c", HOLD], cwd=CHECKOUT, stdout=subprocess.PIPE) as other:
        assert other.stdout
        other.stdout.readline()
        with pytest.raises(RunError, match=rf"another experiment is running \(pid {other.pid}\)"), machine.alone(NAME):
            pass
        other.send_signal(signal.SIGKILL)
    with machine.alone(NAME):
        pass


def test_run__is_refused_whatever_its_results_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing, "of", lambda _: [])
    monkeypatch.setattr(machine, "NAME", NAME)
    with machine.alone(NAME), pytest.raises(RunError, match=rf"another experiment is running \(pid {os.getpid()}\)"):
        runner.run(resolve({}, Host(("cubic",), netem=False)), tmp_path / "results")
    assert not (tmp_path / "results").exists()
