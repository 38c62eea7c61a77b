# SPDX-License-Identifier: MIT
"""The verdict of stored runs on each row of the advice, from run tables and summaries; no verdict without runs."""

import json
from dataclasses import replace

import polars
import pytest

from analysis.advise import evidence, judge, parameters, rules
from analysis.summary import summarize
from bufferscope.__main__ import main

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
    return judge.judge(RULES[key], link, evidence.load(directory).runs)


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
    table(tmp_path, {"queue_nonempty_fraction": 0.98})
    assert (judged(tmp_path).word, judged(tmp_path).kept, judged(tmp_path).counted) == ("contradicted", 0, 1)
    table(tmp_path, {}, {"queue_nonempty_fraction": 0.98})
    assert (judged(tmp_path).word, judged(tmp_path).kept, judged(tmp_path).counted) == ("mixed", 1, 2)


def test_rule__is_contradicted_by_runs_for_which_even_more_was_not_enough(tmp_path):
    more = {"buffer_packets": 69}
    table(tmp_path, more | {"queue_nonempty_fraction": 0.98}, more, more)
    verdict = judged(tmp_path)
    assert (verdict.word, verdict.kept, verdict.counted, verdict.more) == ("contradicted", 0, 1, 2)


def test_rule__is_not_supported_by_far_more_buffer_or_by_less(tmp_path):
    table(tmp_path, {"buffer_packets": 138})
    assert (judged(tmp_path).word, judged(tmp_path).more) == ("not measured near it", 1)
    table(tmp_path, {"buffer_packets": 20})
    assert judged(tmp_path).word == "not measured with that much"
    assert judged(tmp_path).less_kept == 1


@pytest.mark.parametrize(
    "change",
    [
        {"valid": False}, {"cc": "cubic"}, {"flows": 1}, {"traffic": "open-loop"}, {"mode": "ecn"}, {"cc": None},
        {"queue_nonempty_fraction": None}, {"flows": 0}, {"buffer_packets": None}, {"delta": None},
        {"flows_losing_per_rtt": None}, {"pacing": "exact"}, {"window_packets": 32}, {"access_bps": 5_000_000},
    ],
)  # fmt: skip
def test_runs__that_say_nothing_of_a_rule_do_not_count(tmp_path, change):
    table(tmp_path, ROW | change)
    assert judged(tmp_path).word == "not measured yet"


def test_rule_for_a_utilization__is_judged_by_the_first_percentile_of_utilization(tmp_path):
    # Theorem 7's buffer for 99 % is 33.2 packets. Utilization over ten RTTs is known to a packet in ten BDPs.
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
    table(tmp_path, {"utilization_p01": 0.91, "buffer_packets": 24})  # for 90 % the rule asks for 20.7 packets
    assert judged(tmp_path, "theorem-7", replace(LINK, utilization=0.9)).word == "supported"


def test_rule_for_one_flow__is_judged_by_runs_of_one_flow(tmp_path):
    table(tmp_path, {"flows": 1, "buffer_packets": 138})
    assert judged(tmp_path, "bdp").word == "supported"  # the rule asks for 138.3 packets; a run rounds to 138
    assert judged(tmp_path).word == "not measured yet"
    assert judged(tmp_path, "theorem-1").word == "not measured yet"  # no run measures paced senders


def test_each_run__is_held_against_its_own_link(tmp_path):
    # 35 packets are less than the first run's BDP/sqrt(4), and enough for BDP/sqrt(64) of the second: its BDP is 277.
    asked = replace(LINK, flows=1000)
    table(tmp_path, {"flows": 4, "flows_losing_per_rtt": 2}, {"flows": 64, "rate_bps": 2 * 10**10})
    verdict = judged(tmp_path, link=asked)
    assert (verdict.counted, verdict.less) == (1, 1)
    assert (verdict.flows, verdict.bdp) == ((64, 64), (pytest.approx(2 * LINK.bdp),) * 2)


def test_span_that_is_printed__is_of_the_runs_that_count(tmp_path):
    # 4 flows with 35 packets have too small a buffer to judge the rule, 16 flows with 138 packets too large a one.
    too_few, too_many = {"flows": 4, "flows_losing_per_rtt": 2}, {"buffer_packets": 138}
    table(tmp_path, too_few, too_many, {"flows": 64, "rate_bps": 2 * 10**10})
    verdict = judged(tmp_path)
    assert (verdict.counted, verdict.more, verdict.less) == (1, 1, 1)
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


