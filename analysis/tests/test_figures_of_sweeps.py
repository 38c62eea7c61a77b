# SPDX-License-Identifier: MIT
"""Figures 3 to 6, 10, 11 and Table 1 of Spang et al., from simulated sweeps whose every packet is known."""

import itertools
import json
import math
import shutil

import numpy as np
import polars as pl
import pytest
import yaml

from analysis import derive as derive_module
from analysis import distributions
from analysis.derive import derive
from analysis.papers import document, draw, paper, publish, run_list
from analysis.papers.document import DrawnFigure
from analysis.papers.facts import Fact
from analysis.papers.spang2021 import PAPER, arrival, figure_05b, table_conditions
from analysis.papers.spang2021.table_rows import RuleRow
from analysis.papers.stored_runs import NOT_VALID, LeftOut, StoredRuns
from analysis.statistics import Interval
from analysis.tests import simulate
from analysis.theory import many_flows, single_flow
from lib.errors import InputError
from runs import archive, record, run_table

FIGURES = {figure.name: figure for figure in PAPER.figures}
DROPPED = simulate.CARD["POSTCARD_DROPPED"]
BDP = 50e6 * 10e-3 / (8 * 1538)  # packets, on the simulation's default link
FULL = 41  # packets: one BDP
KERNEL = {"hosts": {"sender": {"congestion_controls": ["reno", "cubic", "bbr"]}}}


def _job(cc, flows, buffer, seed=1):
    return (cc, flows, buffer, seed)


SWEEPS = {
    "single-flow-buffers": [_job("reno", 1, 5), _job("reno", 1, FULL), _job("reno", 1, FULL, 2)],
    "reno-depth": [_job("reno", n, FULL) for n in (1, 4, 16)] + [_job("reno", 4, FULL, 2), _job("reno", 16, 20)],
    "others-depth": [_job("cubic", 4, FULL)],
    "least-buffer": [_job("reno", 1, b) for b in (5, 20, FULL, 70)] + [_job("reno", 4, b) for b in (5, 20, FULL)],
    "least-buffer-utilization": [_job("reno", 1, b) for b in (5, 20, FULL, 70)],
    "twenty-packets": [_job("reno", n, 20) for n in (1, 4, 16)],
    "fairness-flows": [_job("cubic", 4, FULL)],
    "fairness-buffers": [_job("reno", 16, FULL), _job("reno", 16, 20)],
}


def _scenario(cc, flows, buffer, seed):
    return simulate.Scenario(
        flows=flows, threshold=buffer, seed=seed, ccs=(cc,), clock="virtual", duration_ns=1_000_000_000,
        warmup_ns=500_000_000,
    )  # fmt: skip


@pytest.fixture(scope="module")
def truths():
    """The simulation of each job."""
    return {job: simulate.Simulation(_scenario(*job)).run() for job in {j for jobs in SWEEPS.values() for j in jobs}}


@pytest.fixture(scope="module")
def results(tmp_path_factory, truths):
    top = tmp_path_factory.mktemp("results")
    _store(top, SWEEPS, truths, KERNEL)
    return top


def _store(top, sweeps, truths, kernel):
    """Stores analysed sweeps, without the runs' own figures. A run that is in several sweeps is copied into each."""
    made = top / "made"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(derive_module, "draw_all", lambda *_: [])
        patch.setattr(derive_module, "render", lambda *_: "")
        for number, (job, truth) in enumerate(truths.items()):
            simulate.write_run(made / str(number), _scenario(*job), truth)
            environment = made / str(number) / "environment.json"
            environment.write_text(json.dumps(json.loads(environment.read_text()) | kernel))
            derive(made / str(number))
    places = {job: made / str(number) for number, job in enumerate(truths)}
    for stem, jobs in sweeps.items():
        for cc, flows, buffer, seed in jobs:
            run = top / f"spang2021-{stem}/runs/{cc}-n{flows}-b{buffer}-r{seed}/rep-1"
            shutil.copytree(places[cc, flows, buffer, seed], run)
    shutil.rmtree(made)


def _arrivals(truth, scenario):
    """(card, flow) of each packet of the measurement window, by a plain loop."""
    start = simulate.START_NS + scenario.warmup_ns
    end = start + scenario.duration_ns
    pairs = zip(truth.cards, truth.arrival_flow, strict=True)
    return [(card, flow) for card, flow in pairs if start <= card["enqueue_ns"] < end]


