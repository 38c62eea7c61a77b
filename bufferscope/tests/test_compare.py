# SPDX-License-Identifier: MIT
"""The command compare: which repetitions count, the table, and the lines about settings, validity and clocks. Some of
the compared runs are recorded, the others simulated.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from analysis.tests import campaign, damages, simulate, sweeps
from bufferscope.__main__ import main
from lib.exit_codes import Exit
from runs import record

pytestmark = pytest.mark.long  # all of it uses one dear fixture


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results directory with two runs of two repetitions each; B has a smaller buffer."""
    directory = tmp_path_factory.mktemp("compare")
    for name, buffer in (("a", 30), ("b", 12)):
        for number in (1, 2):
            repetition = directory / name / f"rep-{number}"
            simulate.write_run(repetition, simulate.Scenario(threshold=buffer, seed=number, duration_ns=600_000_000))
            record.write_raw(repetition, {})
            with campaign.undrawn():
                assert main(["replay", str(repetition)]) == 0
    return directory


def row(said: str, name: str) -> str:
    (line,) = [line for line in said.splitlines() if line.startswith(f"{name}  ")]
    return line.removeprefix(name)


def change(repetition: Path, **values: Any) -> None:
    """Changes values in a summary and records its new digest."""
    path = repetition / "summary.json"
    summary = json.loads(path.read_text()) | values
    path.write_text(json.dumps(summary))
    damages.accept(repetition, path.name)


def test_numbers__are_side_by_side_with_their_difference_and_interval(
    two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = tmp_path / "both.svg"
    assert main(["compare", f"{two}/a", f"{two}/b", f"OUTPUT={figure}"]) == Exit.DONE
    said = capsys.readouterr().out
    assert "One setting differs: BUF " in said
    used = [json.loads((two / run / "summary.json").read_text())["utilization"]["mean"]
            for run in ("a/rep-1", "a/rep-2", "b/rep-1", "b/rep-2")]  # fmt: skip
    difference = f"{50 * (used[2] + used[3] - used[0] - used[1]):.2f} percentage points"
    assert difference in row(said, "utilization mean")
    assert " to " in row(said, "drops packets")
    assert "Welch's" in said
    drawn = figure.read_text()
    assert "A a, buffer 30" in drawn
    assert "B b, buffer 12" in drawn


def test_repetition_alone__has_no_interval_and_the_default_figure_is_beside_the_runs(
    two: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", f"RUN={two}/a/rep-1", f"WITH={two}/b/rep-2"]) == Exit.DONE
    said = capsys.readouterr().out
    assert "A single repetition has no interval" in said
    assert "(" not in row(said, "utilization mean")
    assert main(["compare", f"{two}/b"]) == Exit.DONE  # with the run before it
    assert capsys.readouterr().out.startswith(f"A: {two}/a, 2 repetitions: ")
    assert (two / "figures/compare-a-rep-1-b-rep-2.png").stat().st_size > 1000


def test_repetitions_that_are_not_valid__are_named_and_do_not_count(
    two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        shutil.copytree(two / name, tmp_path / name)
    change(tmp_path / "b/rep-2", valid=False, reasons=["ledger: lost"], utilization={"mean": 0.1})
    assert main(["compare", f"{tmp_path}/a", f"{tmp_path}/b"]) == Exit.DOUBTFUL
    said = capsys.readouterr()
    assert said.err == f"{tmp_path}/b/rep-2: NOT VALID: ledger: lost\n"
    assert "B: " in said.out
    assert ", 1 repetition:" in said.out
    change(tmp_path / "b/rep-1", valid=False, reasons=["ledger: lost"])
    assert main(["compare", f"{tmp_path}/a", f"{tmp_path}/b"]) == Exit.DOUBTFUL
    assert f"{tmp_path}/b: no repetition is valid, so its numbers are no measurement" in capsys.readouterr().err


def test_several_runs_and_sweeps__are_beside_the_first(
    two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = json.loads((two / "a/rep-1/summary.json").read_text())
    places = sweeps.write(tmp_path / "grid", summary, {"cc": ["reno"], "buf": [10, 20]}, 3)
    for place in places.values():
        shutil.copy(two / "b/rep-1/distributions.parquet", place / "rep-1")
    figure = tmp_path / "all.svg"
    assert main(["compare", f"{two}/a", f"{two}/b,{tmp_path}/grid", f"OUTPUT={figure}"]) == Exit.DONE
    said = capsys.readouterr().out
    assert f"C: {tmp_path}/grid buf=10, 3 repetitions" in said
    assert f"D: {tmp_path}/grid buf=20, 3 repetitions" in said
    assert "B and A: one setting differs: BUF " in said
    head = next(line for line in said.splitlines() if line.split()[:1] == ["A"])
    assert head.split()[:3] == ["A", "B", "B"]
    assert [name for name in ("B - A", "C - A", "D - A") if name not in head] == []
    mean = sum(1 - 1 / (10 + number) for number in (1, 2, 3)) / 3
    assert f"{100 * mean:.2f} %" in row(said, "utilization mean")
    drawn = figure.read_text()
    assert "D grid buf=20" in drawn
    assert "queueing delay of packets that were not dropped (ms); not kept: C, D" in drawn
    assert main(["compare", f"{tmp_path}/grid", f"{two}/a,{two}/a"]) == Exit.NOTHING
    assert "is given twice" in capsys.readouterr().err


def test_mistake__is_one_line(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = f"{two}/a", f"{two}/b"
    for words in ([a], [], [a, f"{a}/../a"], [a, f"{a}/nowhere"], [a, b, "OUTPUT=x.gif"]):
        assert main(["compare", *words]) == Exit.NOTHING
        assert len(capsys.readouterr().err.splitlines()) == 1
