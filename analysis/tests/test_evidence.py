# SPDX-License-Identifier: MIT
"""The verdict of stored runs on each row of the advice, from run tables and summaries; no verdict without runs."""

import json
from dataclasses import replace

import polars
import pytest

from analysis.advise import evidence, judge, parameters, rules
from analysis.results.summary import summarize
from analysis.tests import simulate
from bufferscope.__main__ import main

ROW = {
    "valid": True, "cc": "reno", "flows": 16, "traffic": "long", "mode": "tail-drop", "rate_bps": 10**10,
    "rtt_ns": 10**6, "mtu_bytes": 9000, "buffer_packets": 35, "utilization_mean": 0.998, "utilization_p01": 0.995,
    "queue_nonempty_fraction": 0.999, "delta": 1.0, "flows_losing_per_rtt": 4.0,
}  # fmt: skip
LINK = parameters.read({"cc": "reno", "flows": "16", "rate": "10gbit", "rtt": "1ms", "mtu": "9000"}).link
LINK_WORDS = ("CC=reno", "RATE=100gbit", "RTT=100ms", "FLOWS=10000")
RULES = {rule.key: rule for rule in rules.RULES}
SPEC = simulate.spec(simulate.Scenario())


def table(directory, *changes, name="runs.parquet"):
    """A run table: a row for each of the changes to ROW."""
    rows = polars.DataFrame([ROW | change for change in changes], infer_schema_length=None)
    (rows.write_parquet if name.endswith("parquet") else rows.write_csv)(directory / name)
    return directory


def judged(directory, key="theorem-6", link=LINK):
    return judge.judge(RULES[key], link, evidence.load(directory).runs)


def word(directory, *changes, key="theorem-6", link=LINK):
    """The verdict's word for a table of these runs."""
    return judged(table(directory, *changes), key, link).word


def test_rule__is_supported_by_runs_near_what_it_asks_for(tmp_path):
    # BDP/sqrt(16) is 34.6 packets. The runs with 35 and 40 have that buffer and keep the rule; 20 packets are too few.
    table(tmp_path, {}, {"buffer_packets": 40}, {"buffer_packets": 20, "queue_nonempty_fraction": 0.9})
    verdict = judged(tmp_path)
    assert verdict[:5] == (2, 2, 0, 1, 0)
    assert verdict.ratios == (pytest.approx(35 / 34.58, rel=1e-3), pytest.approx(40 / 34.58, rel=1e-3))
    assert (verdict.flows, verdict.bdp) == ((16, 16), (LINK.bdp, LINK.bdp))
    assert (verdict.unfair, verdict.many_losing, verdict.outside) == (0, 0, 0)
    assert verdict.word == "supported"


def test_rule__is_contradicted_by_runs_that_did_not_do_what_it_promises(tmp_path):
    missed, more = {"queue_nonempty_fraction": 0.98}, {"buffer_packets": 69}
    assert word(tmp_path, missed) == "contradicted"
    assert word(tmp_path, {}, missed) == "mixed"
    verdict = judged(table(tmp_path, more | missed, more, more))  # even more was not enough
    assert (verdict.word, verdict.kept, verdict.counted, verdict.more) == ("contradicted", 0, 1, 2)
    assert word(tmp_path, {"buffer_packets": 138}) == "not measured near it"
    assert word(tmp_path, {"buffer_packets": 20}) == "not measured with that much"


