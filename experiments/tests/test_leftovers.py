# SPDX-License-Identifier: MIT
"""Commands that are killed at random moments: `leftovers` names everything that they leave, and the next command of the
same kind removes it.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import lib.leftovers
from bufferscope.__main__ import main
from experiments.machine import leftovers
from experiments.machine.host import CHECKOUT
from hosts.tests.patience import wait_until
from lib import files
from lib.leftovers import below
from runs import results

RECORDED = CHECKOUT / "analysis/tests/recorded/virtual/rep-1"
KILLS = 4  # of each command
LIMIT_S = 300


def start(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "bufferscope", *words], cwd=CHECKOUT, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip


def done(*words: str) -> float:
    """Runs a command to its end; returns its duration in s."""
    begin = time.monotonic()
    with start(*words) as process:
        said, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, said
    return time.monotonic() - begin


def hidden(top: Path) -> set[Path]:
    """The hidden entries below a directory, without those inside of others."""
    paths = set(top.rglob(".*"))
    return {path for path in paths if not paths & set(path.parents)}


@pytest.mark.long
@pytest.mark.parametrize("name", ["replay", "whatif", "export", "import"])
def test_killed_command__leaves_what_is_listed_and_what_the_next_one_removes(tmp_path: Path, name: str) -> None:
    run = tmp_path / "run"
    shutil.copytree(RECORDED, run / "rep-1")
    done("replay", str(run))
    done("export", str(run), "FORMAT=pcapng", f"OUTPUT={tmp_path / 'cards.pcapng'}")
    output = tmp_path / "output"
    words = {
        "replay": ("replay", str(run)),
        "whatif": ("replay", str(run), "BUF=5p"),
        "export": ("export", str(run), "FORMAT=csv", f"OUTPUT={output}"),
        "import": ("import", str(tmp_path / "cards.pcapng"), f"OUTPUT={output}", "RATE=10mbit", "RTT=20ms"),
    }[name]
    duration_s = done(*words)
    draw = random.Random(name)
    for _ in range(KILLS):
        shutil.rmtree(output, ignore_errors=True)
        with start(*words) as process:
            time.sleep(draw.uniform(0.3, 1.0) * duration_s)
            os.killpg(process.pid, 9)
        wait_until(lambda: set(leftovers.files(tmp_path)) >= hidden(tmp_path))  # its children have the lock, too
    shutil.rmtree(output, ignore_errors=True)
    done(*words)
    assert hidden(tmp_path) == set()


def test_leftovers__names_them_all_removes_them_and_spares_what_is_in_use(tmp_path: Path) -> None:
    stale = {
        tmp_path / name for name in ("run/rep-1/.derived", "sweep/.report", "run/.importing", ".cards.pcapng.part")
    }
    for path in stale:
        path.mkdir(parents=True)
    # A killed run had its own process IDs: here another process has the first.
    stale |= {tmp_path / name for name in ("run/.summary.json.1.0.part", "run/.index.2.0.part", ".latest.3.0.part")}
    (tmp_path / "run/.summary.json.1.0.part").touch()
    (tmp_path / "run/.index.2.0.part").touch()
    (tmp_path / ".latest.3.0.part").symlink_to("run")
    used = tmp_path / f".summary.json.{os.getpid()}.0.part"
    recorded = tmp_path / "now/rep-1/.digests.json.4194305.0.part"  # beyond the largest process ID
    recorded.parent.mkdir(parents=True)
    recorded.touch()
    with (
        files.directory(tmp_path) as top, files.scratch(".x.part", top), results.running(tmp_path / "now"),
        files.replacing(tmp_path / "summary.json"),
    ):  # fmt: skip
        assert set(below(tmp_path)) == stale
        assert main(["leftovers", f"RESULTS={tmp_path}"]) == 2
        assert main(["leftovers", f"RESULTS={tmp_path}", "REMOVE=1"]) == 0
        assert hidden(tmp_path) == {used, recorded, tmp_path / ".x.part"}


@pytest.mark.software
def test_leftover__that_may_not_be_removed_stops_no_command_and_is_not_said_to_be_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(lib.leftovers, "NEW_S", 0.0)
    left = tmp_path / f"{lib.leftovers.PREFIX}left"
    left.mkdir()
    os.chown(tmp_path, 65534, 65534)
    with lib.leftovers.temporary() as directory:
        assert directory.is_dir()
        assert lib.leftovers.of_tmpdir() == [left]
    (tmp_path / ".x.part").mkdir()
    assert main(["leftovers", f"RESULTS={tmp_path}", "REMOVE=1"]) == 2
    said = capsys.readouterr()
    assert ("REMOVE=1" in said.out, "was not removed" in said.err) == (False, True)
