# SPDX-License-Identifier: MIT
"""simple_switch as a program of a run: error messages when it cannot start; start and stop in a namespace."""

import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hosts import bmv2

CHECKOUT = Path(__file__).resolve().parents[2]
JSON = CHECKOUT / "p4src/build/bufferscope.json"


def test_problem__is_named() -> None:
    for program, json, port, named in (
        ("no-such-switch", JSON, "1=lo", "no-such-switch is not on the PATH"),
        ("sh", Path("/nonexistent.json"), "1=lo", "/nonexistent.json: "),
        ("sh", JSON, "eth0", "--port eth0: "),
        ("sh", JSON, "511=lo", "--port 511=lo: "),
        ("sh", JSON, "1=nosuch0", "--port 1=nosuch0: "),
    ):
        assert named in str(bmv2.problem(program, json, [port]))


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


@pytest.mark.software
@pytest.mark.skipif(not shutil.which("simple_switch"), reason="no simple_switch on the PATH: docs/target-bmv2.md")
def test_run__is_ready_when_its_port_answers_and_ends_well(pair, tmp_path: Path) -> None:
    words = ["--json", JSON, "--thrift-port", "9090", "--runtime-dir", tmp_path, "--port", "1=eth0"]
    switch = pair.start("a", sys.executable, "-m", "hosts.bmv2", *words)
    assert select.select([switch.stdout], [], [], 60)[0]
    assert switch.stdout.readline() == "ready\n"
    again = pair.python("a", "hosts.bmv2", *words, check=False)
    assert (again.returncode, "TCP port 9090 is taken already" in again.stderr) == (1, True)
    switch.send_signal(signal.SIGTERM)
    assert switch.wait(60) == 0
