# SPDX-License-Identifier: MIT
"""Repetitions in parallel: one on each processor, each number once, and a failure ends all."""

import os
import time
from pathlib import Path

import pytest

from experiments.run.side_by_side import run_each
from lib.errors import RunError


def test_run_each__gives_every_number_and_never_shares_a_processor(tmp_path: Path) -> None:
    def work(number: int, processor: int) -> None:
        mark = tmp_path / f"processor-{processor}"
        mark.mkdir()  # fails if this processor has other work
        time.sleep(0.02)
        mark.rmdir()
        (tmp_path / str(number)).touch()

    assert sorted(run_each(work, [1, 2, 3, 4, 5], [0, 1])) == [1, 2, 3, 4, 5]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2", "3", "4", "5"]


def test_run_each__a_failure_comes_with_its_own_words_and_ends_the_others(tmp_path: Path) -> None:
    def work(number: int, processor: int) -> None:
        if number == 1:
            while not (tmp_path / "pid").exists():
                time.sleep(0.01)
            raise RunError("the link is down", "see logs/")
        (tmp_path / "partial").write_text(str(os.getpid()))
        (tmp_path / "partial").rename(tmp_path / "pid")
        time.sleep(600)

    with pytest.raises(RunError) as failed:
        list(run_each(work, [1, 2], [0, 1]))
    assert failed.value.lines == ["the link is down", "see logs/"]
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_run_each__says_so_when_a_process_is_killed() -> None:
    with pytest.raises(RunError, match="repetition 7 ended with status -9 and gave no reason"):
        list(run_each(lambda *_: os.kill(os.getpid(), 9), [7], [0]))
