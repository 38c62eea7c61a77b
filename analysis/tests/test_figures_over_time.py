# SPDX-License-Identifier: MIT
"""Figures 1, 2, 7, 8 and 9 of Spang et al., from simulated sweeps whose every packet is known."""

import json
import re
from typing import Any

import numpy as np
import pytest

from analysis import derive as derive_module
from analysis.derive import derive
from analysis.loss import AFTERMATH_RTTS
from analysis.papers import look
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.spang2021 import PAPER, figure_07, table_conditions
from analysis.papers.stored_runs import StoredRuns
from analysis.tests import simulate
from analysis.theory import single_flow

DROPPED = simulate.CARD["POSTCARD_DROPPED"]
RETRANSMIT = simulate.EVENT["TCP_EVENT_RETRANSMIT"]
BDP = 41  # packets: 50 Mb/s x 10 ms / (8 x 1538 bytes), rounded
LONG: dict[str, Any] = {"threshold": BDP, "duration_ns": 2_000_000_000, "warmup_ns": 500_000_000}
ECN: dict[str, Any] = {"mode": "ecn", "ecn_threshold": BDP, "threshold": 3 * BDP}
JOBS = {
    "spang2021-single-flow/runs/reno-r1": simulate.Scenario(flows=1, **LONG),
    "spang2021-single-flow/runs/reno-r2": simulate.Scenario(flows=1, seed=2, **LONG),
    "spang2021-ecn/runs/drop-r1": simulate.Scenario(flows=16, **LONG),
    "spang2021-ecn/runs/ecn-r1": simulate.Scenario(flows=16, **LONG | ECN),
    "spang2021-four-flows/runs/r1": simulate.Scenario(flows=4, **LONG),
}
FIGURES = [figure for figure in PAPER.figures if figure.word in ("1", "2", "7", "8", "9")]
KERNEL = {"sender": {"congestion_controls": ["reno", "cubic", "bbr"]}}


@pytest.fixture(scope="module")
def truths():
    """The simulation of each job."""
    return {job: simulate.Simulation(scenario).run() for job, scenario in JOBS.items()}


@pytest.fixture(scope="module")
def results(tmp_path_factory, truths):
    """The analysed sweeps, without the runs' own figures."""
    top = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(derive_module, "draw_all", lambda *_: [])
        patch.setattr(derive_module, "render", lambda *_: "")
        for job, truth in truths.items():
            simulate.write_run(top / job / "rep-1", JOBS[job], truth)
            environment = top / job / "rep-1/environment.json"
            environment.write_text(json.dumps(json.loads(environment.read_text()) | {"hosts": KERNEL}))
            derive(top / job / "rep-1")
    return top


def _measured(rows, what):
    (row,) = [row for row in rows if row.what == what]
    return row.measured


def _losses(truth, scenario):
    """(first drop, flows that lost, end) of each loss, by a plain loop over the packets."""
    longest = scenario.rtt_ns + round(scenario.threshold * (scenario.frame_bytes + 24) * 8e9 / scenario.rate_bps)
    aftermath = AFTERMATH_RTTS * longest
    start = simulate.START_NS + scenario.warmup_ns
    losses: list[tuple[int, set[int], int]] = []
    last = start - aftermath
    for card, flow in zip(truth.cards, truth.arrival_flow, strict=True):
        at = card["enqueue_ns"]
        if at >= start and card["flags"] & DROPPED:
            if at - last >= aftermath:
                losses.append((at, set(), at + aftermath))
            losses[-1][1].add(flow)
            last = at
    return [(at, sorted(flows), end) for at, flows, end in losses if end <= start + scenario.duration_ns]