def test_mean_number_of_losing_flows__is_compared_with_the_bound_of_the_rule(tmp_path):
    # 4 + 256/138 = 5.85 flows may lose. With DELTA=2 only 4.93 may lose, and the rule asks for 69 packets.
    table(tmp_path, {"flows_losing_per_rtt": 5.8}, {"flows_losing_per_rtt": 5.9})
    verdict = judged(tmp_path)
    assert (verdict.word, verdict.counted, verdict.many_losing, verdict.losing) == ("supported", 2, 1, (5.8, 5.9))
    table(tmp_path, {"flows_losing_per_rtt": 5.8, "buffer_packets": 70})
    assert judged(tmp_path, link=replace(LINK, delta=2.0)).many_losing == 1
    assert judged(tmp_path, "sqrt-n").losing is None  # this rule assumes no number of losing flows


def test_losing__changes_equation_3_alone(tmp_path):
    # Equation 3 asks for 8 x BDP / 16 = 69 packets. Theorem 6 is judged by the run's own number of losers.
    link = replace(LINK, losing=8.0)
    table(tmp_path, {"flows_losing_per_rtt": 5.8}, {"flows_losing_per_rtt": 9.8, "buffer_packets": 70})
    verdict = judged(tmp_path, "equation-3", link)
    assert (verdict.word, verdict.counted, verdict.less, verdict.many_losing) == ("supported", 1, 1, 0)
    table(tmp_path, {"flows_losing_per_rtt": 9.9, "buffer_packets": 70})  # 8 + 1.85 flows may lose
    assert judged(tmp_path, "equation-3", link).many_losing == 1
    table(tmp_path, {})
    assert judged(tmp_path, "theorem-6", link).word == "supported"


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("theorem-6", {"flows": 128, "flows_losing_per_rtt": 60.0}),  # windows of about one packet
        ("sqrt-n", {}),  # 16 windows are not independent
        ("gaussian", {}),
        ("bdp", {"cc": "cubic", "flows": 1, "buffer_packets": 140}),
    ],
)
def test_runs__that_break_an_assumption_are_counted_apart(tmp_path, key, change):
    table(tmp_path, change, change | {"queue_nonempty_fraction": 0.5, "utilization_mean": 0.5})
    verdict = judged(tmp_path, key, replace(LINK, cc=change.get("cc", "reno")))
    assert verdict.word == "measured outside its assumptions"
    assert (verdict.counted, verdict.less, verdict.outside) == (0, 0, 2)
    # theorem-6: 35 packets are far above BDP/sqrt(128), so only the run that missed counts. gaussian: 35 are too few.
    assert (verdict.outside_counted, verdict.outside_kept) == {"theorem-6": (1, 0), "gaussian": (0, 0)}.get(key, (2, 1))


def test_rules_for_the_paper_s_link__are_contradicted_by_its_published_runs(capsys):
    # 64 Reno flows with 20 packets and tail drop: three runs have a p01 utilization of 0.930 to 0.933. For 16 flows,
    # Theorem 6 asks for 41.5 packets, but even with 62 packets fewer than 99 % of packets find a queue.
    common = ["advise", "RATE=10gbit", "RTT=1.2ms", "MTU=9000", "CC=reno", "UTIL=0.95", "--json"]
    assert main([*common, "FLOWS=64"]) == 0
    measured = {rule["key"]: rule["measured"] for rule in json.loads(capsys.readouterr().out)["rules"]}
    assert measured["theorem-7"]["verdict"] == "contradicted"
    assert measured["theorem-7"]["flows"] == [64, 64]
    assert measured["theorem-7"]["counted"] >= 2
    assert measured["theorem-7"]["unfair"] == measured["theorem-7"]["counted"]
    assert main([*common, "FLOWS=16"]) == 0
    measured = {rule["key"]: rule["measured"] for rule in json.loads(capsys.readouterr().out)["rules"]}
    assert (measured["theorem-6"]["verdict"], measured["theorem-6"]["flows"]) == ("contradicted", [16, 16])


