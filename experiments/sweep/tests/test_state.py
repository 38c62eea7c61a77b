# SPDX-License-Identifier: MIT
"""The state of a job from its directory, its attempts, the files that KEEP keeps, and the time left of a sweep."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from analysis.amounts import duration
from analysis.load import load
from experiments import disk
from experiments.resolve import resolve
from experiments.sweep.progress import SweepProgress
from experiments.sweep.rounds import Attempts
from experiments.sweep.tests.conftest import probe
from experiments.sweep.thin import thin
from lib.errors import InputError
from runs.job_state import JobState, State, look, make_room
from runs.thinned import KEEP, kept

VALID = {"valid": True, "spec": {}, "utilization": {}}


def attempt(run: Path, files: Mapping[str, object]) -> Path:
    """A repetition with these files; "_" stands for the dot in a name."""
    name = "rep-1"
    (run / name).mkdir(parents=True)
    for file, content in files.items():
        (run / name / file.replace("_", ".")).write_text(content if isinstance(content, str) else json.dumps(content))
    return run / name


STATES: list[tuple[dict[str, object], State, int, str]] = [
    ({}, State.TO_DO, 0, ""),
    ({"spec_yaml": "x"}, State.TO_DO, 0, ""),
    ({"environment_json": "{}"}, State.RECORDED, 0, ""),
    ({"summary_json": "{"}, State.TO_DO, 0, ""),
    ({"summary_json": "[" * 100_000}, State.TO_DO, 0, ""),
    ({"summary_json": {"valid": True}}, State.TO_DO, 0, ""),  # no figure could use this summary
    ({"summary_json": VALID | {"reasons": 3}, "environment_json": "{}"}, State.RECORDED, 0, ""),
    ({"summary_json": "{", "environment_json": "{}", "THINNED": "tables\n"}, State.TO_DO, 0, ""),
    ({"summary_json": VALID}, State.VALID, 1, ""),
    ({"summary_json": VALID | {"valid": False, "reasons": ["late", "lost"]}}, State.NOT_VALID, 1, "late; lost"),
    ({"ABORTED": "failed\ndisk full\n"}, State.ABORTED, 1, "disk full"),
    ({"ABORTED": "stopped\nended by SIGTERM\n"}, State.TO_DO, 0, "ended by SIGTERM"),
    ({"ABORTED": "killed\nthe runner was killed\n"}, State.ABORTED, 1, "the runner was killed"),
    ({"ABORTED": ""}, State.ABORTED, 1, "no reason left"),
    # Written by earlier versions, which gave no cause:
    ({"ABORTED": "disk full\n"}, State.ABORTED, 1, "disk full"),
    ({"ABORTED": "ended by SIGTERM\n"}, State.TO_DO, 0, "ended by SIGTERM"),
    ({"ABORTED": "no summary\n", "environment_json": "{}"}, State.ABORTED, 1, "no summary"),
]


def test_state__is_what_lies_in_the_directory(tmp_path: Path) -> None:
    for number, (files, *expected) in enumerate(STATES):
        (tmp_path / f"{number}").mkdir()
        if files:
            attempt(tmp_path / f"{number}", files)
        assert look(tmp_path / f"{number}") == tuple(expected), files


def test_run_of_another_job__is_not_taken_for_this_one(tmp_path: Path) -> None:
    run = tmp_path / "runs/reno-n1-b20-0123456789-r1"
    attempt(run, {"summary_json": VALID | {"spec": {"name": run.name}}})
    assert look(run).state is State.VALID
    other = run.rename(tmp_path / "runs/reno-n2-b20-9876543210-r1")
    assert look(other) == (
        State.NOT_VALID, 1,
        f"is the run of job '{run.name}', not of {other.name}; move it to its own directory, or remove it",
    )  # fmt: skip
    make_room(other)
    assert (other / "attempt-1/summary.json").exists()


def test_attempts__are_kept_apart_and_counted(tmp_path: Path) -> None:
    for number in (1, 2):
        attempt(tmp_path, {"summary_json": VALID | {"valid": False, "reasons": [f"late {number}"]}})
        assert look(tmp_path).attempts == number
        make_room(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["attempt-1", "attempt-2"]
    attempt(tmp_path, {"spec_yaml": "killed"})
    make_room(tmp_path)
    assert not (tmp_path / "rep-1").exists()
    assert look(tmp_path) == (State.TO_DO, 2, "")
    attempt(tmp_path, {"ABORTED": "ended by SIGTERM\n"})  # a run that was stopped is no attempt
    assert Attempts(3, virtual=True).left(look(tmp_path))
    make_room(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["attempt-1", "attempt-2"]


def test_attempts__are_left_until_they_are_used_up() -> None:
    for asked, virtual, state, tries in (
        (None, False, State.ABORTED, 3),
        (None, False, State.NOT_VALID, 3),
        (None, True, State.ABORTED, 3),
        (None, True, State.NOT_VALID, 1),  # another attempt would give the same bytes
        (2, True, State.NOT_VALID, 2),
        (5, False, State.ABORTED, 5),
    ):
        attempts = Attempts(asked, virtual)
        left = [attempts.left(JobState(state, number)) for number in range(1, 7)]
        assert left == [number < tries for number in range(1, 7)]
        assert not attempts.left(JobState(State.VALID, 1))
        assert attempts.left(JobState(State.TO_DO, 9))
        assert attempts.left(JobState(State.RECORDED, 9))


RAW = {"postcards_bsp": "x", "tcp_bst": "x", "goodput_bsg": "x"}
TABLES = {"postcards_parquet": "x", "tcp_parquet": "x", "joined_parquet": "x", "flows_parquet": "x"}
REST = {"summary_json": VALID, "distributions_parquet": "x", "report_html": "x", "spec_yaml": "x"}


def test_thin__removes_what_the_rule_says_and_never_says_that_more_is_left(tmp_path: Path) -> None:
    for keep, gone in (
        ("all", set()),
        ("tables", set(RAW)),
        ("flows", {*RAW, *TABLES, "logs"} - {"flows_parquet"}),
        ("summary", {*RAW, *TABLES, "logs"}),
    ):
        repetition = attempt(tmp_path / keep, {**RAW, **TABLES, **REST})
        (repetition / "logs").mkdir()
        (repetition / "logs/console.log").write_text("x")
        before = {path.name for path in repetition.iterdir()}
        thin(repetition, keep)
        note = {"THINNED"} if keep != "all" else set()
        left = before - {name.replace("_", ".") for name in gone} | note
        assert {path.name for path in repetition.iterdir()} == left
        assert kept(repetition) == keep
        (repetition / "tcp.bst").write_text("a thinning that was killed left this")
        thin(repetition, keep)
        assert (repetition / "tcp.bst").exists() == (keep == "all")
    for keep in ("tables", "flows"):
        thin(repetition, keep)
        assert kept(repetition) == "summary"


def test_replay__of_a_thinned_repetition_says_why_it_cannot_be(tmp_path: Path) -> None:
    content = resolve({"clock": "virtual", "cc": "reno"}, probe("virtual")).to_dict()
    content |= {"repetition": 1, "extra_delays_ns": []}
    repetition = attempt(tmp_path, {**RAW, "spec_yaml": json.dumps(content)})
    thin(repetition, "summary")
    with pytest.raises(InputError, match=r"raw files were removed .* \(kept: summary\)"):
        load(repetition)


def test_disk__shrinks_with_what_is_kept() -> None:
    spec = resolve({"clock": "virtual", "rate": "10gbit", "duration": "2s", "cc": "reno"}, probe("virtual"))
    whole, tables, flows, summary = (disk.kept_bytes(spec, keep) for keep in KEEP)
    assert whole == disk.estimate_bytes(spec)
    assert whole > tables > flows > summary > 0


def test_time_left__goes_from_the_expected_to_the_measured_pace() -> None:
    progress = SweepProgress("x", at_once=2)
    progress.expect(jobs=100, done=0, cost_s=1000.0)
    assert progress.left_s(0.0) == 500.0
    progress.finished(10.0, valid=True, ended_s=20.0)
    assert 500.0 < progress.left_s(20.0) < 1900.0
    progress.finished(490.0, valid=False, ended_s=1000.0)
    assert progress.left_s(1000.0) == 1000.0  # 500 s of cost took 1000 s, and 500 s of cost are left
    assert (progress.done, progress.not_valid) == (2, 1)
    progress.expect(jobs=200, done=2, cost_s=1500.0)  # more jobs than expected before
    assert progress.left_s(1000.0) == 3000.0
    progress.finished(1500.0, valid=True, ended_s=9000.0)
    assert progress.left_s(9000.0) == 0.0
    progress.again(1, 490.0)
    assert (progress.done, progress.not_valid, progress.tried_again) == (2, 0, 1)
    assert progress.left_s(9000.0) > 0


def test_time_left__falls_while_a_job_runs_but_not_below_what_waits() -> None:
    progress = SweepProgress("x", at_once=1)
    progress.expect(jobs=2, done=0, cost_s=200.0)
    left_s = [progress.left_s(elapsed_s, 100.0) for elapsed_s in (0.0, 60.0, 100.0, 150.0)]
    assert left_s == [200.0, 140.0, 100.0, 100.0]
    assert progress.left_s(50.0, 0.0) == 200.0  # nothing runs
    assert [duration(s) for s in (5, 89, 600, 7500)] == ["5 s", "89 s", "10 min", "2 h 05 min"]
