# SPDX-License-Identifier: MIT
""".ci/small names each file of git's index that would make every clone large."""

import os
import subprocess
from pathlib import Path

SMALL = Path(__file__).resolve().parents[2] / ".ci/small"


def test_small__refuses_large_files_archives_and_second_formats(tmp_path):
    files = {"a b.csv": 500_000, "large.csv": 500_001, "runs.tar.xz": 1, "x.svg": 1, "map.png": 2, "map.svg": 2}
    for name, size in files.items():
        (tmp_path / name).write_bytes(os.urandom(size))
    (tmp_path / "untracked.zip").write_bytes(b"")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", *files], cwd=tmp_path, check=True)
    done = subprocess.run([SMALL], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert [line.partition(": ")[0] for line in done.stdout.splitlines()] == ["large.csv", "map.svg", "runs.tar.xz"]
    subprocess.run(["git", "rm", "-q", "--cached", "large.csv", "runs.tar.xz", "map.png"], cwd=tmp_path, check=True)
    subprocess.run([SMALL], cwd=tmp_path, check=True)
