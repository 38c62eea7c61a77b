# SPDX-License-Identifier: MIT
"""The wheel: built, installed without a network into an empty environment, and run there by an ordinary user. The
packages that it depends on are those of this environment.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.names import SUMMARY

CHECKOUT = Path(__file__).resolve().parents[2]
EXPERIMENT = (
    "experiment",
    "CLOCK=virtual",
    "CC=reno",
    "FLOWS=1",
    "RATE=10mbit",
    "RTT=10ms",
    "DURATION=1s",
    "WARMUP=1s",
)
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs")
OTHER_USER = 65533
OTHERS = sysconfig.get_path("purelib")  # the packages that the wheel depends on
RAW = ("postcards.bsp", "tcp.bst", "goodput.bsg", "spec.yaml")


def built(into: Path) -> Path:
    words = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-w", str(into)]
    subprocess.run([sys.executable, "-m", "pip", *words, CHECKOUT], check=True, cwd=into)
    (wheel,) = into.glob("*.whl")
    return wheel


def everybodys() -> tuple[str, tuple[str, ...]]:
    """A Python, and what makes nobody of root to run it. Of a Python that only this user can run: this user."""
    system = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    if os.geteuid() == 0:
        for python in (sys.executable, system):
            see = f"{python} -c 'import sys, venv, ensurepip; sys.path.append(\"{OTHERS}\"); import polars'"
            if subprocess.run([*NOBODY, "sh", "-c", see], capture_output=True, check=False).returncode == 0:
                return python, NOBODY
    return sys.executable, ()


PYTHON, DROP = everybodys()


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A directory that every user can read: that of the tests is root's alone."""
    directory = Path(tempfile.mkdtemp(prefix="bufferscope-wheel-", dir="/var/tmp"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def installed(place: Path) -> Path:
    """The program `bufferscope` of an environment with the wheel."""
    subprocess.run([PYTHON, "-m", "venv", place / "venv"], check=True)
    python = place / "venv/bin/python"
    words = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([python, "-m", "pip", *words, built(place)], check=True, cwd=place)
    (libraries,) = (place / "venv/lib").glob("python*/site-packages")
    (libraries / "others.pth").write_text(f"{OTHERS}\n")
    ansible = place / "venv/bin/ansible-playbook"
    ansible.write_text(f'#!/bin/sh\nexec {python} -m ansible playbook "$@"\n')
    ansible.chmod(0o755)
    return place / "venv/bin/bufferscope"


def ordinary(*argv: str | Path, cwd: Path, user: int = 65534) -> "subprocess.CompletedProcess[str]":
    """Runs a program with no path that leads to the checkout or to its environment."""
    if DROP:
        os.chown(cwd, user, user)
    drop = [word.replace("65534", str(user)) for word in DROP]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "BUFFERSCOPE_CACHE": str(cwd / "cache")}
    return subprocess.run([*drop, *argv], cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def home(installed: Path, place: Path) -> Path:
    """An ordinary user's home, with a kernel."""
    made = place / "home"
    made.mkdir()
    kernel = ordinary(installed, "kernel", f"KERNEL={CHECKOUT}/build/virtual/linux", cwd=made)
    assert kernel.returncode == 0, kernel.stderr
    return made


@pytest.mark.long
@pytest.mark.virtual
def test_wheel__runs_the_checkouts_experiment_to_the_byte(installed: Path, place: Path, home: Path) -> None:
    done = ordinary(installed, *EXPERIMENT, cwd=home)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"preparing this machine: packages, and the programs in {home}/cache/build/" in done.stdout
    run = home / "results/latest/rep-1"
    assert json.loads((run / SUMMARY).read_text())["valid"]
    here = [sys.executable, "-m", "bufferscope", *EXPERIMENT, f"RESULTS={place}/results"]
    subprocess.run(here, check=True, cwd=CHECKOUT, capture_output=True)
    for name in RAW:
        assert (run / name).read_bytes() == (place / "results/latest/rep-1" / name).read_bytes(), name
    git = json.loads((run / "environment.json").read_text())["git"]
    assert git == json.loads((place / "results/latest/rep-1/environment.json").read_text())["git"]
    again = ordinary(installed, "replay", "results/latest", cwd=home)
    assert "byte for byte" in again.stdout, again.stdout + again.stderr


@pytest.mark.long
@pytest.mark.virtual
def test_wheel__draws_a_papers_figure(installed: Path, home: Path) -> None:
    done = ordinary(installed, "figures", "spang2021", "FIGURE=4", "SMOKE=1", cwd=home)
    assert done.returncode == 0, done.stdout + done.stderr
    sizes = [path.stat().st_size for path in (home / "results").glob("**/fig*4*.png")]
    assert sizes
    assert min(sizes) > 5000


@pytest.mark.long
@pytest.mark.virtual
@pytest.mark.skipif(not DROP, reason="only root can become another user")
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")
def test_verify__repeats_another_users_run_in_a_home_of_its_own(installed: Path, place: Path, home: Path) -> None:
    for words in (EXPERIMENT, ("pack", "results/latest", "OUTPUT=a.packed")):
        done = ordinary(installed, *words, cwd=home)
        assert done.returncode == 0, done.stdout + done.stderr
    other = place / "other"
    other.mkdir()
    shutil.copy(home / "a.packed", other)
    home.chmod(0o700)
    done = ordinary(installed, "verify", "a.packed", "YES=1", cwd=other, user=OTHER_USER)
    home.chmod(0o755)
    assert "the same bytes in" in done.stdout, done.stdout + done.stderr


@pytest.mark.long
def test_wheel__has_one_top_level_package_and_refuses_what_changes_a_checkout(installed: Path, place: Path) -> None:
    libraries = next((place / "venv/lib").glob("python*/site-packages"))
    ours = {path.name for path in libraries.iterdir() if path.name.startswith("bufferscope")}
    assert sorted(name.partition("-")[0] for name in ours) == ["bufferscope", "bufferscope"]
    assert not {"lib", "analysis", "experiments"} & {path.name for path in libraries.iterdir()}
    for words, line in (
        (("bench",), "bench works on the files of a checkout"),
        (("p4",), "p4 alone compiles the sources of a checkout"),
        (("figures", "spang2021", "PUBLISH=1"), "copies to docs/results/ of a checkout"),
    ):
        done = ordinary(installed, *words, cwd=place)
        assert done.returncode == 1
        assert line in done.stderr
