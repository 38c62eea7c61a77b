# SPDX-License-Identifier: MIT
"""The comparison of clocks: it pairs the runs of a point in real and virtual time, and reports their differences."""

import math

import pytest
from scipy import stats

from analysis.papers import clocks, document, draw, look
from analysis.papers.spang2021 import PAPER
from analysis.papers.stored_runs import StoredRuns
from analysis.statistics import Interval
from analysis.summary import summarize
from analysis.tests import sweeps
from hosts.tune.tcp_options import LINUX
from hosts.tune.tcp_options import PAPER as PAPER_TCP

COMPARISON = clocks.figure(("single-flow-buffers", "reno-depth", "others-depth", "twenty-packets", "ecn"))
BDP = {"virtual": 166.0, "real": 162.5}  # packets: round values of rate and RTT give no closer BDPs
RATE_BPS = {"virtual": 10**10, "real": 10**8}


@pytest.fixture(scope="module")
def base(known_runs):
    """The summary of a simulated run in virtual time."""
    return summarize(known_runs("virtual").analysis)


@pytest.fixture
def put(tmp_path, base):
    """A function that stores a run of a sweep in a given clock, with given numbers."""

    def put(clock, stem, cc, flows, over, number=1, smoke=False, threshold=None, valid=True, rate=None, tcp=None,
            mode="tail-drop", **numbers):  # fmt: skip
        point = {"cc": cc, "flows": flows, "buf": round(over * BDP[clock])}
        altered = sweeps.changed(base, point, number)
        altered["spec"] |= {"clock": clock, "rate_bps": rate or RATE_BPS[clock], "tcp": tcp or LINUX}
        altered["spec"] |= {"mode": mode}
        altered["spec"] |= {"mode": "ecn", "ecn_threshold_packets": round(threshold * BDP[clock])} if threshold else {}
        altered["rules"] |= {"bdp_packets_exact": BDP[clock]}
        altered["utilization"] |= numbers
        altered |= {"valid": valid, "reasons": [] if valid else ["frames left too late"]}
        at = f"{cc}-n{flows}-b{point['buf']}-{bool(threshold)}-{mode}-{rate}-{tcp is PAPER_TCP}-r{number}"
        sweep = f"spang2021-{stem}" + "-real" * (clock == "real") + "-smoke" * smoke
        sweeps.put(tmp_path / sweep / f"runs/{at}/rep-1", altered)

    return put


def prepared(results, smoke=False):
    return COMPARISON.prepare(StoredRuns(PAPER, results, smoke))


def labels(data):
    return [point.label for point in data["points"]]


def test_point__has_runs_of_both_clocks_with_the_same_buffer_over_the_bdp(put, tmp_path):
    for number in (1, 2, 3):
        put("virtual", "reno-depth", "reno", 4, 1, number, mean=0.90 + number / 100)
        put("real", "reno-depth", "reno", 4, 1, number, mean=0.91 + number / 100)
    put("virtual", "reno-depth", "reno", 4, 0.5)  # another buffer, other flows, another algorithm: other points
    put("virtual", "reno-depth", "reno", 16, 1)
    put("virtual", "reno-depth", "cubic", 4, 1)
    put("virtual", "fairness-flows", "reno", 4, 1)  # and another sweep
    data = prepared(tmp_path)
    assert labels(data) == ["Reno, n = 4, B = 1 BDP"]
    virtual, real, _ = data["points"][0].values[0]
    half = stats.t.ppf(0.975, 2) / math.sqrt(3)
    assert (virtual.value, virtual.runs, virtual.high) == (pytest.approx(92), 3, pytest.approx(92 + half))
    assert (real.value, real.runs, real.low) == (pytest.approx(93), 3, pytest.approx(93 - half))
    assert len(data["provenance"]["used"]) == 6
    assert data["provenance"]["clocks"] == ["real", "virtual"]


