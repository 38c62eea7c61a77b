# SPDX-License-Identifier: MIT
"""distributions.parquet: how often each value occurred in the measurement window. Figures of many runs are drawn from
these tables, which are small enough to keep for every run; the packets need not be kept.

A long table: `what`, `flow` (the experiment's flow id; null if the value belongs to no single flow), `value`, `count`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analysis.measure import metrics, over_time
from analysis.measure.loss import flows_losing
from analysis.read.raw import Columns
from wire import wire

if TYPE_CHECKING:
    from analysis.judge.analyse import Analysis

NAME = "distributions.parquet"
SCHEMA = {"what": pl.String, "flow": pl.Int32, "value": pl.Int64, "count": pl.Int64}
CARD = wire.POSTCARD.const

# Largest gap within a burst, in transmission times of a full packet: full packets of a burst arrive at twice the
# link's rate or faster.
BURST_GAP = 0.5
NOTEBOOK_BIN_NS = 5_000_000  # Spang et al. 2021, artifact: "Figure 10 - number flows with losses per rtt"


def distributions(a: Analysis) -> pl.DataFrame:
    """The table, sorted by `what`, `flow` and `value`. A quantity that could not be measured has no rows.

    * `queue_depth_packets`: depth at arrivals, dropped packets included; of an imported run that has only a depth
      histogram, this histogram of the whole run;
    * `in_flight_packets`, `cwnd_packets`: packets in flight and congestion window of each flow at every ACK;
    * `burst_packets`: see `bursts`;
    * `flows_losing`: the window is cut into bins of one base RTT; the value is the number of flows with a drop in a
      bin; bins without a drop are left out (Spang et al., 5.6);
    * `flows_losing_5ms`: the same with bins of 5 ms, as in the paper's own notebook;
    * `flows_signalled_per_excursion`: see `signalled`;
    * `utilization_ppm_10rtt`: utilization of sliding windows of 10 base RTTs, one every RTT, in millionths;
    * `depth_over_time_packets`, `aggregate_window_over_time_packets`: `count` is the ns at each value (over_time.py).
    """
    frames = [
        _counted(pl.DataFrame({"value": values.astype(np.int64)}).with_columns(flow=pl.lit(None, pl.Int32)), what)
        for what, values in _values(a)
    ]
    windows = _windows(a)
    for what in ("in_flight_packets", "cwnd_packets"):
        frames.append(_counted(windows.select("flow", value=what), what))
    frames += [
        pl.DataFrame({"value": values, "count": held_ns}).with_columns(what=pl.lit(what), flow=pl.lit(None, pl.Int32))
        for what, (values, held_ns) in _over_time(a)
    ]
    if a.run.depths is not None:
        values, counts = a.run.depths
        histogram = pl.DataFrame({"value": values, "count": counts})
        frames.append(histogram.with_columns(what=pl.lit("queue_depth_packets"), flow=pl.lit(None, pl.Int32)))
    table = pl.concat([pl.DataFrame(schema=SCHEMA), *(frame.select(list(SCHEMA)) for frame in frames)])
    return table.sort("what", "flow", "value")


def _over_time(a: Analysis) -> Iterator[tuple[str, over_time.Held]]:
    if "sojourn_ns" not in a.run.experiment.unknown_columns:
        yield "depth_over_time_packets", over_time.depth(a.queue, a.window)
    yield "aggregate_window_over_time_packets", over_time.aggregate_window(a.windows, a.window)


def _counted(values: pl.DataFrame, what: str) -> pl.DataFrame:
    """The count of each value of each flow."""
    return values.group_by("flow", "value").agg(count=pl.len().cast(pl.Int64)).with_columns(what=pl.lit(what))


def _windows(a: Analysis) -> pl.DataFrame:
    """Packets in flight and congestion window at every ACK, with the id of its flow."""
    rows = metrics.rows_at_acks(a.run, a.trace, a.window)
    ids = np.zeros(len(rows), dtype=np.int32)
    for entry in a.run.traffic:
        if entry.number >= 0:
            ids[entry.number] = entry.id
    return pl.DataFrame(
        {
            "flow": ids[rows.flow()],
            "in_flight_packets": a.trace.in_flight[rows.rows].astype(np.int64),
            "cwnd_packets": a.run.tcp["cwnd_packets"][rows.rows].astype(np.int64),
        }
    )


def _values(a: Analysis) -> Iterator[tuple[str, np.ndarray]]:
    spec, window, rtt_ns = a.run.experiment, a.window, a.run.experiment.rtt_ns
    rows = metrics.arrivals_in(a.queue, window.start_ns, window.end_ns)
    yield "queue_depth_packets", a.queue["depth_packets"][rows]
    yield "burst_packets", bursts(a.queue, window, spec.packet_ns * BURST_GAP)
    yield "flows_losing", flows_losing(a.queue, window, rtt_ns)
    yield "flows_losing_5ms", flows_losing(a.queue, window, NOTEBOOK_BIN_NS)
    yield "flows_signalled_per_excursion", signalled(a.queue, window, rtt_ns)
    yield "utilization_ppm_10rtt", np.rint(metrics.utilization_windows(a.link, window, rtt_ns) * 1e6)


def bursts(queue: Columns, window: metrics.Window, gap_ns: float) -> np.ndarray:
    """Sizes in packets of the bursts at the queue: packets of one flow, each at most `gap_ns` after the previous one.

    A lone packet is a burst of one. Packets of other flows in between do not end a burst, because the sender does not
    know about them. Dropped packets count.
    """
    rows = metrics.arrivals_in(queue, window.start_ns, window.end_ns)
    flow, came = queue["flow"][rows], queue["enqueue_mono_ns"][rows]
    order = np.argsort(flow, kind="stable")
    flow, came = flow[order], came[order]
    begins = np.ones(len(flow), dtype=bool)
    begins[1:] = (flow[1:] != flow[:-1]) | (came[1:] - came[:-1] > gap_ns)
    return np.diff(np.flatnonzero(begins), append=len(flow))


def signalled(queue: Columns, window: metrics.Window, rtt_ns: int) -> np.ndarray:
    """Number of flows with a dropped or marked packet, in each excursion of the queue to its threshold.

    An excursion ends when no packet has been dropped or marked for longer than a base RTT (`rtt_ns`). A sender learns
    of a drop from packets that left behind a full queue. An excursion therefore lasts about the longest RTT: the base
    RTT plus the delay of a full queue. Excursions do not have a fixed length, because drops after that length would
    count as another excursion. If the queue signals all the time, there is one long excursion.
    """
    rows = metrics.arrivals_in(queue, window.start_ns, window.end_ns)
    signals = (queue["flags"][rows] & (CARD["POSTCARD_DROPPED"] | CARD["POSTCARD_CE_MARKED"])) != 0
    times, flow = queue["enqueue_mono_ns"][rows][signals], queue["flow"][rows][signals]
    ends = np.flatnonzero(np.diff(times) > rtt_ns) + 1
    excursions = np.split(flow, ends) if len(flow) else []
    return np.array([len(np.unique(flows)) for flows in excursions], dtype=np.int64)
