# SPDX-License-Identifier: MIT
"""simple_switch as a program of a run: error messages when it cannot start; start and stop in a namespace."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hosts import bmv2

CHECKOUT = Path(__file__).resolve().parents[2]
JSON = CHECKOUT / "p4src/build/bufferscope.json"
NETNS = f"hostsbmv2{os.getpid()}"


@pytest.mark.parametrize(
    ("program", "json", "port", "message"),
    [
        ("no-such-switch", JSON, "1=lo", "no-such-switch is not on the PATH: make deploy TARGET=bmv2"),
        ("sh", Path("/nonexistent.json"), "1=lo", "/nonexistent.json: the compiled program cannot be read"),
        ("sh", JSON, "eth0", "--port eth0: allowed is NUMBER=INTERFACE"),
        ("sh", JSON, "511=lo", "--port 511=lo: allowed is NUMBER=INTERFACE with a number of 0 to 510"),
        ("sh", JSON, "1=nosuch0", "--port 1=nosuch0: there is no interface nosuch0 here"),
    ],
)
def test_problem__is_one_line(program: str, json: Path, port: str, message: str) -> None:
    assert message in str(bmv2.problem(program, json, [port]))


def test_run__of_a_program_that_ends_says_how(tmp_path: Path) -> None:
    program = tmp_path / "simple_switch"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    command = [sys.executable, "-m", "hosts.bmv2", "--program", str(program), "--json", str(JSON)]
    done = subprocess.run(
        [*command, "--thrift-port", "47653", "--runtime-dir", str(tmp_path), "--port", "1=lo"],
        cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == "bmv2: simple_switch ended by itself (status 3)"


@pytest.fixture
def namespace() -> Iterator[str]:
    if os.geteuid() != 0:
        pytest.skip("needs root: makes a network namespace")
    if not shutil.which("simple_switch"):
        pytest.skip("no simple_switch on the PATH: docs/target-bmv2.md says how to get it")
    subprocess.run(["ip", "netns", "add", NETNS], check=True)
    try:
        for words in (("link", "set", "lo", "up"), ("link", "add", "port1", "type", "veth", "peer", "name", "peer1")):
            subprocess.run(["ip", "-n", NETNS, *words], check=True)
        yield NETNS
    finally:
        subprocess.run(["ip", "netns", "delete", NETNS], check=True)


@pytest.mark.software
def test_run__is_ready_when_its_port_answers_and_ends_well(namespace: str, tmp_path: Path) -> None:
    subprocess.run(["ip", "-n", namespace, "link", "set", "port1", "up"], check=True)
    words = ["--json", str(JSON), "--thrift-port", "9090", "--runtime-dir", str(tmp_path), "--port", "1=port1"]
    command = ["nsenter", f"--net=/run/netns/{namespace}", sys.executable, "-m", "hosts.bmv2", *words]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert select.select([process.stdout], [], [], 60)[0]
        assert process.stdout.readline() == "ready\n"
        again = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False)
        assert again.returncode == 1
        assert again.stderr == "bmv2: TCP port 9090 is taken already: does another simple_switch run here?\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
