# SPDX-License-Identifier: MIT
"""ABORTED: programs read the cause, people the reason."""

from pathlib import Path

from runs import aborted, results
from runs.aborted import Aborted, Cause


def test_read__returns_the_content_of_abort(tmp_path: Path) -> None:
    assert aborted.read(tmp_path) is None
    for cause in Cause:
        results.abort(tmp_path, cause, "ended by SIGTERM")  # the cause decides, whatever the reason says
        assert aborted.read(tmp_path) == Aborted(cause, "ended by SIGTERM")
        (tmp_path / "ABORTED").unlink()


def test_read__without_a_cause_of_a_full_disk_and_of_no_file(tmp_path: Path) -> None:
    for content, expected in (
        ("the receiver ended\nby  itself\n", Aborted(Cause.FAILED, "the receiver ended by itself")),
        ("", Aborted(Cause.FAILED, "")),
        ("failed\n", Aborted(Cause.FAILED, "")),
    ):
        (tmp_path / "ABORTED").write_text(content)
        assert aborted.read(tmp_path) == expected
    (tmp_path / "ABORTED").unlink()
    (tmp_path / "ABORTED").mkdir()
    assert aborted.read(tmp_path) == Aborted(Cause.FAILED, "ABORTED cannot be read: is not a regular file")
