# SPDX-License-Identifier: MIT
"""What root's make makes in another user's checkout belongs to that user; root's other files stay root's."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
OWNER = 65534
MAKES = "made:; @mkdir -p build/a p4src/build .venv; touch build/a/b .venv/ready secret; ln -s /etc/passwd build/link"

pytestmark = [pytest.mark.software, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Another user's copy of the files that make needs before it builds anything."""
    for path in (CHECKOUT / "Makefile", CHECKOUT / "ansible/owned.sh", *CHECKOUT.glob("lib/*.py")):
        copy = tmp_path / path.relative_to(CHECKOUT)
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(path, copy)
    (tmp_path / "p4src").mkdir()
    subprocess.run(["chown", "-R", str(OWNER), str(tmp_path)], check=True)
    return tmp_path


def make(checkout: Path, rule: str, goal: str) -> subprocess.CompletedProcess[str]:
    words = ["make", "--no-print-directory", f"--eval={rule}", goal]
    return subprocess.run(words, cwd=checkout, capture_output=True, text=True, check=False)


def test_make__of_root_gives_what_it_makes_to_the_owner_of_the_checkout(checkout: Path) -> None:
    done = make(checkout, MAKES, "made")
    assert (done.returncode, done.stderr) == (0, "")
    of_root = {str(path.relative_to(checkout)) for path in checkout.rglob("*") if path.lstat().st_uid != OWNER}
    assert of_root == {"secret"}
    assert Path("/etc/passwd").stat().st_uid == 0


def test_make__of_root_ends_as_its_commands_do(checkout: Path) -> None:
    done = make(checkout, "fails:; @exit 7", "fails")
    assert (done.returncode, "Error 7" in done.stderr) == (2, True)
