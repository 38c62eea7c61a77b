# SPDX-License-Identifier: MIT
"""Estimates from stored runs: links of our published runs are held out, and lie in the intervals of the others."""

import math
import re
from statistics import median

import numpy as np
import pytest

from analysis.advise import estimates, evidence, kriging, parameters
from analysis.advise.kriging import Samples
from analysis.advise.link import Link
from analysis.advise.rule import MEAN, P01
from experiments.machine.host import CHECKOUT

CLOSE = 2.6  # a least buffer is known if its bounds differ by at most this factor
ENOUGH, NARROW = 0.9, 7.0  # the least share of links inside their intervals, and the largest median of high / low
LINKS = 30


@pytest.fixture(scope="module")
def stored():
    return estimates.series(evidence.load(CHECKOUT / "docs/results").runs)


def link_of(one, utilization):
    run = next(iter(one.runs.values()))[0]
    return Link(run.rate_bps, run.rtt_ns, one.flows, one.cc, utilization, run.mtu_bytes)


def known(stored, measure, utilization):
    """One series for each link whose least buffer is known, with its bounds."""
    links: dict[tuple[object, ...], tuple[object, object]] = {}
    for one in stored:
        bounded = one.least(measure, utilization)
        if bounded.low > 0 and bounded.high <= CLOSE * bounded.low:
            links.setdefault((one.cc, one.flows, one.bdp), (one, bounded))
    return links.values()


def is_link(one, other):
    return (one.cc, one.flows, one.bdp) == (other.cc, other.flows, other.bdp)


def is_as_large(one, other):
    return one.bdp == other.bdp


HELD_OUT = {"the link": is_link, "all links of its BDP": is_as_large}


@pytest.mark.parametrize("name", HELD_OUT)
def test_least_buffer_of_links_held_out__lies_in_their_intervals(stored, name):
    """As the table of docs/theory.md has it."""
    inside, links, widths = 0, 0, []
    for measure, utilization in ((P01, 0.99), (P01, 0.8), (MEAN, 0.95)):
        for one, bounded in known(stored, measure, utilization):
            others = [other for other in stored if not HELD_OUT[name](one, other)]
            interval = estimates.least(others, link_of(one, utilization), measure)
            if interval is not None:
                links += 1
                inside += interval.low <= math.sqrt(bounded.low * bounded.high) <= interval.high
                widths.append(interval.high / interval.low)
    assert links >= LINKS
    assert inside >= ENOUGH * links, (inside, links)
    assert median(widths) <= NARROW
    said = re.search(rf"\| {name} \| (\d+) of (\d+) \| ([0-9.]+) \|", (CHECKOUT / "docs/theory.md").read_text())
    assert said
    assert said.groups() == (str(inside), str(links), f"{median(widths):.1f}")


def test_buffer_of_links_held_out__gives_what_was_estimated(stored):
    inside, asked = 0, 0
    for one in stored[::4]:
        for buffer, runs in list(one.runs.items())[:: max(len(one.runs) // 2, 1)]:
            others = [other for other in stored if not is_link(one, other)]
            link = link_of(one, 0.99)
            outcome = estimates.outcome(others, link, buffer)
            for interval, values, unit in (
                (outcome.utilization_mean, [run.utilization_mean for run in runs], 1e-3),
                (outcome.utilization_p01, [run.utilization_p01 for run in runs], 1e-3),
                (outcome.delay_p99_s, [run.depth_p99 and link.time_s(run.depth_p99) for run in runs], link.time_s(1)),
                (outcome.loss, [run.loss for run in runs], 1e-4),
            ):
                if interval is not None and None not in values:
                    asked += 1
                    inside += interval.low - unit <= sum(values) / len(values) <= interval.high + unit
    assert asked >= 150
    assert inside >= ENOUGH * asked, (inside, asked)


def test_least_buffer__grows_with_the_utilization_and_never_falls(stored):
    for words in ({"rate": "100gbit", "rtt": "60ms", "flows": "20000"}, {"rate": "10mbit", "rtt": "2ms", "flows": "4"}):
        for cc in ("cubic", "reno", "bbr"):
            links = [parameters.read(words | {"cc": cc, "util": f"{util}"}).link for util in (0.5, 0.9, 0.99, 0.999)]
            each = [estimates.least(stored, link) for link in links]
            assert all(sorted(ends) == list(ends) for ends in zip(*each, strict=True)), (words, cc, each)
            assert each[0] is not None
            assert each[-1] is not None
            assert each[0].high < each[-1].high, (words, cc)


def test_bounds_measured_on_another_link__narrow_the_interval(stored):
    link = parameters.read({"rate": "10gbit", "rtt": "40ms", "flows": "500"}).link
    before = estimates.least(stored, link)
    after = estimates.least(stored, link, also=[estimates.Least("cubic", 175, 1749.0, 100, 120)])
    assert before
    assert after
    assert after.high / after.low < 0.8 * before.high / before.low


def test_algorithm_with_few_series__has_no_estimate(stored):
    few = [one for one in stored if one.cc != "cubic" or one.flows == 128]
    link = parameters.read({"rate": "10gbit", "rtt": "40ms", "flows": "500"}).link
    assert estimates.least(few, link) is None
    assert estimates.outcome(few, link, 500) == (None,) * 4


def test_kriging__is_exact_at_a_value_and_less_so_with_the_distance():
    places = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 1.0]])
    samples = Samples(places, np.array([0.0, 1.0, 2.0, 2.5]), np.zeros(4))
    measured = kriging.variogram([samples])
    at = [kriging.estimate(samples, measured, np.array(place)) for place in ((1.0, 0.0), (1.5, 0.0), (9.0, 0.0))]
    assert at[0].value == pytest.approx(1, abs=0.05)
    assert at[1].value == pytest.approx(1.5, abs=0.05)
    assert at[0].deviation < at[1].deviation < at[2].deviation
    with pytest.raises(ValueError, match="no samples"):
        kriging.estimate(Samples(np.zeros((0, 2)), np.zeros(0), np.zeros(0)), measured, places[0])
