# SPDX-License-Identifier: MIT
"""start.yml and stop.yml with the real programs. The programs outlive the playbook and end cleanly. The playbooks
report every failure.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible.tests.conftest import CHECKOUT, Cell
from experiments import topology
from experiments.configure import POSTCARD_PORT
from hosts.tests.patience import wait_until

BINARIES = ("softswitch", "collector", "tcp_trace", "traffic_sink")
OFF = ("tso", "off", "gso", "off", "gro", "off", "tx", "off")
DAEMONS = {"softswitch": "switch", "collector": "collector", "tcp_trace": "sender", "iperf_servers": "receiver"}
STRANGER = f"""\
import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"no postcard", ("{topology.COLLECTOR.ipv4}", {POSTCARD_PORT}))
"""  # sent from the collector's own address, which is not the switch's

pytestmark = pytest.mark.software


@pytest.fixture(scope="module")
def tuned(cell: Cell) -> None:
    """Turns offloads off: the switch refuses interfaces whose offloads merge or split packets."""
    for namespace, interface in [("switch", host.switch_interface) for host in topology.HOSTS]:
        cell.run("ethtool", "-K", interface, *OFF, netns=namespace)
    for host in topology.HOSTS:
        cell.run("ethtool", "-K", topology.INTERFACE, *OFF, netns=host.name)


@pytest.fixture
def programs(cell: Cell, tuned: None, run_variables: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The variables of a run whose programs can be started. Programs that still run after the test are stopped."""
    missing = [name for name in BINARIES if not (CHECKOUT / "build" / name).exists()]
    if missing:
        pytest.skip(f"not built: {', '.join(missing)} (make build)")
    unchanged_variables = dict(run_variables)
    yield run_variables
    if list(in_cell(cell, unchanged_variables, "").glob("*.pid")):
        cell.play("stop", **unchanged_variables)


def in_cell(cell: Cell, run: dict[str, Any], name: str) -> Path:
    """The path of a file in the run's runtime_dir, as seen from outside the cell."""
    return Path(f"/proc/{cell.pid}/root{run['runtime_dir']}/{name}")


def test_start__programs_run_in_their_namespaces_and_stop_ends_them(cell: Cell, programs: dict[str, Any]) -> None:
    programs["spec"]["groups"] = [{"cc": "cubic", "flows": 130}, {"cc": "bbr", "flows": 1}]
    started = cell.play("start", **programs)
    assert started.status == 0, started.stderr
    assert {host: totals["changed"] for host, totals in started.hosts.items()} == dict.fromkeys(DAEMONS.values(), 1)

    for name, host in DAEMONS.items():
        pid = in_cell(cell, programs, f"{name}.pid").read_text().strip()
        inode = cell.run("stat", "--dereference", "--format=%i", f"/proc/{pid}/ns/net")
        assert inode == cell.run("stat", "--format=%i", f"/run/netns/{host}")
        assert "ready" in (Path(programs["logs_dir"]) / f"{name}.log").read_text().splitlines()
    assert stat.S_ISSOCK(in_cell(cell, programs, "switch.sock").stat().st_mode)
    listening = cell.run("ss", "--listening", "--numeric", "--no-header", "--tcp", netns="receiver")
    assert all(f":{port}" in listening for port in (5201, 5202, 5203))
    (socket,) = cell.run("ss", "-lunH", netns="collector").splitlines()
    assert f"{topology.COLLECTOR.ipv4}:{POSTCARD_PORT}" in socket
    cell.run(sys.executable, "-c", STRANGER, netns="collector")

    again = cell.play("start", **programs)
    assert (again.status, again.changed) == (0, 0), again.stderr

    stopped = cell.play("stop", **programs)
    assert (stopped.status, stopped.changed) == (0, 4), stopped.stderr
    for name in DAEMONS:
        assert json.loads(in_cell(cell, programs, f"{name}.exit").read_text())["exit_status"] == 0
        assert not in_cell(cell, programs, f"{name}.pid").exists()
    for result in ("postcards.bsp", "collector.json", "tcp.bst", "tracer.json"):
        assert (Path(programs["run_dir"]) / result).exists()
    assert json.loads((Path(programs["run_dir"]) / "tracer.json").read_text())["lost"] == 0
    summary = json.loads((Path(programs["run_dir"]) / "collector.json").read_text())
    assert (summary["stranger_datagrams"], summary["received"]) == (1, 0)

    again = cell.play("stop", **programs)
    assert (again.status, again.changed) == (0, 0), again.stderr


