# SPDX-License-Identifier: MIT
"""The calls of Slurm's commands by ENGINE=slurm. Stand-ins answer here; test_slurm.py uses the real commands."""

import os
from pathlib import Path

import pytest

from experiments.sweep import slurm
from lib.errors import Interrupted, RunError

SIZE = slurm.Size(2500, 40.0)


class Commands:
    """Stand-ins on the PATH. Each records its arguments and its environment, and prints a file's text."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in slurm.PROGRAMS:
            path = directory / name
            path.write_text(
                f'#!/bin/sh\necho "$@" >> {directory}/{name}.words\nenv > {directory}/{name}.environment\n'
                f"cat {directory}/{name}.says; exit $(cat {directory}/{name}.status)\n"
            )
            path.chmod(0o755)
            self.say(name, "")
        self.say("scontrol", "MaxArraySize            = 1001\n")
        self.say("sbatch", "7\n")

    def say(self, name: str, text: str, status: int = 0) -> None:
        (self.directory / f"{name}.says").write_text(text)
        (self.directory / f"{name}.status").write_text(str(status))

    def words(self, name: str) -> list[str]:
        path = self.directory / f"{name}.words"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(slurm, "ASK_EVERY_S", 0.0)
    return Commands(tmp_path / "bin")


def names(count: int) -> list[str]:
    return [f"job{number}" for number in range(count)]


def test_arrays__are_as_long_as_allowed_and_follow_each_other_if_few_jobs_may_run(
    commands: Commands, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slurm.run(tmp_path, names(2500), 100, lambda: None, SIZE)
    arrays = [
        [word for word in line.split() if word.startswith(("--array", "--dep"))] for line in commands.words("sbatch")
    ]
    after = "--dependency=afterany:7"
    assert arrays == [["--array=0-999%100"], ["--array=0-999%100", after], ["--array=0-499%100", after]]
    assert all("--mem=2500 " in f"{line} " and "--time=12" in line for line in commands.words("sbatch"))
    # A refused array is no error after an accepted one.
    (commands.directory / "sbatch").write_text(
        f"#!/bin/sh\nif [ -e {tmp_path}/one ]; then echo QOSMaxSubmitJobPerUserLimit >&2; exit 1; fi\n"
        f"touch {tmp_path}/one; echo 7\n"
    )
    slurm.run(tmp_path, names(1500), 0, lambda: None, SIZE)
    assert "note: 500 jobs are submitted later: Slurm: sbatch: QOSMaxSubmitJobPerUserLimit" in capsys.readouterr().err


def test_task_of_an_unknown_job__is_no_reason_to_submit_a_job_again(commands: Commands, tmp_path: Path) -> None:
    for name in ("(null)", "0123456789abcdef"):
        commands.say("squeue", f"{name}|7|0|RUNNING|None\n")
        with pytest.raises(RunError, match=r"array job 7 runs .*; scancel 7 ends the array job"):
            slurm.run(tmp_path, names(1), 0, lambda: None, SIZE)
    assert commands.words("sbatch") == []


def queue(commands: Commands, tmp_path: Path, state: str) -> None:
    (tmp_path / slurm.HOME).mkdir(exist_ok=True)
    (tmp_path / slurm.HOME / "jobs-0123456789abcdef").write_text("job0\n")
    commands.say("squeue", f"0123456789abcdef|7|0|{state}\n")


def test_tasks__end_with_a_full_disk_and_go_on_under_a_scheduler_that_does_not_answer(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down() -> None:
        commands.say("squeue", "", status=1)

    def interrupted() -> None:
        down()
        raise Interrupted(2)

    def full() -> None:
        raise RunError("the disk is full")

    monkeypatch.setattr(slurm, "PATIENCE_S", 0.0)
    for watch, error, said in ((down, RunError, "Slurm: squeue"), (interrupted, Interrupted, "SIGINT")):
        queue(commands, tmp_path, "RUNNING|None")
        with pytest.raises(error, match=said):
            slurm.run(tmp_path, names(1), 0, watch, SIZE)
        assert commands.words("scancel") == []
    queue(commands, tmp_path, "RUNNING|None")
    with pytest.raises(RunError, match="the disk is full"):
        slurm.run(tmp_path, names(1), 0, full, SIZE)
    assert commands.words("scancel") == [f"--me --name={slurm._name(tmp_path)}"]
