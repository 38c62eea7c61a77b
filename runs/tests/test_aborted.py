# SPDX-License-Identifier: MIT
"""ABORTED: programs read the cause, people the reason; files of earlier versions have only the reason."""

from pathlib import Path

import pytest

from runs import aborted, results
from runs.aborted import Aborted, Cause


@pytest.mark.parametrize("cause", Cause)
def test_read__returns_the_content_of_abort(tmp_path: Path, cause: Cause) -> None:
    assert aborted.read(tmp_path) is None
    results.abort(tmp_path, cause, "ended by SIGTERM")  # the cause decides, whatever the reason says
    assert aborted.read(tmp_path) == Aborted(cause, "ended by SIGTERM")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("ended by SIGINT\n", Aborted(Cause.STOPPED, "ended by SIGINT")),
        ("the runner was killed before the end\n", Aborted(Cause.KILLED, "the runner was killed before the end")),
        ("the receiver ended\nby  itself\n", Aborted(Cause.FAILED, "the receiver ended by itself")),
        ("failed to start\n", Aborted(Cause.FAILED, "failed to start")),
        ("", Aborted(Cause.FAILED, "")),
        ("failed\n", Aborted(Cause.FAILED, "")),
    ],
)
def test_read__of_earlier_versions_and_of_a_full_disk(tmp_path: Path, content: str, expected: Aborted) -> None:
    (tmp_path / "ABORTED").write_text(content)
    assert aborted.read(tmp_path) == expected


def test_read__of_a_directory_or_fifo_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "ABORTED").mkdir()
    assert aborted.read(tmp_path) == Aborted(Cause.FAILED, "ABORTED cannot be read: is not a regular file")
