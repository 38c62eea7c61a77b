# SPDX-License-Identifier: MIT
"""The lease that reserves a host for a run: its end, and the clean-up of the host."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hosts import daemon, lease


def start(tmp_path: Path, ready: bool = True) -> subprocess.Popen[str]:
    words = ["--run-dir", str(tmp_path / "run"), "--state-dir", str(tmp_path / "state")]
    process = subprocess.Popen(
        [sys.executable, "-m", "hosts.lease", *words],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout
    assert not ready or process.stdout.readline() == "ready\n"
    return process


def test_lease__at_its_end_stops_programs_and_removes_the_run(tmp_path: Path) -> None:
    process = start(tmp_path)
    runtime = tmp_path / "run" / lease.RUNTIME
    pid = daemon.start("sleeper", ["sleep", "60"], runtime, tmp_path / "run/logs", ready=None)["pid"]
    said, complaint = process.communicate(lease.END.decode(), timeout=30)
    assert (json.loads(said), complaint, process.returncode) == ({"problems": []}, "", 0)
    assert not (tmp_path / "run").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_clean__ends_every_process_of_the_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "plan").write_text("")
    stubborn = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", stubborn, str(run / "plan")], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        assert lease.clean(run, tmp_path / "state", []) == []
        assert process.wait(timeout=10) == -signal.SIGKILL


def test_clean__takes_no_pid_file_of_a_killed_keeper_for_a_running_program(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    daemon.start("sleeper", ["sleep", "60"], run_dir / lease.RUNTIME, run_dir / "logs", ready=None)
    state = json.loads((run_dir / lease.RUNTIME / "sleeper.json").read_text())
    for pid in (state["keeper_pid"], state["pid"]):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(state["keeper_pid"], 0)
    assert (run_dir / lease.RUNTIME / "sleeper.pid").exists()
    assert lease.clean(run_dir, tmp_path / "state", []) == []
    assert not run_dir.exists()


def test_lease__cleans_up_after_an_earlier_run_whose_lease_was_killed(tmp_path: Path) -> None:
    earlier, other = tmp_path / "0123456789abcdef", tmp_path / "notes"
    runtime = earlier / lease.RUNTIME
    pid = daemon.start("sleeper", ["sleep", "60"], runtime, earlier / "logs", ready=None)["pid"]
    other.mkdir()
    process = start(tmp_path)
    assert not earlier.exists()
    assert other.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    process.communicate(lease.END.decode(), timeout=30)


def test_lease__is_for_one_run_at_a_time(tmp_path: Path) -> None:
    first = start(tmp_path)
    second = start(tmp_path, ready=False)
    assert "another experiment runs on this host" in second.communicate(lease.END.decode(), timeout=30)[1]
    assert second.returncode == lease.EXIT_REFUSED
    first.communicate(lease.END.decode(), timeout=30)
    start(tmp_path).communicate(lease.END.decode(), timeout=30)


@pytest.mark.parametrize(("last", "in_order"), [(b"\n", False), (lease.END, True), (lease.END + b"\n", True)])
def test_wait__ends_with_the_input_and_with_silence(last: bytes, in_order: bool) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"\n")
    begin = time.monotonic()
    assert lease.wait(reading, silence_s=0.2) is False
    assert time.monotonic() - begin >= 0.2
    os.write(writing, last)
    os.close(writing)
    assert lease.wait(reading, silence_s=60) is in_order
    os.close(reading)


def test_lease__whose_runner_was_killed_cleans_what_a_late_task_starts(tmp_path: Path) -> None:
    process = start(tmp_path)
    assert process.stdin
    process.stdin.close()
    process.stdin = None
    time.sleep(1)
    runtime = tmp_path / "run" / lease.RUNTIME
    with contextlib.suppress(daemon.DaemonError, OSError):  # the lease may remove the directory meanwhile
        daemon.start("sleeper", ["sleep", "60"], runtime, tmp_path / "run/logs", ready=None)
    assert json.loads(process.communicate(timeout=40)[0]) == {"problems": []}
    assert not (tmp_path / "run").exists()
    assert lease.others(tmp_path / "run") == []


@pytest.mark.software
def test_neighbour__forgets_connections_that_no_program_has(tmp_path: Path) -> None:
    """The side that closes first stays in TIME_WAIT. Until TIME_WAIT ends, iperf3 cannot bind to the port again."""
    script = """
import socket, sys
from hosts.lease import Neighbour
listener = socket.create_server(("127.0.0.2", 5201))
for turn in range(2):
    client = socket.socket()
    client.bind(("127.0.0.1", 30000))
    client.connect(("127.0.0.2", 5201))
    accepted = listener.accept()[0]
    client.close()
    accepted.close()
    if "forget" in sys.argv:
        Neighbour("lo", "127.0.0.2", "").forget_closed()
"""
    inside = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    for words, status in ((["forget"], 0), ([], 1)):
        done = subprocess.run(
            [*inside, sys.executable, "-c", script, *words],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        assert ("Address already in use" in done.stderr) == bool(status)


def test_clean__says_which_settings_it_could_not_restore(tmp_path: Path) -> None:
    (tmp_path / "tune-sender.json").write_text("{}")
    (problem,) = lease.clean(tmp_path / "run", tmp_path, [])
    assert problem.startswith("tune-sender.json: ")
    assert "state file" in problem


@pytest.mark.parametrize("text", ["eth0", "eth0,198.51.100.1", "a,b,c,d", ",,"])
def test_neighbour__is_three_words(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        lease.main(["--run-dir", "r", "--state-dir", "s", "--neighbour", text])
    assert "is not INTERFACE,ADDRESS,MAC" in capsys.readouterr().err
