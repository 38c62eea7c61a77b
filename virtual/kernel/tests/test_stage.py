# SPDX-License-Identifier: MIT
"""Staging copies our code into the kernel's source tree, under the checkout's paths, and writes only changed files."""

from pathlib import Path

import pytest

from virtual.kernel import stage
from virtual.kernel.errors import KernelError


def test_write__touches_only_what_changed(tmp_path: Path) -> None:
    files = {"a/one.c": b"1", "a/two.c": b"2", "Kbuild": b"k"}
    assert stage.write(files, tmp_path) == 3
    place = tmp_path / stage.PLACE
    before = (place / "a/one.c").stat().st_mtime_ns
    assert stage.write(files, tmp_path) == 0
    assert stage.write({"a/one.c": b"1", "Kbuild": b"K"}, tmp_path) == 2
    assert (place / "a/one.c").stat().st_mtime_ns == before
    assert not (place / "a/two.c").exists()


def test_collect__refuses_a_checkout_that_lacks_a_part(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match=r"softswitch/driver/Kbuild is missing"):
        stage.collect(tmp_path)
