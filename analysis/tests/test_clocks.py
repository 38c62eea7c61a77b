# SPDX-License-Identifier: MIT
"""The comparison of clocks: it pairs the runs of a point in real and virtual time, and reports their differences."""

import math

import pytest
from scipy import stats

from analysis.papers import clocks, document, draw
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
    """A function that stores a run of a sweep in each of the given clocks, with given numbers."""

    def put(clocks_of_runs, stem, cc, flows, over, number=1, smoke=False, valid=True, tcp=LINUX, numbers=(), **spec):
        for clock in clocks_of_runs.split():
            point = {"cc": cc, "flows": flows, "buf": round(over * BDP[clock])}
            altered = sweeps.changed(base, point, number)
            altered["spec"] |= {"clock": clock, "rate_bps": RATE_BPS[clock], "tcp": tcp, **spec}
            if threshold := spec.get("threshold"):
                altered["spec"] |= {"mode": "ecn", "ecn_threshold_packets": round(threshold * BDP[clock])}
            altered["rules"] |= {"bdp_packets_exact": BDP[clock]}
            altered["utilization"] |= dict(numbers)
            altered |= {"valid": valid, "reasons": [] if valid else ["frames left too late"]}
            at = f"{cc}-n{flows}-b{point['buf']}-{'-'.join(map(str, spec.values()))}-{tcp is PAPER_TCP}-r{number}"
            sweep = f"spang2021-{stem}" + "-real" * (clock == "real") + "-smoke" * smoke
            sweeps.put(tmp_path / sweep / f"runs/{at}/rep-1", altered)

    return put


def prepared(results, smoke=False):
    return COMPARISON.prepare(StoredRuns(PAPER, results, smoke))


def labels(data):
    return [point.label for point in data["points"]]


def test_point__has_runs_of_both_clocks_with_the_same_buffer_over_the_bdp(put, tmp_path):
    for number in (1, 2, 3):
        put("virtual", "reno-depth", "reno", 4, 1, number, numbers={"mean": 0.90 + number / 100})
        put("real", "reno-depth", "reno", 4, 1, number, numbers={"mean": 0.91 + number / 100})
    put("virtual", "reno-depth", "reno", 4, 0.5)  # another buffer, other flows, another algorithm: other points
    put("virtual", "reno-depth", "reno", 16, 1)
    put("virtual", "reno-depth", "cubic", 4, 1)
    put("virtual", "fairness-flows", "reno", 4, 1)  # and another sweep
    put("real", "reno-depth", "reno", 4, 1, number=4, valid=False)
    data = prepared(tmp_path)
    assert labels(data) == ["Reno, n = 4, B = 1 BDP"]
    virtual, real, _ = data["points"][0].values[0]
    half = stats.t.ppf(0.975, 2) / math.sqrt(3)
    assert (virtual.value, virtual.runs, virtual.high) == (pytest.approx(92), 3, pytest.approx(92 + half))
    assert (real.value, real.runs, real.low) == (pytest.approx(93), 3, pytest.approx(93 - half))
    assert len(data["provenance"]["used"]) == 6
    ((left_out, reason, _),) = data["provenance"]["left_out"]
    assert left_out.startswith("spang2021-reno-depth-real/reno-n4")
    assert reason == "frames left too late"


def test_buffer_of_packets__is_the_same_point_though_bdps_differ_a_little(put, tmp_path):
    for over in (2, 5, 20):
        put("virtual", "single-flow-buffers", "reno", 1, over / BDP["virtual"])
    put("real", "single-flow-buffers", "reno", 1, 20 / BDP["real"])
    put("real", "twenty-packets", "reno", 16, 20 / BDP["real"])  # without a counterpart
    put("virtual real", "reno-depth", "reno", 1, 1, smoke=True)
    data = prepared(tmp_path)
    assert labels(data) == ["Reno, n = 1, B = 0.12 BDP"]
    assert data["alone"] == ["Reno, n = 16, B = 0.12 BDP"]
    assert labels(prepared(tmp_path, smoke=True)) == ["Reno, n = 1, B = 1 BDP"]


