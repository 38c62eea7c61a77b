# SPDX-License-Identifier: MIT
"""A user's own kernel tree, such as one with BBRv2 or BBRv3: our patches apply, the kernel boots, and CC= offers the
congestion controls that the tree adds.

    BUFFERSCOPE_KERNEL_TREE=~/bbr .venv/bin/pytest virtual/kernel/tests/test_own_tree.py

The build takes minutes and 0.6 GB below pytest's temporary directory.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from virtual import offers
from virtual.kernel import build, config
from virtual.kernel.progress import BuildProgress

VARIABLE = "BUFFERSCOPE_KERNEL_TREE"
TREE = os.environ.get(VARIABLE)


@pytest.mark.long
@pytest.mark.skipif(not TREE, reason=f"{VARIABLE} names no kernel tree")
def test_own_tree__builds_with_our_patches_and_offers_its_congestion_controls(tmp_path: Path) -> None:
    assert TREE
    tree, directory = Path(TREE), tmp_path / "build"
    with BuildProgress(io.StringIO()) as progress:
        kernel = build.ensure(directory, {"KERNEL_SOURCE": TREE}, progress, tmp_path / "cache")
    assert kernel["source"]["kind"] == "tree"
    assert "pacing-gaps.patch" in kernel["patches"]
    offered = set(offers.congestion_controls(directory / "linux"))
    assert offered >= {*config.offered(tree), *config.OURS}
