# SPDX-License-Identifier: MIT
"""The committed Tofino output is not stale."""

import re
from pathlib import Path

import pytest

from p4src.compile import command as make_p4
from p4src.compile import tofino

ROOT = Path(__file__).resolve().parents[2]
CHIPS = [pytest.param(generation, id=generation.target) for generation in tofino.GENERATIONS]


@pytest.mark.parametrize("generation", CHIPS)
def test_compiled_program__is_current_and_names_no_directory(generation):
    problem = tofino.check(generation, ROOT)
    assert problem is None, problem
    for path in tofino.files(generation):
        assert not re.search(r"/tmp|/home|/root|/work", (ROOT / path).read_text()), path


def test_without_a_compiler__current_output_stays_and_stale_output_is_an_error(capsys, monkeypatch):
    monkeypatch.setenv("P4C_TOFINO", "/nowhere/bf-p4c")
    monkeypatch.setattr(make_p4, "_v1model", lambda: "compiled; nothing changed")
    monkeypatch.chdir(ROOT)
    assert make_p4.run() == 0
    assert "tofino, tofino2: up to date, not compiled again" in capsys.readouterr().out
    monkeypatch.setattr(tofino, "PROGRAM", Path("p4src/v1model/bufferscope.p4"))
    assert make_p4.run() == 1
    printed = capsys.readouterr()
    assert printed.err.count("compile again with: make p4") == 2
    assert "/nowhere/bf-p4c ($P4C_TOFINO) is not installed" in printed.out