def test_virtual_runs_at_the_rate_of_real_time__are_preferred(put, tmp_path):
    put("real", "reno-depth", "reno", 4, 1, numbers={"mean": 0.9})
    put("virtual", "reno-depth", "reno", 4, 1, numbers={"mean": 0.8})
    put("virtual", "reno-depth", "reno", 4, 1, rate_bps=RATE_BPS["real"], numbers={"mean": 0.85})
    (point,) = prepared(tmp_path)["points"]
    assert point.values[0].virtual.value == pytest.approx(85)


def test_profiles_modes_and_thresholds__make_different_points(put, tmp_path):
    put("virtual", "ecn", "reno", 16, 1, numbers={"mean": 0.8})
    same = {"mean": 0.9}
    put("virtual real", "ecn", "reno", 16, 1, tcp=PAPER_TCP, numbers=same)
    put("virtual real", "ecn", "reno", 16, 4, threshold=1, numbers=same)
    put("virtual real", "ecn", "reno", 16, 1, mode="egress-ecn", numbers=same)
    put("virtual", "ecn", "reno", 16, 4, number=2, threshold=2)
    data = prepared(tmp_path)
    assert sorted(labels(data)) == [
        "Reno, n = 16, B = 1 BDP", "Reno, n = 16, marks at departure from 1 BDP on", "Reno, n = 16, marks from 1 BDP on"
    ]  # fmt: skip
    assert all(pair.values[0].virtual.runs == 1 and pair.values[0].difference == 0 for pair in data["points"])


def test_intervals__meet_if_they_have_something_in_common():
    point, alone = Interval(1, 0.5, 2, 3), Interval(1, None, None, 1)
    for first, other, resolution, said in (
        (point, Interval(3, 2, 4, 3), 0.0, True),
        (point, Interval(3, 2.1, 4, 3), 0.0, False),
        (Interval(3, 2.1, 4, 3), point, 0.0, False),
        (alone, Interval(1, 0, 2, 3), 0.0, True),
        (Interval(0, 0, 0.9, 3), alone, 0.0, False),
        (alone, alone, 0.0, None),
        (Interval(0.5, 0.5, 0.5, 3), Interval(0.506, None, None, 1), 0.006, True),
        (Interval(0.5, 0.5, 0.5, 3), Interval(0.507, None, None, 1), 0.006, False),
    ):
        assert clocks.ClockComparison(first, other, resolution).meet is said, (first, other)


def test_facts__count_agreeing_points_and_name_the_worst(put, tmp_path):
    for number in (0, 1, 2):
        for flows, off in ((4, 0), (16, 0.2)):
            for clock, more in (("virtual", 0), ("real", off)):
                mean = 0.71 + more + number / 100
                put(clock, "reno-depth", "reno", flows, 1, number + 1, numbers={"mean": mean})
    runs = StoredRuns(PAPER, tmp_path)
    data = prepared(tmp_path)
    facts = {fact.what: fact for fact in clocks.facts(data)}
    assert facts["utilization, mean: points whose intervals of both clocks meet"].measurement_text == "1 of 2"
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
    (drawn,) = draw.draw(runs, tmp_path / "figures", (COMPARISON,))
    assert "1 of 2 meet" in (tmp_path / "figures/clocks.svg").read_text()
    page = document.page([drawn], runs, {"Clocks": "Because TCP's timers *count ms*."})
    assert "## Clocks" in page
    assert "Because TCP's timers" in page
    assert "[each point](./clocks-points.csv)" in page
    assert "Reno, n = 4, B = 1 BDP" in (tmp_path / "figures/clocks-points.csv").read_text().replace('"', "")
    assert "12 valid runs in real time and virtual time" in page
