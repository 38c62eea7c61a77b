# SPDX-License-Identifier: MIT
"""Patches: conditions check the source's content; a patch that does not fit stops the build and is named."""

import re
from pathlib import Path

import pytest

from virtual.kernel import patches
from virtual.kernel.errors import KernelError

PATCH = """\
SPDX-License-Identifier: MIT
Subject: better
{condition}
Why.

--- a/file.c
+++ b/file.c
@@ -1,3 +1,3 @@
 one
-two
+TWO
 three
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tree/drivers/net").mkdir(parents=True)
    (tmp_path / "tree/file.c").write_text("one\ntwo\nthree\n")
    (tmp_path / "patches").mkdir()
    monkeypatch.setattr(patches, "DIRECTORY", tmp_path / "patches")
    return tmp_path / "tree"


def apply(tree: Path, condition: str = "") -> list[str]:
    (patches.DIRECTORY / "a.patch").write_text(PATCH.format(condition=condition))
    return patches.apply_all(tree, "6.0.0")


def test_conditions__decide_by_what_the_source_has(tree: Path) -> None:
    for condition, applied in (
        ("", True),
        ("Unless: file.c has three", False),
        ("Unless: file.c has four", True),
        ("Unless: missing.c has three", True),
        ("Only-if: file.c has one\n", True),
        ("Only-if: file.c has four", False),
        ("Only-if: missing.c has one", False),
        ("Only-if: file.c has one\nUnless: file.c has three", False),
    ):
        (tree / "file.c").write_text("one\ntwo\nthree\n")
        assert apply(tree, condition) == (["a.patch"] if applied else []), condition
        assert ("TWO" in (tree / "file.c").read_text()) == applied


def test_patch__that_does_not_fit_is_an_error_that_names_it(tree: Path) -> None:
    (tree / "file.c").write_text("quite\nanother\nfile\n")
    with pytest.raises(KernelError, match=r"applying .*/a\.patch to Linux 6\.0\.0: Hunk #1 FAILED at 1"):
        apply(tree)
    (tree / "file.c").unlink()
    with pytest.raises(KernelError, match=r"applying .*/a\.patch"):
        apply(tree)


def test_shipped_patches__have_conditions_that_are_understood() -> None:
    for path in patches.DIRECTORY.glob("*.patch"):
        head = path.read_text().partition("\n--- ")[0]
        stated = [line for line in head.splitlines() if re.match(r"(Unless|Only-if)\b", line)]
        assert len(stated) == len(patches.CONDITION.findall(head)), path