def test_table__says_which_delta_was_measured_and_that_losers_are_a_mean(tmp_path, capsys):
    table(tmp_path, {"delta": 2.0, "queue_nonempty_fraction": 0.9, "flows_losing_per_rtt": 5.9}, {"delta": 3.24})
    words = [
        "advise",
        "CC=reno",
        "FLOWS=16",
        "RATE=10gbit",
        "RTT=1ms",
        "MTU=9000",
        "ADVISE=full",
        f"EVIDENCE={tmp_path}",
    ]

    def said(*more):
        assert main([*words, *more]) == 0
        return " ".join(capsys.readouterr().out.split())

    text = said()
    row = text.index("Theorem 6 ")
    assert "mixed (1 of 2), with Delta" in text[row:]
    assert "measured Delta: 2 to 3.24, above the row's 1 in 2 of 2" in text
    assert "flows that lose in an RTT with losses, mean: 4 to 5.9, above the bound in 1 of 2" in text
    table(tmp_path, {"delta": 0.9, "flows_losing_per_rtt": 5.9})
    text = said()
    assert "supported (1 of 1), with more flows" in text
    assert "above the row's" not in text


def test_gaussian_bound__is_judged_by_the_mean_which_it_bounds(tmp_path):
    # 200 flows need 38.1 packets (the BDP is 813) for 90 %.
    many = {"flows": 200, "mtu_bytes": 1500, "buffer_packets": 40}
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
    loaded = evidence.load(tmp_path)
    assert (len(loaded.runs), loaded.left_out, loaded.problems) == (1, 1, [])


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
    for number, text in enumerate(("{", "[]", "{}", '{"spec": {}, "utilization": {}}')):
        (tmp_path / f"rep-{number}").mkdir()
        (tmp_path / f"rep-{number}/summary.json").write_text(text)
    loaded = evidence.load(tmp_path)
    assert (len(loaded.runs), len(loaded.problems), loaded.left_out) == (1, 5, 1)
    assert "it has no column valid" in loaded.problems[0]
    assert main(["advise", "CC=reno", "ADVISE=full", f"EVIDENCE={tmp_path}"]) == 0
    said = capsys.readouterr().out
    assert "supported (1 of 1)" in said
    assert said.count("Not read:") == 5
    assert main(["advise", "CC=reno", f"EVIDENCE={tmp_path}", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["evidence"]["runs"] == 1
    assert {rule["key"]: rule["measured"] for rule in document["rules"]}["theorem-6"]["verdict"] == "supported"


def test_table_of_a_figures_numbers__is_not_read_as_a_run_table(tmp_path):
    table(tmp_path, {})
    (tmp_path / "figure_01.csv").write_text("what,paper\n1,2\n")
    (tmp_path / "figure_01.png").touch()
    loaded = evidence.load(tmp_path)
    assert (len(loaded.runs), loaded.problems) == (1, [])


def test_no_directory__is_no_evidence(tmp_path):
    assert evidence.load(tmp_path / "nowhere") == ([], 0, [], [])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_or_infinity__counts_as_not_measured(tmp_path, value):
    names = (*evidence.MEASURED, "flows")
    table(tmp_path, *[{name: value if name == wrong else ROW[name] for name in names} for wrong in names])
    runs = evidence.load(tmp_path).runs
    assert len(runs) == len(evidence.MEASURED)
    assert [sum(number is None for number in run) for run in runs] == [1] * len(runs)


def test_algorithm_that_is_a_number__is_no_run(tmp_path):
    assert evidence.load(table(tmp_path, {"cc": 7})).runs == []


def test_run_that_two_sweeps_did__counts_once(tmp_path):
    first = {"clock": "virtual", "seed": 7, "repetition": 1}
    table(tmp_path, first, first | {"utilization_p01": 0.9951}, first | {"seed": 8}, first | {"repetition": 2})
    loaded = evidence.load(tmp_path)
    assert (len(loaded.runs), loaded.left_out) == (3, 1)


def test_runs_in_real_time__all_count_whatever_their_seed(tmp_path):
    table(tmp_path, *[{"clock": "real", "seed": 7, "repetition": 1}] * 2)
    assert len(evidence.load(tmp_path).runs) == 2
