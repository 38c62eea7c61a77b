# SPDX-License-Identifier: MIT
"""The command `bench`: a part that fails does not lose the rows of the other parts."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from bench import command, report
from lib.errors import RunError
from lib.exit_codes import Exit


@pytest.mark.parametrize("error", [RunError("internal error in the cell"), RuntimeError("the kernel was not built")])
def test_bench__shows_the_rows_of_the_other_parts_if_one_fails(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(short: bool) -> list[report.BenchRow]:
        raise error

    row = report.BenchRow("a row", 1.0, "s")
    shown: list[report.BenchRow] = []
    stubs = {"collector": fail, "analysis": lambda short: [row]}
    for part, measure in stubs.items():
        monkeypatch.setitem(sys.modules, f"bench.{part}", SimpleNamespace(measure=measure, NEEDS_ROOT=False))
    monkeypatch.setattr(report, "machine", dict)
    monkeypatch.setattr(report, "previous", dict)
    monkeypatch.setattr(report, "show", lambda rows, facts, before: shown.extend(rows))
    assert command.run({"parts": "collector,analysis", "short": "1"}, []) == Exit.DOUBTFUL
    assert shown == [row]
    assert f"bench: collector: FAILED: {error}" in capsys.readouterr().err
