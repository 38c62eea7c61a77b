# SPDX-License-Identifier: MIT
"""Many flows: distributions in the summary and the page, and the numbers that figures of them show."""

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text

from analysis.figures import (
    common,
    queue_and_windows,
    queue_depth_distribution,
    queueing_delay,
    throughput,
)
from analysis.measure.flow_distribution import PERCENTILES, flows_distribution
from analysis.read.documents import Environment
from analysis.report.run_report import render
from analysis.results.summary import summarize
from model.experiment import Experiment
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


# Delay and throughput -------------------------------------------------------------------------------------------------


def test_delay_and_throughput__have_the_numbers_of_the_summary(known_runs):
    analysed = known_runs("many_flows").analysis
    summary = summarize(analysed)
    data = queueing_delay.prepare(analysed)
    assert list(data["named"] * 1e6) == pytest.approx([summary["queue_delay_ns"][key] for key in ("p50", "p99")])
    assert (np.diff(data["delays"]) >= 0).all()
    assert data["full_ms"] == pytest.approx(120 * 1538 * 8 / 100e6 * 1e3, rel=0.02)
    data = throughput.prepare(analysed)
    assert data["kinds"] == ["cubic", "bbr"]
    each = np.concatenate(list(data["flows"].values()))
    assert each.sum() * 1e6 == pytest.approx(summary["goodput_bps"])
    start = int(data["facts"]["warmup_s"] / data["step_s"]) + 1
    assert data["mbps"][:, start:-1].sum(axis=0).mean() * 1e6 == pytest.approx(summary["goodput_bps"], rel=0.05)


def test_depths__of_one_damaged_postcard_take_little_memory(known_runs):
    analysed = known_runs("two_flows").analysis
    depth = analysed.queue["depth_packets"].copy()
    depth[len(depth) // 2] = 1 << 28
    tracemalloc.start()
    data = queue_depth_distribution.prepare(replace(analysed, queue=analysed.queue | {"depth_packets": depth}))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 1 << 24
    assert data["counts"].sum() == data["packets"]


def test_unit__is_that_of_the_buffer():
    spec = Experiment.model_construct(rtt_ns=1, bdp_packets=41, mtu_bytes=1500, wire_bytes=1538, rate_bps=50_000_000)
    for given, name, packets in (
        ("1bdp", "BDP", 41), ("20p", "packets", 1), ("30kB", "kB", 1000 / 1514), (None, "packets", 1),
        ("5ms", "ms", 50e6 * 5e-3 / 5 / 12304),
    ):  # fmt: skip
        unit = common.unit_of(spec.model_copy(update={"buffer_given": given}))
        assert (unit.name, unit.packets) == (name, pytest.approx(packets))