def test_start__our_own_generator_has_its_own_sink(cell: Cell, programs: dict[str, Any]) -> None:
    programs["spec"] |= {"generator": "epoll", "groups": [{"cc": "cubic", "flows": 130}, {"cc": "reno", "flows": 1}]}
    started = cell.play("start", "receiver", **programs)
    assert (started.status, started.changed) == (0, 1), started.stderr
    listening = cell.run("ss", "--listening", "--numeric", "--no-header", "--tcp", netns="receiver")
    assert all(f":{port}" in listening for port in (5201, 5202))
    assert ":5203" not in listening
    stopped = cell.play("stop", "receiver", **programs)
    assert (stopped.status, stopped.changed) == (0, 1), stopped.stderr
    summary = json.loads((Path(programs["run_dir"]) / "traffic_sink.json").read_text())
    assert (summary["interval_ns"], summary["flows"]) == (10_000_000, [])
    assert (Path(programs["run_dir"]) / "goodput.bsg").exists()


def test_start__a_program_that_is_missing_is_one_sentence(cell: Cell, programs: dict[str, Any]) -> None:
    played = cell.play("start", "switch", **programs, switch_binary="/no/such/softswitch")
    assert played.status == 2
    (line,) = played.stderr.strip().splitlines()
    assert line.startswith("FAILED   switch: daemon : Ensure softswitch is started: softswitch: cannot start")
    assert cell.play("stop", "switch", **programs).status == 0


def test_start__a_busy_port_is_one_sentence(cell: Cell, programs: dict[str, Any]) -> None:
    command = [*cell.prefix, "nsenter", "--net=/run/netns/receiver", "iperf3", "--server", "--port", "5201"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as busy:
        try:
            wait_until(lambda: ":5201" in cell.run("ss", "-ltnH", netns="receiver"))
            played = cell.play("start", "receiver", **programs)
        finally:
            busy.terminate()
    assert played.status == 2
    (line,) = played.stderr.strip().splitlines()
    assert "iperf_servers did not start (exit status 1): servers: port 5201 is busy" in line


def test_start__too_long_a_socket_path_is_one_sentence(cell: Cell, programs: dict[str, Any]) -> None:
    programs["runtime_dir"] += "/" + "x" * 100
    played = cell.play("start", "switch", **programs)
    assert played.status == 2
    (line,) = played.stderr.strip().splitlines()
    assert "a Unix socket's path has at most 107: choose a shorter runtime_dir" in line


def test_stop__a_program_that_died_during_the_run_is_reported(cell: Cell, programs: dict[str, Any]) -> None:
    cell.play("start", "collector:sender", **programs)
    os.kill(_outer_pid(cell, programs, "collector"), signal.SIGKILL)
    wait_until(in_cell(cell, programs, "collector.exit").exists)
    played = cell.play("stop", "collector:sender", **programs)
    assert played.status == 2
    (line,) = played.stderr.strip().splitlines()
    assert "collector had ended by itself before it was stopped (killed by SIGKILL)" in line
    assert json.loads(in_cell(cell, programs, "tcp_trace.exit").read_text())["exit_status"] == 0


def _outer_pid(cell: Cell, run: dict[str, Any], name: str) -> int:
    """The program's pid outside the cell. The pid file has the inner pid; /proc/PID/status lists both."""
    wanted = in_cell(cell, run, f"{name}.pid").read_text().strip()
    inner = Path(f"/proc/{cell.pid}/ns/pid").stat().st_ino
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            numbers = (entry / "status").read_text().split("NSpid:")[1].split("\n")[0].split()
            if numbers[-1] == wanted and (entry / "ns/pid").stat().st_ino == inner:
                return int(entry.name)
        except (OSError, IndexError):
            continue
    raise AssertionError(f"{name} does not run")