def test_buffer_of_packets__is_the_same_point_though_bdps_differ_a_little(put, tmp_path):
    for over in (2, 5, 20):
        put("virtual", "single-flow-buffers", "reno", 1, over / BDP["virtual"])
    put("real", "single-flow-buffers", "reno", 1, 20 / BDP["real"])
    assert len(prepared(tmp_path)["points"]) == 1


def test_virtual_runs_at_the_rate_of_real_time__are_preferred(put, tmp_path):
    put("real", "reno-depth", "reno", 4, 1, mean=0.9)
    put("virtual", "reno-depth", "reno", 4, 1, mean=0.8)
    (point,) = prepared(tmp_path)["points"]
    assert point.values[0].virtual.value == pytest.approx(80)
    put("virtual", "reno-depth", "reno", 4, 1, rate=RATE_BPS["real"], mean=0.85)
    (point,) = prepared(tmp_path)["points"]
    assert point.values[0].virtual.value == pytest.approx(85)


def test_tcp_profiles__make_different_points(put, tmp_path):
    for tcp, mean in (LINUX, 0.8), (PAPER_TCP, 0.9):
        put("virtual", "reno-depth", "reno", 4, 1, tcp=tcp, mean=mean)
    put("real", "reno-depth", "reno", 4, 1, tcp=PAPER_TCP, mean=0.9)
    (point,) = prepared(tmp_path)["points"]
    assert point.values[0].difference == 0


def test_drops_marks_and_thresholds__make_different_points(put, tmp_path):
    for clock in ("virtual", "real"):
        put(clock, "ecn", "reno", 16, 1)
        put(clock, "ecn", "reno", 16, 4, threshold=1)
        put(clock, "ecn", "reno", 16, 1, mode="egress-ecn")
    put("virtual", "ecn", "reno", 16, 4, number=2, threshold=2)
    data = prepared(tmp_path)
    assert sorted(labels(data)) == [
        "Reno, n = 16, B = 1 BDP", "Reno, n = 16, marks at departure from 1 BDP on", "Reno, n = 16, marks from 1 BDP on"
    ]  # fmt: skip
    assert all(pair.values[0][0].runs == 1 for pair in data["points"])


def test_runs_that_are_not_valid__are_left_out_and_listed(put, tmp_path):
    for clock in ("virtual", "real"):
        put(clock, "others-depth", "bbr", 16, 0.8)
    put("real", "others-depth", "bbr", 16, 0.8, number=2, valid=False)
    data = prepared(tmp_path)
    assert data["points"][0].values[0][1].runs == 1
    ((left_out, reason, _),) = data["provenance"]["left_out"]
    assert left_out.startswith("spang2021-others-depth-real/bbr-n16")
    assert reason == "frames left too late"


def test_point_of_real_time_alone__is_named_and_not_drawn(put, tmp_path):
    put("real", "twenty-packets", "reno", 16, 20 / BDP["real"])
    data = prepared(tmp_path)
    assert (labels(data), data["alone"]) == ([], ["Reno, n = 16, B = 0.12 BDP"])
    assert clocks.points(data).rows() == [("Reno, n = 16, B = 0.12 BDP", *[None] * 11)]
    assert not any(fact.measured for fact in clocks.facts(data))


def test_smoke__compares_short_versions_with_each_other(put, tmp_path):
    for clock in ("virtual", "real"):
        put(clock, "reno-depth", "reno", 1, 1, smoke=True)
    assert labels(prepared(tmp_path)) == []
    assert labels(prepared(tmp_path, smoke=True)) == ["Reno, n = 1, B = 1 BDP"]


@pytest.mark.parametrize(
    ("first", "other", "said"),
    [
        (Interval(1, 0.5, 2, 3), Interval(3, 2, 4, 3), True),
        (Interval(1, 0.5, 2, 3), Interval(3, 2.1, 4, 3), False),
        (Interval(3, 2.1, 4, 3), Interval(1, 0.5, 2, 3), False),
        (Interval(1, 1, 1, 3), Interval(1, 0, 2, 3), True),
        (Interval(1, None, None, 1), Interval(1, 0, 2, 3), True),
        (Interval(0, 0, 0.9, 3), Interval(1, None, None, 1), False),
        (Interval(1, None, None, 1), Interval(1, None, None, 1), None),
    ],
)
def test_intervals__meet_if_they_have_something_in_common(first, other, said):
    assert clocks.ClockComparison(first, other, 0.0).meet is said


