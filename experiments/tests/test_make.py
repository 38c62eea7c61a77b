# SPDX-License-Identifier: MIT
"""Parameters as make hands them on: exactly, all of them, and through no shell."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.host import CHECKOUT

MAKEFILE = f"""
show:
	@cd {CHECKOUT}; \\
	{sys.executable} -c 'import json; from experiments.__main__ import made; print(json.dumps(made()))'
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), []),
        (("CC=cubic", "FLOWS=16"), ["CC=cubic", "FLOWS=16"]),
        (("-s", "-k", "RTT=10ms"), ["RTT=10ms"]),
        (("COLOUR=red",), ["COLOUR=red"]),
        (("NAME=a b;touch x",), ["NAME=a b;touch x"]),
        (("NAME=a\\b",), ["NAME=a\\b"]),
        (("NAME='\"`",), ["NAME='\"`"]),
        (("BUF=",), ["BUF="]),
        (("V=1", "PYTHON=python3"), []),
    ],
)
def test_made__are_the_words_of_the_command_line(tmp_path: Path, words: tuple[str, ...], expected: list[str]) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    done = subprocess.run(
        ["make", "--no-print-directory", *words, "show"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert sorted(json.loads(done.stdout)) == sorted(expected)
    assert not (tmp_path / "x").exists()
