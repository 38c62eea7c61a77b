# SPDX-License-Identifier: MIT
"""A user's program runs as another user without capabilities, and ends on time with its children. Its output is
bounded. Each failure is one line.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hosts.tests.patience import SECONDS, wait_until
from hosts.tests.processes import free_port, state
from hosts.traffic import user_program

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="runs programs as other users, which needs root")
NOBODY = 65534
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs Python code as the client, or with name="server" as the server. Returns (exit status, last stderr line)."""

    def run(code: str, **values: Any) -> tuple[int, str]:
        for earlier in tmp_path.glob("*.*"):
            earlier.unlink()
        plan = plan_of(tmp_path, code, **values)
        status = user_program.main([str(plan), str(tmp_path)])
        lines = capsys.readouterr().err.splitlines()
        return status, lines[-1].removeprefix("user_program: ") if lines else ""

    return run


def plan_of(results: Path, code: str, **values: Any) -> Path:
    plan = {
        "name": "client",
        "argv": [sys.executable, "-I", "-c", code],
        "directory": "/",
        "scratch": str(results / "own"),
        "uid": 0,
        "gid": 0,
        "groups": [],
        "environment": {"LC_ALL": "C.UTF-8"},
        "output_bytes": 1000,
        "port": 1443,
        "duration_ns": int(SECONDS * 1e9),
    } | values
    file = results / "plan.json"
    file.write_text(json.dumps(plan))
    return file


def outcome(directory: Path, name: str = "client") -> dict[str, Any]:
    return json.loads((directory / f"{name}.json").read_text())


def test_client__runs_without_rights_and_sees_only_its_environment(tmp_path: Path, run: Run) -> None:
    code = (
        "import os, json; status = open('/proc/self/status').read();"
        "rights = [l for l in status.splitlines() if l.startswith(('CapEff', 'CapBnd', 'NoNewPrivs'))];"
        "print(json.dumps([os.getuid(), os.getgid(), os.getgroups(), rights, sorted(os.environ)]))"
    )
    assert run(code, uid=NOBODY, gid=NOBODY) == (0, "")
    user, group, groups, rights, environment = json.loads((tmp_path / "client.stdout").read_text())
    assert (user, group, groups) == (NOBODY, NOBODY, [])
    assert {line.split()[1].strip("0") for line in rights} == {"", "1"}  # no capability; no new privileges
    assert set(environment) <= {"LC_ALL"}
    assert outcome(tmp_path)["ended_by"] == "itself"


def test_client__that_lasts_is_ended_with_its_children_at_the_end(tmp_path: Path, run: Run) -> None:
    code = "import subprocess, time; c = subprocess.Popen(['sleep', '99']); print(c.pid, flush=True); time.sleep(99)"
    assert run(code, duration_ns=1_500_000_000, alone=True) == (0, "")
    child = int((tmp_path / "client.stdout").read_text())
    wait_until(lambda: state(child) == "Z")
    assert (outcome(tmp_path)["ended_by"], outcome(tmp_path)["signal"]) == ("duration", signal.SIGTERM)
    traffic = json.loads((tmp_path / "traffic.json").read_text())
    assert traffic["end_mono_ns"] - traffic["start_mono_ns"] == 1_500_000_000


def test_output__beyond_its_limit_is_counted_and_discarded(tmp_path: Path, run: Run) -> None:
    assert run("import sys; [sys.stdout.write('x' * 999 + '\\n') for _ in range(50000)]")[0] == 0
    assert (tmp_path / "client.stdout").stat().st_size == 1000
    stream = outcome(tmp_path)["output"]["stdout"]
    assert (stream["bytes"], stream["discarded_bytes"]) == (50_000_000, 49_999_000)


def test_client__that_fails_is_one_line(tmp_path: Path, run: Run) -> None:
    for code, said in (
        ("import sys; print('no route', file=sys.stderr); sys.exit(3)", "ended with status 3 after"),
        ("import os; os.kill(os.getpid(), 9)", "was killed by SIGKILL after"),
        ("raise ValueError('bad\\n\\nnews')", "ended with status 1 after"),
    ):
        status, line = run(code)
        assert status == 2
        assert said in line
        assert outcome(tmp_path)["errors"]
    assert run("", argv=["true"], directory=str(tmp_path / "none"))[0] == 1
    for uid in (2**32 - 1, -1, "0", True):  # setpriv would leave the rights as they are with the first
        assert run("", uid=uid)[0] == 1
    status, line = run("", argv=[str(tmp_path)])
    assert (status, "ended with status 126" in line) == (2, True)


def test_server__that_never_listens_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_program, "LISTEN_S", 2.0)
    for code, said in (
        ("", "ended with status 0 before it listened on port"),
        ("import sys; sys.exit('no certificate')", "no certificate; a server must stay in the foreground"),
        ("import time; time.sleep(99)", "has not bound port"),
    ):
        status, line = run(code, name="server", port=free_port())
        assert status == 2
        assert said in line


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_server__is_ready_when_it_listens_and_ends_when_told(tmp_path: Path, kind: str) -> None:
    port = free_port()
    listens = "s.listen()" if kind == "SOCK_STREAM" else "pass"
    code = f"import socket, time; s = socket.socket(type=socket.{kind}); s.bind(('127.0.0.1', {port})); {listens}"
    plan = plan_of(tmp_path, f"{code}; time.sleep(99)", name="server", port=port)
    words = [sys.executable, "-m", "hosts.traffic.user_program", str(plan), str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        assert server.stdout.readline() == "ready\n"
        server.terminate()
        assert server.wait(SECONDS) == 0
    assert outcome(tmp_path, "server")["ended_by"] == "stop"
