# SPDX-License-Identifier: MIT
"""The state of a job from its directory or from a published run, its attempts, and the files that KEEP keeps."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import polars
import pytest

from analysis.read.load import load
from experiments.run import runner
from experiments.spec.resolve import resolve
from experiments.sweep import plan
from experiments.sweep.progress import SweepProgress
from experiments.sweep.published import NONE, Published
from experiments.sweep.rounds import Attempts
from experiments.sweep.run import Watch
from experiments.sweep.spec import Sweep
from experiments.sweep.tests.conftest import VALID, probe
from experiments.sweep.thin import thin
from lib.errors import InputError
from runs import results
from runs.job_state import JobState, State, look, make_room
from runs.names import ABORTED, REPETITION, SUMMARY, SWEEP_RUNS
from runs.run_table import SCHEMA
from runs.thinned import kept


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
    ({"ABORTED": "no cause\n", "environment_json": "{}"}, State.ABORTED, 1, "no cause"),
]


def test_state__is_what_lies_in_the_directory(tmp_path: Path) -> None:
    for number, (files, *expected) in enumerate(STATES):
        (tmp_path / f"{number}").mkdir()
        if files:
            attempt(tmp_path / f"{number}", files)
        assert look(tmp_path / f"{number}") == tuple(expected), files


def test_run_of_another_job__is_not_taken_for_this_one(tmp_path: Path) -> None:
    run = tmp_path / "runs/reno-n1-b20-0123456789-r1"
    attempt(run, {"summary_json": VALID | {"spec": VALID["spec"] | {"name": run.name}}})
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
    attempt(tmp_path, {"ABORTED": "stopped\nended by SIGTERM\n"})  # a run that was stopped is no attempt
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
    content = resolve({"clock": "virtual", "cc": "reno"}, probe("virtual")).dump()
    content |= {"repetition": 1, "extra_delays_ns": []}
    repetition = attempt(tmp_path, {**RAW, "spec_yaml": json.dumps(content)})
    thin(repetition, "summary")
    with pytest.raises(InputError, match=r"raw files were removed .* \(kept: summary\)"):
        load(repetition)


def test_published_run__does_its_job_until_the_job_has_a_run_of_its_own(small: Sweep, tmp_path: Path) -> None:
    """Whatever the name of the published run."""
    jobs = plan.jobs(small, probe)
    first = jobs[0]
    row = {
        "run": "small/runs/of-another-name-r1/rep-1", "sweep": "small", "point": first.spec.point,
        "seed": first.spec.seed, "repetition": first.repetition, "valid": True,
    }  # fmt: skip
    published = Published(polars.DataFrame([row], schema=SCHEMA))

    def done(by: Published, sweep: str = "small") -> list[plan.Job]:
        return [job for job in jobs if by.state(tmp_path / sweep / "runs" / job.id, job).state is State.VALID]

    assert done(published) == [first]
    assert done(published, "other") == done(NONE) == []
    assert done(Published(polars.DataFrame([row | {"valid": False}], schema=SCHEMA))) == []

    own = tmp_path / "small/runs" / first.id / "rep-1"
    own.mkdir(parents=True)
    (own / "summary.json").write_text(json.dumps(VALID | {"valid": False}))
    assert done(published) == []
    known = polars.DataFrame([row | {"run": "small/runs/mine/rep-1", "valid": False}], schema=SCHEMA)
    assert published.beside(known).equals(known)
    assert published.beside(known.clear())["run"].to_list() == [row["run"]]


BEHIND_S = 1_000_000_000  # mtime of the files, by the clock of a lab without NTP


def ended(own: Path, file: str, content: object, at_s: float) -> None:
    (own / REPETITION).mkdir(parents=True)
    (own / REPETITION / file).write_text(json.dumps(content))
    os.utime(own / REPETITION / file, (at_s, at_s))


def test_job__of_a_lab_whose_clock_is_behind_counts_as_finished(small: Sweep, tmp_path: Path) -> None:
    first, second, third, *_ = jobs = plan.jobs(small, probe)[:4]
    owns = {job.id: tmp_path / SWEEP_RUNS / job.id for job in jobs}
    ended(owns[first.id], SUMMARY, VALID | {"valid": False, "reasons": ["late"]}, BEHIND_S)
    progress = SweepProgress("x", 1)
    watch = Watch(jobs, tmp_path, tmp_path, progress, runner.Ending(), lambda job: 1.0)
    watch()
    assert (progress.done, len(watch.left)) == (0, 4)  # files of an earlier attempt do not end a new attempt

    make_room(owns[first.id])
    ended(owns[first.id], SUMMARY, VALID, BEHIND_S)
    ended(owns[second.id], ABORTED, "no room", BEHIND_S)
    with results.running(Path(owns[second.id])):
        watch()
        assert second.id in watch.left
    (owns[third.id] / REPETITION).mkdir(parents=True)
    watch()
    assert (progress.done, progress.not_valid) == (2, 1)
    assert set(watch.left) == {third.id, jobs[3].id}
