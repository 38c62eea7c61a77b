# SPDX-License-Identifier: MIT
"""Many flows: distributions in the summary and the page, bands in the figures."""

from collections.abc import Callable
from typing import Any

import pytest
from matplotlib.text import Text

from analysis.figures import queue_and_windows
from analysis.measure.flow_distribution import PERCENTILES, flows_distribution
from analysis.read.documents import Environment
from analysis.report.run_report import render
from analysis.results.summary import summarize
from runs.quantities import FLOWS


def flows(count: int, ccs: tuple[str, ...] = ("reno",)) -> list[dict[str, object]]:
    return [{"cc": ccs[i % len(ccs)], **dict.fromkeys(FLOWS), "drops": i} for i in range(count)]


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
    page = render(summary, Environment(), None)
    assert all(words in page for words in ("all flows", "cubic flows", "bbr flows"))