@pytest.mark.parametrize("job", ["spang2021-single-flow/runs/reno-r1", "spang2021-four-flows/runs/r1"])
def test_losses__are_drops_with_their_consequences(results, truths, job):
    runs = StoredRuns(PAPER, results).select(job.split("/")[0].removeprefix("spang2021-"))
    trace = PacketTrace(next(run for run in runs if run.name == job.rpartition("/")[2]))
    expected = _losses(truths[job], JOBS[job])
    assert [loss[:2] for loss in trace.losses()] == [loss[:2] for loss in expected]
    assert len(expected) >= 2


def test_figure_01__measures_each_loss_as_it_happened(results, truths):
    data = FIGURES[0].prepare(StoredRuns(PAPER, results))
    job = "spang2021-single-flow/runs/reno-r1"
    truth, each = truths[job], data["losses"][0]["each"]
    expected = _losses(truth, JOBS[job])
    assert [loss["drop_ns"] for loss in each] == [at for at, _, _ in expected]
    for loss, (at, _, _) in zip(each, expected, strict=True):
        last = [r for r in truth.records if r["mono_ns"] <= at][-1]
        again = next(r["mono_ns"] for r in truth.records if r["mono_ns"] >= at and r["event"] == RETRANSMIT)
        in_flight = last["packets_out"] - last["sacked_out"] - last["lost_out"] + last["retrans_out"]
        assert loss["before"] == in_flight
        assert loss["known_ns"] == again - at
    rows = FIGURES[0].facts(data)
    assert _measured(rows, "window at the drop").value == pytest.approx(2 * BDP, abs=2)
    assert _measured(rows, "window at the drop").runs == 2
    assert [(row.what, row.predicted) for row in rows][:2] == [
        ("window at the drop", pytest.approx(2 * BDP, abs=0.5)), ("window after recovery", pytest.approx(BDP, abs=0.5)),
    ]  # fmt: skip
    assert data["zoom"]["drops"].shape[1] >= 1
    assert data["zoom"]["drops"][0][0] == 0


def test_falls__are_to_the_window_after_recovery(results, truths):
    shares = []
    for job in ("spang2021-single-flow/runs/reno-r1", "spang2021-single-flow/runs/reno-r2"):
        each, records = [], truths[job].records
        for at, _, end in _losses(truths[job], JOBS[job]):
            windows = [
                [
                    r["packets_out"] - r["sacked_out"] - r["lost_out"] + r["retrans_out"]
                    for r in records
                    if r["mono_ns"] <= t
                ]
                for t in (at, end - JOBS[job].rtt_ns)
            ]
            each.append(windows[1][-1] / windows[0][-1])
        shares.append(np.median(each))
    reno = table_conditions.falls(StoredRuns(PAPER, results), "reno")
    assert reno.text == f"reno: falls to {np.mean(shares):.3g} W (b = 0.5, 1 − b ± 20%), B = BDP"
    assert reno.holds is True
    assert table_conditions.falls(StoredRuns(PAPER, results), "cubic").holds is None


def test_falls__does_not_hold_if_the_rule_expects_another_fall(results, monkeypatch):
    monkeypatch.setitem(single_flow.DECREASE, "reno", 0.7)
    assert table_conditions.falls(StoredRuns(PAPER, results), "reno").holds is False


def test_figure_02__shows_what_is_missing_and_why(results):
    data = FIGURES[1].prepare(StoredRuns(PAPER, results))
    assert [panel["absent"] for panel in data["panels"]] == [
        "", "Cubic: no valid run", "BBR: no valid run", "Scalable (Linux 5.5): not measured,\nno kernel at hand has it",
    ]  # fmt: skip
    reno = StoredRuns(PAPER, results).select("single-flow", cc="reno")
    drained = [run.summary["drained_fraction"]["of_bdp"]["median"] for run in reno]
    assert data["panels"][0]["drained"].value == pytest.approx(np.mean(drained))
    assert data["panels"][0]["line"][1].max() == BDP
    rows = FIGURES[1].facts(data)
    assert _measured(rows, "Cubic drains") is None


