# SPDX-License-Identifier: MIT
"""Root's commands in the directory of another user, who meanwhile puts links to root's files in the place of every
directory and file that the commands write: no file of root's changes, and none is made.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analysis.figures import drawing
from analysis.papers import look
from analysis.tests import campaign, foreign, imports, simulate, sweeps
from bufferscope.__main__ import main
from lib import owner

pytestmark = pytest.mark.software
USER = 65534  # nobody
RUN, SWEEP, FIGURES = "results/run/rep-1", "results/sweep", "results/figures/spang2021-smoke"
# Of each command: its words, and the names below the directories of `results` that it writes.
COMMANDS: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "replay": (["replay", RUN, "FOREIGN=1"], (
        "results/run", RUN, f"{RUN}/figures", f"{RUN}/.derived", f"{RUN}/report.html", f"{RUN}/joined.parquet",
    )),
    "what-if": (["replay", RUN, "BUF=5p", "FOREIGN=1"], (
        RUN, f"{RUN}/.whatif", f"{RUN}/report.html", f"{RUN}/whatif-2",
    )),
    "sweep-report": (["sweep-report", SWEEP, "FOREIGN=1"], (
        SWEEP, f"{SWEEP}/figures", f"{SWEEP}/.report", f"{SWEEP}/report.html",
    )),
    "figures": (["figures", "spang2021", "FIGURE=1", "SMOKE=1", "DRAW=only", "RESULTS=results"], (
        "results/figures", FIGURES, f"{FIGURES}/.drawn", f"{FIGURES}/figure_01.svg",
    )),
    "compare": (["compare", RUN, "results/other/rep-1"], ("results/figures",)),
    "import": (["import", "FROM=trace", "OUTPUT=results/theirs", *imports.CONDITIONS], (
        "results/theirs", "results/theirs/.importing", "results/theirs/.importing/rep-1", "results/theirs/rep-1",
    )),
    "export": (["export", RUN, "FORMAT=csv", "OUTPUT=results/out"], ("results/.out.part", "results/out")),
    "export of a file": (["export", RUN, "FORMAT=pcapng", "OUTPUT=results/out.pcapng"], (
        "results/.out.pcapng.part", "results/out.pcapng",
    )),
}  # fmt: skip


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results directory with two runs and a sweep, and a trace to import."""
    directory = tmp_path_factory.mktemp("pristine")
    with campaign.undrawn():
        for seed, name in enumerate(("run", "other"), 1):
            campaign.made(directory / "results" / name / "rep-1", seed)
    summary = json.loads((directory / RUN / "summary.json").read_text())
    sweeps.write(directory / "results/sweep", summary, {"cc": ["reno"], "flows": [1, 2]})
    scenario = simulate.Scenario(duration_ns=300_000_000, warmup_ns=100_000_000)
    foreign.write_text(directory / "trace", scenario, simulate.Simulation(scenario).run())
    return directory


@pytest.fixture
def quickly_drawn(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def write(directory: Path, *names: str) -> None:
        for name in names:
            (directory / name).write_text('<svg viewBox="0 0 1 1"/>')

    def save_both(draws: Any, data: Any, directory: Path, name: str) -> None:
        write(directory, f"{name}.svg", f"{name}.png", f"{name}-phone.svg")

    monkeypatch.setattr(drawing, "save_both", save_both)
    monkeypatch.setattr(look, "render", lambda name, draw, data, directory, **_: write(directory, f"{name}.svg"))
    monkeypatch.setattr(owner, "_others", False)
    monkeypatch.delenv("SUDO_UID", raising=False)
    with campaign.undrawn():
        yield


@contextlib.contextmanager
def played(path: Path, target: Path, seed: int) -> Iterator[None]:
    """USER, who owns the directories above `path`, puts a link to `target` there, and what was there back, again and
    again.
    """
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(USER)
            os.setuid(USER)
            chance = random.Random(seed)
            while os.getppid() != 1:
                swap(path, target, chance)
        finally:
            os._exit(0)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def swap(path: Path, target: Path, chance: random.Random) -> None:
    away = path.with_name(f"{path.name}.away")
    for step in (
        lambda: path.rename(away), lambda: path.symlink_to(target), lambda: time.sleep(chance.choice((0, 0, 0.001))),
        path.unlink, lambda: away.rename(path), lambda: time.sleep(chance.choice((0, 0, 0.001))),
    ):  # fmt: skip
        with contextlib.suppress(OSError):
            step()


def state(directory: Path) -> dict[str, bytes | None]:
    paths = sorted(directory.rglob("*"))
    return {str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None for path in paths}


@pytest.mark.parametrize("tries", [2, pytest.param(50, marks=pytest.mark.long)])
@pytest.mark.parametrize("command", COMMANDS)
def test_owner__makes_no_command_of_root_write_elsewhere(
    pristine: Path, quickly_drawn: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, tries: int
) -> None:
    area, outside = tmp_path / "area", Path(shutil.copytree(pristine, tmp_path / "outside"))
    words, names = COMMANDS[command]
    for name in names:  # every link leads to something that a careless writer would change
        if not (outside / name).exists():
            (outside / name).mkdir(parents=True)
    for parent in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        parent.chmod(0o755)
    before = state(outside)
    for seed in range(tries):
        shutil.rmtree(area, ignore_errors=True)
        shutil.copytree(pristine, area)
        for path in (area, *area.rglob("*")):
            os.chown(path, USER, USER)
        monkeypatch.chdir(area)
        name = (*names, "results")[seed % (1 + len(names))]
        with played(area / name, outside / name, seed):
            _, _, failure = campaign.bounded(lambda: main(words))
        assert not failure, (name, failure)
        assert state(outside) == before, name
