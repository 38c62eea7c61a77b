# SPDX-License-Identifier: MIT
"""Runs the fuzzers (clang's libFuzzer, with sanitizers) of a directory of C programs, for tests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEAST_INPUTS = 1000


def fuzz(directory: str, name: str, *options: str, corpus: Path) -> None:
    """Builds the fuzzers of `directory` and runs `name`; `corpus` holds its first inputs and gets those it finds.
    An input that ends the fuzzer fails the test with the fuzzer's last words, and so do too few inputs. The test is
    skipped without clang.

    A single allocation may have 256 MiB; the process has no limit, because libFuzzer compares its limit with the peak
    of getrusage(2), which a process inherits through execve(2): that of pytest, which may be above 2 GiB.
    """
    if not shutil.which("clang"):
        pytest.skip("needs clang's libFuzzer")
    # if COVERAGE is in the environment, make would build elsewhere
    subprocess.run(["make", "-s", "-C", ROOT / directory, "COVERAGE=", "fuzz"], check=True)
    limits = ["-rss_limit_mb=0", "-malloc_limit_mb=256", f"-artifact_prefix={corpus.parent}{os.sep}"]
    command: list[str | Path] = [ROOT / "build/obj" / directory / name, *limits, *options, corpus]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    counted = re.search(r"^Done (\d+) runs", done.stderr, re.MULTILINE)
    assert counted, done.stderr[-4000:]
    assert int(counted[1]) > LEAST_INPUTS
