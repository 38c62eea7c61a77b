# SPDX-License-Identifier: MIT
"""bootstrap.sh names all missing Debian packages to an ordinary user in one line, before it changes anything."""

from __future__ import annotations

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


def bootstrap(
    machine: Path, *installed: str, words: tuple[str, ...] = ("/nowhere/requirements.txt",)
) -> subprocess.CompletedProcess[str]:
    """Runs bootstrap.sh with a requirements file that does not exist, so that pip never installs anything."""
    (machine / "installed").write_text("".join(f"{name}\n" for name in installed))
    environment = os.environ | {"PATH": f"{machine}:{os.environ['PATH']}"}
    return subprocess.run(
        [BOOTSTRAP, *words],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_bootstrap__names_all_that_an_ordinary_user_lacks(machine: Path) -> None:
    done = bootstrap(machine)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    match = re.fullmatch(
        r"error: these Debian packages are missing: (.*); install them as root: apt-get install \1", line
    )
    assert match, line
    assert set(match[1].split()) - {"python3-venv"} == wanted()


def test_bootstrap__names_only_missing_packages(machine: Path) -> None:
    done = bootstrap(machine, *(wanted() - {"flex", "bpftool"}))
    assert done.stderr == (
        "error: these Debian packages are missing: bpftool flex; install them as root: apt-get install bpftool flex\n"
    )


def test_bootstrap__goes_on_without_missing_packages(machine: Path) -> None:
    done = bootstrap(machine, *wanted())
    assert "Debian packages" not in done.stderr
    assert "installing the Python packages of /nowhere/requirements.txt" in done.stdout


def test_bootstrap__asks_for_python_alone_where_stored_runs_are_read(machine: Path) -> None:
    done = bootstrap(machine, words=("/nowhere/requirements.txt", "alone"))
    assert "Debian packages" not in done.stderr
    assert "installing the Python packages" in done.stdout


def test_bootstrap__looks_for_packages_before_hosts_are_prepared(machine: Path) -> None:
    assert "Debian packages are missing: " in bootstrap(machine, words=("deploy",)).stderr
    done = bootstrap(machine, *wanted(), words=("deploy",))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("goals", "command"),
    [
        (("replay",), "ansible/bootstrap.sh requirements.txt alone"),
        (("advise",), "ansible/bootstrap.sh requirements.txt alone"),
        (("experiment",), "ansible/bootstrap.sh requirements.txt"),
        (("replay", "experiment"), "ansible/bootstrap.sh requirements.txt"),
    ],
)
def test_make__asks_for_the_packages_of_its_goal(goals: tuple[str, ...], command: str) -> None:
    done = subprocess.run(
        ["make", "-n", "-W", "requirements.txt", *goals], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert command in [line.strip() for line in done.stdout.splitlines()]


def test_bootstrap__lets_an_ordinary_user_test_without_a_browser(machine: Path) -> None:
    done = bootstrap(machine, *wanted(), "fonts-dejavu-core", words=("/nowhere/requirements-dev.txt",))
    assert "note: tests that need chromium chromium-driver will be skipped; to run them, as root: apt-get install" in (
        done.stdout
    )
    assert "installing the Python packages" in done.stdout


def test_bootstrap__goes_on_where_a_browser_cannot_be_installed(machine: Path) -> None:
    (machine / "id").write_text("#!/bin/sh\necho 0\n")
    done = bootstrap(machine, *wanted(), words=("/nowhere/requirements-dev.txt",))
    assert "warning: chromium chromium-driver fonts-dejavu-core could not be installed; the tests that need them" in (
        done.stderr
    )
    assert "installing the Python packages" in done.stdout


def test_bootstrap__asks_for_no_browser_without_tests(machine: Path) -> None:
    done = bootstrap(machine, *wanted())
    assert "chromium" not in done.stdout + done.stderr