def _depths(truths, job):
    return np.array([card["depth_packets"] for card, _ in _arrivals(truths[job], _scenario(*job))])


def _figure(name, results):
    figure = FIGURES[name]
    data = figure.prepare(StoredRuns(PAPER, results))
    return data, {fact.what: fact for fact in figure.facts(data)}


def test_figure_03__has_the_models_line_and_says_what_is_missing(results):
    data, facts = _figure("figure_03", results)
    reno = data["panels"]["reno"]
    assert set(reno["measured"]) == {5, FULL}
    assert reno["measured"][FULL].runs == 2
    assert reno["measured"][5].low is None
    assert reno["model"][5] == pytest.approx(0.5 * (1 + 5 / BDP))
    assert reno["bdp"] == pytest.approx(BDP)
    assert data["panels"]["bbr2"]["absent"] == "BBRv2: not measured,\nno kernel at hand has it"
    assert data["panels"]["bbr"]["absent"] == "BBR: no valid run"
    assert facts["BBRv2: not measured, no kernel at hand has it"].measured is None


def test_figure_03__counts_packets_close_together_as_a_burst(results, truths):
    data, _ = _figure("figure_03", results)
    job = _job("reno", 1, 5)  # the buffer nearest to 20 packets, where utilization falls
    times = [card["enqueue_ns"] for card, _ in _arrivals(truths[job], _scenario(*job))]
    gap = 1538 * 8e9 / 50e6 / 2
    sizes = [1]
    for before, now in itertools.pairwise(times):
        if now - before <= gap:
            sizes[-1] += 1
        else:
            sizes.append(1)
    expected = {size: sum(s for s in sizes if s >= size) / sum(sizes) for size in sorted(set(sizes))}
    shown, share = data["panels"]["reno"]["bursts"]
    assert dict(zip(shown.tolist(), share.tolist(), strict=True)) == pytest.approx(expected)


def test_figure_04__measures_depth_below_full_and_below_the_rule(results, truths):
    data, facts = _figure("figure_04", results)
    assert [panel["buffer"] for panel in data["panels"]] == [FULL, 20]
    of_four = [_depths(truths, _job("reno", 4, FULL, seed)) for seed in (1, 2)]
    used = facts["B = 1 BDP, n = 4: B less the 1st percentile of depth"]
    assert used.predicted == pytest.approx(BDP)  # 2 BDP/sqrt(n)
    p01 = [np.percentile(depth, 1, method="inverted_cdf") for depth in of_four]
    assert used.measured.value == pytest.approx(FULL - np.mean(p01))
    shaded = facts["B = 1 BDP, n = 4: share of packets in the shaded region"]
    assert shaded.measured.value == pytest.approx(np.mean([(depth < FULL - BDP).mean() for depth in of_four]))
    density = data["panels"][0]["rows"][1]["density"]
    assert density.sum() * data["panels"][0]["width"] == pytest.approx(1)


def test_figure_05a__bounds_hold_the_least_buffer(results, truths):
    data, _ = _figure("figure_05a", results)
    for flows, buffers in ((1, (5, 20, FULL, 70)), (4, (5, 20, FULL))):
        if flows == 4:  # other sweeps' runs count, too
            assert {run["sweep"] for run in data["curves"]["reno"]["points"][4].runs} >= {"spang2021-reno-depth"}
        enough = {b: (_depths(truths, _job("reno", flows, b)) > 0).mean() >= 0.99 for b in buffers}
        low = max((b for b in buffers if not any(enough[c] for c in buffers if c <= b)), default=0)
        high = min((b for b in buffers if all(enough[c] for c in buffers if c >= b)), default=math.inf)
        assert data["curves"]["reno"]["points"][flows].bounds == (flows, low, high)


def test_figure_05a__counts_a_run_of_several_sweeps_once(results):
    data, _ = _figure("figure_05a", results)
    seeds = [run["seed"] for run in data["curves"]["reno"]["points"][1].runs if run["buffer_packets"] == FULL]
    assert sorted(seeds) == [1, 2]  # seed 1 is in four sweeps


