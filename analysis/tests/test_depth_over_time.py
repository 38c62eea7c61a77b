# SPDX-License-Identifier: MIT
"""The mean depth over time in parts of the window, and the runs of short flows that theory can predict."""

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.measure.depth_over_time import of_slow_start, time_mean
from analysis.measure.metrics import CARD, NO_DATA_BYTES, Window
from analysis.theory import short_flows
from model.experiment import Experiment
from model.groups import Finite, Long

SECOND_NS = 10**9
MSS = np.array([0, 1448], dtype=np.uint32)


def queue(came, sojourn, dropped=None, packet_bytes=1514):
    flags = np.zeros(len(came), dtype=np.uint8)
    if dropped is not None:
        flags[dropped] = CARD["POSTCARD_DROPPED"] | CARD["POSTCARD_AT_INGRESS"]
    return {
        "enqueue_mono_ns": np.asarray(came, dtype=np.int64), "sojourn_ns": np.asarray(sojourn, dtype=np.uint32),
        "flags": flags, "packet_bytes": np.full(len(came), packet_bytes, dtype=np.uint16),
    }  # fmt: skip


def test_time_mean__is_a_packet_by_packet_sum_with_the_error_of_the_parts():
    rng = np.random.default_rng(1)
    start = 5 * SECOND_NS
    came = np.sort(rng.integers(start - SECOND_NS, start + 3 * SECOND_NS, 20_000))
    sojourn = rng.integers(0, SECOND_NS // 3, 20_000)
    dropped = rng.integers(0, 20_000, 500)
    window = Window(0, start, start + 2 * SECOND_NS, 0)
    kept = np.ones(20_000, dtype=bool)
    kept[dropped] = False
    edges = start + np.arange(21) * (SECOND_NS // 10)
    left = came + sojourn
    parts = [
        np.clip(np.minimum(left, high) - np.maximum(came, low), 0, None)[kept].sum() / (high - low)
        for low, high in itertools.pairwise(edges)
    ]
    measured = time_mean(queue(came, sojourn, dropped), window)
    assert measured["measured"] == pytest.approx(np.mean(parts), rel=1e-12)
    assert measured["standard_error"] == pytest.approx(np.std(parts, ddof=1) / np.sqrt(20), rel=1e-9)
    half = np.arange(20_000) % 2 == 0
    shares = [time_mean(queue(came, sojourn, dropped), window, mask)["measured"] for mask in (half, ~half)]
    assert sum(share or 0 for share in shares) == pytest.approx(measured["measured"], rel=1e-12)


def test_time_mean__of_an_empty_window_is_unknown():
    assert time_mean(queue([], []), Window(0, 5, 5, 0)) == {"measured": None, "standard_error": None}
    assert time_mean(queue([], []), Window(0, 5, 5000, 0)) == {"measured": 0, "standard_error": 0}


def run(group: dict[str, Any], more: tuple[Long, ...] = (), **settings: Any) -> Any:
    sizes = {"name": "fixed", "value": 14 * 1448.0}
    whole: dict[str, Any] = {"kind": "finite", "load": 0.8, "arrivals": "poisson", "sizes": sizes} | group
    groups = (*more, Finite.model_construct(**whole))
    return SimpleNamespace(experiment=Experiment.model_construct(rtt_ns=1, groups=groups, **settings))


def slow_start(group=None, mss=MSS, packet_bytes=1514, **more):
    came = np.arange(0, SECOND_NS, 1000)
    packets = queue(came, np.full(len(came), 3000), packet_bytes=packet_bytes)
    return of_slow_start(run(group or {}, **more), packets, Window(0, 0, SECOND_NS, 0), mss)


def test_slow_start__has_the_bursts_of_the_initial_window():
    measured = slow_start(tcp={"initcwnd": 2})
    assert measured["bursts_packets"] == [2, 4, 8]
    depth = measured["time_mean_depth_data_packets"]
    assert depth["theory"] == short_flows.mean_depth(0.8, (2, 4, 8))
    assert depth["measured"] == pytest.approx(3, rel=1e-4)
    assert measured["measured_over_theory"] == depth["measured"] / depth["theory"]
    assert slow_start()["bursts_packets"] == [10, 4]  # Linux's initial window
    assert slow_start(packet_bytes=NO_DATA_BYTES)["time_mean_depth_data_packets"]["measured"] == 0


def test_slow_start__without_the_theorys_conditions_is_none():
    for group in (
        {"arrivals": "cbr"}, {"load": 1.1}, {"load": None}, {"sizes": {"name": "pareto", "mean": 1e4, "shape": 1.5}},
        {"sizes": {"name": "fixed", "value": 14 * 1448.0 + 1}},
    ):  # fmt: skip
        assert slow_start(group) is None, group
    assert slow_start(more=(Long(cc="reno", flows=1),)) is None
    assert slow_start(mss=np.array([], dtype=np.uint32)) is None
    assert slow_start(mss=np.array([0], dtype=np.uint32)) is None
