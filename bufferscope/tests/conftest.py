# SPDX-License-Identifier: MIT
"""A results directory with two recorded runs, analysed once for all tests. A test copies a run before changing it."""

import shutil
from pathlib import Path

import pytest

from analysis.tests import campaign
from analysis.tests.recordings import RECORDED
from bufferscope.__main__ import main
from runs import record


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("results")
    for kind in ("real", "virtual"):
        repetition = Path(shutil.copytree(RECORDED / kind / "rep-1", directory / kind / "rep-1"))
        record.write_raw(repetition, {})
        with campaign.undrawn():
            assert main(["replay", str(repetition)]) == 0
    (directory / "latest").symlink_to("virtual")
    return directory


@pytest.fixture
def fresh(results: Path, tmp_path: Path) -> Path:
    """A copy of a repetition."""
    return Path(shutil.copytree(results / "virtual/rep-1", tmp_path / "copy/rep-1"))
