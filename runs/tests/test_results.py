# SPDX-License-Identifier: MIT
"""Run directories: their names, no overwriting, and the marks of runs that were killed or ended."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.machine.host import CHECKOUT, Host
from experiments.spec.disk import estimate_bytes, shortage
from experiments.spec.resolve import resolve
from experiments.tests.conftest import wait_for
from lib.errors import RunError
from runs import aborted, results
from runs.aborted import Aborted, Cause

NOON_S = 1_767_268_800.0  # 2026-01-01 12:00:00 UTC


def test_create__is_named_by_utc_and_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    assert results.create(tmp_path, "cubic16", NOON_S).name == "20260101T120000Z-cubic16"


def test_create__never_takes_a_directory_that_exists(tmp_path: Path) -> None:
    paths = [results.create(tmp_path, "x", NOON_S) for _ in range(3)]
    assert [path.name for path in paths] == [f"20260101T120000Z-x{suffix}" for suffix in ("", "-2", "-3")]
    results.create_repetition(tmp_path, 1)
    with pytest.raises(FileExistsError):
        results.create_repetition(tmp_path, 1)


def test_point_latest__moves_from_run_to_run_and_leaves_what_is_no_link(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        results.point_latest(tmp_path, tmp_path / name)
        assert (tmp_path / "latest").readlink() == Path(name)
    (tmp_path / "a/latest").mkdir()
    with pytest.raises(RunError, match="is not a link"):
        results.point_latest(tmp_path / "a", tmp_path / "a/b")


def test_repetitions__killed_or_unanalysed_are_those_without_mark(tmp_path: Path) -> None:
    run = results.create(tmp_path, "x", NOON_S)
    complete, left, aborted, killed = (results.create_repetition(run, number) for number in (1, 2, 3, 4))
    for repetition in (complete, left):
        (repetition / "environment.json").write_text("{}")
    (complete / "summary.json").write_text("{}")
    results.abort(aborted, Cause.STOPPED, "ended by SIGINT")
    results.point_latest(tmp_path, run)
    assert results.unanalysed(tmp_path) == [left]
    assert results.mark_killed(tmp_path) == [killed]
    assert (killed / "ABORTED").read_text() == "killed\nthe runner was killed before the end\n"
    assert (aborted / "ABORTED").read_text() == "stopped\nended by SIGINT\n"
    assert not (complete / "ABORTED").exists()


def test_replay_command__survives_the_shell() -> None:
    assert results.replay_command(Path("results/x/rep-1")) == "make replay RUN=results/x/rep-1"
    assert shlex.split(results.replay_command(Path("a b;c'd")))[2] == "RUN=a b;c'd"


def other(tmp_path: Path, calls: str) -> str:
    """The output of another process that calls results.*; t is the results directory."""
    program = f"from runs import results; from pathlib import Path; t = Path({str(tmp_path)!r}); print({calls})"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def test_running__is_not_taken_for_killed_by_another(tmp_path: Path) -> None:
    run = results.create(tmp_path, "x", NOON_S)
    with results.locked(tmp_path), results.running(run):
        first = results.create_repetition(run, 1)
        assert other(tmp_path, "results.mark_killed(t)") == "[]"
        (first / "environment.json").write_text("{}")
        assert other(tmp_path, "results.unanalysed(t)") == "[]"
    assert sorted(path.name for path in run.iterdir()) == ["rep-1"]
    assert other(tmp_path, "[path.name for path in results.unanalysed(t)]") == "['rep-1']"


def test_running__ends_with_its_last_process_even_after_sigkill(tmp_path: Path) -> None:
    run = results.create(tmp_path, "x", NOON_S)
    first = results.create_repetition(run, 1)
    program = (
        "import os, time; from runs import results; from pathlib import Path\n"
        f"with results.running(Path({str(run)!r})):\n"
        " os.fork(); os.write(1, b'ready\\n'); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=CHECKOUT, stdout=subprocess.PIPE, start_new_session=True
    ) as runner:
        assert runner.stdout
        assert runner.stdout.readline() == runner.stdout.readline() == b"ready\n"
        runner.kill()
        runner.wait()
        assert results.mark_killed(tmp_path) == []  # the runner's child goes on
        os.killpg(runner.pid, signal.SIGKILL)
    assert wait_for(lambda: results.mark_killed(tmp_path) == [first])


def test_locked__makes_a_second_command_wait(tmp_path: Path) -> None:
    with results.locked(tmp_path), results.running(results.create(tmp_path, "x", NOON_S)):
        waiting = subprocess.Popen(
            [sys.executable, "-c", "from runs import results; from pathlib import Path; import sys\n"
             "with results.locked(Path(sys.argv[1])): print('begun')", str(tmp_path)],
            cwd=CHECKOUT, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(0.5)
    assert waiting.communicate(timeout=60)[0] == "begun\n"
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="choose another with RESULTS="), results.locked(tmp_path / "file"):
        pass


def test_shortage__names_the_needed_space(tmp_path: Path) -> None:
    host = Host(("cubic",), netem=False)
    assert shortage(resolve({}, host), tmp_path) is None
    large = resolve({"rate": "100gbit", "rtt": "1ms", "duration": "80000s"}, host)
    assert "choose another directory with RESULTS=" in (shortage(large, tmp_path) or "")
    assert estimate_bytes(large) > 10**12


# ABORTED --------------------------------------------------------------------------------------------------------------


def test_read__returns_the_content_of_abort(tmp_path: Path) -> None:
    assert aborted.read(tmp_path) is None
    for cause in Cause:
        results.abort(tmp_path, cause, "ended by SIGTERM")  # the cause decides, whatever the reason says
        assert aborted.read(tmp_path) == Aborted(cause, "ended by SIGTERM")
        (tmp_path / "ABORTED").unlink()


def test_read__without_a_cause_of_a_full_disk_and_of_no_file(tmp_path: Path) -> None:
    for content, expected in (
        ("the receiver ended\nby  itself\n", Aborted(Cause.FAILED, "the receiver ended by itself")),
        ("", Aborted(Cause.FAILED, "")),
        ("failed\n", Aborted(Cause.FAILED, "")),
    ):
        (tmp_path / "ABORTED").write_text(content)
        assert aborted.read(tmp_path) == expected
    (tmp_path / "ABORTED").unlink()
    (tmp_path / "ABORTED").mkdir()
    assert aborted.read(tmp_path) == Aborted(Cause.FAILED, "ABORTED cannot be read: is not a regular file")
