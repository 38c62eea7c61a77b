# SPDX-License-Identifier: MIT
"""The imported runs that each figure of Spang et al. takes: tables and a trace of simulated experiments, in one results
directory.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest

from analysis.papers.paper_runs import PaperRuns
from analysis.papers.spang2021 import PAPER
from analysis.tests import damages, foreign, simulate
from analysis.tests.imports import CONDITIONS
from analysis.tests.undrawn import leave_out
from bufferscope.__main__ import main
from experiments.commands import figures
from lib.errors import InputError

pytestmark = pytest.mark.long  # all of it uses one dear fixture

FIGURES = {figure.name: figure for figure in PAPER.figures}
BDP = 41  # packets: 50 Mb/s x 10 ms / (8 x 1538 bytes), rounded
LONG: dict[str, Any] = {"warmup_ns": 200_000_000, "duration_ns": 1_600_000_000}
EXPERIMENTS = {
    "one": simulate.Scenario(flows=1, threshold=BDP, **LONG),
    "four": simulate.Scenario(flows=4, threshold=BDP, **LONG),
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
    "beside": {*EXPERIMENTS} - {"ecn"},
    "factors": set(),
    "arrival": set(),  # compares two sets of runs; imported runs never belong to the second set
    "clocks": set(),  # imported runs have one clock
}


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """A results directory with all experiments imported, without the runs' own figures."""
    top = tmp_path_factory.mktemp("imports")
    truths = {name: simulate.Simulation(scenario).run() for name, scenario in EXPERIMENTS.items()}
    data_sets = [foreign.tables(scenario, truths[name], name) for name, scenario in EXPERIMENTS.items()]
    foreign.write_csv(top / "database", foreign.together(data_sets))
    (trace := top / "trace.tr").write_text("\n".join(foreign.trace_lines(truths["four"])) + "\n")
    words = [f"BUF={BDP}p", "CC=reno", f"MTU={foreign.MTU}"]
    with pytest.MonkeyPatch.context() as patch:
        leave_out(patch.setattr)
        assert main(["import", f"FROM={top}/database", f"OUTPUT={top}/theirs", "EXPERIMENT=all", *CONDITIONS]) == 0
        output = f"OUTPUT={top}/theirs/runs/{WITHOUT_POSTCARDS}"
        assert main(["import", f"FROM={trace}", output, *words, *CONDITIONS]) == 0
    return top / "theirs"


def stored(results: Path) -> PaperRuns:
    return PaperRuns(PAPER, results, conditions=figures.conditions(PAPER))


def _figure(results: Path, name: str) -> Any:
    return FIGURES[name].data(stored(results))


def test_figures__draw_the_runs_with_their_conditions(results):
    provenance = {name: _figure(results, name)["provenance"] for name in FIGURES}
    used = {name: {run.removeprefix("theirs/") for run in of["used"]} for name, of in provenance.items()}
    assert used == DRAWN
    assert {run for of in provenance.values() for run, *_ in of["left_out"]} == {f"theirs/{WITHOUT_POSTCARDS}"}


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
