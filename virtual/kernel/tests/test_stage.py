# SPDX-License-Identifier: MIT
"""Staging copies our code into the kernel's source tree, under the checkout's paths, and writes only changed files."""

import os
import re
from pathlib import Path

import pytest

from virtual.kernel import stage
from virtual.kernel.errors import KernelError


@pytest.fixture(scope="module")
def staged() -> dict[str, bytes]:
    stage.make_pipeline()
    return stage.collect()


def test_collect__has_the_driver_and_all_that_it_includes(staged: dict[str, bytes]) -> None:
    for part in stage.PARTS:
        assert f"{part}/Kbuild" in staged
        assert f"{part}/".encode() in staged["Kbuild"]
    assert staged["softswitch/generated/bufferscope.c"]
    for name, content in staged.items():
        for included in re.findall(rb'^#include "((?:\.\./)+[^"]+)"', content, re.MULTILINE):
            path = os.path.normpath(Path(name).parent / included.decode())
            assert path in staged, f"{name} includes {path}"
    assert not [name for name in staged if "/tests/" in name or name.endswith((".md", ".py"))]


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