def test_figure_05a__has_no_least_buffer_where_a_larger_one_is_not_enough(results, tmp_path):
    copied = tmp_path / "results"
    shutil.copytree(results, copied)
    for buffer, nonempty in ((20, 0.3), (FULL, 1.0), (70, 0.24)):
        summaries = list(copied.glob(f"*/runs/reno-n1-b{buffer}-r*/rep-1/summary.json"))
        assert len(summaries) >= 2
        for path in summaries:
            path.write_text(json.dumps(json.loads(path.read_text()) | {"queue_nonempty_fraction": nonempty}))
            record.add_derived(path.parent, path.name)
    data, facts = _figure("figure_05a", copied)
    reno = data["curves"]["reno"]
    assert not reno["points"][1].is_known
    assert reno["fitted"] == [4]
    assert {run["buffer_packets"] for run in reno["points"][1].runs_at_least} == {FULL}
    (fact,) = (fact for what, fact in facts.items() if what.startswith("Reno, n = 1: least buffer (mean"))
    assert (fact.measured, fact.none) == (None, "no least buffer")
    assert fact.reason == "not monotone: 0.3 with 20, 1 with 41, 0.24 with 70 packets"
    table, _ = _figure("table_1", copied)
    assert table["rows"][1].verdict == "no least buffer"


def test_figure_05a__fits_the_exponent_also_without_few_flows(results, tmp_path):
    made = results / "spang2021-least-buffer/runs/reno-n4-b20-r1/rep-1"
    summary = json.loads((made / "summary.json").read_text())
    for n in (1, 2, 4, 8, 16):
        least = round(400 / math.sqrt(max(n, 4)))
        for buffer, nonempty in ((least - 2, 0.9), (least + 2, 1.0)):
            run = tmp_path / f"spang2021-least-buffer/runs/reno-n{n}-b{buffer}-r1/rep-1"
            run.mkdir(parents=True)
            shutil.copy(made / distributions.NAME, run)
            summary["spec"] |= {"groups": [{"cc": "reno", "flows": n}], "buffer_packets": buffer}
            summary["aggregate_window_packets"]["in_flight_mean"] = 10.0 * n
            changed = {"buffer_packets": buffer, "queue_nonempty_fraction": nonempty}
            (run / "summary.json").write_text(json.dumps(summary | changed))
    data, facts = _figure("figure_05a", tmp_path)
    assert data["curves"]["reno"]["fitted"] == [1, 2, 4, 8, 16]
    (all_of_them,) = (fact for what, fact in facts.items() if what.startswith("Reno: exponent of n, "))
    (many,) = (fact for what, fact in facts.items() if what.startswith("Reno: exponent of n from 4 flows on (3 points"))
    assert all_of_them.measured.value > -0.4
    assert many.measured.value == pytest.approx(-0.5, abs=0.01)
    assert many.measured.low < -0.5 < many.measured.high
    losers, counts = StoredRuns(PAPER, tmp_path).select("least-buffer")[0].distribution("flows_signalled_per_excursion")
    assert f", {counts[losers == 4].sum() / counts.sum():.0%} with 4 flows, " in many.reason


def test_figure_05b__fits_the_lost_utilization(results):
    data, facts = _figure("figure_05b", results)
    reno = data["curves"]["reno"]
    assert set(reno["utilization"]) == {1, 4, 16}
    lost = {n: 1 - used.value for n, used in reno["utilization"].items() if used.value < 1}
    slope, _ = np.polyfit(np.log(list(lost)), np.log(list(lost.values())), 1)
    assert reno["free"].exponent == pytest.approx(slope, abs=1e-3)
    factor = math.exp(np.mean([math.log(value * math.sqrt(n)) for n, value in lost.items()]))
    assert reno["root"].factor == pytest.approx(factor, rel=1e-3)
    bound = next(fact for what, fact in facts.items() if what.startswith("Reno, n = 4: utilization"))
    assert bound.predicted == many_flows.almost_fair_utilization(4, 1)


def test_figure_05b__fits_nothing_at_full_utilization():
    halves = {n: Interval(1 - 0.8 / n, None, None, 1) for n in (1, 2, 4, 8)}
    full = {16: Interval(1.0, None, None, 1), 32: Interval(1 - 1e-5, None, None, 1)}
    law = figure_05b._law(halves | full, 6e-4, None)
    assert law is not None
    assert (law.points, law.exponent) == (4, pytest.approx(-1))
    assert figure_05b._law(full, 6e-4, None) is None


