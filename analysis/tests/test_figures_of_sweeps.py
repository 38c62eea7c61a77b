# SPDX-License-Identifier: MIT
"""The figures and Table 1 of Spang et al., from simulated sweeps: their numbers, what they leave out, and the page."""

import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from analysis import distributions
from analysis.derive import derive
from analysis.papers import document, draw, publish, published
from analysis.papers.document import DrawnFigure
from analysis.papers.spang2021 import PAPER, table_conditions
from analysis.papers.stored_runs import NOT_VALID, LeftOut, StoredRuns
from analysis.tests import simulate
from analysis.tests.undrawn import leave_out
from analysis.theory import single_flow
from lib.errors import InputError
from runs import record

FIGURES = {figure.name: figure for figure in PAPER.figures}
BDP = 50e6 * 10e-3 / (8 * 1538)  # packets, on the simulation's default link
FULL = 41  # packets: one BDP
CONTROLS = ["reno", "cubic", "bbr"]  # of the hosts' kernel


def _job(cc, flows, buffer, seed=1, marks=False):
    return (cc, flows, buffer, seed, marks)


SWEEPS = {
    "single-flow": [_job("reno", 1, FULL, 11), _job("reno", 1, FULL, 12)],
    "four-flows": [_job("reno", 4, FULL)],
    "ecn": [_job("reno", 16, FULL), _job("reno", 16, 3 * FULL, 1, True)],
    "single-flow-buffers": [_job("reno", 1, 5), _job("reno", 1, FULL), _job("reno", 1, FULL, 2)],
    "reno-depth": [_job("reno", n, FULL) for n in (1, 4, 16)] + [_job("reno", 4, FULL, 2), _job("reno", 16, 20)],
    "others-depth": [_job("cubic", 4, FULL)],
    "least-buffer": [_job("reno", 1, b) for b in (5, 20, FULL, 70)] + [_job("reno", 4, b) for b in (5, 20, FULL)],
    "least-buffer-utilization": [_job("reno", 1, b) for b in (5, 20, FULL, 70)],
    "twenty-packets": [_job("reno", n, 20) for n in (1, 4, 16)],
    "fairness-flows": [_job("cubic", 4, FULL)],
    "fairness-buffers": [_job("reno", 16, FULL), _job("reno", 16, 20)],
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    top = tmp_path_factory.mktemp("results")
    _store(top, SWEEPS, CONTROLS)
    return top


def _store(top, sweeps, controls):
    """Stores analysed sweeps, without the runs' own figures. A run that is in several sweeps is copied into each."""
    places: dict[Any, Path] = {}
    for stem, jobs in sweeps.items():
        for job in jobs:
            cc, flows, buffer, seed, marks = job
            run = top / f"spang2021-{stem}/runs/{cc}-n{flows}-b{buffer}-r{seed}/rep-1"
            if job in places:
                shutil.copytree(places[job], run)
                continue
            places[job] = run
            duration_ns = 2_000_000_000 if seed > 10 else 1_000_000_000
            simulate.write_run(run, simulate.Scenario(
                flows=flows, threshold=buffer, seed=seed, ccs=(cc,), clock="virtual", duration_ns=duration_ns,
                warmup_ns=500_000_000, mode="ecn" if marks else "tail-drop", ecn_threshold=FULL if marks else None,
            ))  # fmt: skip
            environment = json.loads((run / "environment.json").read_text())
            environment |= {"hosts": {"sender": {"congestion_controls": controls}}}
            (run / "environment.json").write_text(json.dumps(environment))
            with pytest.MonkeyPatch.context() as patch:
                leave_out(patch.setattr)
                derive(run)


def _figure(name, results):
    figure = FIGURES[name]
    data = figure.prepare(StoredRuns(PAPER, results))
    return data, {fact.what: fact for fact in figure.facts(data)}


NUMBERS = {  # the measured number of each fact of a figure, in the page's order
    "figure_01": "81 packets, 43 packets, 40 packets, 0 packets, 30.52 (30.51 to 30.52) ms, 10.86 (9.3 to 12.42) ms, "
    "649.5 (648.5 to 650.5) us",
    "figure_02": "1.009 BDP, 1.009 BDP",
    "figure_03": "0.6053, 0.6481, 0.9904 (0.9903 to 0.9904), 0.9944 (0.9943 to 0.9944), 0.009649, 0.005613, 2 packets, "
    "2 packets",
    "figure_04": "40 packets, 39 packets, 0, 28 packets, 0.1599, 17 packets",
    "figure_05a": "0, 28.64 (20 to 41) packets, 28.64 (20 to 41) packets, 28.64 (20 to 41) packets",
    "figure_05b": "-0.8325, 0.1708 (0.009133 to 3.194), 0.7849, 0.9322, 1",
    "figure_06": "39 packets, 0",
    "figure_07": "0.3258 of ACKs, 0.2111 Kolmogorov's, 0.3543 fair shares, 1.068 fair shares, 0.815 fair shares, "
    "1.267 fair shares, 2 packets, 13 packets",
    "figure_08": "3.317 flows, 8.769 flows, 0 of excursions, 28 packets, 13 packets, 0 packets, 1, 16 flows, "
    "1 of excursions, 71 packets, 52 packets, 82 packets, 1",
    "figure_09": "0.9647, 38.9 packets, 1.05, 1 of losses",
    "figure_10": "1 flows, 1 flows, 1.632 (0.8639 to 2.4) flows, 2.5 (-3.853 to 8.853) flows, 3.317 flows, 6 flows",
    "figure_11a": "2, 2.018, 1.009, 2.537 (-2.422 to 7.495), 2.559 (-2.444 to 7.562), 0.9843, 4.293, 4.331, 1.181, "
    "2.146, 2.166, 0.9843",
    "figure_11b": "3.902, 3.937, 0.7875, 4.293, 4.331, 1.181",
    "table_1": "28.64 (20 to 41) packets, 0.2953 (0 to 0.5078), 28.64 (20 to 41) packets, 28.64 (20 to 41) packets, "
    "28.64 (20 to 41) packets, 28.64 (20 to 41) packets, 1",
}


def test_figures__have_the_stored_numbers(results):
    facts = {name: _figure(name, results)[1].values() for name in NUMBERS}
    got = {name: ", ".join(fact.measurement_text for fact in of if fact.measured) for name, of in facts.items()}
    assert got == NUMBERS


def test_figure_02__shows_what_is_missing_and_why(results):
    panels = _figure("figure_02", results)[0]["panels"]
    assert [panel["absent"] for panel in panels] == [
        "", "Cubic: no valid run", "BBR: no valid run", "Scalable (Linux 5.5): not measured,\nno kernel at hand has it",
    ]  # fmt: skip


def test_figure_03__has_the_models_line_and_bursts_of_packets_close_together(results):
    data, _ = _figure("figure_03", results)
    reno = data["panels"]["reno"]
    assert {buffer: value.runs for buffer, value in reno["measured"].items()} == {5: 1, FULL: 2}
    assert (reno["bdp"], reno["model"][5]) == (pytest.approx(BDP), pytest.approx(0.5 * (1 + 5 / BDP)))
    shown, share = reno["bursts"]
    assert dict(zip(shown.tolist(), share.tolist(), strict=True)) == pytest.approx({1: 1, 2: 0.057107}, rel=1e-4)


def test_figure_05a__bounds_hold_the_least_buffer(results):
    points = _figure("figure_05a", results)[0]["curves"]["reno"]["points"]
    assert {n: points[n].bounds for n in (1, 4)} == {1: (1, 20, 41), 4: (4, 20, 41)}
    # Other sweeps' runs count, too, and a run of several sweeps once: seed 1 is in four sweeps.
    assert {run["sweep"] for run in points[4].runs} >= {"spang2021-reno-depth"}
    assert sorted(run["seed"] for run in points[1].runs if run["buffer_packets"] == FULL) == [1, 2, 11, 12]


def test_figure_05a__has_no_least_buffer_where_a_larger_one_is_not_enough(results, tmp_path):
    copied = shutil.copytree(results, tmp_path / "results")
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
    (fact,) = (fact for what, fact in facts.items() if what.startswith("Reno, n = 1: least buffer (mean"))
    assert (fact.measured, fact.none) == (None, "no least buffer")
    assert fact.reason == "not monotone: 0.3 with 20, 1 with 41, 0.24 with 70 packets"
    assert _figure("table_1", copied)[0]["rows"][1].verdict == "no least buffer"


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


def test_figures_03_and_06__have_a_panel_of_an_algorithm_of_a_users_kernel(tmp_path):
    sweeps = {"single-flow-buffers": [_job("bbr2", 1, FULL)], "others-depth": [_job("bbr2", 4, FULL)]}
    _store(tmp_path, sweeps, ["reno", "bbr2"])
    utilization, depths = (_figure(name, tmp_path)[0]["panels"]["bbr2"] for name in ("figure_03", "figure_06"))
    assert set(utilization["measured"]) == {FULL}
    assert utilization["line"] is None  # the paper has no model of BBRv2
    assert [row["flows"] for row in depths["rows"]] == [4]
    assert draw.draw_one(StoredRuns(PAPER, tmp_path), tmp_path, FIGURES["figure_06"]).used
    assert "BBRv2" in (tmp_path / "figure_06.csv").read_text()


def test_few_lose__is_judged_by_the_99th_percentile(results):
    (run,) = StoredRuns(PAPER, results).select("reno-depth", cc="reno", flows=16, buffer_packets=FULL)
    for bound, holds in ((5.5, False), (6.5, True)):
        run.row["delta"] = 256 / BDP / (bound - 4)
        few = table_conditions.few_lose(table_conditions.RunsAtLeast([run], None, BDP), 16)
        assert few.text.startswith("3.32 flows lose in an RTT on average, 6 at the 99th percentile")
        assert few.holds is holds


def test_falls__are_those_that_the_rule_expects(results, monkeypatch):
    runs = StoredRuns(PAPER, results)
    assert table_conditions.falls(runs, "reno").text == "reno: falls to 0.531 W (b = 0.5, 1 − b ± 20%), B = BDP"
    assert table_conditions.falls(runs, "reno").holds is True
    assert table_conditions.falls(runs, "cubic").holds is None
    monkeypatch.setitem(single_flow.DECREASE, "reno", 0.7)
    assert table_conditions.falls(runs, "reno").holds is False


def test_table_1__has_the_papers_rows_and_checks_their_conditions(results):
    data, facts = _figure("table_1", results)
    rows = data["rows"]
    assert [row.rule.split(":")[0] for row in rows] == [
        "BDP", "BDP", "(1/b − 1) BDP", "(1/b − 1) BDP", "3/7 BDP", "1/7 BDP", "1/4 BDP", "Θ(BDP/√n)", "O(BDP/√n)",
        "O(BDP/√n)", "O(p BDP − n + np)", "O(s BDP/n)", "O(1)", "O(1)",
    ]  # fmt: skip
    assert len(facts) == len(rows)
    assert rows[1].predicted == pytest.approx(single_flow.bdp_rule(BDP))
    assert [condition.holds for condition in rows[1].conditions] == [True, True, None]
    assert rows[1].conditions[2].text.startswith("for 98% used: ")
    assert (rows[4].measured, rows[4].verdict) == (None, "not measured")
    assert rows[8].conditions[0].holds is not None
    ends = [abs(end / rows[1].predicted - 1) for end in rows[1].measured[1:3]]
    assert rows[3].measured.high == pytest.approx(max(ends))  # only Reno has runs of one flow


def test_arrival__compares_numbers_that_both_sets_have(results, tmp_path):
    first, second = "spang2021-reno-depth", "spang2021-reno-depth-mode-tail-drop"
    shutil.copytree(results / first, tmp_path / first)
    data, _ = _figure("arrival", tmp_path)
    assert data["pairs"] == []
    # The second set has one run, the same as in the first.
    shutil.copytree(results / first / "runs/reno-n16-b41-r1", tmp_path / second / "runs/reno-n16-b41-r1")
    data, facts = _figure("arrival", tmp_path)
    of_first = _figure("figure_04", tmp_path)[1]
    of_figure_4 = {pair.what: pair for pair in data["pairs"] if pair.figure == "Figure 4"}
    assert len(of_figure_4) == 2
    assert all("n = 16" in what for what in of_figure_4)
    assert all(pair.departure == of_first[what].measured for what, pair in of_figure_4.items())
    assert all(pair.arrival == pair.departure and pair.is_apart is None for pair in of_figure_4.values())
    assert f"{second}/reno-n16-b41-r1" in data["provenance"]["used"]
    assert any(what.startswith("Figure 4: numbers whose intervals") for what in facts)


# All together ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn(results, tmp_path_factory):
    """Every drawn figure, and their directory."""
    output = tmp_path_factory.mktemp("figures")
    return draw.draw(StoredRuns(PAPER, results), output, PAPER.figures), output


def test_draw__makes_every_figure_and_a_page_that_names_every_run(drawn, results, tmp_path):
    figures, output = drawn
    for name in FIGURES:
        assert (output / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
        assert re.search(r"From ([0-9]+ |no )?(runs? of )?(spang2021-|runs|run)", (output / f"{name}.svg").read_text())
    page = (output / PAPER.page_name).read_text()
    assert page.count("\n## ") == len(FIGURES) + 2
    assert "BBRv2: not measured, no kernel at hand has it" in (output / "figure_05a.csv").read_text()
    assert "![Figure 5a](./figure_05a.svg)" in page
    used = {run for figure in figures for run in figure.used}
    distinct = {run.partition("/")[2] for run in used}  # a job that is in several sweeps is one run
    assert len(distinct) < len(used)
    twice = f" ({len(used)} if each sweep's runs are counted apart), "
    assert f"\n{len(distinct)} valid runs in virtual time{twice}" in page
    table = pl.read_parquet(output / PAPER.run_list_name)
    named = {
        row["run"].removesuffix("/rep-1").replace("/runs/", "/"): row["figures"].split(";")
        for row in table.iter_rows(named=True)
    }
    for figure in figures:
        assert sorted(run for run, of in named.items() if figure.figure.word in of) == figure.used
    draw.draw_one(StoredRuns(PAPER, results), tmp_path, FIGURES["figure_01"])  # the same files again
    for kind in ("png", "svg", "csv"):
        assert (tmp_path / f"figure_01.{kind}").read_bytes() == (output / f"figure_01.{kind}").read_bytes()


def test_figures__without_runs_say_so(tmp_path):
    runs = StoredRuns(PAPER, tmp_path)
    for figure in PAPER.figures:
        data = figure.prepare(runs)
        assert not data["provenance"]["used"]
        figure.draw(data)
        facts = figure.facts(data)
        assert not any(fact.measured for fact in facts), figure.name
        assert "No run was found." in document.page([DrawnFigure(figure, facts, [], [])], runs, reasons={})


def test_draw__leaves_out_runs_that_are_not_valid_and_lists_them(results, tmp_path):
    copied = shutil.copytree(results, tmp_path / "results")
    bad = copied / "spang2021-twenty-packets/runs/reno-n4-b20-r1/rep-1/summary.json"
    bad.write_text(json.dumps(json.loads(bad.read_text()) | {"valid": False, "reasons": ["a postcard was lost"]}))
    record.add_derived(bad.parent, bad.name)
    (figure,) = draw.draw(StoredRuns(PAPER, copied), tmp_path / "out", (FIGURES["figure_05b"],))
    assert figure.left_out == [LeftOut("spang2021-twenty-packets/reno-n4-b20-r1", "a postcard was lost", NOT_VALID)]
    assert not any("n4" in run for run in figure.used)
    assert "1 not drawn, not valid" in (tmp_path / "out/figure_05b.svg").read_text()
    bad.with_name("spec.yaml").write_text(yaml.safe_dump(json.loads(bad.read_text())["spec"]))
    bad.write_text(bad.read_text()[:300])
    ((run, why, _),) = draw.draw_one(StoredRuns(PAPER, copied), tmp_path / "out", FIGURES["figure_05b"]).left_out
    assert run == "spang2021-twenty-packets/reno-n4-b20-r1"
    assert why.startswith("summary.json cannot be read: ")


def test_publish__keeps_written_reasons_and_refreshes_numbers(results, drawn, tmp_path, monkeypatch):
    docs = tmp_path / "docs"
    docs.mkdir()
    drawn_of = (drawn[0], StoredRuns(PAPER, results), drawn[1])
    reasons = docs / PAPER.reasons_name
    reasons.write_text("# Reasons\n\n## Figure 10\n\nBecause *flows* wait.\n\n## In short\n\nAll of it.\n")
    publish.publish(*drawn_of, docs)
    page = (docs / PAPER.page_name).read_text()
    assert "![Figure 10](spang2021/figure_10.svg)\n\n" in page
    assert "\n\nBecause *flows* wait.\n\nAs CSV: [" in page
    assert page.index("All of it.") < page.index("## What was asked")
    kinds = {path.name for path in (docs / "spang2021").iterdir()}
    assert {"figure_10.svg", "figure_10.csv", "clocks-points.csv", "table_1.csv"} < kinds
    assert not {"figure_10.png", "table_1.svg"} & kinds
    assert len(published.rows(docs / PAPER.published_name)) == sum(map(len, SWEEPS.values()))
    (docs / PAPER.page_name).write_text("old")
    publish.publish(*drawn_of, docs)
    assert (docs / PAPER.page_name).read_text() == page
    with monkeypatch.context() as patch:
        patch.setattr(publish, "MOST_BYTES", 5000)
        with pytest.raises(InputError, match=r"figure_01.svg: has .* bytes; allowed: 5000; thin or rasterize"):
            publish.publish(*drawn_of, docs)
    reasons.write_text("## Figure 12\n\nNo.\n")
    with pytest.raises(
        InputError, match="'Figure 12', which is not drawn; allowed: In short, What differs, and why, Runs"
    ):
        publish.publish(*drawn_of, docs)
    assert (docs / PAPER.page_name).read_text() == page
