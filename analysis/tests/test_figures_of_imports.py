# SPDX-License-Identifier: MIT
"""Every figure of Spang et al., drawn from imported runs alone: text traces and tables of simulated experiments,
in one results directory.
"""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from analysis.papers.paper_runs import PaperRuns
from analysis.papers.spang2021 import PAPER
from analysis.read.imported import REASON
from analysis.tests import damages, foreign, simulate
from analysis.tests.imports import CONDITIONS
from analysis.tests.undrawn import leave_out
from bufferscope.__main__ import main
from experiments.commands import figures
from lib.errors import InputError
from runs import run_table

pytestmark = pytest.mark.long  # all of it uses one dear fixture

FIGURES = {figure.name: figure for figure in PAPER.figures}
BDP = 41  # packets: 50 Mb/s x 10 ms / (8 x 1538 bytes), rounded
LONG: dict[str, Any] = {"warmup_ns": 200_000_000, "duration_ns": 1_600_000_000}
TEXTS = {
    "one": simulate.Scenario(flows=1, threshold=BDP, **LONG),
    "four": simulate.Scenario(flows=4, threshold=BDP, **LONG),
}
TABLES = {
    "one-small": simulate.Scenario(flows=1, threshold=5, **LONG),
    "sixteen": simulate.Scenario(flows=16, threshold=BDP, **LONG),
    "twenty": simulate.Scenario(flows=4, threshold=20, **LONG),
    "cubic": simulate.Scenario(flows=4, threshold=33, ccs=("cubic",), **LONG),  # 0.8 BDP
    "ecn": simulate.Scenario(flows=16, mode="ecn", ecn_threshold=BDP, threshold=3 * BDP, **LONG),
}
WITHOUT_POSTCARDS = "windows"  # the run imported from the TCP trace of `four` alone
ONE_BDP = {"one", "four", "sixteen"}
RENO = {*ONE_BDP, "one-small", "twenty"}
DRAWN = {  # figure: the runs that it must use, and no others
    "figure_01": {"one"},
    "figure_02": {"one"},
    "figure_03": {"one", "one-small"},
    "figure_04": RENO,
    "figure_05a": RENO | {"cubic"},
    "figure_05b": {"twenty"},
    "figure_06": {"cubic"},
    "figure_07": {"sixteen"},
    "figure_08": {"sixteen", "ecn"},
    "figure_09": {"four"},
    "figure_10": ONE_BDP,
    "figure_11a": ONE_BDP | {WITHOUT_POSTCARDS},
    "figure_11b": {"sixteen"},
    "table_1": RENO,
    "beside": {*TEXTS, *TABLES} - {"ecn"},
    "factors": set(),
    "arrival": set(),  # compares two sets of runs; imported runs never belong to the second set
    "clocks": set(),  # imported runs have one clock
}


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """A results directory with all experiments imported, without the runs' own figures."""
    top = tmp_path_factory.mktemp("imports")
    truths = {name: simulate.Simulation(scenario).run() for name, scenario in (TEXTS | TABLES).items()}
    data_sets = [foreign.tables(scenario, truths[name], name) for name, scenario in TABLES.items()]
    foreign.write_csv(top / "database", foreign.together(data_sets))
    sources = [(top / "database", "", ["EXPERIMENT=all"])]
    for name, scenario in TEXTS.items():
        foreign.write_text(top / "texts" / name, scenario, truths[name])
        sources.append((top / "texts" / name, f"/runs/{name}", []))
    words = [f"BUF={BDP}p", "CC=reno", f"MTU={foreign.MTU}"]
    sources.append((top / "texts/four/trace.tr", f"/runs/{WITHOUT_POSTCARDS}", words))
    with pytest.MonkeyPatch.context() as patch:
        leave_out(patch.setattr)
        for source, place, words in sources:
            assert main(["import", f"FROM={source}", f"OUTPUT={top}/theirs{place}", *words, *CONDITIONS]) == 0
    return top / "theirs"


