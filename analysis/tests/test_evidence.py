# SPDX-License-Identifier: MIT
"""The verdict of stored runs on each row of the advice, from run tables and summaries; no verdict without runs."""

import json
from dataclasses import replace
from typing import Any

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


MISSED, LARGE, HUGE, FEW = (
    {"queue_nonempty_fraction": 0.98}, {"buffer_packets": 69}, {"buffer_packets": 138}, {"buffer_packets": 20},
)  # fmt: skip
USED, FULL = {"utilization_p01": 0.991, "queue_nonempty_fraction": 0.5}, {"utilization_p01": 0.989}
ONE = {"flows": 1, "buffer_packets": 138}
MANY = {"flows": 200, "mtu_bytes": 1500, "buffer_packets": 40}
OTHERS = {"flows": 36, "buffer_packets": 24}
UNFAIR = {"delta": 2.0, "queue_nonempty_fraction": 0.9}
CROWD = {"flows": 128, "flows_losing_per_rtt": 60.0}
BELOW = {"queue_nonempty_fraction": 0.5, "utilization_mean": 0.5}
Changes = dict[str, Any]
JUDGED: list[tuple[str, Changes, list[Any], Changes]] = [  # rule, changes to LINK, runs, the verdict
    # BDP/sqrt(16) is 34.6 packets. The runs with 35 and 40 have that buffer and keep the rule; 20 packets are too few.
    ("theorem-6", {}, [{}, {"buffer_packets": 40}, FEW | MISSED], {
        "word": "supported", "counted": 2, "kept": 2, "more": 0, "less": 1, "less_kept": 0, "unfair": 0,
        "many_losing": 0, "outside": 0, "flows": (16, 16), "bdp": (LINK.bdp, LINK.bdp),
    }),
    ("theorem-6", {}, [MISSED], {"word": "contradicted"}),
    ("theorem-6", {}, [{}, MISSED], {"word": "mixed"}),
    # Even more was not enough.
    ("theorem-6", {}, [LARGE | MISSED, LARGE, LARGE], {"word": "contradicted", "kept": 0, "counted": 1, "more": 2}),
    ("theorem-6", {}, [HUGE], {"word": "not measured near it"}),
    ("theorem-6", {}, [FEW], {"word": "not measured with that much"}),
    ("bdp", {}, [ONE], {"word": "supported"}),  # the rule asks for 138.3 packets; a run rounds to 138
    ("theorem-1", {}, [ONE], {"word": "not measured yet"}),  # no run measures paced senders
    # Theorem 7's buffer for 99 % is 33.2 packets, for 90 % 20.7. Over ten RTTs it is known to a packet in ten BDPs.
    ("theorem-7", {}, [USED], {"word": "supported"}),
    ("theorem-6", {}, [USED], {"word": "contradicted"}),
    ("theorem-7", {}, [FULL], {"word": "contradicted"}),
    ("theorem-7", {"utilization": 1.0}, [{"utilization_p01": 1 - 0.09 / LINK.bdp}], {"word": "supported"}),
    ("theorem-7", {"utilization": 1.0}, [{"utilization_p01": 1 - 0.11 / LINK.bdp}], {"word": "contradicted"}),
    ("theorem-7", {"utilization": 0.9}, [{"utilization_p01": 0.91, "buffer_packets": 24}], {"word": "supported"}),
    # The Gaussian bound is one of the mean. 200 flows need 38.1 packets (the BDP is 813) for 90 %.
    ("gaussian", {"flows": 200, "mtu_bytes": 1500, "utilization": 0.9},
     [MANY | USED | {"utilization_mean": 0.91, "utilization_p01": 0.5}], {"kept": 1}),
    ("gaussian", {"flows": 200, "mtu_bytes": 1500, "utilization": 0.9},
     [MANY | {"utilization_mean": 0.89, "utilization_p01": 0.99}], {"word": "contradicted"}),
    # 35 packets are enough for BDP/sqrt(64) of the last run: its BDP is 277. The others have too few or too many.
    ("theorem-6", {}, [{"flows": 4, "flows_losing_per_rtt": 2}, HUGE, {"flows": 64, "rate_bps": 2 * 10**10}],
     {"counted": 1, "more": 1, "less": 1, "flows": (64, 64), "bdp": (2 * LINK.bdp, 2 * LINK.bdp)}),
    # Runs of the link itself count alone, unless their buffers are too small to judge the rule.
    ("theorem-6", {}, [MISSED, OTHERS, OTHERS, {"rate_bps": 10**11, "buffer_packets": 360}],
     {"counted": 1, "kept": 0, "flows": (16, 16)}),
    ("theorem-6", {"flows": 25}, [MISSED, OTHERS, OTHERS, {"rate_bps": 10**11, "buffer_packets": 360}],
     {"counted": 4, "kept": 3}),
    ("theorem-6", {}, [FEW, OTHERS], {"flows": (36, 36)}),
    # The buffer of the row counts, not the buffer for the run's Delta: 35 packets with DELTA=1, 69 with DELTA=2.
    ("theorem-6", {}, [UNFAIR, {"delta": 2.0, "buffer_packets": 70}],
     {"word": "contradicted", "counted": 1, "deltas": (2.0, 2.0), "unfair": 1}),
    ("theorem-6", {"delta": 2.0}, [UNFAIR, {"delta": 2.0, "buffer_packets": 70}],
     {"word": "supported", "counted": 1, "less": 1, "unfair": 0}),
    ("theorem-6", {"delta": 1.9}, [UNFAIR, {"delta": 2.0, "buffer_packets": 70}], {"word": "supported", "unfair": 1}),
    # 4 + 256/138 = 5.85 flows may lose. The square root rule assumes no number of losing flows.
    ("theorem-6", {}, [{"flows_losing_per_rtt": 5.8}, {"flows_losing_per_rtt": 5.9}],
     {"word": "supported", "counted": 2, "many_losing": 1, "losing": (5.8, 5.9)}),
    ("sqrt-n", {}, [{"flows_losing_per_rtt": 5.8}], {"losing": None}),
    # With LOSING=8, equation 3 asks for 8 x BDP / 16 = 69 packets, and 8 + 1.85 flows may lose.
    ("equation-3", {"losing": 8.0}, [{"flows_losing_per_rtt": 5.8}, LARGE | {"flows_losing_per_rtt": 9.9}],
     {"word": "supported", "counted": 1, "less": 1, "many_losing": 1}),
    # Windows of about one packet. 35 packets are far above BDP/sqrt(128), so only the run that missed counts.
    ("theorem-6", {}, [CROWD, CROWD | BELOW], {"outside": 2, "outside_counted": 1, "outside_kept": 0, "counted": 0}),
    # 16 windows are not independent.
    ("sqrt-n", {}, [{}, BELOW], {"outside_counted": 2, "outside_kept": 1, "word": "measured outside its assumptions"}),
    ("bdp", {"cc": "cubic"}, [ONE | {"cc": "cubic"}, ONE | BELOW | {"cc": "cubic"}],
     {"outside": 2, "outside_counted": 2, "outside_kept": 1, "less": 0}),
]  # fmt: skip


