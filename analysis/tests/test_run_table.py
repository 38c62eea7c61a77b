# SPDX-License-Identifier: MIT
"""The run table: one row per repetition, the same numbers as in summary.json, and never out of date."""

import json
import shutil

import polars
import pytest

from analysis.results.summary import summarize
from analysis.tests.recordings import RECORDED
from model.experiment import Experiment
from model.groups import Long
from runs import plan_file, run_table, stored_sweep
from runs.plan_file import Plan
from runs.quantities import QUANTITIES

ENVIRONMENT = {
    "git": {"commit": "c" * 40, "dirty": False},
    "program": {"name": "bufferscope", "digest": "d" * 64},
    "virtual_machine": {"kernel": {"binary_digest": "e" * 64}},
    "phases_s": {"plan": 1.5, "machine": 4.25, "virtual_traffic": 99.0},
}


@pytest.fixture
def summary(known_runs):
    return summarize(known_runs("two_flows").analysis)


def repetition(results, summary, run="20260101T000000Z-a/rep-1"):
    directory = results / run
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "summary.json").write_text(json.dumps(summary))
    (directory / "environment.json").write_text(json.dumps(ENVIRONMENT))
    return directory


def test_row__has_the_numbers_of_the_summary(tmp_path, summary):
    directory = repetition(tmp_path, summary)
    row = run_table.read_repetition(directory, tmp_path)
    assert tuple(row) == run_table.COLUMNS
    # A simulated repetition has, for example, no sweep, no ECN and no access links: these columns may be null.
    assert {name for name, value in row.items() if value is None} <= {
        "sweep", "ecn_threshold_packets", "access_bps", "lateness_max_us", "application_goodput_p01_bps",
        "nic_rate_bps", "coalesce_us", "finite_cc", "load", "users", "flow_sizes", "window_packets",
        "rtts_ns", "access_links", "ack_delay_ns", "groups", "rate_changes", "link_loss", "jitter_ns", "link_lost",
        "p4", "queue", "note",
    }  # fmt: skip
    expected = {
        "run": "20260101T000000Z-a/rep-1", "repetition": 1, "attempt": 1, "kept": "all", "imported": False, "flows": 2,
        "reasons": "; ".join(summary["reasons"]), "delta": summary["almost_fairness"]["delta"],
        "buffer_over_bdp": pytest.approx(summary["rules"]["buffer_over_bdp"]),
        "ledger_missing": 0, "wall_s": 5.75, "commit": "c" * 40, "p4_digest": "d" * 64, "kernel_digest": "e" * 64,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected


def test_quantities__are_at_their_paths_in_recorded_summaries():
    summaries = [json.loads(path.read_text()) for path in RECORDED.glob("*/summary.json")]
    of_some_runs = ("spec.", "environment.", "open_loop.", "rate.", "fidelity.line.", "link_lost")
    measured = [each for each in QUANTITIES if each.path and not each.path.startswith(of_some_runs)]
    assert len({each.name for each in QUANTITIES}) == len(QUANTITIES)
    assert [each.name for each in measured if all(each.of(summary) is None for summary in summaries)] == []


def test_point__is_the_same_for_other_seeds_and_not_for_other_parameters(summary):
    spec = summary["spec"]
    same = spec | {"seed": 77, "reps": 5, "repetition": 3, "name": "x", "buffer_given": "1bdp", "extra_delays_ns": []}
    other = spec | {"rtt_ns": spec["rtt_ns"] + 1}
    points = [Experiment.model_validate(each).point for each in (spec, same, other)]
    assert points[0] == points[1] != points[2]
    assert run_table.mix([Long(cc="cubic", flows=8), Long(cc="bbr", flows=2)]) == "cubic:8,bbr:2"
    assert run_table.mix([Long(cc="cubic", flows=8)]) == "cubic"


def test_sweep__job_and_attempt_follow_from_the_path(tmp_path, summary):
    directory = repetition(tmp_path, summary, "small/runs/reno-n2-0123abcd-r3/rep-1")
    repetition(tmp_path, summary, "small/runs/reno-n2-0123abcd-r3/attempt-1")
    (directory / "THINNED").write_text("summary\nmore words\n")
    (row,) = run_table.read(tmp_path).to_dicts()
    assert (row["sweep"], row["repetition"], row["attempt"], row["kept"]) == ("small", 3, 2, "summary")
    for inside in ("small", "small/runs"):
        assert run_table.read(tmp_path / inside)["sweep"].to_list() == ["small"]


def test_swapped_jobs__are_not_reported_under_each_others_parameters(tmp_path, summary):
    jobs = [tmp_path / f"small/runs/reno-n{flows}-b20-0123456789-r1" for flows in (1, 2)]
    for job in jobs:
        repetition(tmp_path, summary | {"spec": summary["spec"] | {"name": job.name}}, f"small/runs/{job.name}/rep-1")
    assert run_table.read(tmp_path)["valid"].to_list() == [True, True]
    jobs[0].rename(tmp_path / "away")
    jobs[1].rename(jobs[0])
    (tmp_path / "away").rename(jobs[1])
    plan = {job.name: {"point": {"flows": str(1 + k)}, "spec": summary["spec"]} for k, job in enumerate(jobs)}
    for _ in range(2):  # first without a plan, then with one
        rows = run_table.read(tmp_path).to_dicts()
        assert [row["valid"] for row in rows] == [False, False]
        assert rows[0]["reasons"].startswith(f"is the run of job '{jobs[1].name}', not of {jobs[0].name}")
        assert stored_sweep.read(tmp_path / "small").valid == []
        plan_file.write(tmp_path / "small", Plan.model_validate({"jobs": plan}))


def test_index__is_fresh_whatever_happens_to_the_runs(tmp_path, summary):
    first, second = repetition(tmp_path, summary), repetition(tmp_path, summary, "20260101T000001Z-b/rep-1")
    (tmp_path / "latest").symlink_to(second.parent.name)
    written = run_table.write(tmp_path)
    assert written.height == 2
    assert polars.read_parquet(tmp_path / "index.parquet").drop(run_table.STAMP).equals(written)
    assert run_table.read(tmp_path).equals(written)
    (first / "summary.json").write_text(json.dumps(summary | {"drops": 12345}))
    assert 12345 in run_table.read(tmp_path)["drops"].to_list()
    shutil.rmtree(first.parent)
    assert run_table.read(tmp_path)["run"].to_list() == ["20260101T000001Z-b/rep-1"]
    (second / "summary.json").write_text("{")
    assert run_table.write(tmp_path)["valid"].to_list() == [False]
    (second / "summary.json").write_text(json.dumps(summary | {"drops": 5}))
    assert run_table.read(tmp_path)["drops"].to_list() == [5]
    assert list(tmp_path.glob(".index*")) == []


def test_index__follows_links_that_lead_elsewhere_and_counts_nothing_twice(tmp_path, summary):
    results, moved = tmp_path / "results", repetition(tmp_path / "disk", summary).parent
    own = repetition(results, summary)
    (results / "moved").symlink_to(moved)
    (results / "latest").symlink_to("moved")
    (results / "z").mkdir()
    (results / "z/rep-1").symlink_to(own)
    (results / "z/rep-2").symlink_to(moved / "rep-1")
    assert run_table.read(results)["run"].to_list() == [str(own.relative_to(results)), "moved/rep-1"]


def test_index__of_another_version_or_none_is_made_anew(tmp_path, summary):
    assert run_table.read(tmp_path / "nowhere").height == 0
    repetition(tmp_path, summary)
    for content in (b"PAR1 no", b""):
        (tmp_path / "index.parquet").write_bytes(content)
        assert run_table.read(tmp_path).height == 1
    polars.DataFrame({"run": ["20260101T000000Z-a/rep-1"]}).write_parquet(tmp_path / "index.parquet")
    assert run_table.read(tmp_path)["flows"].to_list() == [2]


def test_summary__that_cannot_be_read_is_a_row_of_a_run_that_is_not_valid(tmp_path, known_runs):
    directory = tmp_path / "20260101T000000Z-a/rep-1"
    shutil.copytree(known_runs("two_flows").directory, directory)
    for text, said in (
        ('{"valid": true,', "summary.json cannot be read: "),
        ("[1]", "is not a summary of this version: must be a valid dictionary"),
        ('{"valid": true}', "utilization is missing; spec is missing"),
        ('{"valid": true, "spec": {}, "utilization": {}, "reasons": 3}', "reasons must be a valid list, is 3"),
        ('{"valid": true, "spec": {}, "utilization": {}}', "this version: spec.spec_version is missing"),
        ("[" * 100_000, "is nested too deep"),
    ):
        (directory / "summary.json").write_text(text)
        for _ in range(2):  # first anew, then from the index
            (row,) = run_table.write(tmp_path).to_dicts()
            assert (row["valid"], row["cc"], row["flows"], row["drops"]) == (False, "reno", 2, None)
            assert said in row["reasons"]
    (directory / "spec.yaml").write_text("no spec")
    (row,) = run_table.read(tmp_path).to_dicts()
    assert (row["valid"], row["cc"]) == (False, None)


def test_row__of_a_strange_summary_has_holes_not_lies(summary, tmp_path):
    names = ("drops", "buffer_over_bdp", "delta", "ledger_missing", "arrivals", "reasons")
    for number in (10**30, -(10**400), float("inf"), float("nan"), "a", [1], True):
        strange = json.loads(json.dumps(summary))
        strange |= {"drops": number, "arrivals": 7, "reasons": ["a", "b"]}
        strange |= {"almost_fairness": None, "ledger": {}}
        strange["rules"]["bdp_packets_exact"] = number
        repetition(tmp_path, strange)
        (row,) = run_table.write(tmp_path).to_dicts()
        assert [row[name] for name in names] == [None] * 4 + [7, "a; b"], number