def stored(results: Path) -> PaperRuns:
    return PaperRuns(PAPER, results, conditions=figures.conditions(PAPER))


def _figure(results: Path, name: str) -> Any:
    return FIGURES[name].data(stored(results))


def test_run_table__has_a_row_for_each_imported_run(results):
    table = run_table.read(results)
    assert table["imported"].all()
    assert table["reasons"].str.starts_with(REASON).all()
    by_name = {Path(row["run"]).parts[1]: row for row in table.iter_rows(named=True)}
    assert set(by_name) == {*TEXTS, *TABLES, WITHOUT_POSTCARDS}
    for name, scenario in (TEXTS | TABLES).items():
        row = by_name[name]
        assert (row["cc"], row["flows"], row["target"]) == (scenario.ccs[0], scenario.flows, "imported"), name
        limit = scenario.ecn_threshold if scenario.mode == "ecn" else scenario.threshold
        assert row["ecn_threshold_packets" if scenario.mode == "ecn" else "buffer_packets"] == limit, name
        assert row["depth_max_packets"] is not None, name
    assert by_name[WITHOUT_POSTCARDS]["depth_p01_packets"] is None
    assert by_name[WITHOUT_POSTCARDS]["window_p50_packets"] == by_name["four"]["window_p50_packets"]


def test_figures__are_drawn_from_the_imported_directory_alone(results, capsys):
    words = ["figures", "PAPER=spang2021", "FIGURE=4,8,11a,clocks", "DRAW=only", f"RESULTS={results}"]
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert "4 figures from 7 runs" in out
    assert "no valid run for clocks; without DRAW=only the missing runs are done\n" in err
    assert "1 run left out, not valid or without needed data" in err
    output = results / "figures/spang2021"
    for name in ("figure_04", "figure_08", "figure_11a"):
        text = " ".join(re.sub(r"<[^>]*>", " ", (output / f"{name}.svg").read_text()).split())  # the footer's lines
        assert f"{len(DRAWN[name])} of them imported, without a ledger" in text, name


def test_figures__draw_the_runs_with_their_conditions(results):
    provenance = {name: _figure(results, name)["provenance"] for name in FIGURES}
    used = {name: {run.removeprefix("theirs/") for run in of["used"]} for name, of in provenance.items()}
    assert used == DRAWN
    assert {run for of in provenance.values() for run, *_ in of["left_out"]} == {f"theirs/{WITHOUT_POSTCARDS}"}


def test_figures__say_what_imports_cannot_show(results):
    panels = _figure(results, "figure_06")["panels"]
    assert {cc for cc, panel in panels.items() if "absent" in panel} == {"bbr", "bbr2", "bbr3", "scalable_50"}
    assert panels["bbr2"]["absent"] == "BBRv2:\nno imported run\nunder such conditions"
    facts = {fact.what: fact for fact in FIGURES["figure_08"].facts(_figure(results, "figure_08"))}
    marked, dropped = (facts[f"{mode}: flows signalled in an excursion"] for mode in ("ECN", "drop"))
    assert (marked.measured, marked.reason) == (None, "these captures record no marks")
    assert dropped.measured is not None
    assert dropped.measured.value > 1


def test_runs__of_two_links_or_outside_their_directory_are_not_drawn_together(results, tmp_path):
    copied = tmp_path / "theirs"
    shutil.copytree(results / "runs/one", copied / "runs/one")
    runs = stored(tmp_path)  # the directory above: its runs are not taken for a sweep of the paper
    assert (len(runs.table), runs.select("single-flow")) == (1, [])
    shutil.copytree(results / "runs/four", copied / "runs/four")
    summary = copied / "runs/one/rep-1/summary.json"
    summary.write_text(summary.read_text().replace('"rtt_ns": 10000000', '"rtt_ns": 20000000'))
    damages.accept(summary.parent, summary.name)
    with pytest.raises(InputError, match="differ in rtt_ns: 10000000, 20000000; allowed: one link"):
        stored(copied).select("single-flow")
