# SPDX-License-Identifier: MIT
"""Many flows: distributions in the summary and the page, bands in the figures; few flows get neither."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text

from analysis.figures import bands, queue_and_windows
from analysis.flow_distribution import MANY_FLOWS, PERCENTILES, QUANTITIES, flows_distribution
from analysis.report import FLOW_QUANTITIES, render
from analysis.summary import summarize


def flows(count: int, ccs: tuple[str, ...] = ("reno",)) -> list[dict[str, object]]:
    return [{"cc": ccs[i % len(ccs)], **dict.fromkeys(QUANTITIES), "drops": i} for i in range(count)]


def test_distribution__has_values_of_flows_and_counts_the_known_ones() -> None:
    distribution = flows_distribution(flows(101))
    assert distribution.keys() == {"all"}
    assert distribution["all"]["drops"] == {
        "flows": 101, "mean": 50.0, "min": 0, "p01": 1, "p10": 10, "p25": 25, "p50": 50, "p75": 75, "p90": 90,
        "p99": 99, "max": 100,
    }  # fmt: skip
    assert distribution["all"]["marks"] == {"flows": 0, "mean": None, **dict.fromkeys(PERCENTILES)}
    distribution = flows_distribution(flows(100, ("reno", "cubic")))
    assert [distribution[name]["drops"]["max"] for name in ("all", "reno", "cubic")] == [99, 98, 99]
    assert [quantity for quantity, *_ in FLOW_QUANTITIES] == list(QUANTITIES)  # the page shows every one


def test_bands__take_the_last_value_of_each_flow() -> None:
    series = [(np.array([1.0, 3.0]), np.array([10, 30])), (np.array([2.0]), np.array([5])), (np.empty(0), np.empty(0))]
    values = bands.at_times(series, np.array([0.0, 1.0, 2.5, 3.0]))
    assert np.array_equal(values[0], [np.nan, 10, 10, 30], equal_nan=True)
    assert np.array_equal(values[1], [np.nan, np.nan, 5, 5], equal_nan=True)
    assert np.isnan(values[2]).all()
    over = bands.over_flows(values)
    assert np.isnan(over[:, 0]).all()
    assert over[bands.MEDIAN, 1:].tolist() == [10, 7.5, 17.5]


def test_bands__are_percentiles_over_the_flows_of_each_algorithm() -> None:
    ccs = ("reno", "cubic", "bbr")
    names = [ccs[i % len(ccs)] for i in range(3 * MANY_FLOWS)]
    values = np.arange(3.0 * MANY_FLOWS)[:, None] * [1, 2]
    distribution = bands.by_algorithm(names, values)
    assert tuple(distribution) == ccs
    for kind, of in distribution.items():
        assert np.allclose(of, np.percentile(values[np.array(names) == kind], bands.PERCENTILES, axis=0))


def test_many_flows__have_distributions_and_bands(known_runs: Callable[[str], Any]) -> None:
    analysis = known_runs("many_flows").analysis
    summary = summarize(analysis)
    assert len(summary["flows"]) == 128
    of = summary["flows_distribution"]["all"]["goodput_bps"]
    assert of["flows"] * of["mean"] == pytest.approx(summary["goodput_bps"])
    known = {name: group["drops"]["flows"] for name, group in summary["flows_distribution"].items()}
    assert known == {"all": 128, "cubic": 64, "bbr": 64}
    texts = queue_and_windows.draw(queue_and_windows.prepare(analysis)).findobj(Text)
    assert any("median flow; half and 80 % of flows" in text.get_text() for text in texts)
    page = render(summary, {}, None)
    assert all(words in page for words in ("all flows", "cubic flows", "bbr flows"))
