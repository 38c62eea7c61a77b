# SPDX-License-Identifier: MIT
"""Files that a command writes in directories of other users."""

import errno
import os
from pathlib import Path

import pytest

from lib import files


@pytest.mark.parametrize("system_knows_them", [True, False])
def test_without_name__leaves_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system_knows_them: bool) -> None:
    open_, asked = os.open, []

    def opened(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            asked.append(path)
            if not system_knows_them:
                raise OSError(errno.EOPNOTSUPP, "not supported")
        return open_(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", opened)
    descriptor = files.without_name(tmp_path)
    assert asked == ["."]
    assert not any(tmp_path.iterdir())
    with os.fdopen(descriptor, "w+b") as file:
        file.write(b"kept")
        file.seek(0)
        assert file.read() == b"kept"


def test_write_json__leaves_the_old_file_if_the_new_one_fails(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    files.write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        files.write_json(path, {"a": object()})
    assert path.read_text() == '{\n "a": 1\n}\n'
    assert list(tmp_path.iterdir()) == [path]
