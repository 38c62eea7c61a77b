# SPDX-License-Identifier: MIT
"""make and bootstrap.sh wait while another make has the checkout's lock, and say so. Two makes at once both succeed."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ansible.tests.conftest import CHECKOUT
from bufferscope.tests.typed.clone import make_clone
from experiments.tests.conftest import wait_for


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone without build/."""
    path = make_clone(tmp_path).path
    (path / ".venv").symlink_to(CHECKOUT / ".venv")
    return path


@contextmanager
def held(checkout: Path) -> Iterator[None]:
    """Within the block, this process holds the checkout's lock, as another make would."""
    directory = os.open(checkout, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def begin(checkout: Path, log: Path, *words: str) -> subprocess.Popen[bytes]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "BUFFERSCOPE"))}
    with log.open("w") as output:
        return subprocess.Popen(words, cwd=checkout, env=kept, stdout=output, stderr=output)


def test_locked__refuses_a_path_that_make_would_divide(tmp_path: Path) -> None:
    checkout = tmp_path / "my lab"
    shutil.copytree(CHECKOUT / "lib", checkout / "lib")
    (checkout / "ansible").mkdir()
    shutil.copy(CHECKOUT / "ansible/locked.sh", checkout / "ansible")
    assert begin(checkout, tmp_path / "log", "ansible/locked.sh", "touch", "made").wait(60) == 1
    assert (tmp_path / "log").read_text().startswith(f"error: '{checkout}' cannot be the path of a checkout")
    assert not (checkout / "made").exists()


@pytest.mark.long
def test_make__twice_at_once_on_a_fresh_build_waits_and_says_so(checkout: Path, tmp_path: Path) -> None:
    commands = [["make", "-j2", "build", "CFLAGS=-O0"]] * 2
    commands += [["ansible/bootstrap.sh", "/nowhere/requirements.txt", "alone"]]
    logs = [tmp_path / f"log-{number}" for number in range(3)]
    with held(checkout):
        makes = [begin(checkout, log, *words) for log, words in zip(logs, commands, strict=True)]
        said = f"waiting: another make sets up or builds {checkout}\n"
        assert wait_for(lambda: all(log.read_text() == said for log in logs)), [log.read_text() for log in logs]
        assert not (checkout / "build").exists()
    assert [make.wait(300) for make in makes[:2]] == [0, 0], [log.read_text() for log in logs]
    makes[2].wait(60)
    assert "installing the Python packages of /nowhere/requirements.txt" in logs[2].read_text()
    assert {"softswitch", "collector", "tcp_trace"} <= {path.name for path in (checkout / "build").iterdir()}
