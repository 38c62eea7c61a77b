# SPDX-License-Identifier: MIT
"""Which rules runs support: from run tables and summaries, counted one by one, and nothing without runs."""

import json
from dataclasses import replace

import polars
import pytest

from analysis.__main__ import main
from analysis.advise import evidence, parameters, rules
from analysis.summary import summarize

ROW = {
    "valid": True, "cc": "reno", "flows": 16, "traffic": "long", "mode": "tail-drop", "rate_bps": 10**10,
    "rtt_ns": 10**6, "mtu_bytes": 9000, "buffer_packets": 35, "utilization_mean": 0.998, "utilization_p01": 0.995,
    "queue_nonempty_fraction": 0.999, "delta": 1.0, "flows_losing_per_rtt": 4.0,
}  # fmt: skip
LINK = parameters.read({"cc": "reno", "flows": "16", "rate": "10gbit", "rtt": "1ms", "mtu": "9000"}).link
RULES = {rule.key: rule for rule in rules.RULES}


def table(directory, *changes, name="runs.parquet"):
    """A run table: a row for each of the changes to ROW."""
    rows = polars.DataFrame([ROW | change for change in changes], infer_schema_length=None)
    (rows.write_parquet if name.endswith("parquet") else rows.write_csv)(directory / name)
    return directory


def judged(directory, key="theorem-6", link=LINK):
    return evidence.judge(RULES[key], link, evidence.load(directory).runs)


def test_rule__is_supported_by_runs_near_what_it_asks_for(tmp_path):
    # BDP/sqrt(16) is 34.6 packets; 35 had it and kept it, 20 did not. Of the 16 flows 4 + 256/138 may lose.
    table(tmp_path, {}, {"buffer_packets": 40}, {"buffer_packets": 20, "queue_nonempty_fraction": 0.9})
    found = judged(tmp_path)
    assert found[:7] == (2, 2, 1, 0, pytest.approx(35 / 34.58, rel=1e-3), (16, 16), (LINK.bdp, LINK.bdp))
    assert found.outside == 0
    assert found.word == "supported"


def test_rule__is_contradicted_by_a_run_that_did_not_do_what_it_promises(tmp_path):
    table(tmp_path, {}, {"queue_nonempty_fraction": 0.98})
    assert (judged(tmp_path).word, judged(tmp_path).kept, judged(tmp_path).enough) == ("contradicted", 1, 2)


def test_rule__is_not_supported_by_far_more_buffer_or_by_less(tmp_path):
    table(tmp_path, {"buffer_packets": 138})
    assert judged(tmp_path).word == "not measured near it"
    table(tmp_path, {"buffer_packets": 20})
    assert judged(tmp_path).word == "not measured with so much"
    assert judged(tmp_path).kept_with_less == 1


@pytest.mark.parametrize(
    "change",
    [
        {"valid": False}, {"cc": "cubic"}, {"flows": 1}, {"traffic": "open-loop"}, {"mode": "ecn"}, {"cc": None},
        {"queue_nonempty_fraction": None}, {"flows": 0}, {"buffer_packets": None}, {"delta": None},
        {"flows_losing_per_rtt": None},
    ],
)  # fmt: skip
def test_runs__that_say_nothing_of_a_rule_do_not_count(tmp_path, change):
    table(tmp_path, ROW | change)
    assert judged(tmp_path).word == "not measured yet"


def test_rule_for_a_utilization__is_judged_by_the_first_percentile_of_utilization(tmp_path):
    # Theorem 7's buffer for 99 % is 33.2 packets; a run knows its least utilization to a packet of ten BDPs
    table(tmp_path, {"utilization_p01": 0.991, "queue_nonempty_fraction": 0.5})
    assert judged(tmp_path, "theorem-7").word == "supported"
    assert judged(tmp_path, "theorem-6").word == "contradicted"
    table(tmp_path, {"utilization_p01": 0.989})
    assert judged(tmp_path, "theorem-7").word == "contradicted"
    whole = replace(LINK, utilization=1.0)
    table(tmp_path, {"utilization_p01": 1 - 0.9 / (10 * LINK.bdp)})
    assert judged(tmp_path, "theorem-7", whole).word == "supported"
    table(tmp_path, {"utilization_p01": 1 - 1.1 / (10 * LINK.bdp), "queue_nonempty_fraction": 1.0})
    assert judged(tmp_path, "theorem-7", whole).word == "contradicted"
    table(tmp_path, {"utilization_p01": 0.91, "buffer_packets": 24})  # 20.7 packets for 90 %
    assert judged(tmp_path, "theorem-7", replace(LINK, utilization=0.9)).word == "supported"


def test_rule_for_one_flow__is_judged_by_runs_of_one_flow(tmp_path):
    table(tmp_path, {"flows": 1, "buffer_packets": 138})
    assert judged(tmp_path, "bdp").word == "supported"  # 138 is 138.3 packets, as a run rounds them
    assert judged(tmp_path).word == "not measured yet"
    assert judged(tmp_path, "theorem-1").word == "not measured yet"  # no run measures paced senders


def test_each_run__is_held_against_its_own_link(tmp_path):
    # The same 35 packets are less than BDP/sqrt(4), and enough for BDP/sqrt(64)
    table(tmp_path, {"flows": 4, "flows_losing_per_rtt": 2}, {"flows": 64, "rate_bps": 2 * 10**10})
    found = judged(tmp_path)
    assert (found.enough, found.less, found.flows) == (1, 1, (4, 64))
    assert found.bdp == (pytest.approx(LINK.bdp), pytest.approx(2 * LINK.bdp))
    assert found.elsewhere(LINK) == ""
    assert found.elsewhere(replace(LINK, flows=65, rtt_ns=10**7)) == "n = 4 to 64, BDP = 138 to 277"


