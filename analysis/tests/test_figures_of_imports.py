# SPDX-License-Identifier: MIT
"""Every figure of Spang et al., drawn from imported runs alone: text traces and tables of simulated experiments,
in one results directory. Numbers of Figures 1 and 4 and a queue over time are compared with the simulation.
"""

import contextlib
import re
import shutil
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import polars as pl
import pytest

from analysis import derive as derive_module
from analysis.figures import common, drawing
from analysis.imported import REASON
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.spang2021 import PAPER, figure_01
from analysis.papers.stored_runs import StoredRuns
from analysis.statistics import Interval
from analysis.tests import foreign, simulate
from bufferscope.__main__ import main
from experiments import figures
from lib.errors import InputError
from runs import record, run_table

FIGURES = {figure.name: figure for figure in PAPER.figures}
BDP = 41  # packets: 50 Mb/s x 10 ms / (8 x 1538 bytes), rounded
LONG: dict[str, Any] = {"warmup_ns": 200_000_000, "duration_ns": 2_500_000_000}
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
def truths() -> dict[str, simulate.Truth]:
    """The simulation of each experiment."""
    return {name: simulate.Simulation(scenario).run() for name, scenario in (TEXTS | TABLES).items()}


@pytest.fixture(scope="module")
def results(tmp_path_factory, truths) -> Path:
    """A results directory with all experiments imported, without the runs' own figures."""
    top = tmp_path_factory.mktemp("imports")
    conditions = ["RATE=50mbit", "RTT=10ms"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(derive_module, "draw_all", lambda *_: [])
        patch.setattr(derive_module, "render", lambda *_: "")
        patch.setattr("analysis.replay.drawing_pool", contextlib.nullcontext)
        data_sets = [foreign.tables(scenario, truths[name], name) for name, scenario in TABLES.items()]
        foreign.write_csv(top / "database", foreign.together(data_sets))
        words = [f"FROM={top}/database", f"OUTPUT={top}/theirs", "EXPERIMENT=all"]
        assert main(["import", *words, *conditions]) == 0
        for name, scenario in TEXTS.items():
            foreign.write_text(top / "texts" / name, scenario, truths[name])
            words = [f"FROM={top}/texts/{name}", f"OUTPUT={top}/theirs/runs/{name}"]
            assert main(["import", *words, *conditions]) == 0
        words = [f"FROM={top}/texts/four/trace.tr", f"OUTPUT={top}/theirs/runs/{WITHOUT_POSTCARDS}", f"BUF={BDP}p"]
        assert main(["import", *words, "CC=reno", f"MTU={foreign.MTU}", *conditions]) == 0
    return top / "theirs"


def stored(results: Path) -> StoredRuns:
    return StoredRuns(PAPER, results, conditions=figures.conditions(PAPER))


def _figure(results: Path, name: str) -> Any:
    return FIGURES[name].prepare(stored(results))


def test_run_table__has_a_row_for_each_imported_run(results):
    table = run_table.read(results)
    assert set(table["run"]) == {f"runs/{name}/rep-1" for name in [*TEXTS, *TABLES, WITHOUT_POSTCARDS]}
    assert table["imported"].all()
    assert table["reasons"].str.starts_with(REASON).all()
    by_name = {Path(row["run"]).parts[1]: row for row in table.iter_rows(named=True)}
    for name, scenario in (TEXTS | TABLES).items():
        row = by_name[name]
        assert (row["cc"], row["flows"], row["target"]) == (scenario.ccs[0], scenario.flows, "imported"), name
        limit = scenario.ecn_threshold if scenario.mode == "ecn" else scenario.threshold
        assert row["ecn_threshold_packets" if scenario.mode == "ecn" else "buffer_packets"] == limit, name
        assert row["depth_max_packets"] is not None, name
    assert by_name[WITHOUT_POSTCARDS]["depth_p01_packets"] is None
    assert by_name[WITHOUT_POSTCARDS]["window_p50_packets"] == by_name["four"]["window_p50_packets"]


def test_figures__are_all_drawn_from_the_imported_directory_alone(results, capsys):
    status = main(["figures", "PAPER=spang2021", "DRAW=only", f"RESULTS={results}"])
    out, err = capsys.readouterr()
    assert f"{len(FIGURES)} figures from {len(TEXTS | TABLES) + 1} runs" in out
    assert (status, err.count("\n")) == (2, 2)
    assert "no valid run for factors, arrival, clocks; without DRAW=only the missing runs are done\n" in err
    assert "1 run left out, not valid or without needed data" in err
    output = results / "figures/spang2021"
    for name in FIGURES:
        assert (output / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
        if name not in ("table_1", "factors", "arrival", "clocks"):
            svg = (output / f"{name}.svg").read_text()
            words = " ".join(re.sub(r"<[^>]*>", " ", svg).split())  # joins the lines of the footer
            assert f"{len(DRAWN[name])} of them imported, without a ledger" in words, name
    page = (output / PAPER.page_name).read_text()
    assert "8 runs, valid or imported, in real time, 1 left out (lacking numbers)" in page
    assert f"* `theirs/{WITHOUT_POSTCARDS}`: has no utilization_p01" in page
    assert "these captures record no marks" in page


@pytest.mark.parametrize("name", FIGURES)
def test_figure__draws_the_runs_with_its_conditions(results, name):
    provenance = _figure(results, name)["provenance"]
    assert {run.removeprefix("theirs/") for run in provenance["used"]} == DRAWN[name]
    assert {run for run, *_ in provenance["left_out"]} <= {f"theirs/{WITHOUT_POSTCARDS}"}


def test_figures__say_what_imports_cannot_show(results):
    panels = _figure(results, "figure_06")["panels"]
    assert {cc for cc, panel in panels.items() if "absent" in panel} == {"bbr", "bbr2", "bbr3", "scalable_50"}
    assert panels["bbr2"]["absent"] == "BBRv2:\nno imported run\nunder such conditions"
    facts = {fact.what: fact for fact in FIGURES["figure_08"].facts(_figure(results, "figure_08"))}
    marked = facts["ECN: flows signalled in an excursion"]
    assert (marked.measured, marked.reason) == (None, "these captures record no marks")
    assert (facts["drop: flows signalled in an excursion"].measured or Interval(0, None, None, 1)).value > 1


def _departures(truth: simulate.Truth) -> list[tuple[int, dict[str, int]]]:
    """(departure time in ns, postcard) of each packet, in order of departure."""
    return sorted(((card["enqueue_ns"] + card["sojourn_ns"], card) for card in truth.cards), key=lambda pair: pair[0])


def test_figure_01__has_the_drops_and_the_windows_in_sequence_numbers(results, truths):
    truth = truths["one"]
    (run,) = stored(results).select("single-flow", cc="reno")
    trace = PacketTrace(run)
    probes = [r for r in truth.records if r["event"] == simulate.EVENT["TCP_EVENT_PROBE"]]
    probes.sort(key=lambda record: record["mono_ns"])
    sent = [-(-((r["snd_nxt"] - r["snd_una"]) % (1 << 32)) // simulate.MSS) for r in probes]
    times, window = trace.window(0)
    assert times.tolist() == [r["mono_ns"] // 1000 * 1000 for r in probes]  # the text format has microseconds
    assert window.tolist() == sent
    data = _figure(results, "figure_01")
    (known,) = (fact for fact in figure_01.facts(data) if fact.what == "from the drop until it is known")
    assert f"comes {trace.news_ns / 1e6:.3g} ms later at the least" in known.reason
    each = data["losses"][0]["each"]
    dropped = {ns for ns, card in _departures(truth) if card["flags"] & simulate.CARD["POSTCARD_DROPPED"]}
    assert len(each) >= 2
    for loss in each:
        assert loss["drop_ns"] in dropped
        assert loss["before"] == sent[np.searchsorted(times, loss["drop_ns"], side="right") - 1]
        assert 0 < loss["known_ns"] < 4 * trace.longest_rtt_ns


def test_queue__over_time_is_the_depth_at_each_departure(results, truths):
    (run,) = stored(results).select("four-flows", needs=("utilization_p01",), flows=4, buffer_packets=BDP)
    trace = PacketTrace(run)
    start, end = trace.start_ns, trace.start_ns + 50_000_000
    expected = [(ns, card["depth_packets"]) for ns, card in _departures(truths["four"]) if start <= ns < end]
    steps = trace.queue_steps(start, end)
    assert steps[:, 1:].T.tolist() == [list(pair) for pair in expected]
    assert steps[0, 0] == start


def test_figure_04__has_the_depths_of_the_middle_third(results, truths):
    panels = {panel["buffer"]: panel for panel in _figure(results, "figure_04")["panels"]}
    assert sorted(panels) == [5, 20, BDP]
    cards = _departures(truths["twenty"])
    first, last = cards[0][0], cards[-1][0]
    third = (last - first) // 3
    start, end = stored(results).select("twenty-packets")[0].summary["measurement_window_mono_ns"]
    assert abs(end - start - third) < 1_000_000  # the trace begins and ends a bit later
    depths = [card["depth_packets"] for ns, card in cards if start <= ns < end]
    (row,) = panels[20]["rows"]
    assert row["p01"].value == np.percentile(depths, 1, method="inverted_cdf")
    assert row["density"].sum() * panels[20]["width"] == pytest.approx(1)


def test_runs__of_two_links_are_not_drawn_together(results, tmp_path):
    copied = tmp_path / "theirs"
    for name in ("one", "four"):
        shutil.copytree(results / f"runs/{name}", copied / f"runs/{name}")
    summary = copied / "runs/one/rep-1/summary.json"
    summary.write_text(summary.read_text().replace('"rtt_ns": 10000000', '"rtt_ns": 20000000'))
    record.add_derived(summary.parent, summary.name)
    with pytest.raises(InputError, match="differ in rtt_ns: 10000000, 20000000; allowed: one link"):
        stored(copied).select("single-flow")


def test_imported_runs__are_not_taken_for_a_sweep_of_the_paper(results, tmp_path):
    shutil.copytree(results / "runs/one", tmp_path / "theirs/runs/one")
    runs = stored(tmp_path)
    assert len(runs.table) == 1
    assert runs.select("single-flow") == []
    assert runs.table.select(pl.col("sweep")).item() == "theirs"


def test_figure__draws_dollar_signs_of_a_runs_name(tmp_path):
    figure, _ = common.new_figure(common.plain({"text": r"arrivals of m$\frac$", "valid": False}), 1)
    with matplotlib.rc_context(drawing.STYLE):  # type: ignore[arg-type]
        drawing.save(figure, tmp_path, "queue")
    assert r"arrivals of m$\frac$<" in (tmp_path / "queue.svg").read_text()
