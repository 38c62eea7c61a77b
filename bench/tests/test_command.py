# SPDX-License-Identifier: MIT
"""Every part of the bench runs, in its short form, and its rows are what the part measures. A part that fails does not
lose the rows of the others. The documentation's page is that of the stored rows.
"""

from __future__ import annotations

import importlib
import json
import math
import subprocess
import sys
from dataclasses import replace

import pytest

from bench import command, page, report
from bufferscope.__main__ import main
from experiments.machine.host import CHECKOUT
from lib.errors import RunError
from lib.exit_codes import Exit

# Part -> least number of rows, and bounds of some rows: name's part -> (least, most).
ROWS: dict[str, tuple[int, dict[str, tuple[float, float]]]] = {
    "analysis": (2, {"load, join": (0.01, 60), "memory": (0.05, 5)}),
    "collector": (4, {", missing": (0, 0), "sender unbounded": (0.1, 50)}),
    "tracer": (6, {"lost": (0, 0), "in the reader": (1, 50_000)}),
    "core": (7, {"our program": (0.01, 20)}),
    "switch": (6, {"TCP, MTU 1500": (0.05, 100), "64-byte UDP": (10, 20_000)}),
    "targets": (2, {"soft switch over BMv2": (0.5, 100)}),
    "bmv2": (4, {"valid runs": (1, 1)}),
    "single_flow": (4, {}),
    "experiment": (9, {"ledger, lost": (0, 0), "queue above the buffer": (0, 0), "time beyond": (1, 300)}),
    "virtual": (
        25,
        {"runs that are valid": (1, 1), "lateness, most of all frames": (0, 0), "files that differ": (0, 0)},
    ),
    "cross_validation": (20, {"valid runs, virtual": (2, 2), "period, off by": (0, 0.2)}),
}


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "bufferscope", "bench", *words]
    return subprocess.run(argv, cwd=CHECKOUT, capture_output=True, text=True, check=False)


def skip_unless_measurable(part: str) -> None:
    if why := command.why_not(importlib.import_module(f"bench.{part}").PART):
        pytest.skip(why)


@pytest.mark.long
@pytest.mark.serial
@pytest.mark.parametrize("part", command.PARTS)
def test_part__measures_its_rows(part: str) -> None:
    skip_unless_measurable(part)
    done = bench(part, "SHORT=1")
    assert done.returncode in (Exit.DONE, Exit.DOUBTFUL), done.stderr
    assert "FAILED" not in done.stderr
    stored = json.loads((CHECKOUT / report.RESULTS / report.SHORT).read_text())
    rows = {row["name"]: row["value"] for row in stored["rows"]}
    least, bounds = ROWS[part]
    assert len(rows) >= least
    assert all(math.isfinite(value) for value in rows.values())
    for word, (lowest, highest) in bounds.items():
        values = [value for name, value in rows.items() if word in name]
        assert values
        assert all(lowest <= value <= highest for value in values), (word, values)


def test_part__that_fails_does_not_lose_the_rows_of_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(short: bool) -> list[report.BenchRow]:
        raise RunError("internal error in the cell")

    failing = importlib.import_module("bench.bmv2")
    monkeypatch.setattr(failing, "PART", replace(failing.PART, measure=fail, goals=(), absent=str))
    monkeypatch.chdir(CHECKOUT)
    assert main(["bench", "bmv2,analysis", "SHORT=1"]) == Exit.DOUBTFUL
    assert "bench: bmv2: FAILED: internal error in the cell" in capsys.readouterr().err
    stored = json.loads((CHECKOUT / report.RESULTS / report.SHORT).read_text())
    assert {row["name"].partition(":")[0] for row in stored["rows"]} == {"analysis"}  # with DuckDB also beside it
    assert stored["skipped"] == {"bmv2": "it failed"}
    text = page.text(stored | {"date": "2026-11-28"})
    assert "Not measured on this machine: `bmv2`, because it failed." in text
    assert f"| load, join, Parquet of 10 M x 5 M rows | {report.short(stored['rows'][0]['value'])} s" in text


def test_page__is_that_of_the_stored_rows() -> None:
    if not (CHECKOUT / page.STORED).exists():
        pytest.skip(f"{page.STORED} is missing: no bench was published yet (make bench PUBLISH=1)")
    stored = json.loads((CHECKOUT / page.STORED).read_text())
    assert (CHECKOUT / page.PAGE).read_text() == page.text(stored), "run make bench PUBLISH=1"
