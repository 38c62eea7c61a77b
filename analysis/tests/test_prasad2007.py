# SPDX-License-Identifier: MIT
"""Measures behind the figures of Prasad et al. (users who alternately fetch and think) and of Enachescu et al. (very
small buffers), of synthetic runs and arrivals.
"""

import functools
import json
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from pydantic import TypeAdapter

from analysis.arithmetic.statistics import Interval
from analysis.papers.enachescu2006 import gaps, overpopulated
from analysis.papers.prasad2007 import best_buffer, sizes, topology, transfers, windows
from model.experiment import Experiment
from model.groups import Finite


class Run(dict[str, Any]):
    """A stored run's row, its summary and its tables."""

    def __init__(self, row: dict[str, Any], summary: dict[str, Any], **tables: pl.DataFrame) -> None:
        super().__init__(row)
        self.summary, self.tables = summary, tables
        self.experiment = summary.get("experiment")

    def value(self, *path: str) -> Any:
        return functools.reduce(operator.getitem, path, self.summary)

    def table(self, name: str) -> pl.DataFrame:
        return self.tables[name]

    def measure(self, _: str, kind: Any, compute: Callable[[Any], Any]) -> Any:
        return TypeAdapter(kind).validate_python(json.loads(json.dumps(compute(self))))


def flows(sizes: list[int], took_s: list[float], **columns: Any) -> pl.DataFrame:
    ended = [int(1e9 * (1 + seconds)) for seconds in took_s]
    return pl.DataFrame(
        {
            "syn_mono_ns": [10**9] * len(sizes), "ended_mono_ns": ended, "size_bytes": sizes, "measured": True,
            "end": "finished", "srtt_us": 50_000, "acked_bytes": sizes,
        }
    ).with_columns(**columns)  # fmt: skip


WINDOW = {"measurement_window_mono_ns": [10**9, 11 * 10**9]}


def test_median__is_of_transfers_that_began_in_time_ended_or_not() -> None:
    ends = pl.Series(["finished"] * 3 + ["unfinished", "finished"])
    began = pl.Series([True] * 4 + [False])
    table = flows([46_000, 47_000, 48_000, 49_000, 49_000], [1, 2, 3, 99, 0.1], measured=began, end=ends)
    run: Any = Run({}, WINDOW, flows=table.with_columns(acked_bytes=pl.col("size_bytes") - 9_000))
    rates = sorted([8 * 46_000 / 1, 8 * 47_000 / 2, 8 * 48_000 / 3, 8 * 40_000 / 10])  # unfinished: 40 kB in the window
    assert transfers.median_bps([run], transfers.SMALL) == Interval((rates[1] + rates[2]) / 2, None, None, 1)
    mean = transfers.mean_bps("small", [run], lambda table: transfers.of_sizes(table, transfers.SMALL))
    assert mean == Interval(pytest.approx(np.mean(rates)), None, None, 1)  # type: ignore[arg-type]
    assert transfers.median_bps([run], transfers.LARGE) is None


def test_classes__are_by_congestion_events_and_by_size() -> None:
    size = 30 * transfers.PAYLOAD_BYTES
    table = flows([size, size, size, 2_000_000], [1.0, 2.0, 4.0, 8.0])
    run: Any = Run({}, WINDOW, flows=table.with_columns(congestion_events=pl.Series([0, 4, 5, 9])))
    by_events, by_size = best_buffer.means({10: [run]})
    assert by_events["S"][10].value == pytest.approx(8 * size * (1 + 1 / 2) / 2)
    assert by_events["L"][10].value == pytest.approx((8 * size / 4 + 8 * 2_000_000 / 8) / 2)
    assert by_size["S"][10].value == pytest.approx(8 * size * (1 + 1 / 2 + 1 / 4) / 3)
    assert by_size["L"][10].value == pytest.approx(2_000_000)


def test_bins__have_means_and_models_of_each_transfer() -> None:
    run: Any = Run({}, WINDOW, flows=flows([10_000] * 4 + [10**6] * 3 + [10**8], [1.0] * 8))
    table = transfers.early(run)
    small, large = transfers.bins(table, 0.01)  # bins of a single transfer are left out
    assert (small.transfers, large.transfers) == (4, 3)
    assert small.throughput_bps == 80_000
    assert large.bytes_share == pytest.approx(3e6 / (4e4 + 3e6 + 1e8))
    assert small.slow_start_bps == pytest.approx(8 * 10_000 / (0.05 * 3))  # 7 segments: D = 3
    assert small.small_bps == pytest.approx(8 * 10_000 / (0.05 * (3 + 0.07)))
    assert large.large_bps == pytest.approx(8 * 1.22 * 1448 / (0.05 * 0.1))
    assert small.fitted_bps == small.small_bps  # without a fitted v, v is 1
    assert transfers.bins(table, 0.01, v=3.0)[0].fitted_bps == pytest.approx(8 * 10_000 / (0.05 * (3 + 0.21)))
    assert transfers.bins(table, 0.0)[0].large_bps is None
    assert transfers.fitted_v(table, 0.01) == pytest.approx((4 * (20 - 3)) / (0.01 * 28))
    run |= {"arrivals": 1000, "drops": 10}
    run.tables["flows"] = run.tables["flows"].with_columns(timeouts=pl.lit(2))
    measured = run.measure("sizes", sizes.BySize, sizes.by_size)
    assert measured.bins == transfers.bins(table, 0.01, measured.v)
    assert (measured.loss, measured.timeouts, measured.flows) == (0.01, 2 * len(table), len(table))


