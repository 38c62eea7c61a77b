# SPDX-License-Identifier: MIT
"""Builds the binaries, and ends the collectors that a test started."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.tests.harness import ROOT, Running, make


@pytest.fixture(scope="session")
def build() -> Path:
    """The directory of the plain binaries (those that count coverage if COVERAGE=1)."""
    if os.environ.get("COVERAGE") == "1":
        make("COVERAGE=1", "all", "tools")
        return ROOT / "build/coverage"
    make("all", "tools")
    return ROOT / "build"


@pytest.fixture(scope="session")
def sanitized() -> Path:
    """The directory of binaries that stop at the first bad memory access or undefined operation, and of test tools.

    Also with COVERAGE=1 these binaries have the sanitizers, and count no coverage.
    """
    make("COVERAGE=", "SANITIZE=1", "all", "tools")
    directory = ROOT / "build/sanitize"
    for name in ("collector", "postcard_generator"):
        assert b"__asan_init" in (directory / name).read_bytes(), f"{directory / name} has no sanitizer in it"
    return directory


@pytest.fixture
def start(tmp_path: Path) -> Iterator:
    """start(build, *options, listen=..., prefix=...): a Running that does not outlive the test."""
    started: list[Running] = []

    def starter(binary: Path, *options: str, **more) -> Running:
        started.append(Running(binary, tmp_path, *options, **more))
        return started[-1]

    yield starter
    for running in started:
        running.kill()