def test_figure_06__shades_twice_the_rule(results, truths):
    data, _ = _figure("figure_06", results)
    (row,) = data["panels"]["cubic"]["rows"]
    assert row["floor"] == pytest.approx(FULL - 2 * BDP / 2)
    assert data["panels"]["cubic"]["buffer"] == FULL
    assert "absent" in data["panels"]["bbr2"]


def test_figures_03_and_06__have_a_panel_of_an_algorithm_of_a_users_kernel(tmp_path):
    sweeps = {"single-flow-buffers": [_job("bbr2", 1, FULL)], "others-depth": [_job("bbr2", 4, FULL)]}
    truths = {job: simulate.Simulation(_scenario(*job)).run() for jobs in sweeps.values() for job in jobs}
    _store(tmp_path, sweeps, truths, {"hosts": {"sender": {"congestion_controls": ["reno", "bbr2"]}}})
    utilization, depths = (_figure(name, tmp_path)[0]["panels"]["bbr2"] for name in ("figure_03", "figure_06"))
    assert set(utilization["measured"]) == {FULL}
    assert utilization["line"] is None  # the paper has no model of BBRv2
    assert [row["flows"] for row in depths["rows"]] == [4]
    for name in ("figure_03", "figure_06"):
        assert draw.draw_one(StoredRuns(PAPER, tmp_path), tmp_path, FIGURES[name]).used
        assert "BBRv2" in (tmp_path / f"{name}.csv").read_text()