def test_intervals__meet_to_a_packet():
    depth = Interval(0.5, 0.5, 0.5, 3)
    assert clocks.ClockComparison(depth, Interval(0.506, None, None, 1), 0.006).meet is True
    assert clocks.ClockComparison(depth, Interval(0.507, None, None, 1), 0.006).meet is False


def test_facts__count_agreeing_points_and_name_the_worst(put, tmp_path):
    for number in (0, 1, 2):
        for flows, off in ((4, 0), (16, 0.2)):
            put("virtual", "reno-depth", "reno", flows, 1, number + 1, mean=0.71 + number / 100)
            put("real", "reno-depth", "reno", flows, 1, number + 1, mean=0.71 + off + number / 100)
    data = prepared(tmp_path)
    facts = {fact.what: fact for fact in clocks.facts(data)}
    agreed = facts["utilization, mean: points whose intervals of both clocks meet"]
    assert agreed.measurement_text == "1 of 2"
    middle = facts["utilization, mean: distance of real from virtual time, median over points"]
    assert middle.measurement_text == "10 %"
    most = facts["utilization, mean: largest difference, real time less virtual time"]
    assert (most.measurement_text, most.reason) == ("20 %", "Reno, n = 16, B = 1 BDP")
    few, many = (row for row in clocks.points(data).iter_rows(named=True) if row["measure"] == "utilization, mean")
    assert (few["point"], few["unit"], few["intervals_meet"]) == ("Reno, n = 4, B = 1 BDP", "%", True)
    assert [few[f"virtual{end}"] for end in ("", "_low", "_high", "_runs")] == pytest.approx(
        [72, 69.52, 74.48, 3], 1e-3
    )
    assert [few[f"real{end}"] for end in ("", "_low", "_high")] == pytest.approx([72, 69.52, 74.48], 1e-3)
    assert (many["real"], many["intervals_meet"]) == (pytest.approx(92), False)


def test_figure__has_one_panel_per_measure_and_counts_agreement(put, tmp_path):
    for number in (1, 2):
        for clock in ("virtual", "real"):
            put(clock, "reno-depth", "reno", 4, 1, number, mean=0.9 + number / 100)
    data = prepared(tmp_path)
    figure = clocks.draw(data)
    assert len(figure.axes) == len(clocks.MEASURES)
    panel = figure.axes[0]
    assert panel.get_xlim() == panel.get_ylim()
    assert [text.get_text() for text in panel.texts] == ["1 of 1 meet"]
    look.footer(figure, data["provenance"])
    assert "(real time and virtual time;" in figure.get_supxlabel()


def test_page__shows_the_missing_comparison_and_then_the_points(put, tmp_path):
    (nothing,) = draw.draw(StoredRuns(PAPER, tmp_path), tmp_path / "figures", (COMPARISON,))
    assert not nothing.used
    assert "CLOCK=real" in (tmp_path / "figures/clocks.svg").read_text()
    for clock in ("virtual", "real"):
        put(clock, "reno-depth", "reno", 4, 1)
    runs = StoredRuns(PAPER, tmp_path)
    (drawn,) = draw.draw(runs, tmp_path / "figures", (COMPARISON,))
    assert "1 of single runs" in (tmp_path / "figures/clocks.svg").read_text()
    page = document.page([drawn], runs, {"Clocks": "Because TCP's timers *count ms*."})
    assert "## Clocks" in page
    assert "Because TCP's timers" in page
    assert "[each point](./clocks-points.csv)" in page
    assert "Reno, n = 4, B = 1 BDP" in (tmp_path / "figures/clocks-points.csv").read_text().replace('"', "")
    assert "2 valid runs in real time and virtual time" in page
