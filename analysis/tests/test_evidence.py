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
    "rtt_ns": 10**6, "mtu_bytes": 9000, "buffer_packets": 35, "utilization_p01": 0.995,
    "queue_nonempty_fraction": 0.999,
}  # fmt: skip
LINK = parameters.read({"cc": "reno", "flows": "16", "rate": "10gbit", "rtt": "1ms", "mtu": "9000"}).link
RULES = {rule.key: rule for rule in rules.RULES}


def table(directory, *changes, name="runs.parquet"):
    """A run table: a row for each of the changes to ROW."""
    rows = polars.DataFrame([ROW | change for change in changes], infer_schema_length=None)
    (rows.write_parquet if name.endswith("parquet") else rows.write_csv)(directory / name)
    return directory


def judged(directory, key="sqrt-n", link=LINK):
    return evidence.judge(RULES[key], link, evidence.load(directory).runs)


def test_rule__is_supported_by_runs_near_what_it_asks_for(tmp_path):
    # BDP/sqrt(16) is 34.6 packets; 35 had it and kept it, 20 did not
    table(tmp_path, {}, {"buffer_packets": 40}, {"buffer_packets": 20, "queue_nonempty_fraction": 0.9})
    found = judged(tmp_path)
    assert found == (2, 2, 1, 0, pytest.approx(35 / 34.58, rel=1e-3), (16, 16), (LINK.bdp, LINK.bdp))
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
        {"queue_nonempty_fraction": None}, {"flows": 0}, {"buffer_packets": None},
    ],
)  # fmt: skip
def test_runs__that_say_nothing_of_a_rule_do_not_count(tmp_path, change):
    table(tmp_path, ROW | change)
    assert judged(tmp_path).word == "not measured yet"


def test_rule_for_a_utilization__is_judged_by_the_first_percentile_of_utilization(tmp_path):
    # Theorem 7's buffer for 99 % is 33.2 packets
    table(tmp_path, {"utilization_p01": 0.991, "queue_nonempty_fraction": 0.5})
    assert judged(tmp_path, "theorem-7").word == "supported"
    assert judged(tmp_path, "theorem-6").word == "contradicted"
    table(tmp_path, {"utilization_p01": 0.989})
    assert judged(tmp_path, "theorem-7").word == "contradicted"
    table(tmp_path, {"utilization_p01": 0.91, "buffer_packets": 24})  # 20.7 packets for 90 %
    assert judged(tmp_path, "theorem-7", replace(LINK, utilization=0.9)).word == "supported"


def test_rule_for_one_flow__is_judged_by_runs_of_one_flow(tmp_path):
    table(tmp_path, {"flows": 1, "buffer_packets": 138})
    assert judged(tmp_path, "bdp").word == "supported"  # 138 is 138.3 packets, as a run rounds them
    assert judged(tmp_path, "sqrt-n").word == "not measured yet"
    assert judged(tmp_path, "theorem-1").word == "not measured yet"  # no run measures paced senders


def test_each_run__is_held_against_its_own_link(tmp_path):
    # The same 35 packets are less than BDP/sqrt(4), and enough for BDP/sqrt(64)
    table(tmp_path, {"flows": 4}, {"flows": 64, "rate_bps": 2 * 10**10})
    found = judged(tmp_path)
    assert (found.enough, found.less, found.flows) == (1, 1, (4, 64))
    assert found.bdp == (pytest.approx(LINK.bdp), pytest.approx(2 * LINK.bdp))


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
    assert {rule["key"]: rule["measured"] for rule in document["rules"]}["sqrt-n"]["verdict"] == "supported"


def test_no_directory__is_no_evidence(tmp_path):
    assert evidence.load(tmp_path / "nowhere") == ([], 0, [], [])