def test_figure_10__counts_flows_that_lose_in_an_rtt_with_a_loss(results, truths):
    data, _ = _figure("figure_10", results)
    job = _job("reno", 16, FULL)
    scenario = _scenario(*job)
    losers: dict[int, set[int]] = {}
    for card, flow in _arrivals(truths[job], scenario):
        if card["flags"] & DROPPED:
            since = card["enqueue_ns"] - simulate.START_NS - scenario.warmup_ns
            losers.setdefault(since // scenario.rtt_ns, set()).add(flow)
    assert data["mean"][16].value == pytest.approx(np.mean([len(flows) for flows in losers.values()]))
    assert data["bound"][16] == pytest.approx(16**2 / (2 * BDP) + 4)
    assert 20 not in data["bound"]


def test_few_lose__is_judged_by_the_99th_percentile(results):
    runs = StoredRuns(PAPER, results).select("reno-depth", cc="reno", flows=16, buffer_packets=FULL)
    values, counts = runs[0].distribution("flows_losing")
    each = np.repeat(values, counts)
    most, mean = np.percentile(each, 99, method="inverted_cdf"), each.mean()
    assert runs[0].percentile("flows_losing", 99) == most > mean
    for delta, holds in ((2 * 256 / BDP / (most - 3.9), False), (256 / BDP / (most - 3.9), True)):
        runs[0].row["delta"] = delta
        bound = many_flows.flows_seeing_loss(BDP, 16, delta)
        assert mean < bound
        few = table_conditions.few_lose(table_conditions.RunsAtLeast(runs[:1], None, BDP), 16)
        assert few.holds is holds
        assert few.text.startswith(f"{mean:.3g} flows lose in an RTT on average, {most:.3g} at the 99th percentile")


@pytest.mark.parametrize(("name", "x"), [("figure_11a", 16), ("figure_11b", FULL)])
def test_figure_11__has_both_ends_of_the_windows_over_the_fair_share(results, truths, name, x):
    data, _ = _figure(name, results)
    job = _job("reno", 16, FULL)
    start = simulate.START_NS + 500_000_000
    windows = [
        record["packets_out"] - record["sacked_out"] - record["lost_out"] + record["retrans_out"]
        for record in truths[job].records
        if start <= record["mono_ns"] < start + 1_000_000_000 and record["event"] == simulate.EVENT["TCP_EVENT_PROBE"]
    ]
    p99 = np.percentile(windows, 99, method="inverted_cdf")
    assert data["curves"]["reno"]["upper"][x].value == pytest.approx(p99 * 16 / BDP)


def test_table_1__has_the_papers_rows_and_checks_their_conditions(results):
    data, facts = _figure("table_1", results)
    rows = data["rows"]
    assert [row.rule.split(":")[0] for row in rows] == [
        "BDP", "BDP", "(1/b − 1) BDP", "(1/b − 1) BDP", "3/7 BDP", "1/7 BDP", "1/4 BDP", "Θ(BDP/√n)", "O(BDP/√n)",
        "O(BDP/√n)", "O(p BDP − n + np)", "O(s BDP/n)", "O(1)", "O(1)",
    ]  # fmt: skip
    assert len(facts) == len(rows)
    reno = rows[1]
    assert reno.predicted == pytest.approx(single_flow.bdp_rule(BDP))
    full, halves, used = reno.conditions
    assert full.holds is not None
    assert halves == ("reno: falls to b W (b = 0.5, 1 − b ± 20%): no run kept all packets", None, True)
    assert used.text.startswith("for 98% used: ")
    assert used.text.endswith(f"packets, asked {0.96 * BDP:.3g}")
    assert rows[4].measured is None
    assert rows[4].verdict == "not measured"
    assert rows[8].conditions[0].holds is not None
    assert rows[3].measured.low <= rows[3].measured.value <= rows[3].measured.high
    ends = [abs(end / rows[1].predicted - 1) for end in rows[1].measured[1:3]]
    assert rows[3].measured.high == pytest.approx(max(ends))  # only Reno has runs of one flow
    assert [condition.text for condition in rows[9].conditions if condition.is_judged] == []


def test_arrival__compares_numbers_that_both_sets_have(results, tmp_path):
    first, second = "spang2021-reno-depth", "spang2021-reno-depth-mode-tail-drop"
    shutil.copytree(results / first, tmp_path / first)
    data, _ = _figure("arrival", tmp_path)
    assert data["pairs"] == []
    # The second set has one run, the same as in the first.
    (other,) = (results / first).glob("runs/reno-n16-b41-*")
    shutil.copytree(other / "rep-1", tmp_path / second / "runs/reno-n16-b41-r1/rep-1")
    data, facts = _figure("arrival", tmp_path)
    of_first = _figure("figure_04", tmp_path)[1]
    of_figure_4 = {pair.what: pair for pair in data["pairs"] if pair.figure == "Figure 4"}
    assert len(of_figure_4) == 2
    assert all("n = 16" in what for what in of_figure_4)
    assert all(pair.departure == of_first[what].measured for what, pair in of_figure_4.items())
    assert all(pair.arrival == pair.departure and pair.is_apart is None for pair in of_figure_4.values())
    assert f"{second}/reno-n16-b41-r1" in data["provenance"]["used"]
    assert any(what.startswith("Figure 4: numbers whose intervals") for what in facts)


@pytest.mark.parametrize("single", [True, False])
def test_pair__is_apart_if_its_intervals_do_not_meet(single):
    def pair(low, high):
        middle = (low + high) / 2
        other = Interval(middle, None, None, 1) if single else Interval(middle, low, high, 3)
        return arrival.Pair("Figure 4", "depth", "packets", Interval(10, 9, 11, 3), other)

    assert [pair(*ends).is_apart for ends in ((7, 8.9), (7, 9), (11, 12), (11.1, 12))] == (
        [None] * 4 if single else [True, False, False, True]
    )


@pytest.mark.parametrize(
    ("kind", "predicted", "measured", "says"),
    [
        ("number", 100.0, Interval(110, 105, 115, 1), "within 20% (+10%)"),
        ("number", 100.0, Interval(70, 65, 75, 1), "not within 20% (−30%)"),
        ("number", 100.0, Interval(77, 74, 80, 1), "open (−26% to −20%)"),
        ("number", 100.0, Interval(120, 115, 121, 1), "open (+15% to +21%)"),
        ("most", 100.0, Interval(90, 80, 95, 1), "enough"),
        ("most", 100.0, Interval(110, 105, 120, 1), "not enough"),
        ("most", 100.0, Interval(82, 27, 249, 1), "open"),
        ("least", 0.9, Interval(0.95, None, None, 1), "kept"),
        ("least", 0.9, Interval(0.8, 0.7, 0.85, 1), "broken"),
        ("least", 0.0, Interval(0.95, None, None, 1), "says nothing"),
        ("distance", 0.0, Interval(0.1, None, None, 1), "within 20%"),
        ("distance", 0.0, Interval(0.3, None, None, 1), "not within 20%"),
        ("distance", 0.0, Interval(0.226, 0.198, 0.253, 1), "open"),
        ("number", 100.0, Interval(249, 249, math.inf, 1), "not within 20%"),
        ("number", 100.0, Interval(110, 110, math.inf, 1), "open"),
        ("number", 100.0, Interval(249, 0, 249, 1), "open (−100% to +149%)"),
        ("number", None, Interval(1, None, None, 1), "not measured"),
    ],
)
def test_verdict__is_of_the_whole_interval(kind, predicted, measured, says):
    assert RuleRow("", "", "", [], predicted, measured, kind).verdict == says


# What was asked -------------------------------------------------------------------------------------------------------


def test_verdict__is_the_ratio_unless_the_interval_has_the_prediction():
    said = [
        Fact("u", "", predicted, measured, "").verdict
        for predicted, measured in (
            (100.0, Interval(97, 94, 101, 3)), (100.0, Interval(77, 74, 80, 3)), (1.0, Interval(1, None, None, 1)),
            (0.0, Interval(2, None, None, 1)), (41.0, Interval(249, 249, math.inf, 1)), (None, Interval(1, 1, 1, 3)),
            (1.0, None), (0.0, Interval(2, 1, 3, 3)),
        )
    ]  # fmt: skip
    assert said == [
        "as predicted", "0.77 times the prediction", "as predicted", "", "not as predicted", "", "", "not as predicted"
    ]  # fmt: skip


# All together ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn(results, tmp_path_factory):
    """Every drawn figure, and their directory."""
    output = tmp_path_factory.mktemp("figures")
    return draw.draw(StoredRuns(PAPER, results), output, PAPER.figures), output


def test_draw__makes_every_figure_and_the_page_of_facts(drawn):
    figures, output = drawn
    for name in FIGURES:
        assert (output / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
        assert "</svg>" in (output / f"{name}.svg").read_text()
    page = (output / PAPER.page_name).read_text()
    assert page.count("\n## ") == len(FIGURES) + 2
    assert "BBRv2: not measured, no kernel at hand has it" in (output / "figure_05a.csv").read_text()
    assert "![Figure 5a](./figure_05a.svg)" in page
    used = {run for figure in figures for run in figure.used}
    distinct = {run.partition("/")[2] for run in used}  # a job that is in several sweeps is one run
    assert len(distinct) < len(used)
    twice = f" ({len(used)} if each sweep's runs are counted apart), "
    assert f"\n{len(distinct)} valid runs in virtual time{twice}" in page


def test_draw__names_every_run_of_figures_with_many_runs(drawn):
    figures, output = drawn
    table = pl.read_parquet(output / PAPER.run_list_name)
    named = {
        row["run"].removesuffix("/rep-1").replace("/runs/", "/"): row["figures"].split(";")
        for row in table.iter_rows(named=True)
    }
    assert any(len(figure.used) > 4 for figure in figures)
    for figure in figures:
        assert sorted(run for run, of in named.items() if figure.figure.word in of) == figure.used
    assert named["spang2021-reno-depth/reno-n16-b41-r1"][:2] == ["4", "10"]


@pytest.mark.parametrize("name", FIGURES)
def test_figure__without_runs_says_so(tmp_path, name):
    figure, runs = FIGURES[name], StoredRuns(PAPER, tmp_path)
    data = figure.prepare(runs)
    assert not data["provenance"]["used"]
    figure.draw(data)
    facts = figure.facts(data)
    assert not any(fact.measured for fact in facts)
    drawn = DrawnFigure(figure, facts, [], [])
    assert "No run was found." in document.page([drawn], runs, reasons={})


def test_draw__leaves_out_runs_that_are_not_valid_and_lists_them(results, tmp_path):
    copied = tmp_path / "results"
    shutil.copytree(results, copied)
    bad = copied / "spang2021-twenty-packets/runs/reno-n4-b20-r1/rep-1/summary.json"
    bad.write_text(json.dumps(json.loads(bad.read_text()) | {"valid": False, "reasons": ["a postcard was lost"]}))
    record.add_derived(bad.parent, bad.name)
    (figure,) = draw.draw(StoredRuns(PAPER, copied), tmp_path / "out", (FIGURES["figure_05b"],))
    assert figure.left_out == [LeftOut("spang2021-twenty-packets/reno-n4-b20-r1", "a postcard was lost", NOT_VALID)]
    assert not any("n4" in run for run in figure.used)
    assert "1 not drawn, not valid" in (tmp_path / "out/figure_05b.svg").read_text()
    bad.with_name("spec.yaml").write_text(yaml.safe_dump(json.loads(bad.read_text())["spec"]))
    bad.write_text(bad.read_text()[:300])
    (figure,) = draw.draw(StoredRuns(PAPER, copied), tmp_path / "out", (FIGURES["figure_05b"],))
    ((run, why, _),) = figure.left_out
    assert run == "spang2021-twenty-packets/reno-n4-b20-r1"
    assert why.startswith("summary.json cannot be read: ")


def test_publish__keeps_written_reasons_and_refreshes_numbers(results, drawn, tmp_path, monkeypatch):
    docs = tmp_path / "docs"
    docs.mkdir()
    drawn_of = (drawn[0], StoredRuns(PAPER, results), drawn[1])
    (docs / PAPER.reasons_name).write_text(
        "# Reasons\n\n## Figure 10\n\nBecause *flows* wait.\n\n## In short\n\nAll of it.\n"
    )
    publish.publish(*drawn_of, docs)
    page = (docs / PAPER.page_name).read_text()
    assert "![Figure 10](spang2021/figure_10.svg)\n\n" in page
    assert "\n\nBecause *flows* wait.\n\nAs CSV: [" in page
    assert page.index("All of it.") < page.index("## What was asked")
    kinds = {path.name for path in (docs / "spang2021").iterdir()}
    assert {"figure_10.svg", "figure_10.csv", "clocks-points.csv", "table_1.csv"} < kinds
    assert not {"figure_10.png", "table_1.svg"} & kinds
    table = pl.read_parquet(docs / PAPER.run_list_name)
    assert table.columns == [*run_table.COLUMNS, run_list.FIGURES]
    assert len(table) == sum(map(len, SWEEPS.values()))
    assert f"[{PAPER.run_list_name}]({PAPER.run_list_name}) has a row for each run" in page

    (docs / PAPER.page_name).write_text("old")
    publish.publish(*drawn_of, docs)
    assert (docs / PAPER.page_name).read_text() == page
    with monkeypatch.context() as patch:
        patch.setattr(publish, "MOST_BYTES", 5000)
        with pytest.raises(InputError, match=r"figure_01.svg: has .* bytes; allowed: 5000; thin or rasterize"):
            publish.publish(*drawn_of, docs)
    with monkeypatch.context() as patch:
        patch.setattr(archive, "MOST_PACKED_BYTES", 0)
        with pytest.raises(InputError, match=r"repetition 1 has .* MiB; allowed in a repository"):
            publish.publish(*drawn_of, docs)
    assert (docs / PAPER.page_name).read_text() == page
    (docs / PAPER.reasons_name).write_text("## Figure 12\n\nNo.\n")
    with pytest.raises(
        InputError, match="'Figure 12', which is not drawn; allowed: In short, What differs, and why, Runs"
    ):
        publish.publish(*drawn_of, docs)


def test_choose__knows_figures_as_people_write_them():
    assert PAPER.choose(None) == PAPER.figures

    def chosen(text):
        return [figure.name for figure in PAPER.choose(text)]

    assert chosen("5a") == ["figure_05a"]
    assert chosen("5") == ["figure_05a", "figure_05b"]
    assert chosen("figure_04") == chosen("Figure 4") == ["figure_04"]
    assert chosen("table1") == chosen("Table-1") == ["table_1"]
    assert (
        chosen("8,3") == chosen(" figure 3, 8,3") == ["figure_03", "figure_08"]
    )  # in the order of the page, each once
    assert chosen("5,table1") == ["figure_05a", "figure_05b", "table_1"]
    assert paper.sweeps(PAPER.choose("11")) == ("reno-depth", "fairness-flows", "published", "fairness-buffers")
    with pytest.raises(ValueError, match="allowed: 1, 2, 3, 4, 5a, 5b"):
        PAPER.choose("12")
    for text, problem in (("3,12", "has '12', which"), ("3,", "has '', which"), ("3;8", "")):
        with pytest.raises(ValueError, match=f"^{problem} ?is not known; allowed: 1, 2.*with commas between them$"):
            PAPER.choose(text)


def test_read_reasons__of_no_file_is_nothing(tmp_path):
    assert document.read_reasons(tmp_path / "none.md") == {}
