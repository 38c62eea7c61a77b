# SPDX-License-Identifier: MIT
"""A program that fails because a disk is full names the file system and its size. (A whole run: test_run.py.)"""

import subprocess
import sys
from pathlib import Path

import pytest

from experiments.machine.host import CHECKOUT
from experiments.spec import disk
from lib.errors import RunError

pytestmark = pytest.mark.software

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


def test_daemon__that_fails_on_a_full_disk_names_the_disk(tmp_path: Path) -> None:
    full, runtime = tmp_path / "full", tmp_path / "runtime"
    for directory in (full, runtime):
        directory.mkdir()
    script = f'mount -t tmpfs -o size=4m small "$0" && exec "{sys.executable}" -c "$1" "$0" "$2"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, str(full), DAEMON, str(runtime)],
        cwd=CHECKOUT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    said = done.stderr.splitlines()[-1]
    assert "DaemonError: filler had ended by itself before it was stopped (exit status 3): " in said
    assert f"; the file system at {full} is full: 0.0 of 4.0 MiB free" in said


def test_error__becomes_one_line_only_on_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(RunError) as failure, disk.explained(tmp_path):
        raise RunError("why")
    assert failure.value.lines == ["why"]
    with pytest.raises(RunError, match=f"^{tmp_path}: No space left on device"), disk.explained(tmp_path):
        Path("/dev/full").write_text("x")
    with pytest.raises(FileNotFoundError), disk.explained(tmp_path):
        (tmp_path / "none").read_text()
