# SPDX-License-Identifier: MIT
"""A run that fails because a disk is full names the file system and its size. The tests mount small file systems in a
mount namespace of their own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments import disk
from experiments.host import CHECKOUT
from lib.errors import RunError

pytestmark = [pytest.mark.software, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]

DAEMON = """
import sys, time
from pathlib import Path
from hosts import daemon
full, runtime = map(Path, sys.argv[1:3])
fill = f"echo ready; cat /dev/zero >{full}/data; echo 'lost: the log is there, too'; exit 3"
daemon.start("filler", ["sh", "-c", fill], runtime, full)
while not (runtime / "filler.exit").exists():
    time.sleep(0.01)
daemon.stop("filler", runtime)
"""
RUN = """
import os, sys
from pathlib import Path
from experiments import runner
from runs import results
from experiments.host import Host
from experiments.lab.choice import choose
from experiments.resolve import resolve
full = Path(sys.argv[1])
run = results.create(full, "x", 0)
room = os.open(full / "fill", os.O_WRONLY | os.O_CREAT)
os.posix_fallocate(room, 0, (int(sys.argv[3]) << 10) - 32768)
spec = resolve({"duration": "1s", "warmup": "0s", "generator": "epoll"}, Host(("cubic",), netem=False))
runner.record(choose(spec), 1, results.create_repetition(run, 1))
"""


def on_a_small_disk(program: str, tmp_path: Path, kib: int) -> str:
    """The last line of a Python program's error output. The program's arguments are a directory on a file system of
    `kib` KiB, a directory elsewhere, and `kib`.
    """
    full, runtime = tmp_path / "full", tmp_path / "runtime"
    for directory in (full, runtime):
        directory.mkdir()
    script = 'mount -t tmpfs -o "size=$1k" small "$2" && exec "$4" -c "$5" "$2" "$3" "$1"'
    words = [str(kib), str(full), str(runtime), sys.executable, program]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *words],
        cwd=CHECKOUT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    return done.stderr.splitlines()[-1]


def test_daemon__that_fails_on_a_full_disk_names_the_disk(tmp_path: Path) -> None:
    said = on_a_small_disk(DAEMON, tmp_path, 4096)
    assert "DaemonError: filler had ended by itself before it was stopped (exit status 3): " in said
    assert f"; the file system at {tmp_path}/full is full: 0.0 of 4.0 MiB free" in said


def test_run__on_a_full_disk_names_the_disk(tmp_path: Path) -> None:
    said = on_a_small_disk(RUN, tmp_path, 4096)
    assert "RunError" in said
    assert f"the file system at {tmp_path}/full is full: 0.0 of 4.0 MiB free" in said


def test_failure__with_space_left_keeps_its_message(tmp_path: Path) -> None:
    with pytest.raises(RunError) as failure, disk.explained(tmp_path):
        raise RunError("why")
    assert failure.value.lines == ["why"]


def test_error__of_the_system_becomes_one_line_only_on_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"^No space left on device"), disk.explained(tmp_path):
        Path("/dev/full").write_text("x")
    with pytest.raises(FileNotFoundError), disk.explained(tmp_path):
        (tmp_path / "none").read_text()
