# SPDX-License-Identifier: MIT
"""The build backend: pip installs the project in place, and refuses an installation that could not run."""

import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def test_pip__does_not_install_the_project_outside_of_its_checkout(tmp_path: Path) -> None:
    words = ["install", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--target", f"{tmp_path}/x"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words, CHECKOUT], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 1
    assert "bufferscope runs only in its checkout" in done.stdout + done.stderr
    assert not (tmp_path / "x").exists()
