# SPDX-License-Identifier: MIT
"""The messages for bad input, word by word: golden/errors.txt has each command line and its whole output.

To accept new texts: UPDATE_GOLDEN=1 .venv/bin/pytest experiments/tests/test_errors.py, and review the difference.
"""

import os
import shlex
from pathlib import Path

import pytest

from bufferscope.__main__ import main
from experiments.machine import host
from experiments.machine.host import Host

GOLDEN = Path(__file__).parent / "golden" / "errors.txt"
CASES = [line.removeprefix("$ ") for line in GOLDEN.read_text().splitlines() if line.startswith("$ ")]


def expected(case: str) -> str:
    after = GOLDEN.read_text().split(f"$ {case}\n", 1)[1]
    return after.split("\n$ ", 1)[0].rstrip("\n") + "\n"


def printed(case: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(GOLDEN.parent)
    monkeypatch.setattr(host, "probe", lambda want_netem: Host(("bbr", "cubic", "reno"), netem=False))
    assert main(["experiment", *shlex.split(case)]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    return output.err


@pytest.mark.parametrize("case", CASES)
def test_run__says_what_is_wrong_and_what_is_allowed(
    case: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = printed(case, capsys, monkeypatch)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(GOLDEN.read_text().replace(f"$ {case}\n{expected(case)}", f"$ {case}\n{text}"))
    assert text == expected(case)


def test_golden__covers_every_key() -> None:
    from experiments.spec.keys import KEYS

    text = GOLDEN.read_text()
    assert [key for key in KEYS if f" {key.upper()}=" not in text] == []
