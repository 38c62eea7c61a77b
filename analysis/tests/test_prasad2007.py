# SPDX-License-Identifier: MIT
"""Numbers behind the figures of users that fetch and think, from transfers and runs that are made up."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from analysis.papers.prasad2007 import figure_03, figure_08, rows, throughput_figure, transfers
from analysis.statistics import Interval

WIRE_BYTES = 1538


class Run(dict[str, Any]):
    """A stored run's row, its summary and its tables."""

    def __init__(self, row: dict[str, Any], summary: dict[str, Any], **tables: pl.DataFrame) -> None:
        super().__init__(row)
        self.summary, self.tables = summary, tables

    def table(self, name: str) -> pl.DataFrame:
        return self.tables[name]


def of_buffer(buffer: int, loss: float, used: float = 1.0) -> Run:
    """A run at 50 Mb/s and 60 ms with a queue that is 0.4 full."""
    capacity = 50e6 / 8 / WIRE_BYTES
    own_ns = 1e9 / capacity
    row = {
        "buffer_packets": buffer, "rate_bps": 50_000_000, "arrivals": 10**6, "drops": round(loss * 10**6),
        "utilization_mean": used, "measured_s": used * 10**6 * (1 - loss) / capacity,
    }  # fmt: skip
    sojourn_ns = own_ns + 0.4 * min(buffer, 400) * own_ns
    spec = {"wire_bytes": WIRE_BYTES, "paths": [{"rtt_ns": 60_000_000}]}
    return Run(row, {"queue_delay_ns": {"mean": sojourn_ns}, "spec": spec})


BUFFERS = (4, 8, 15, 25, 40, 60, 100, 160, 250, 400, 700, 1200)


def runs_by_loss(loss: Callable[[int], float]) -> list[Any]:
    return [of_buffer(buffer, loss(buffer)) for buffer in BUFFERS]


def test_measured__finds_the_power_law_the_delay_and_its_cutoff() -> None:
    measured = rows.Measured(runs_by_loss(lambda buffer: 0.4 * buffer**-0.5))
    fit = measured.delay_fit
    assert fit is not None
    assert (fit.f, fit.cutoff) == (pytest.approx(0.4, rel=1e-3), 400)
    fits = measured.loss_fits
    assert fits is not None
    assert fits.better.form == "PL"
    assert fits.power_law.b == pytest.approx(0.5, rel=1e-3)
    assert fits.power_law.points == 8  # of 15 to 400 packets
    assert measured.pipe == pytest.approx(50e6 / 8 / WIRE_BYTES * 0.06)


def test_measured__without_loss_has_no_fit() -> None:
    measured = rows.Measured(runs_by_loss(lambda buffer: 0.0))
    assert measured.loss_fits is None
    assert measured.delay_fit is not None


def flows(sizes: list[int], took_s: list[float], **columns: Any) -> pl.DataFrame:
    ended = [int(1e9 * (1 + seconds)) for seconds in took_s]
    return pl.DataFrame(
        {
            "syn_mono_ns": [10**9] * len(sizes), "ended_mono_ns": ended, "size_bytes": sizes, "measured": True,
            "end": "finished", "srtt_us": 50_000, "drops": 1, "packets": 10,
        }
    ).with_columns(**columns)  # fmt: skip


def test_median__is_of_transfers_that_finished_and_began_in_the_window() -> None:
    table = flows(
        [46_000, 47_000, 48_000, 90_000, 49_000], [1, 2, 3, 0.1, 0.1], measured=pl.Series([True] * 4 + [False])
    )
    median = transfers.median_bps([Run({}, {}, flows=table)], transfers.SMALL)  # type: ignore[list-item]
    assert median == Interval(8 * 47_000 / 2, None, None, 1)
    assert transfers.median_bps([Run({}, {}, flows=table)], transfers.LARGE) is None  # type: ignore[list-item]


def test_bins__have_means_and_their_share_of_bytes() -> None:
    table = transfers.finished(Run({}, {}, flows=flows([10_000] * 4 + [10**6] * 3 + [10**8], [1.0] * 8)))  # type: ignore[arg-type]
    small, large = transfers.bins(table)  # a bin of one transfer has no mean worth the name
    assert (small.transfers, large.transfers) == (4, 3)
    assert (small.throughput_bps, small.inverse_rtt, small.loss) == (80_000, 20, pytest.approx(0.1))
    assert large.bytes_share == pytest.approx(3e6 / (4e4 + 3e6 + 1e8))
    assert transfers.slow_start_bps(2 * transfers.PAYLOAD_BYTES, 20) == 8 * 2 * transfers.PAYLOAD_BYTES * 20


def test_best_buffer__has_an_interval_of_buffers_that_are_as_good() -> None:
    points = {10: 1.0, 20: 1.9, 40: 2.0, 80: 1.92, 160: 1.5}
    best = throughput_figure.best({buffer: Interval(value, None, None, 3) for buffer, value in points.items()})
    assert best == Interval(40, 20, 80, 3)
    assert throughput_figure.best({}) is None


def test_share_of_time__counts_whole_windows_above_a_level() -> None:
    """A link of 8 kb/s... a byte a ms: packets of 1000 bytes on the wire fill every second second."""
    full = np.concatenate([second * 10**9 + np.arange(0, 10**9, 10**7) for second in range(0, 10, 2)]).astype(np.int64)
    cards = pl.DataFrame(
        {"egress_port": 2, "flags": 0, "enqueue_mono_ns": full, "sojourn_ns": 1, "packet_bytes": 976},
        schema_overrides={"flags": pl.UInt16, "sojourn_ns": pl.Int64},
    )
    summary = {"bottleneck_port": 2, "measurement_window_mono_ns": [0, 10 * 10**9]}
    row = {"rate_bps": 800_000, "utilization_mean": 0.5}
    result = figure_03.above(Run(row, summary, postcards=cards, flows=flows([5], [1.0])))  # type: ignore[arg-type]
    assert result["shares"][0.9][1.0] == pytest.approx(0.5)
    assert result["shares"][0.95][3.0] == 0
    assert 10.0 not in result["shares"][0.9]


def test_heavy_load__loses_a_little_less_than_exponential_packets() -> None:
    for buffer in (5, 20, 100):
        assert 0.6 / (buffer + 1) < figure_08.exact(buffer, 1e8) < 1 / (buffer + 1)