def test_runs__behind_a_link_count_once(tmp_path):
    for name in ("results", "results/sweep", "disk/moved"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        table(tmp_path / name, {"buffer_packets": len(name)})
    for link, target in (("moved", tmp_path / "disk/moved"), ("latest", "sweep"), ("sweep/up", "..")):
        (tmp_path / "results" / link).symlink_to(target)
    assert sorted(run.buffer_packets for run in evidence.load(tmp_path / "results").runs) == [7, 10, 13]


def test_runs__that_say_nothing_of_a_rule_do_not_count(tmp_path):
    for change in (
        {"valid": False}, {"cc": "cubic"}, {"flows": 1}, {"traffic": "open-loop"}, {"mode": "ecn"}, {"cc": None},
        {"queue_nonempty_fraction": None}, {"flows": 0}, {"buffer_packets": None}, {"delta": None}, {"cc": 7},
        {"flows_losing_per_rtt": None}, {"pacing": "exact"}, {"window_packets": 32}, {"access_bps": 5_000_000},
        {"queue_nonempty_fraction": float("nan")}, {"rtt_ns": float("inf")},
    ):  # fmt: skip
        assert word(tmp_path, change) == "not measured yet", change
    one = {"flows": 1, "buffer_packets": 138}
    assert word(tmp_path, one, key="bdp") == "supported"  # the rule asks for 138.3 packets; a run rounds to 138
    assert word(tmp_path, one, key="theorem-1") == "not measured yet"  # no run measures paced senders


def test_rule_for_a_utilization__is_judged_by_the_first_percentile_of_utilization(tmp_path):
    # Theorem 7's buffer for 99 % is 33.2 packets. Utilization over ten RTTs is known to a packet in ten BDPs.
    used, whole, p01 = {"utilization_p01": 0.991, "queue_nonempty_fraction": 0.5}, replace(LINK, utilization=1.0), 0.989
    assert word(tmp_path, used, key="theorem-7") == "supported"
    assert word(tmp_path, used) == "contradicted"
    assert word(tmp_path, {"utilization_p01": p01}, key="theorem-7") == "contradicted"
    for missing, said in ((0.9, "supported"), (1.1, "contradicted")):
        row = {"utilization_p01": 1 - missing / (10 * LINK.bdp), "queue_nonempty_fraction": 1.0}
        assert word(tmp_path, row, key="theorem-7", link=whole) == said
    row = {"utilization_p01": 0.91, "buffer_packets": 24}  # for 90 % the rule asks for 20.7 packets
    assert word(tmp_path, row, key="theorem-7", link=replace(LINK, utilization=0.9)) == "supported"
    # The Gaussian bound is one of the mean. 200 flows need 38.1 packets (the BDP is 813) for 90 %.
    many = {"flows": 200, "mtu_bytes": 1500, "buffer_packets": 40}
    link = replace(LINK, flows=200, mtu_bytes=1500, utilization=0.9)
    table(tmp_path, many | {"utilization_mean": 0.91, "utilization_p01": 0.5, "queue_nonempty_fraction": 0.5})
    assert judged(tmp_path, "gaussian", link).kept == 1
    row = many | {"utilization_mean": 0.89, "utilization_p01": 0.99}
    assert word(tmp_path, row, key="gaussian", link=link) == "contradicted"


def test_each_run__is_held_against_its_own_link(tmp_path):
    # 35 packets are enough for BDP/sqrt(64) of the last run: its BDP is 277. 4 flows with 35 packets have too small a
    # buffer to judge the rule, 16 flows with 138 packets too large a one. The span printed is of the run that counts.
    too_few, too_many = {"flows": 4, "flows_losing_per_rtt": 2}, {"buffer_packets": 138}
    table(tmp_path, too_few, too_many, {"flows": 64, "rate_bps": 2 * 10**10})
    verdict = judged(tmp_path)
    assert (verdict.counted, verdict.more, verdict.less) == (1, 1, 1)
    assert (verdict.flows, verdict.bdp) == ((64, 64), (pytest.approx(2 * LINK.bdp),) * 2)
    assert verdict.elsewhere(LINK) == "n = 64, BDP = 277"
    assert verdict.elsewhere(replace(LINK, flows=60, rate_bps=2 * 10**10)) == ""
    table(tmp_path, {"flows": 4, "buffer_packets": 70}, {"flows": 36, "buffer_packets": 24})
    assert judged(tmp_path).elsewhere(LINK) == "n = 4 to 36"  # both sides of 16, but no run with 16


def test_runs_of_the_link_itself__count_alone(tmp_path):
    missed, others = {"queue_nonempty_fraction": 0.9}, {"flows": 36, "buffer_packets": 24}
    table(tmp_path, missed, others, others, {"rate_bps": 10**11, "buffer_packets": 360})
    assert judged(tmp_path)[:2] == (1, 0)
    assert judged(tmp_path).flows == (16, 16)
    assert judged(tmp_path, link=replace(LINK, flows=25))[:2] == (4, 3)
    table(tmp_path, {"buffer_packets": 20}, others)  # a run with a smaller buffer cannot judge the rule
    assert judged(tmp_path).flows == (36, 36)


def test_buffer_of_the_row__is_judged_not_the_buffer_for_the_runs_delta(tmp_path):
    # The rule asks for 35 packets with DELTA=1, for 69 with DELTA=2. A run with a measured Delta of 2 that misses the
    # goal with 35 packets contradicts the row for DELTA=1.
    missed = {"delta": 2.0, "queue_nonempty_fraction": 0.9}
    table(tmp_path, missed, missed | {"buffer_packets": 70, "queue_nonempty_fraction": 0.999})
    verdict = judged(tmp_path)
    assert (verdict.word, verdict.counted, verdict.deltas, verdict.unfair) == ("contradicted", 1, (2.0, 2.0), 1)
    verdict = judged(tmp_path, link=replace(LINK, delta=2.0))
    assert (verdict.word, verdict.counted, verdict.less, verdict.unfair) == ("supported", 1, 1, 0)
    verdict = judged(tmp_path, link=replace(LINK, delta=1.9))
    assert (verdict.word, verdict.unfair) == ("supported", 1)


def test_losing_flows__are_compared_with_the_bound_of_the_rule(tmp_path):
    # 4 + 256/138 = 5.85 flows may lose. With DELTA=2 only 4.93 may lose, and the rule asks for 69 packets.
    table(tmp_path, {"flows_losing_per_rtt": 5.8}, {"flows_losing_per_rtt": 5.9})
    verdict = judged(tmp_path)
    assert (verdict.word, verdict.counted, verdict.many_losing, verdict.losing) == ("supported", 2, 1, (5.8, 5.9))
    assert judged(tmp_path, "sqrt-n").losing is None  # this rule assumes no number of losing flows
    # With LOSING=8, equation 3 asks for 8 x BDP / 16 = 69 packets, and 8 + 1.85 flows may lose.
    link = replace(LINK, losing=8.0)
    table(tmp_path, {"flows_losing_per_rtt": 5.8}, {"flows_losing_per_rtt": 9.9, "buffer_packets": 70})
    verdict = judged(tmp_path, "equation-3", link)
    assert (verdict.word, verdict.counted, verdict.less, verdict.many_losing) == ("supported", 1, 1, 1)
    assert word(tmp_path, {}, link=link) == "supported"


def test_runs__that_break_an_assumption_are_counted_apart(tmp_path):
    for key, change, outside in (
        # Windows of about one packet. 35 packets are far above BDP/sqrt(128), so only the run that missed counts.
        ("theorem-6", {"flows": 128, "flows_losing_per_rtt": 60.0}, (1, 0)),
        ("sqrt-n", {}, (2, 1)),  # 16 windows are not independent
        ("gaussian", {}, (0, 0)),  # 35 packets are too few
        ("bdp", {"cc": "cubic", "flows": 1, "buffer_packets": 140}, (2, 1)),
    ):
        table(tmp_path, change, change | {"queue_nonempty_fraction": 0.5, "utilization_mean": 0.5})
        verdict = judged(tmp_path, key, replace(LINK, cc=str(change.get("cc", "reno"))))
        assert verdict.word == "measured outside its assumptions"
        assert (verdict.counted, verdict.less, verdict.outside) == (0, 0, 2)
        assert (verdict.outside_counted, verdict.outside_kept) == outside


def test_rules_for_the_paper_s_link__are_broken_by_its_published_runs(capsys):
    # 64 Reno flows with 20 packets and tail drop: most runs have a p01 utilization below 0.95.
    common = ["advise", "RATE=10gbit", "RTT=1.2ms", "MTU=9000", "CC=reno", "UTIL=0.95", "--json"]
    for key, flows in (("theorem-7", 64), ("theorem-6", 16)):
        assert main([*common, f"FLOWS={flows}"]) == 0
        measured = {rule["key"]: rule["measured"] for rule in json.loads(capsys.readouterr().out)["rules"]}
        assert measured[key]["flows"] == [flows, flows]
        assert measured[key]["kept"] <= measured[key]["counted"] / 4


def test_tables__of_either_kind_are_read_with_flattened_names(tmp_path):
    names = {"rate_bps": "spec.rate_bps", "utilization_p01": "utilization.p01"}
    rows = polars.DataFrame([ROW, ROW | {"valid": False}]).rename(names)
    expected = evidence.load(table(tmp_path, {}, {"valid": False}))
    rows.write_parquet(tmp_path / "runs.parquet")
    assert evidence.load(tmp_path) == expected
    (tmp_path / "runs.parquet").unlink()
    rows.write_csv(tmp_path / "index.csv")
    assert evidence.load(tmp_path)[:2] == expected[:2]
    assert evidence.load(tmp_path / "nowhere") == ([], 0, [], [])


def test_summary__of_the_analysis_is_read(tmp_path, known_runs):
    known = known_runs("two_flows")
    summary = summarize(known.analysis) | {"valid": True}
    (tmp_path / "rep-1").mkdir()
    (tmp_path / "rep-1/summary.json").write_text(json.dumps(summary))
    table(tmp_path / "rep-1", {}, name="joined.parquet")  # tables of packets beside a summary are not read
    table(tmp_path, {}, name="index.parquet")  # nor is this index: it would count each run twice
    table(tmp_path, {}, name="least_buffer.parquet")
    loaded = evidence.load(tmp_path)
    assert loaded.problems == []
    run = loaded.runs[0]
    assert (len(loaded.runs), run.flows, run.rate_bps) == (1, known.scenario.flows, known.scenario.rate_bps)
    assert run.buffer_packets == known.scenario.threshold
    assert run.utilization_p01 == summary["utilization"]["p01"]
    assert run.nonempty == summary["queue_nonempty_fraction"]


def test_unreadable_files__are_reported_and_the_others_count(tmp_path, capsys):
    table(tmp_path, {})
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.parquet").write_bytes(b"PAR1 no")
    (tmp_path / "figure_01.csv").write_text("what,paper\n1,2\n")  # the numbers of a figure are no run table
    (tmp_path / "figure_01.png").touch()
    for number, text in enumerate(("{", "[]", "{}", json.dumps({"spec": SPEC, "utilization": {}}))):
        (tmp_path / f"rep-{number}").mkdir()
        (tmp_path / f"rep-{number}/summary.json").write_text(text)
    loaded = evidence.load(tmp_path)
    assert (len(loaded.runs), len(loaded.problems), loaded.left_out) == (1, 5, 1)
    assert main(["advise", *LINK_WORDS, "ADVISE=full", f"EVIDENCE={tmp_path}"]) == 0
    assert capsys.readouterr().out.count("Not read:") == 5
    assert main(["advise", *LINK_WORDS, f"EVIDENCE={tmp_path}", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["evidence"]["runs"] == 1
    assert {rule["key"]: rule["measured"] for rule in document["rules"]}["theorem-6"]["verdict"] == "supported"


def test_run_of_flows_with_different_rtts__has_their_mean(tmp_path):
    spread = {"rtt_spread_ns": 10**6}
    groups = [group | {"rtt_ns": SPEC["rtt_ns"]} | spread for group in SPEC["groups"]]
    in_spec = {"spec": json.dumps(SPEC | {"groups": groups})}  # as in published tables
    for row in (spread, in_spec):
        assert [run.rtt_ns for run in evidence.load(table(tmp_path, row)).runs] == [1_500_000]
    assert evidence.load(table(tmp_path, {"spec": "no JSON"})).problems


def test_run_that_two_sweeps_did__counts_once(tmp_path):
    first, real = ({"clock": clock, "seed": 7, "repetition": 1} for clock in ("virtual", "real"))
    more = first | {"seed": 8}, first | {"repetition": 2}, first | {"profile": "paper"}
    table(tmp_path, {"profile": None}, first, first | {"utilization_p01": 0.9951}, *more)
    loaded = evidence.load(tmp_path)
    assert (len(loaded.runs), loaded.left_out) == (5, 1)
    assert len(evidence.load(table(tmp_path, real, real)).runs) == 2  # real time never repeats itself
