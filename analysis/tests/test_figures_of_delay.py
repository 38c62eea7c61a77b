# SPDX-License-Identifier: MIT
"""The figures of delay and throughput show the run's own numbers; depths are in the user's unit."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from analysis.figures import (
    common,
    queue_depth_distribution,
    queueing_delay,
    throughput,
)
from analysis.judge.analyse import analyse
from analysis.results.summary import summarize
from analysis.tests import simulate
from model.experiment import Experiment


@pytest.fixture(scope="module")
def analysed(tmp_path_factory):
    directory = tmp_path_factory.mktemp("delay") / "rep-1"
    simulate.write_run(directory, simulate.Scenario(flows=3, ccs=("cubic", "reno")))
    return analyse(directory)


def test_delay_and_throughput__have_the_numbers_of_the_summary(analysed):
    summary = summarize(analysed)
    data = queueing_delay.prepare(analysed)
    assert list(data["named"] * 1e6) == pytest.approx([summary["queue_delay_ns"][key] for key in ("p50", "p99")])
    assert (np.diff(data["delays"]) >= 0).all()
    assert data["full_ms"] == pytest.approx(20 * 1538 * 8 / 50e6 * 1e3, rel=0.02)
    data = throughput.prepare(analysed)
    assert data["kinds"] == ["cubic", "reno"]
    each = np.concatenate(list(data["flows"].values()))
    assert each.sum() * 1e6 == pytest.approx(summary["goodput_bps"])
    start = int(data["facts"]["warmup_s"] / data["step_s"]) + 1
    assert data["mbps"][:, start:-1].sum(axis=0).mean() * 1e6 == pytest.approx(summary["goodput_bps"], rel=0.05)


def test_depths__of_one_damaged_postcard_take_little_memory(analysed):
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
