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

from analysis.arithmetic.by_flow import Groups
from analysis.arithmetic.counted import Counted
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
    frames = [_frame(what, counted.values, counted.counts) for what, counted in _values(a)]
    windows = [of for of in metrics.SUMS.items() if a.windows.has_cwnd or of[0] != "cwnd_packets"]
    frames += [_at_acks(a, what, column) for what, column in windows]
    frames += [_frame(what, values, held_ns) for what, (values, held_ns) in _over_time(a)]
    if a.run.depths is not None:
        frames.append(_frame("queue_depth_packets", *a.run.depths))
    table = pl.concat([pl.DataFrame(schema=SCHEMA), *(frame.select(list(SCHEMA)) for frame in frames)])
    return table.sort("what", "flow", "value")


def _frame(what: str, values: np.ndarray, counts: np.ndarray) -> pl.DataFrame:
    table = pl.DataFrame({"value": values, "count": counts})
    return table.with_columns(what=pl.lit(what), flow=pl.lit(None, pl.Int32))


def _over_time(a: Analysis) -> Iterator[tuple[str, over_time.Held]]:
    if "sojourn_ns" not in a.run.experiment.unknown_columns:
        yield "depth_over_time_packets", over_time.depth(a.queue, a.window)
    yield "aggregate_window_over_time_packets", over_time.aggregate_window(a.windows, a.window)


def _at_acks(a: Analysis, what: str, column: str) -> pl.DataFrame:
    """The counts of a column of the windows at every ACK, with the id of the flow."""
    ids = np.zeros(len(a.run.flows) + 1, dtype=np.int32)
    for entry in a.run.traffic:
        ids[entry.number] = entry.id
    flow, value, count = a.windows.counts_at_acks(column, a.window)
    return pl.DataFrame({"flow": ids[flow], "value": value, "count": count}).with_columns(what=pl.lit(what))


def _values(a: Analysis) -> Iterator[tuple[str, Counted]]:
    spec, window, rtt_ns = a.run.experiment, a.window, a.run.experiment.rtt_ns
    depths = (cards["depth_packets"] for cards in metrics.cards_in(a.queue, window, "depth_packets"))
    yield "queue_depth_packets", Counted.of(depths)
    yield "burst_packets", Counted.of(bursts(a.queue, window, len(a.run.flows) + 1, spec.packet_ns * BURST_GAP))
    yield "flows_losing", Counted.of([flows_losing(a.queue, window, rtt_ns)])
    yield "flows_losing_5ms", Counted.of([flows_losing(a.queue, window, NOTEBOOK_BIN_NS)])
    yield "flows_signalled_per_excursion", Counted.of([signalled(a.queue, window, rtt_ns)])
    utilization = np.rint(metrics.utilization_windows(a.link, window, rtt_ns) * 1e6).astype(np.int64)
    yield "utilization_ppm_10rtt", Counted.of([utilization])


def bursts(queue: Columns, window: metrics.Window, flows: int, gap_ns: float) -> Iterator[np.ndarray]:
    """Sizes in packets of the bursts at the queue: packets of one flow, each at most `gap_ns` after the previous one.
    Flows are numbers below `flows`.

    A lone packet is a burst of one. Packets of other flows in between do not end a burst, because the sender does not
    know about them. Dropped packets count.
    """
    size = np.zeros(flows, dtype=np.int64)  # of each flow's burst that may go on, 0: none
    last_ns = np.zeros(flows, dtype=np.int64)
    for cards in metrics.cards_in(queue, window, "flow", "enqueue_mono_ns"):
        groups = Groups.of(cards["flow"])
        came = cards["enqueue_mono_ns"][groups.rows]
        begins = np.append(True, came[1:] - came[:-1] > gap_ns)
        begins[groups.starts] = (came[groups.starts] - last_ns[groups.flow] > gap_ns) | (size[groups.flow] == 0)
        cut = begins.copy()
        cut[groups.starts] = True
        at = np.flatnonzero(cut)
        sizes, first = np.diff(at, append=len(came)), np.searchsorted(at, groups.starts)
        before, ended = size[groups.flow], begins[groups.starts]
        sizes[first] += np.where(ended, 0, before)
        last = np.append(first[1:], len(at)) - 1  # of each flow: may go on
        size[groups.flow], last_ns[groups.flow] = sizes[last], came[groups.ends - 1]
        yield before[ended & (before > 0)]
        yield np.delete(sizes, last)
    yield size[size > 0]


def signalled(queue: Columns, window: metrics.Window, rtt_ns: int) -> np.ndarray:
    """Number of flows with a dropped or marked packet, in each excursion of the queue to its threshold.

    An excursion ends when no packet has been dropped or marked for longer than a base RTT (`rtt_ns`). A sender learns
    of a drop from packets that left behind a full queue. An excursion therefore lasts about the longest RTT: the base
    RTT plus the delay of a full queue. Excursions do not have a fixed length, because drops after that length would
    count as another excursion. If the queue signals all the time, there is one long excursion.
    """
    counts, flows, last_ns = [], np.empty(0, dtype=np.int64), None
    for cards in metrics.cards_in(queue, window, "flow", "flags", "enqueue_mono_ns"):
        signals = (cards["flags"] & (CARD["POSTCARD_DROPPED"] | CARD["POSTCARD_CE_MARKED"])) != 0
        times, of = cards["enqueue_mono_ns"][signals], cards["flow"][signals]
        ends = np.flatnonzero(np.diff(times, prepend=times[:1] if last_ns is None else last_ns) > rtt_ns)
        for number, part in enumerate(np.split(of, ends)):
            if number:
                counts.append(len(flows))
                flows = flows[:0]
            flows = np.union1d(flows, part)
        last_ns = times[-1] if len(times) else last_ns
    return np.array([*counts, *([len(flows)] if len(flows) else [])], dtype=np.int64)
