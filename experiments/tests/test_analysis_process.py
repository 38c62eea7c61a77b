# SPDX-License-Identifier: MIT
"""The process that waits until a repetition is recorded, and then analyses it."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from analysis.tests.recordings import RECORDED
from experiments.run.analysis_process import Analyst, analyse
from lib.errors import RunError
from runs import results
from runs.names import SUMMARY

pytestmark = pytest.mark.usefixtures("undrawn")
REPETITION = RECORDED / "virtual/rep-1"


def test_an_analyst_who_waits__reads_what_is_recorded_meanwhile(tmp_path: Path):
    directory = results.create_repetition(tmp_path, 1)
    with Analyst(directory, alone=True) as analyst:
        shutil.copytree(REPETITION, directory, dirs_exist_ok=True)
        summary = analyst.analyse()
    copy = shutil.copytree(REPETITION, tmp_path / "after/rep-1")
    (copy / "logs").mkdir(exist_ok=True)
    assert summary == analyse(copy, alone=True)


def test_an_analysis_that_was_killed__is_an_error_with_the_command_that_tries_again(tmp_path: Path):
    directory = results.create_repetition(tmp_path, 1)
    with Analyst(directory, alone=True) as analyst:
        shutil.copytree(REPETITION, directory, dirs_exist_ok=True)
        os.kill(analyst.pid, signal.SIGKILL)
        with pytest.raises(RunError, match=r"status -9 and no summary.*tries again"):
            analyst.analyse()
    assert not (directory / SUMMARY).exists()
