# SPDX-License-Identifier: MIT
"""Runs shell_test.c: lateness, gaps, requests of the executor, refused outputs, clocks."""

from __future__ import annotations

import subprocess

import pytest

from .core_driver import ROOT, make


@pytest.mark.serial  # frames that wait are given up in real time
def test_shell__arithmetic() -> None:
    make("PIPELINE=test", "SANITIZE=1", "shell_test")
    done = subprocess.run([ROOT / "build/softswitch-test-sanitize-shell-test"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
