# SPDX-License-Identifier: MIT
"""Random requests and random frames into the core, and the code around the core (shell_test.c): both are built with
address and undefined-behaviour sanitizers.
"""

from __future__ import annotations

import subprocess

import pytest

from .core_driver import ROOT, make


@pytest.mark.parametrize(("pipeline", "seed"), [("test", 1), ("p4", 1), ("p4", 2)])
def test_core__survives_random_requests_and_frames(pipeline: str, seed: int) -> None:
    make(f"PIPELINE={pipeline}", "SANITIZE=1", "fuzz")
    program = ROOT / "build" / ("softswitch-test-sanitize-fuzz" if pipeline == "test" else "softswitch-sanitize-fuzz")
    done = subprocess.run([program, str(seed), "5000"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    stats = dict(line.split() for line in done.stdout.splitlines() if " " in line)
    assert int(stats["registers_checked"]) == (0 if pipeline == "test" else 5000 * 3 * 2)
    assert int(stats["clones"]) + int(stats["port.2.departed"]) > 100  # else nearly all input was refused


@pytest.mark.serial  # frames that wait are given up in real time
def test_shell__counts_lateness_answers_requests_and_waits_for_refused_outputs() -> None:
    make("PIPELINE=test", "SANITIZE=1", "shell_test")
    done = subprocess.run([ROOT / "build/softswitch-test-sanitize-shell-test"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