def test_each_run__is_held_against_its_own_delta(tmp_path):
    # 35 packets are enough for a Delta of 1; the run had 2, and 69 packets are asked for
    table(tmp_path, {"delta": 2.0})
    assert judged(tmp_path).word == "not measured with so much"
    table(tmp_path, {"delta": 2.0, "buffer_packets": 70, "queue_nonempty_fraction": 0.9})
    assert judged(tmp_path).word == "contradicted"


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("theorem-6", {"flows_losing_per_rtt": 6.0}),  # 4 + 256/138 may
        ("theorem-6", {"flows": 128, "flows_losing_per_rtt": 60.0}),  # windows of about one packet
        ("sqrt-n", {}),  # 16 windows are not independent
        ("gaussian", {}),
        ("bdp", {"cc": "cubic", "flows": 1, "buffer_packets": 140}),
    ],
)
def test_runs__that_break_an_assumption_are_told_apart(tmp_path, key, change):
    table(tmp_path, change, change | {"queue_nonempty_fraction": 0.5, "utilization_mean": 0.5})
    found = judged(tmp_path, key, replace(LINK, cc=change.get("cc", "reno")))
    assert found.word == "measured outside its assumptions"
    assert (found.enough, found.less, found.outside) == (0, 0, 2)
    assert (found.outside_enough, found.outside_kept) in ((2, 1), (0, 0))


def test_gaussian_bound__is_judged_by_the_mean_which_it_bounds(tmp_path):
    # For 90 % 20.4 packets of 138, with 200 flows
    many = {"flows": 200, "mtu_bytes": 1500, "buffer_packets": 130}
    link = replace(LINK, flows=200, mtu_bytes=1500, utilization=0.9)
    table(tmp_path, many | {"utilization_mean": 0.91, "utilization_p01": 0.5, "queue_nonempty_fraction": 0.5})
    assert judged(tmp_path, "gaussian", link).kept == 1
    table(tmp_path, many | {"utilization_mean": 0.89, "utilization_p01": 0.99})
    assert judged(tmp_path, "gaussian", link).word == "contradicted"


@pytest.mark.parametrize("name", ["runs.parquet", "index.csv"])
def test_tables__of_either_kind_are_read_with_flattened_names(tmp_path, name):
    table(tmp_path, {}, {"valid": False}, name=name)
    names = {"rate_bps": "spec.rate_bps", "utilization_p01": "utilization.p01"}
    path = tmp_path / name
    frame = (polars.read_parquet if name.endswith("parquet") else polars.read_csv)(path).rename(names)
    (frame.write_parquet if name.endswith("parquet") else frame.write_csv)(path)
    found = evidence.load(tmp_path)
    assert (len(found.runs), found.left_out, found.problems) == (1, 1, [])


def test_summary__of_the_analysis_is_read(tmp_path, known_runs):
    known = known_runs("two_flows")
    summary = summarize(known.analysis) | {"valid": True}
    (tmp_path / "rep-1").mkdir()
    (tmp_path / "rep-1/summary.json").write_text(json.dumps(summary))
    table(tmp_path / "rep-1", {}, name="joined.parquet")  # tables of packets beside a summary are not asked
    table(tmp_path, {}, name="index.parquet")  # nor is what was made of the summaries, which would count them twice
    table(tmp_path, {}, name="least_buffer.parquet")
    found = evidence.load(tmp_path)
    assert found.problems == []
    run = found.runs[0]
    assert (len(found.runs), run.flows, run.rate_bps) == (1, known.scenario.flows, known.scenario.rate_bps)
    assert run.buffer_packets == known.scenario.threshold
    assert run.utilization_p01 == summary["utilization"]["p01"]
    assert run.nonempty == summary["queue_nonempty_fraction"]


def test_what_cannot_be_read__is_said_and_the_rest_counts(tmp_path, capsys):
    table(tmp_path, {})
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.parquet").write_bytes(b"PAR1 no")
    for number, text in enumerate(("{", "[]", "{}", '{"spec": {}, "utilization": {}}')):
        (tmp_path / f"rep-{number}").mkdir()
        (tmp_path / f"rep-{number}/summary.json").write_text(text)
    found = evidence.load(tmp_path)
    assert (len(found.runs), len(found.problems), found.left_out) == (1, 5, 1)
    assert "it has no column valid" in found.problems[0]
    assert main(["advise", "CC=reno", f"EVIDENCE={tmp_path}"]) == 0
    said = capsys.readouterr().out
    assert "supported (1 of 1)" in said
    assert said.count("Not read:") == 5
    assert main(["advise", "CC=reno", f"EVIDENCE={tmp_path}", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["evidence"]["runs"] == 1
    assert {rule["key"]: rule["measured"] for rule in document["rules"]}["theorem-6"]["verdict"] == "supported"


def test_no_directory__is_no_evidence(tmp_path):
    assert evidence.load(tmp_path / "nowhere") == ([], 0, [], [])


def test_run_that_two_sweeps_did__counts_once(tmp_path):
    first = {"clock": "virtual", "seed": 7, "repetition": 1}
    table(tmp_path, first, first | {"utilization_p01": 0.9951}, first | {"seed": 8}, first | {"repetition": 2})
    found = evidence.load(tmp_path)
    assert (len(found.runs), found.left_out) == (3, 1)


def test_runs_in_real_time__all_count_whatever_their_seed(tmp_path):
    table(tmp_path, *[{"clock": "real", "seed": 7, "repetition": 1}] * 2)
    assert len(evidence.load(tmp_path).runs) == 2
