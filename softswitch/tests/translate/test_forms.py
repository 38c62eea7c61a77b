# SPDX-License-Identifier: MIT
"""The style of a P4 program never breaks the build of its C: constructs that usually cause compiler warnings build
without any warning, and work.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from .conftest import ROOT, Switch, compiled

PROGRAM = "forms"
RESULTS = struct.Struct(">IIIIBQB")
PRINTF, EXIT, SECOND = 1, 64, 8  # bits of `went`


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_forms__are_built_without_a_word(compiler: str, tmp_path: Path) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    words = [f"CC={compiler}", f"OBJ={tmp_path}", f"P4_JSON={compiled(PROGRAM)[0]}", "COVERAGE=", "SANITIZE="]
    command = ["make", "-C", str(ROOT / "softswitch"), *words, f"{tmp_path}/bufferscope.o"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


@dataclass
class Results:
    drawn: int
    all_bits: int
    from_zero: int
    fixed: int
    truths: int
    shifted: int
    went: int


def run(switch: Switch, low: int = 9, high: int = 0, index: int = 0, way: int = 0, wide: int = 2**64 - 1) -> Results:
    frame = struct.pack(">IIBBbqqQQQQB", low, high, index, way, -128, -(2**63), -(2**63), 0, wide, wide, wide, 0xFF)
    return Results(*RESULTS.unpack(switch.send_one(frame)[: RESULTS.size]))


def test_comparisons__that_are_always_true_or_false_are(switch: Switch) -> None:
    for wide in (0, 1, 2**63, 2**64 - 1):
        results = run(switch, wide=wide)
        assert (results.truths, results.shifted, results.fixed) == (0xFB, 0, 5), wide


def test_random__keeps_to_bounds_of_0_and_of_all_ones(switch: Switch) -> None:
    drawn = [run(switch, low=2**32 - 3, high=2) for _ in range(60)]
    assert {results.drawn for results in drawn} == {0, 1, 2}
    assert {results.from_zero for results in drawn} == {2**32 - 3, 2**32 - 2, 2**32 - 1}
    assert max(results.all_bits for results in drawn) > 2**31 > min(results.all_bits for results in drawn)


def test_tables__without_keys_actions_or_use_go_the_right_way(switch: Switch) -> None:
    for way, index, went in (
        (0, 0, 0), (2, 7, 0), (0, 7, EXIT), (1, 1, PRINTF | SECOND), (1, 0, PRINTF | 32), (200, 0, 0),
    ):  # fmt: skip
        assert run(switch, way=way, index=index).went == went, (way, index)
