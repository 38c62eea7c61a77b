# SPDX-License-Identifier: MIT
"""The figures and Table 1 of Spang et al., from simulated sweeps: their numbers, what they leave out, and the page."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis.papers import document, draw, publish, published
from analysis.papers.document import DrawnFigure
from analysis.papers.paper_runs import PaperRuns
from analysis.papers.spang2021 import PAPER
from analysis.replay.derive import derive
from analysis.tests import damages, simulate
from analysis.tests.undrawn import leave_out
from lib.errors import InputError

pytestmark = pytest.mark.long  # all of it uses one dear fixture

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
    data = figure.data(PaperRuns(PAPER, results))
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


def test_figure_05a__has_no_least_buffer_where_a_larger_one_is_not_enough(results, tmp_path):
    copied = shutil.copytree(results, tmp_path / "results")
    for buffer, nonempty in ((20, 0.3), (FULL, 1.0), (70, 0.24)):
        summaries = list(copied.glob(f"*/runs/reno-n1-b{buffer}-r*/rep-1/summary.json"))
        assert len(summaries) >= 2
        for path in summaries:
            path.write_text(json.dumps(json.loads(path.read_text()) | {"queue_nonempty_fraction": nonempty}))
            damages.accept(path.parent, path.name)
    data, facts = _figure("figure_05a", copied)
    reno = data["curves"]["reno"]
    assert not reno["points"][1].is_known
    assert reno["fitted"] == [4]
    (fact,) = (fact for what, fact in facts.items() if what.startswith("Reno, n = 1: least buffer (mean"))
    assert (fact.measured, fact.none) == (None, "no least buffer")
    assert fact.reason == "not monotone: 0.3 with 20, 1 with 41, 0.24 with 70 packets"
    assert _figure("table_1", copied)[0]["rows"][1].verdict == "no least buffer"


# All together ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn(results, tmp_path_factory):
    """Every drawn figure, and their directory."""
    output = tmp_path_factory.mktemp("figures")
    return draw.draw(PaperRuns(PAPER, results), output, PAPER.figures), output


def test_draw__makes_every_figure_and_lists_its_runs(drawn, results, tmp_path):
    figures, output = drawn
    for name in FIGURES:
        assert (output / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
        assert re.search(r"From ([0-9]+ |no )?(runs? of )?(spang2021-|runs|run)", (output / f"{name}.svg").read_text())
    assert "BBRv2: not measured, no kernel at hand has it" in (output / "figure_05a.csv").read_text()
    table = pl.read_parquet(output / PAPER.run_list_name)
    named = {
        row["run"].removesuffix("/rep-1").replace("/runs/", "/"): row["figures"].split(";")
        for row in table.iter_rows(named=True)
    }
    for figure in figures:
        assert sorted(run for run, of in named.items() if figure.figure.word in of) == figure.used
    draw.draw_one(PaperRuns(PAPER, results), tmp_path, FIGURES["figure_01"])  # the same files again
    for kind in ("png", "svg", "csv"):
        assert (tmp_path / f"figure_01.{kind}").read_bytes() == (output / f"figure_01.{kind}").read_bytes()


def test_figures__without_runs_say_so(tmp_path):
    runs = PaperRuns(PAPER, tmp_path)
    for figure in PAPER.figures:
        data = figure.data(runs)
        assert not data["provenance"]["used"]
        figure.draw(data)
        facts = figure.facts(data)
        assert not any(fact.measured for fact in facts), figure.name
        assert "No run was found." in document.page([DrawnFigure(figure, facts, [], [])], runs, reasons={})


def test_publish__keeps_written_reasons_and_refreshes_numbers(results, drawn, tmp_path, monkeypatch):
    docs = tmp_path / "docs"
    docs.mkdir()
    drawn_of = (drawn[0], PaperRuns(PAPER, results), drawn[1])
    reasons = docs / PAPER.reasons_name
    reasons.write_text("# Reasons\n\n## Figure 10\n\nBecause *flows* wait.\n\n## In short\n\nAll of it.\n")
    publish.publish(*drawn_of, docs)
    page = (docs / PAPER.page_name).read_text()
    assert "\n\nBecause *flows* wait.\n\nAs CSV: [" in page
    assert page.index("All of it.") < page.index("## What was asked")
    assert len(published.rows(docs / PAPER.published_name)) == sum(map(len, SWEEPS.values()))
    (docs / PAPER.page_name).write_text("old")
    publish.publish(*drawn_of, docs)
    assert (docs / PAPER.page_name).read_text() == page
    reasons.write_text("## Figure 12\n\nNo.\n")
    with pytest.raises(InputError, match="'Figure 12'"):
        publish.publish(*drawn_of, docs)
    reasons.unlink()
    monkeypatch.setattr(publish, "MOST_BYTES", 5000)
    with pytest.raises(InputError, match=r"figure_01.svg: has .* bytes"):
        publish.publish(*drawn_of, docs)
    assert (docs / PAPER.page_name).read_text() == page