def test_share_of_time__counts_whole_windows_above_a_level() -> None:
    """Packets of 1,000 bytes on the wire, one every 10 ms, fill a link of 800 kb/s during every other second."""
    full = np.concatenate([second * 10**9 + np.arange(0, 10**9, 10**7) for second in range(0, 10, 2)]).astype(np.int64)
    cards = pl.DataFrame(
        {"egress_port": 2, "flags": 0, "enqueue_mono_ns": full, "sojourn_ns": 1, "packet_bytes": 976},
        schema_overrides={"flags": pl.UInt16, "sojourn_ns": pl.Int64},
    )
    summary = {"bottleneck_port": 2, "measurement_window_mono_ns": [0, 10 * 10**9]}
    row = {"rate_bps": 800_000, "utilization_mean": 0.5}
    run = Run(row, summary, postcards=cards, flows=flows([5], [1.0]))
    result = run.measure("windows", windows.Above, windows.above)
    assert result.shares["0.9"]["1"] == pytest.approx(0.5)
    assert result.shares["0.95"]["3"] == 0
    assert result.deviation["1"] == pytest.approx(0.527, abs=0.001)  # five windows of 0, five of 1
    assert "10" not in result.shares["0.9"]


def test_topology__gaps_and_handshakes_are_those_of_each_link_and_rtt() -> None:
    """Two links of 8 Mb/s: a packet of 1,000 bytes on the wire takes 1 ms there. Flows 1 and 3 share link 2."""
    cards = pl.DataFrame(
        {
            "egress_port": 2, "flow": [1, 2, 3, 1, 3], "packet_bytes": 976,
            "enqueue_mono_ns": [1_000_000, 1_200_000, 2_000_000, 3_500_000, 4_499_990],
        },
        schema_overrides={"enqueue_mono_ns": pl.UInt64},
    )  # fmt: skip
    table = pl.DataFrame(
        {
            "flow": [1, 2, 3], "path": [1, 0, 3], "base_rtt_ns": [40_000_000, 20_000_000, 40_000_000],
            "syn_mono_ns": [0, 0, 10], "connected_mono_ns": [42_000_000, 20_100_000, 40_400_010],
        }
    )  # fmt: skip
    group = Finite.model_construct(number=0, rtt_ns=1, servers=4, access_links=2, access_bps=8_000_000)
    summary = {"bottleneck_port": 2, "experiment": Experiment.model_construct(rtt_ns=1, groups=(group,))}
    run: Any = Run({}, summary, postcards=cards, flows=table)
    gaps = run.measure("gaps", topology.Gaps, topology.gaps)
    assert (gaps.number, gaps.links, gaps.least_ns) == (3, 2, -10)  # the last is 10 ns too close
    assert gaps.back_to_back == pytest.approx(2 / 3)
    excess = run.measure("handshakes", list[tuple[int, float]], topology.handshake_excess)
    assert excess == [(20_000_000, pytest.approx(0.005)), (40_000_000, pytest.approx(0.01))]


# Enachescu et al. -----------------------------------------------------------------------------------------------------


PACKET_NS = 80_000.0


def test_dispersion__of_poisson_arrivals_is_one_of_even_ones_none_and_of_bursts_their_size() -> None:
    rng = np.random.default_rng(3)
    arrivals = np.cumsum(rng.exponential(2 * PACKET_NS, 400_000)).astype(np.int64)
    index = gaps.dispersion(arrivals, 0, int(arrivals[-1]), PACKET_NS)
    assert index[-1][0] > 1000
    assert all(value == pytest.approx(1, abs=0.05 if length < 50 else 0.35) for length, value in index)
    even = np.arange(0, 10**11, 10 * int(PACKET_NS))
    assert all(value < 0.1 for length, value in gaps.dispersion(even, 0, 10**11, PACKET_NS) if length % 10 == 0)
    bursts = np.repeat(np.cumsum(rng.exponential(20 * PACKET_NS, 50_000)), 7).astype(np.int64)
    assert dict(gaps.dispersion(bursts, 0, int(bursts[-1]), PACKET_NS))[100] == pytest.approx(7, rel=0.15)


def test_overpopulated__intervals_hold_more_than_their_slots_and_the_buffer() -> None:
    bursts = (np.arange(500)[:, None] * 100_000 + np.arange(10) * 100).ravel()  # ten packets in one slot of 1000 ns
    shares = overpopulated.shares(bursts, 1000.0, 5)
    assert shares[2] == pytest.approx(0.3, abs=0.01)  # the last 3 of 10 packets have at least 2 + 5 before them
    assert shares[5] == 0  # no packet has 5 + 5 before it
    even = overpopulated.shares(np.arange(5000) * 1000, 1000.0, 1)
    assert set(even.values()) == {0.0}
