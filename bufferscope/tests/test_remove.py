# SPDX-License-Identifier: MIT
"""`bufferscope rm`: what it removes, and all that it leaves alone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from analysis.tests import sweeps
from analysis.tests.recordings import RECORDED
from bufferscope import remove
from bufferscope.__main__ import main
from experiments.machine.host import CHECKOUT
from lib import leftovers
from runs import results, run_table
from runs.lock import only_one

OLD_S = time.time() - 40 * 86_400
NAMES = {"20260101T000000Z-old", "20260102T000000Z-new", "sweep"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """results/ with an old run, a new one, an old sweep, and what is none of these: links, files, a directory."""
    top = tmp_path / "results"
    for name in ("old", "new"):
        run = top / f"2026010{'12'[name == 'new']}T000000Z-{name}"
        shutil.copytree(RECORDED / "virtual/rep-1", run / "rep-1")
        shutil.copy(RECORDED / "virtual/summary.json", run / "rep-1")
    summary = json.loads((RECORDED / "virtual/summary.json").read_text())
    for run in sweeps.write(top / "sweep", summary, {"cc": ["reno"], "buf": [10, 20]}).values():
        (run / "rep-1/THINNED").unlink()
        (run / "rep-1/postcards.bsp").write_bytes(bytes(1 << 16))
    (tmp_path / "outside/rep-1").mkdir(parents=True)
    (tmp_path / "outside/rep-1/spec.yaml").write_text("mine")
    (top / "linked").symlink_to(tmp_path / "outside")
    (top / "20260101T000000Z-old/rep-1/logs").symlink_to(tmp_path / "outside")
    (top / "figures").mkdir()
    (top / "figures/a.svg").write_text("mine")
    (top / "notes.txt").write_text("mine")
    for parent, names, found in os.walk(top):
        if "new" not in parent:
            for name in (*names, *found):
                os.utime(Path(parent, name), (OLD_S, OLD_S), follow_symlinks=False)
    results.point_latest(top, top / "20260101T000000Z-old")
    return top


def there(place: Path) -> set[str]:
    return {path.name for path in place.iterdir()} & NAMES


def untouched(place: Path) -> bool:
    mine = ("../outside/rep-1/spec.yaml", "figures/a.svg", "notes.txt", "linked/rep-1/spec.yaml")
    return all((place / name).read_text() == "mine" for name in mine)


def test_rm__says_what_it_frees_and_needs_a_yes(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rm", "OLDER_THAN=30d", f"RESULTS={place}"]) == 1
    out, err = capsys.readouterr()
    assert "removes 1 run and 1 sweep: frees " in out
    assert err == "error: removing needs a yes: add YES=1; nothing was removed\n"
    assert there(place) == NAMES
    assert main(["rm", "OLDER_THAN=30d", f"RESULTS={place}", "YES=1"]) == 0
    assert there(place) == {"20260102T000000Z-new"}
    assert untouched(place)
    assert not (place / "latest").is_symlink()  # it would lead nowhere
    assert set(run_table.read(place)["run"]) == {"20260102T000000Z-new/rep-1"}
    assert not [path for path in place.iterdir() if path.name.startswith(".")]
    assert main(["rm", "OLDER_THAN=30d", f"RESULTS={place}"]) == 0
    assert capsys.readouterr().out.endswith("nothing to remove\n")


def test_rm__keeps_summaries_and_pages_of_what_is_analysed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unfinished = place / "20260103T000000Z-unfinished/rep-1"
    unfinished.mkdir(parents=True)
    (unfinished / "spec.yaml").write_text("x")
    os.utime(unfinished / "spec.yaml", (OLD_S, OLD_S))
    assert main(["rm", "OLDER_THAN=30d", "KEEP=summary", f"RESULTS={place}", "YES=1"]) == 0
    out, err = capsys.readouterr()
    assert "keeps the summary of 3 repetitions in 1 run and 1 sweep: frees " in out
    assert str(unfinished) in err
    assert (unfinished / "spec.yaml").exists()
    assert untouched(place)
    for run in (place / "20260101T000000Z-old", *(place / "sweep/runs").iterdir()):
        names = {path.name for path in (run / "rep-1").iterdir()}
        assert names >= {"summary.json", "environment.json", "THINNED"}
        assert not names & {"postcards.bsp", "tcp.bst", "logs"}
    assert (place / "20260102T000000Z-new/rep-1/postcards.bsp").exists()
    assert set(run_table.read(place).filter(kept="summary")["run"].str.split("/").list[0]) == {
        "20260101T000000Z-old", "sweep",
    }  # fmt: skip
    assert main(["rm", "OLDER_THAN=30d", "KEEP=tables", f"RESULTS={place}", "YES=1"]) == 0  # nothing comes back


def test_rm__leaves_what_a_command_writes_to(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = place / "20260101T000000Z-old"
    job = next((place / "sweep/runs").iterdir())
    for keep in ([], ["KEEP=summary"]):
        with results.running(old), only_one(job / "rep-1"):
            assert main(["rm", "OLDER_THAN=30d", f"RESULTS={place}", "YES=1", *keep]) == 2
        out, err = capsys.readouterr()
        assert out == "nothing to remove\n"
        assert f"{old}: a running command writes to {old}; it stays\n" in err
        assert str(job / "rep-1") in err
        assert there(place) == NAMES
        assert (old / "rep-1/postcards.bsp").exists()


def test_rm__puts_back_what_a_command_begins_to_write_to(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old, rename = place / "20260101T000000Z-old", os.rename
    with only_one(old / "rep-1"):
        monkeypatch.setattr(remove.contents, "written_by", lambda path, itself=True: None if itself else path)
        assert main(["rm", str(old), "YES=1"]) == 2
    assert "a command began to write to it; it stays" in capsys.readouterr().err
    assert (old / "rep-1/postcards.bsp").exists()
    assert os.rename is rename


def test_rm__of_one_run_takes_a_link_beside_it_and_refuses_others(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, why in (
        ("linked", "leads out of"), ("figures", "is no run or sweep"), ("none", "is no run or sweep"),
        ("20260101T000000Z-old/rep-1", "is no run or sweep"), ("notes.txt", "is no run or sweep"),
    ):  # fmt: skip
        assert main(["rm", str(place / name), "YES=1"]) == 1
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert why in err
    for words, why in (([], "or RUN is needed"), (["x", "OLDER_THAN=1d"], "only one of them"),
                       (["OLDER_THAN=5"], "is no age"), (["x", "KEEP=all"], "KEEP=all")):  # fmt: skip
        assert main(["rm", *words]) == 1
        assert why in capsys.readouterr().err
    assert there(place) == NAMES
    assert main(["rm", str(place / "latest"), "YES=1"]) == 0
    assert there(place) == NAMES - {"20260101T000000Z-old"}
    assert untouched(place)


KILLED = """
import os, signal, sys
def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)
from bufferscope import remove
AT
from bufferscope.__main__ import main
main(sys.argv[1:])
"""


MOVED = "remove.files.remove = lambda name, within: name[0] == '.' or kill()"


@pytest.mark.parametrize("at", [MOVED, "remove.run_table.write = kill", "remove.thin = kill"])
def test_rm__killed_leaves_a_run_or_none_and_the_next_removes_the_rest(place: Path, at: str) -> None:
    keep = ["KEEP=summary"] if "remove.thin" in at else []
    words = ["rm", "OLDER_THAN=30d", f"RESULTS={place}", "YES=1", *keep]
    done = subprocess.run(
        [sys.executable, "-c", KILLED.replace("AT", at), *words], cwd=CHECKOUT, capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    table = run_table.read(place)
    assert table.filter(~table["valid"])["reasons"].to_list() == []
    assert {run.split("/")[0] for run in table["run"]} == there(place)
    left = list(leftovers.below(place))
    assert main(words) == 0
    assert list(leftovers.below(place)) == []
    assert there(place) == (NAMES if keep else {"20260102T000000Z-new"})
    assert bool(left) == (at == MOVED)
    assert untouched(place)