def judged(directory, key="theorem-6", link=LINK):
    return judge.judge(RULES[key], link, evidence.load(directory).runs)


def test_rule__is_judged_by_the_runs_that_have_its_buffer(tmp_path):
    for key, link, runs, expected in JUDGED:
        verdict = judged(table(tmp_path, *runs), key, replace(LINK, **link))
        found = {name: getattr(verdict, name) for name in expected}
        assert found == {n: pytest.approx(v) if n == "bdp" else v for n, v in expected.items()}, (key, link, runs)
    verdict = judged(table(tmp_path, {}, {"buffer_packets": 40}))
    assert verdict.ratios == (pytest.approx(35 / 34.58, rel=1e-3), pytest.approx(40 / 34.58, rel=1e-3))
    verdict = judged(table(tmp_path, {"flows": 64, "rate_bps": 2 * 10**10}))
    assert verdict.elsewhere(LINK) == "n = 64, BDP = 277"
    assert verdict.elsewhere(replace(LINK, flows=60, rate_bps=2 * 10**10)) == ""
    # Both sides of 16, but no run with 16.
    assert judged(table(tmp_path, {"flows": 4, "buffer_packets": 70}, OTHERS)).elsewhere(LINK) == "n = 4 to 36"


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
        assert judged(table(tmp_path, change)).word == "not measured yet", change


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


def test_runs_of_another_queue_or_link__do_not_count(tmp_path):
    in_specs = ({"queue": "codel"}, {"loss": {"in_good": 0.001}}, {"rate_steps": [[0, 10**7], [10**9, 10**6]]})
    in_rows = ({"queue": "codel"}, {"p4": "red"}, {"link_loss": 0.001}, {"rtts_ns": "1000000,2000000"})
    for row in (*in_rows, *({"spec": json.dumps(SPEC | change)} for change in in_specs)):
        assert not evidence.load(table(tmp_path, row)).runs, row


def test_run_that_two_sweeps_did__counts_once(tmp_path):
    first, real = ({"clock": clock, "seed": 7, "repetition": 1} for clock in ("virtual", "real"))
    more = first | {"seed": 8}, first | {"repetition": 2}, first | {"profile": "paper"}
    table(tmp_path, {"profile": None}, first, first | {"utilization_p01": 0.9951}, *more)
    loaded = evidence.load(tmp_path)
    assert (len(loaded.runs), loaded.left_out) == (5, 1)
    assert len(evidence.load(table(tmp_path, real, real)).runs) == 2  # real time never repeats itself
