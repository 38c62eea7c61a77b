# SPDX-License-Identifier: MIT
"""Programs that outlive the task that started them: readiness, exit status, and clean-up."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hosts import daemon
from hosts.tests.patience import wait_until
from hosts.tests.processes import state

# A well-behaved program: ready at once, exits with 0 on SIGTERM.
GOOD = [
    sys.executable,
    "-c",
    "import signal, sys, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
    "print('ready', flush=True)\n"
    "while True: time.sleep(1)",
]


def shell(text: str) -> list[str]:
    return ["/bin/sh", "-c", text]


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "runtime"
    yield directory
    for path in directory.glob("*.pid"):
        with contextlib.suppress(daemon.DaemonError):
            daemon.stop(path.stem, directory, timeout_s=1)


def start(runtime: Path, argv: list[str], name: str = "program", timeout_s: float = 60.0) -> dict:
    return daemon.start(name, argv, runtime, runtime.parent / "logs", timeout_s=timeout_s)


def test_start__returns_when_the_program_is_ready_and_a_second_start_changes_nothing(runtime: Path) -> None:
    first = start(runtime, GOOD)
    assert first["changed"]
    assert int((runtime / "program.pid").read_text()) == first["pid"]
    assert start(runtime, GOOD) == {"changed": False, "name": "program", "pid": first["pid"]}
    assert daemon.status(runtime)["daemons"][0]["running"]
    with pytest.raises(daemon.DaemonError, match=r"already runs .* with other arguments"):
        start(runtime, [*GOOD, "more"])
    stopped = daemon.stop("program", runtime)
    assert (stopped["changed"], stopped["exit_status"], stopped["signal"]) == (True, 0, None)
    assert not Path(f"/proc/{first['pid']}").exists()
    assert json.loads((runtime / "program.exit").read_text())["exit_status"] == 0
    assert not (runtime / "program.pid").exists()
    assert not daemon.stop("program", runtime)["changed"]


def test_start__ready_must_be_a_whole_line_of_this_start(runtime: Path) -> None:
    logs = runtime.parent / "logs"
    logs.mkdir()
    (logs / "program.log").write_text("ready\n")
    with pytest.raises(daemon.DaemonError, match=r"not ready after 2 s and was killed: not$"):
        start(runtime, shell("echo already; printf 'not\\nready'; sleep 600"), timeout_s=2)
    assert not (runtime / "program.pid").exists()


def test_start__a_program_in_a_session_of_its_own_outlives_the_caller(runtime: Path) -> None:
    command = [sys.executable, "-m", "hosts.daemon", "start", "--name", "program", "--runtime-dir", str(runtime)]
    command += ["--logs-dir", str(runtime.parent / "logs"), "--", *GOOD]
    # capture_output waits until every holder of the pipes has closed them, so the program must not hold them.
    result = subprocess.run(command, capture_output=True, start_new_session=True, timeout=60, check=True)
    pid = json.loads(result.stdout)["pid"]
    assert os.getsid(pid) == pid
    assert {entry.name for entry in Path(f"/proc/{pid}/fd").iterdir()} == {"0", "1", "2"}
    assert daemon.stop("program", runtime)["exit_status"] == 0


def test_start__reports_the_last_words_of_a_program_that_ends_and_leaves_only_the_lock(runtime: Path) -> None:
    with pytest.raises(daemon.DaemonError, match=r"program did not start \(exit status 3\): the port is busy"):
        start(runtime, shell("echo the port is busy >&2; exit 3"))
    assert [path.name for path in runtime.iterdir()] == ["program.lock"]
    assert daemon.stop("program", runtime)["state"] == "never started"


def test_start__refuses_a_name_that_is_a_path_and_a_file_that_cannot_be_executed(runtime: Path) -> None:
    for name in ("", "..", "a/b", "-x", "a b", "a" * 65):
        with pytest.raises(daemon.DaemonError, match="daemon name"):
            start(runtime, GOOD, name=name)
    assert not runtime.exists()
    for program in ("/no/such/program", "/etc/passwd", "/"):
        with pytest.raises(daemon.DaemonError, match=f"cannot start {program}: no such executable"):
            start(runtime, [program])
    assert daemon.main(["stop", "--name", "../x", "--runtime-dir", str(runtime)]) == 1


def test_start__arguments_are_seen_by_no_shell(runtime: Path) -> None:
    argv = [sys.executable, "-c", "import sys, time; print(sys.argv[1:]); print('ready', flush=True); time.sleep(60)"]
    hostile = ["$(touch x)", "; exit", "a\nb", "*", ""]
    start(runtime, [*argv, *hostile])
    assert (runtime.parent / "logs/program.log").read_text().startswith(str(hostile))
    with pytest.raises(daemon.DaemonError, match="killed by SIGTERM"):
        daemon.stop("program", runtime)


def test_stop__a_bad_exit_status_is_an_error_and_is_recorded(runtime: Path) -> None:
    start(runtime, shell("trap 'echo disk full; exit 4' TERM; echo ready; while :; do sleep 0.02; done"))
    for _ in range(2):
        with pytest.raises(daemon.DaemonError, match=r"ended badly \(exit status 4\): disk full"):
            daemon.stop("program", runtime)
    assert json.loads((runtime / "program.exit").read_text())["exit_status"] == 4


def test_stop__an_early_end_is_an_error_even_with_status_0(runtime: Path) -> None:
    start(runtime, shell("echo ready; echo done early"))
    wait_until((runtime / "program.exit").exists)
    with pytest.raises(daemon.DaemonError, match=r"had ended by itself .* \(exit status 0\): done early"):
        daemon.stop("program", runtime)


def test_stop__ends_children_too(runtime: Path) -> None:
    def child(program: str) -> int:
        start(runtime, shell(program))
        return int((runtime.parent / "logs/program.log").read_text().split()[-2])

    stubborn = child("trap '' TERM; sleep 60 & echo child $!; echo ready; wait; sleep 60")
    with pytest.raises(daemon.DaemonError, match=r"did not end within 0.2 s of SIGTERM and was killed"):
        daemon.stop("program", runtime, timeout_s=0.2)
    wait_until(lambda: state(stubborn) == "Z")
    left = child("sleep 60 & echo child $!; trap 'exit 0' TERM; echo ready; while :; do sleep 0.02; done")
    assert daemon.stop("program", runtime)["children_killed"]
    wait_until(lambda: state(left) == "Z")


def test_stop__without_its_keeper_the_program_ends_and_the_lost_status_is_reported(runtime: Path) -> None:
    pid = start(runtime, GOOD)["pid"]
    os.kill(json.loads((runtime / "program.json").read_text())["keeper_pid"], signal.SIGKILL)
    with pytest.raises(daemon.DaemonError, match="exit status is unknown, since its keeper was killed"):
        daemon.stop("program", runtime)
    wait_until(lambda: state(pid) == "Z")


def test_stop__never_signals_a_process_that_only_has_the_same_pid(runtime: Path) -> None:
    pid = start(runtime, GOOD)["pid"]
    daemon.stop("program", runtime)
    other = subprocess.Popen(["sleep", "60"])
    try:
        state = {**json.loads((runtime / "program.json").read_text()), "pid": other.pid, "start_ticks": 1}
        (runtime / "program.json").write_text(json.dumps(state))
        (runtime / "program.pid").write_text(f"{other.pid}\n")
        daemon.stop("program", runtime)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
    assert pid != other.pid
