# SPDX-License-Identifier: MIT
"""labs.yml on a small checkout, with a local connection in place of SSH: a deploy installs and builds the commit, a
second one changes nothing, and a sweep refuses a lab at another commit until the next deploy.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ansible.tests.conftest import ANSIBLE, Played, play
from experiments.sweep.remote_labs import RemoteLab, ready
from lib import sources
from lib.errors import RunError

# `make kernel` here makes the files that a sweep looks for in a lab, and logs each call.
MAKEFILE = """\
kernel:
\tmkdir -p build/virtual
\ttouch build/deployed build/virtual/linux
\techo built >>build/log
"""
SH = ("sh", "-c")  # takes a command line in one word, like ssh


def git(directory: Path, *words: str) -> str:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    command = ["git", "-C", str(directory), *identity, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A checkout with one commit."""
    directory = tmp_path / "here"
    (directory / "build").mkdir(parents=True)
    (directory / "Makefile").write_text(MAKEFILE)
    (directory / ".gitignore").write_text("build/\n")
    git(directory, "init", "--quiet")
    git(directory, "add", "Makefile", ".gitignore")
    git(directory, "commit", "--quiet", "-m", "one")
    return directory


@pytest.fixture
def lab(tmp_path: Path) -> RemoteLab:
    return RemoteLab("lab", SH, str(tmp_path / "lab"))


def deploy(tmp_path: Path, here: Path, lab: RemoteLab) -> Played:
    inventory = {"labs": {"hosts": {"lab": {"ansible_connection": "local", "lab_checkout": lab.checkout}}}}
    (tmp_path / "labs.json").write_text(json.dumps(inventory))
    variables: dict[str, object] = {
        "ansible_python_interpreter": sys.executable, "checkout": str(here), "packages_by_group": {},
    }  # fmt: skip
    return play("-i", tmp_path / "labs.json", ANSIBLE / "playbooks/labs.yml", variables=variables)


def commit(here: Path, text: str) -> str:
    (here / "file").write_text(text)
    git(here, "add", "file")
    git(here, "commit", "--quiet", "-m", text)
    return git(here, "rev-parse", "HEAD")


def test_labs__deployed_twice_change_nothing_and_at_another_commit_are_refused(
    tmp_path: Path, here: Path, lab: RemoteLab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sources, "commit", lambda: {"commit": git(here, "rev-parse", "HEAD"), "dirty": False})
    with pytest.raises(RunError, match="lab: it cannot be used: "):
        ready([lab], virtual=True)  # the lab's directory does not exist yet
    old = commit(here, "two")
    first = deploy(tmp_path, here, lab)
    assert (first.status, first.changed > 0) == (0, True), first.stderr
    there = Path(lab.checkout)
    assert git(there, "rev-parse", "HEAD") == old
    assert (there / "file").read_text() == "two"
    (ready_lab,) = ready([lab], virtual=True)
    assert ready_lab.processors >= 1

    git(here, "config", "pack.compression", "0")
    git(here, "repack", "-a", "-d", "-F", "--quiet")  # the bundle of the same commit then has other bytes
    second = deploy(tmp_path, here, lab)
    assert (second.status, second.changed) == (0, 0), second.stdout + second.stderr
    assert (there / "build/log").read_text() == "built\n" * 2  # every deploy calls make

    new = commit(here, "three")
    refusal = f"it has the commit {old[:12]}, this machine {new[:12]}: make deploy INVENTORY=..."
    with pytest.raises(RunError) as refused:
        ready([lab], virtual=True)
    assert refused.value.lines == [f"lab: {refusal}"]
    other = RemoteLab("other", SH, str(here))  # built at the right commit: the sweep uses only this lab
    subprocess.run(["make", "--silent", "-C", here, "kernel"], check=True)
    assert [lab.name for lab in ready([lab, other], virtual=True)] == ["other"]
    assert capsys.readouterr().err == f"note: without lab: {refusal}\n"

    again = deploy(tmp_path, here, lab)
    assert (again.status, again.changed > 0) == (0, True), again.stderr
    assert [ready_lab.name for ready_lab in ready([lab], virtual=True)] == ["lab"]
    (there / "build/virtual/linux").unlink()
    assert [ready_lab.name for ready_lab in ready([lab], virtual=False)] == ["lab"]
    with pytest.raises(RunError, match="lab: it has no build/virtual/linux: make deploy"):
        ready([lab], virtual=True)
