# SPDX-License-Identifier: MIT
"""bootstrap.sh names all missing Debian packages to an ordinary user in one line, before it changes anything."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from ansible.tests.conftest import ANSIBLE, CHECKOUT

BOOTSTRAP = ANSIBLE / "bootstrap.sh"


def wanted() -> set[str]:
    """The packages that the role `packages` installs on the lab's machine."""
    parts = yaml.safe_load((ANSIBLE / "inventories/lab/group_vars/machines.yml").read_text())["packages_groups"]
    by_group = yaml.safe_load((ANSIBLE / "roles/packages/defaults/main.yml").read_text())["packages_by_group"]
    return {name for part in parts for name in by_group.get(part, [])}


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A directory at the head of PATH. Its `id` names an ordinary user, its dpkg-query knows the packages in
    `installed`, and its apt-get fails.
    """
    installed = tmp_path / "installed"
    programs = {
        "id": "echo 1000",
        "dpkg-query": f'for word; do name=$word; done; grep -qx "$name" {installed} && printf "ii "',
        "apt-get": "echo apt-get was called >&2; exit 1",
    }
    for name, body in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def bootstrap(machine: Path, *installed: str, words: tuple[str, ...] = ("/nowhere/requirements.txt",)) -> list[str]:
    """The lines of stdout and stderr. With a requirements file that does not exist, pip never installs anything."""
    (machine / "installed").write_text("".join(f"{name}\n" for name in installed))
    environment = os.environ | {"PATH": f"{machine}:{os.environ['PATH']}"}
    done = subprocess.run(
        [BOOTSTRAP, *words], cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False
    )
    return (done.stdout + done.stderr).splitlines()


LACKING = r"error: these Debian packages are missing: (.*); install them as root: apt-get install \1"
INSTALLS = "installing the Python packages of /nowhere/"


def test_bootstrap__names_all_that_an_ordinary_user_lacks_and_no_more(machine: Path) -> None:
    for words in (("/nowhere/requirements.txt",), ("deploy",)):
        (line,) = bootstrap(machine, words=words)
        match = re.fullmatch(LACKING, line)
        assert match, line
        assert set(match[1].split()) - {"python3-venv"} == wanted()
    (line,) = bootstrap(machine, *(wanted() - {"flex", "bpftool"}))
    match = re.fullmatch(LACKING, line)
    assert match
    assert match[1] == "bpftool flex"
    assert bootstrap(machine, *wanted(), words=("deploy",)) == []
    # Where stored runs are read, Python alone is needed.
    for installed, words in ((wanted(), ()), ((), ("alone",))):
        said = "\n".join(bootstrap(machine, *installed, words=("/nowhere/requirements.txt", *words)))
        assert "Debian packages" not in said
        assert INSTALLS in said
        assert "chromium" not in said


def test_bootstrap__goes_on_without_a_browser_for_tests(machine: Path) -> None:
    installed = (*wanted(), "fonts-dejavu-core")
    said = "\n".join(bootstrap(machine, *installed, words=("/nowhere/requirements-dev.txt",)))
    assert "note: tests that need chromium chromium-driver will be skipped" in said
    assert INSTALLS in said
    (machine / "id").write_text("#!/bin/sh\necho 0\n")
    said = "\n".join(bootstrap(machine, *wanted(), words=("/nowhere/requirements-dev.txt",)))
    assert "warning: chromium chromium-driver fonts-dejavu-core could not be installed" in said
    assert INSTALLS in said


def test_make__asks_for_the_packages_of_its_goal() -> None:
    for goals, more in ((["replay"], " alone"), (["advise"], " alone"), (["replay", "experiment"], "")):
        words = ["make", "-n", "-W", "requirements.txt", *goals]
        done = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=True)
        assert f"ansible/bootstrap.sh requirements.txt{more}" in map(str.strip, done.stdout.splitlines()), goals
