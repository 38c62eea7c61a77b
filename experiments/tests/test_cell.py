# SPDX-License-Identifier: MIT
"""The cell: its namespaces stay private, results and signals are passed on, and no part of it outlives the runner."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.machine import cell, leftovers
from experiments.machine.host import CHECKOUT
from experiments.spec import topology
from experiments.tests.conftest import names, wait_for
from lib.errors import Interrupted, RunError

pytestmark = [
    pytest.mark.software,
    pytest.mark.usefixtures("unchanged_world"),
]


def test_run__returns_what_the_work_returns_and_keeps_namespaces_and_interfaces_inside() -> None:
    """A namespace of the host with the same name is untouched."""

    def work() -> dict[str, object]:
        before = sorted(names("/run"))
        topology.build(topology.Network(1500))
        seen = subprocess.run(["ip", "-netns", "switch", "-o", "link"], capture_output=True, text=True, check=True)
        links = [line.split()[1] for line in seen.stdout.splitlines()]
        return {"pid": os.getpid(), "before": before, "names": sorted(names("/run/netns")), "links": links}

    own = not Path("/run/netns/receiver").exists()
    if own:
        subprocess.run(["ip", "netns", "add", "receiver"], check=True)
    try:
        inode = Path("/run/netns/receiver").stat().st_ino
        assert cell.run(work) == {
            "pid": 2,
            "before": ["bufferscope", "netns"],
            "names": ["collector", "receiver", "sender", "switch"],
            "links": ["lo:", "to_sender@if2:", "to_receiver@if2:", "to_collector@if2:"],
        }
        assert Path("/run/netns/receiver").stat().st_ino == inode
    finally:
        if own:
            subprocess.run(["ip", "netns", "delete", "receiver"], check=True)


def test_run__errors_come_back_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise RunError("the first thing", "the second thing")

    with pytest.raises(RunError) as failure:
        cell.run(refuse)
    assert failure.value.lines == ["the first thing", "the second thing"]
    with pytest.raises(RunError, match="status 137"):
        cell.run(lambda: os.kill(os.getpid(), signal.SIGKILL))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(RunError, match=r"^not root: .* run the command again with sudo$"):
        cell.run(int)


def test_run__programs_that_detach_themselves_are_reaped_and_end_with_it() -> None:
    def work() -> str:
        for seconds in ("0.01", "1000"):
            subprocess.run(["setsid", "--fork", "sleep", seconds], check=True)
        assert wait_for(lambda: len(list(Path("/proc").glob("[0-9]*"))) == 3)
        return " ".join(sorted(path.read_text().split()[2] for path in Path("/proc").glob("[0-9]*/stat")))

    assert "Z" not in cell.run(work)


RUNNER = """
import subprocess, sys, time
from experiments.machine import cell
from experiments.spec import topology
def work():
    print("in", flush=True)
    topology.build(topology.Network(1500))
    subprocess.Popen(["nsenter", "--net=/run/netns/sender", "sleep", "1000"], start_new_session=True)
    print("ready", flush=True)
    try:
        time.sleep(1000)
    finally:
        print("stopping", flush=True)
        time.sleep(float(sys.argv[1]))
        print("stopped", flush=True)
try:
    cell.run(work)
except cell.Interrupted as interrupted:
    print("interrupted by", interrupted, flush=True)
"""


TRACED = """
import subprocess, time
from experiments.machine import cell, leftovers
def work():
    files = ["--output", "/run/tcp.bst", "--summary", "/run/tracer.json", "--netns", "/proc/self/ns/net"]
    subprocess.Popen([str(leftovers.TRACER), "--source", "tracefs", *files])  # says "ready"
    time.sleep(1000)
cell.run(work, leftovers.REMOVE_INSTANCES)
"""


def started(until: str, stop_s: str = "0", program: str = RUNNER) -> subprocess.Popen[str]:
    runner = subprocess.Popen(
        [sys.executable, "-c", program, stop_s], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert runner.stdout
    for line in runner.stdout:
        if line == f"{until}\n":
            return runner
    raise AssertionError(f"the runner ended before {until!r}")


@pytest.mark.parametrize(
    ("number", "moment"), [(signal.SIGINT, "in"), (signal.SIGTERM, "ready"), (signal.SIGHUP, "ready")]
)
def test_signal__lets_the_work_stop_in_order(number: signal.Signals, moment: str) -> None:
    runner = started(moment)
    runner.send_signal(number)
    output, _ = runner.communicate(timeout=60)
    assert output.endswith(f"interrupted by {number.name}\n")
    if moment == "ready":
        assert "stopping\nstopped\n" in output


def test_signal__that_comes_when_the_work_is_done_keeps_what_follows_from_beginning(tmp_path: Path) -> None:
    def work() -> str:
        for number in cell.FORWARDED:
            signal.signal(number, signal.SIG_IGN)
        (tmp_path / "ignores").touch()
        assert wait_for((tmp_path / "sent").exists)
        return "done"

    ignores, sent = tmp_path / "ignores", tmp_path / "sent"
    script = f"until [ -e {ignores} ]; do sleep 0.01; done; kill -TERM {os.getpid()}; sleep 0.1; touch {sent}"
    with subprocess.Popen(["sh", "-c", script]), pytest.raises(Interrupted, match="SIGTERM"):
        cell.run(work)


def test_signal__that_is_ignored_from_the_beginning_stays_so_and_the_second_one_does_not_wait() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup(1) does; a child inherits SIG_IGN
    try:
        runner = started("ready", stop_s="100")
    finally:
        signal.signal(signal.SIGHUP, before)
    runner.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        runner.wait(1)
    runner.send_signal(signal.SIGTERM)
    assert runner.stdout
    assert runner.stdout.readline() == "stopping\n"
    runner.send_signal(signal.SIGINT)
    assert runner.communicate(timeout=60)[0] == "interrupted by SIGTERM\n"


@pytest.mark.parametrize(("moment", "delay_ms"), [("in", 3), ("ready", 0)])
def test_sigkill__leaves_nothing(moment: str, delay_ms: int) -> None:
    runner = started(moment)
    time.sleep(delay_ms / 1000)
    runner.kill()
    runner.communicate(timeout=60)


@pytest.mark.skipif(not leftovers.TRACER.exists(), reason="not built: build/tcp_trace (make build)")
def test_sigkill__leaves_no_instance_of_tracefs(tmp_path: Path) -> None:
    """The tracer's own remover is in the cell and ends with it. The kernel keeps the instance."""
    subprocess.run(leftovers.REMOVE_INSTANCES, check=True)  # the tracer would take the name of a stale one
    subprocess.run(["mount", "-t", "tracefs", "tracefs", tmp_path], check=True)
    try:
        before = names(f"{tmp_path}/instances")
        runner = started("ready", program=TRACED)
        made = names(f"{tmp_path}/instances") - before
        assert made
        runner.kill()
        runner.communicate(timeout=60)
        assert wait_for(lambda: not names(f"{tmp_path}/instances") & made)
    finally:
        subprocess.run(["umount", tmp_path], check=True)
