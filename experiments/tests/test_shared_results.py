# SPDX-License-Identifier: MIT
"""Root in a directory that other users may write to: root gives its files to the caller of sudo, changes no other
owner, follows no link, waits for no FIFO, and escapes names on the terminal.
"""

import fcntl
import os
import stat
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import polars
import pytest

from controlplane import lock
from controlplane.switch import SwitchError
from experiments.lab.choice import choose
from experiments.machine.host import Host
from experiments.run import runner
from experiments.run.analysis_process import analyse
from experiments.spec.resolve import resolve
from experiments.sweep import job, run
from lib import files, owner
from lib.errors import RunError
from runs import results, run_table
from runs.job_state import State, look
from runs.names import INDEX

pytestmark = pytest.mark.software
USER = 65534  # nobody
NOON_S = 1_767_268_800.0


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A results directory of USER, who calls sudo; every user may write there."""
    directory = tmp_path / "results"
    directory.mkdir()
    directory.chmod(0o777)
    os.chown(directory, USER, USER)
    for parent in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        parent.chmod(0o755)
    monkeypatch.setenv("SUDO_UID", str(USER))
    return directory


def uid(path: Path) -> int:
    return path.lstat().st_uid


def as_user(work: Callable[[], object]) -> None:
    """Runs `work` as USER, without root's rights and without SUDO_UID."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.environ.pop("SUDO_UID", None)
            os.setgroups([])
            os.setgid(USER)
            os.setuid(USER)
            work()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def in_time(work: Callable[[], object]) -> None:
    """Fails if `work` waits for a FIFO that nobody else opens."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()


def run_in(directory: Path, name: str = "x") -> Path:
    """Makes an experiment's files in a results directory, without summary. Returns the run's directory."""
    with results.locked(directory):
        run = results.create(directory, name, NOON_S)
    with results.running(run):
        repetition = results.create_repetition(run, 1)
        files.write_json(repetition / "environment.json", {})
        results.point_latest(directory, run)
    return run


def test_root__gives_the_caller_of_sudo_what_it_made_and_nothing_else(shared: Path) -> None:
    os.chown(shared, 12345, 12345)  # another user's directory, with other users' files
    (shared / "kept").write_text("root's")
    run = run_in(shared)
    assert uid(shared) == 12345
    assert uid(shared / "kept") == 0
    made = [run, run / "rep-1", run / "rep-1/logs", run / "rep-1/environment.json", shared / "latest"]
    assert [uid(path) for path in made] == [USER] * len(made)
    with results.locked(shared.parent / "new/results"):
        assert [uid(shared.parent / name) for name in ("new", "new/results")] == [USER, USER]


def test_user__goes_on_where_root_was(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_UID")
    run_in(shared)
    run_table.write(shared)
    as_user(lambda: run_in(shared))
    as_user(lambda: files.write_text(shared / INDEX, ""))  # polars does not work after a fork
    assert uid(shared / "latest") == uid(shared / "index.parquet") == USER


def test_sweep__of_sudo_is_the_callers_and_takes_no_directory_of_another_user(shared: Path, tmp_path: Path) -> None:
    own = shared / "sweep/runs/job-r1"
    files.make(own)
    os.close(files.open_regular(own / job.LOG, os.O_WRONLY | os.O_CREAT))
    results.create_repetition(own, 1)
    files.write_json(shared / "sweep/plan.json", {})
    assert {uid(path) for path in (shared / "sweep").rglob("*")} == {USER}
    (shared / "theirs").mkdir()
    os.chown(shared / "theirs", 12345, 12345)
    (shared / "link").symlink_to(tmp_path)
    for name, why in (("theirs", "belongs to user 12345, who could make a link"), ("link", "is a link")):
        with pytest.raises(RunError, match=why), run._alone(shared / name, shared):
            pass


def test_mark__follows_no_link_waits_for_no_fifo_and_leaves_what_another_user_has(shared: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    for name in ("a", "b", "c", "d"):
        (shared / name).mkdir()
    for name in ("a", "b"):
        (shared / name / "rep-1").mkdir()
    (shared / "a/rep-1/ABORTED").symlink_to(target)
    os.mkfifo(shared / "a/.lock")
    os.mkfifo(shared / ".lock")
    (tmp_path / "elsewhere/rep-1").mkdir(parents=True)
    (shared / "c/rep-1").symlink_to(tmp_path / "elsewhere/rep-1")
    (shared / "e").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(shared / "d/rep-1")
    os.mkfifo(shared / "b/rep-1/summary.json")
    (shared / "theirs/rep-1").mkdir(parents=True)
    os.chown(shared / "theirs", 12345, 12345)
    in_time(lambda: run_in(shared))
    assert not list((shared / "theirs/rep-1").iterdir())
    assert not target.exists()
    assert not list((tmp_path / "elsewhere/rep-1").iterdir())
    assert (shared / "b/rep-1/ABORTED").read_text() == "killed\nthe runner was killed before the end\n"


def test_files__that_are_replaced_never_write_through_a_link(shared: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("kept")
    names = ("index.parquet", "latest", "x.json", "report.html")
    for name in names:
        for planted in (f".{name}.{os.getpid()}", f".{name}.{os.getpid()}.0.part"):
            (shared / planted).symlink_to(target)
    run_table.write(shared)
    files.write_json(shared / "x.json", {})
    files.write_text(shared / "report.html", "page")
    results.point_latest(shared, run_in(shared, "y"))
    assert target.read_text() == "kept"
    assert (shared / "latest").readlink() == Path("20260101T120000Z-y")
    assert polars.read_parquet(shared / "index.parquet").height == 0
    assert all(not stat.S_ISLNK((shared / name).lstat().st_mode) for name in names if name != "latest")


def test_open__takes_a_regular_file_with_one_name(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "second").touch()
    (tmp_path / "second name").hardlink_to(tmp_path / "second")
    os.mkfifo(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    for name in ("link", "second", "fifo"):
        with pytest.raises(OSError, match=name):
            files.open_regular(tmp_path / name, os.O_WRONLY)
    os.close(reader)
    os.close(files.open_regular(tmp_path / "file", os.O_WRONLY))


def test_give__follows_no_link_and_takes_no_file_with_another_name(shared: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").touch()
    (shared / "made").mkdir()
    (shared / "made/link").symlink_to(outside)
    (shared / "made/hard").hardlink_to(outside / "file")
    (shared / "made/theirs").touch()
    os.chown(shared / "made/theirs", 12345, 12345)
    owner.give(shared / "made")
    found = {name: uid(shared / "made" / name) for name in (".", "link", "hard", "theirs")}
    assert found == {".": USER, "link": USER, "hard": 0, "theirs": 12345}
    assert uid(outside) == uid(outside / "file") == 0


def test_state_of_a_job_and_lock_of_a_switch__wait_for_no_fifo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("summary.json", "ABORTED", "THINNED"):
        (tmp_path / name / "rep-1").mkdir(parents=True)
        os.mkfifo(tmp_path / name / "rep-1" / name)
        states: list[State] = []
        in_time(lambda name=name, states=states: states.append(look(tmp_path / name).state))  # type: ignore[misc]
        assert states == [State.ABORTED if name == "ABORTED" else State.TO_DO]

    monkeypatch.setattr(lock, "DIRECTORIES", (tmp_path,))
    path = lock.lock_file("soft", "/run/switch.sock")
    os.mkfifo(path)
    holder = os.open(path, os.O_RDWR)
    fcntl.flock(holder, fcntl.LOCK_EX)
    said: list[str] = []

    def take() -> None:
        with pytest.raises(SwitchError) as refused, lock.only_writer("soft", "/run/switch.sock"):
            pass
        said.append(str(refused.value))

    in_time(take)
    os.close(holder)
    assert "cannot lock it" in said[0]


def test_user__who_cannot_run_the_analysis_is_told_in_one_line(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_in(shared)
    locked = tmp_path / "root's"
    locked.mkdir(mode=0o700)
    (locked / "python").symlink_to(sys.executable)
    (locked / "without").write_text("#!/bin/sh\nexec /usr/bin/env -i python3 -S -c 'raise SystemExit(\"no polars\")'\n")
    (locked / "without").chmod(0o755)
    for python, why in (("python", "Permission denied"), ("without", "no polars")):
        monkeypatch.setattr(sys, "executable", str(locked / python))
        if python == "without":
            locked.chmod(0o755)
        else:
            with pytest.raises(RunError, match=r"^nobody cannot run .*Permission denied.*tries again"):
                analyse(run / "rep-1")
        with pytest.raises(RunError) as refused:
            runner.preflight(choose(resolve({}, Host(("cubic",), netem=False))), shared)
        (line,) = [line for line in refused.value.lines if "cannot run" in line]
        assert why in line
    assert uid(run / "rep-1/logs/analysis.log") == USER