def test_figure_07__counts_windows_of_each_flow(results, truths):
    data = FIGURES[2].prepare(StoredRuns(PAPER, results))
    scenario, truth = JOBS["spang2021-ecn/runs/drop-r1"], truths["spang2021-ecn/runs/drop-r1"]
    fair = (50e6 * 0.01 / (8 * 1538) + BDP) / 16
    start = simulate.START_NS + scenario.warmup_ns
    windows = [
        r["packets_out"] - r["sacked_out"] - r["lost_out"] + r["retrans_out"]
        for r in truth.records
        if r["event"] != RETRANSMIT and start <= r["mono_ns"]
    ]
    outside = sum(not 2 / 3 <= w / fair <= 4 / 3 for w in windows) / len(windows)
    assert len(data["flows"]) == 16
    # The measurement window ends a bit before the simulation.
    assert data["runs"][0]["outside"] == pytest.approx(outside, rel=0.02)
    assert data["fair"] == pytest.approx(fair, rel=1e-3)


def test_distance__is_zero_for_uniform_windows():
    shares = np.linspace(2 / 3, 4 / 3, 2001)
    assert figure_07._distance(shares, np.ones(2001)) == pytest.approx(0, abs=1e-3)
    assert figure_07._distance(np.array([1.0]), np.array([7])) == pytest.approx(0.5)
    assert figure_07._distance(np.array([0.1, 3.0]), np.array([1, 1])) == pytest.approx(0.5)
    assert figure_07._distance(np.array([3.0]), np.array([1])) == 1


def test_figure_08__counts_flows_signalled_above_each_mode_s_own_threshold(results):
    data = FIGURES[3].prepare(StoredRuns(PAPER, results))
    for mode, threshold in (("drop", BDP), ("arrival", BDP)):
        (run,) = data["modes"][mode]["runs"]
        assert run["threshold"] == threshold
        assert run["excursions"].sum() == pytest.approx(1)
        assert 1 <= run["flows_mean"] <= 16
    assert data["modes"]["drop"]["runs"][0]["overshoot"] == 0
    assert data["modes"]["arrival"]["runs"][0]["overshoot"] > 0  # simulated senders do not heed marks
    rows = FIGURES[3].facts(data)
    assert _measured(rows, "drop: deepest queue above the threshold").value == 0


def test_figure_09__predicts_the_fall_from_the_losers_windows(results, truths):
    data = FIGURES[4].prepare(StoredRuns(PAPER, results))
    job = "spang2021-four-flows/runs/r1"
    losses, expected = data["runs"][0]["losses"], _losses(truths[job], JOBS[job])
    assert [loss["losers"] for loss in losses] == [flows for _, flows, _ in expected]
    for loss in losses:
        assert loss["half"] == sum(loss["windows"][flow] for flow in loss["losers"]) / 2
        assert 0 <= loss["fall"] <= BDP
    assert [number for _, number, _, _ in data["zoom"]["losses"]] == [
        len(loss["losers"]) for loss in losses[: len(data["zoom"]["losses"])]
    ]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_figures__are_drawn_alike_twice_and_name_their_runs(figure, results, tmp_path):
    for copy in ("a", "b"):
        (tmp_path / copy).mkdir()
        look.render(figure.name, figure.draw, figure.prepare(StoredRuns(PAPER, results)), tmp_path / copy)
    name = figure.name
    for kind in ("png", "svg"):
        first, second = ((tmp_path / copy / f"{name}.{kind}").read_bytes() for copy in ("a", "b"))
        assert first == second
        assert len(first) > 4000
    assert re.search(r"From ([0-9]+ runs of )?spang2021-", (tmp_path / "a" / f"{name}.svg").read_text())


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_figures__without_runs_say_so(figure, tmp_path):
    data = figure.prepare(StoredRuns(PAPER, tmp_path))
    look.render(figure.name, figure.draw, data, tmp_path)
    text = (tmp_path / f"{figure.name}.svg").read_text()
    assert "no valid run" in text
    assert "From no run." in text
    assert all(row.measured is None for row in figure.facts(data))
