# SPDX-License-Identifier: MIT
"""One run packet by packet: its queue, its flows' windows, its losses. For figures over time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from analysis.figures.steps import queue_steps, value_steps
from analysis.join.in_flight import PACKETS_OUT
from analysis.measure.loss import AFTERMATH_RTTS
from analysis.papers.paper_runs import PaperRun
from analysis.read.columns import Columns, filed
from analysis.theory.single_flow import bdp_packets
from controlplane.policy import EGRESS_MODES
from wire import wire

CARD = wire.POSTCARD.const
EVENT = wire.TCP_RECORD.const
REFUSED = CARD["POSTCARD_DROPPED"] | CARD["POSTCARD_AT_INGRESS"]


class AnsweredLoss(NamedTuple):
    """One loss of one flow: its window at the drop and after recovery, least window and depth (packets); times (ns)
    from the drop to the retransmission, from then until the window has halved, and the longest gap between arrivals
    meanwhile.
    """

    drop_ns: int
    before: int
    least: int
    queue: int
    settled: int
    known_ns: int
    halved_ns: int
    silent_ns: int


def latest(at: np.ndarray, times: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The latest value at each time of `at`."""
    return values[np.maximum(np.searchsorted(times, at, side="right") - 1, 0)]


class PacketTrace:
    """Times are ns on the run's clock. `queue` reads postcards.parquet. `records` reads tcp.parquet, and joined.parquet
    if the trace has records without a count of packets in flight. Both raise InputError.
    """

    def __init__(self, run: PaperRun) -> None:
        self.run = run
        spec = run.experiment
        self.start_ns, self.end_ns = run.value("measurement_window_mono_ns")
        self.traffic_ns = run.value("traffic_start_mono_ns")
        self.rtt_ns, self.buffer = spec.rtt_ns, spec.buffer_packets
        self.longest_rtt_ns = run.value("loss", "longest_rtt_ns")
        # Time from a drop until the sender knows. After a drop on arrival the full queue leaves before the flow's next
        # packets do. A packet that is dropped at departure has already waited in the queue.
        self.news_ns = self.rtt_ns if spec.mode in EGRESS_MODES else self.longest_rtt_ns
        self.bdp = bdp_packets(spec.rate_bps, spec.rtt_ns, spec.wire_bytes)
        self.packet_ns = spec.packet_ns
        self.counts_packets = run.value("in_flight_from") == PACKETS_OUT  # else windows are from sequence numbers

    @cached_property
    def flows(self) -> list[dict[str, Any]]:
        """The flows of the summary; a published run has none."""
        flows: list[dict[str, Any]] = self.run.summary["flows"]
        return flows

    @cached_property
    def queue(self) -> Columns:
        """Postcards of the bottleneck, by arrival. `sojourn_ns` is -1 where a postcard does not have it."""
        names, port = ("enqueue_mono_ns", "sojourn_ns", "depth_packets", "flags"), self.run.summary["bottleneck_port"]

        def of_port(cards: pl.DataFrame) -> Columns:
            cards = cards.filter(pl.col("egress_port") == port)
            return {name: cards[name].fill_null(-1).to_numpy() for name in names} | {"flow": self._ids(cards)}

        return self._spilled("postcards", of_port, *names, "egress_port", "five_tuple")

    @cached_property
    def records(self) -> Columns:
        """The trace's records, by time. `in_flight_packets` is -1 in records without a window."""

        def with_window(records: pl.DataFrame) -> Columns:
            if records["in_flight_packets"].null_count():
                records = records.with_columns(in_flight_packets=self._outstanding(records))
            packets = records["in_flight_packets"].to_numpy().astype(np.int64)
            columns = {name: records[name].to_numpy() for name in ("mono_ns", "event")}
            return columns | {"in_flight_packets": packets, "flow": self._ids(records)}

        windows = ("in_flight_packets", "snd_nxt", "snd_una", "mss_bytes", "flow")
        return self._spilled("tcp", with_window, "mono_ns", "event", "five_tuple", *windows)

    def _spilled(self, table: str, columns_of: Callable[[pl.DataFrame], Columns], *names: str) -> Columns:
        """Columns, in a file, that are made of these columns of a table, slab by slab."""
        return filed(self.run.directory, map(columns_of, self.run.slabs(table, *names)))

    @cached_property
    def _largest(self) -> pl.DataFrame:
        """The largest payload of each flow."""
        parts = (slab.group_by("flow").max() for slab in self.run.slabs("joined", "flow", "payload_bytes"))
        return pl.concat(parts).group_by("flow").agg(largest=pl.col("payload_bytes").max())

    def _outstanding(self, records: pl.DataFrame) -> pl.Series:
        """Packets in flight: the trace's count, else (snd_nxt - snd_una) / mss rounded up, as in the summary
        (analysis/join/in_flight.py). mss is the record's mss, else the flow's largest payload. -1: not known.
        """
        mss = pl.coalesce("mss_bytes", "largest").cast(pl.Int64).clip(1)
        outstanding = (pl.col("snd_nxt").cast(pl.Int64) - pl.col("snd_una").cast(pl.Int64)) % (1 << 32)
        rows = records.join(self._largest, on="flow", how="left", maintain_order="left")
        packets = pl.coalesce("in_flight_packets", (outstanding + mss - 1) // mss, -1).alias("packets")
        return rows.select(packets)["packets"].cast(pl.Int64)

    def _ids(self, table: pl.DataFrame) -> np.ndarray:
        """The experiment's id of each row's flow; -1 for flows outside the experiment."""
        ids = {flow["five_tuple"]: flow["id"] for flow in self.flows}
        return table["five_tuple"].cast(pl.String).replace_strict(ids, default=-1, return_dtype=pl.Int32).to_numpy()

    def arrivals(self, start_ns: int, end_ns: int) -> slice:
        """Rows of `queue` that arrived in [start, end)."""
        first, last = np.searchsorted(self.queue["enqueue_mono_ns"], (start_ns, end_ns))
        return slice(int(first), int(last))

    def queue_steps(self, start_ns: int, end_ns: int) -> np.ndarray:
        """The queue's length in [start, end]: 2 x steps, ns and packets."""
        rows = self.arrivals(start_ns - 3 * self.longest_rtt_ns, end_ns)
        came, sojourn, depth, flags = (
            self.queue[name][rows] for name in ("enqueue_mono_ns", "sojourn_ns", "depth_packets", "flags")
        )
        if (sojourn < 0).any():  # imported postcards have only the departure time and the depth at departure
            return value_steps(came, depth, start_ns, end_ns)
        return queue_steps(came, came + sojourn, depth, (flags & REFUSED) == REFUSED, start_ns, end_ns)

    def drops(self, start_ns: int, end_ns: int) -> tuple[np.ndarray, ...]:
        """(times, flows, depths on arrival) of packets that were dropped in [start, end). The time of a drop at
        departure is the packet's departure, of any other drop its arrival.
        """
        rows = self.arrivals(start_ns - 3 * self.longest_rtt_ns, end_ns)
        at = rows.start + np.flatnonzero(self.queue["flags"][rows] & CARD["POSTCARD_DROPPED"])
        came, sojourn = self.queue["enqueue_mono_ns"][at], self.queue["sojourn_ns"][at]
        at_departure = (self.queue["flags"][at] & REFUSED) == CARD["POSTCARD_DROPPED"]
        times = came + np.where(at_departure & (sojourn > 0), sojourn, 0)
        inside = (times >= start_ns) & (times < end_ns)
        return times[inside], self.queue["flow"][at][inside], self.queue["depth_packets"][at][inside]

    def losses(self) -> list[tuple[int, list[int], int]]:
        """(first drop, flows that lost, end) of each loss. Drops less than an aftermath (AFTERMATH_RTTS longest RTTs)
        apart are one loss. A loss ends one aftermath after its first drop. A loss that does not end in the measurement
        window is left out. Of a loss that began before the window, the drops in the window count as a loss.
        """
        aftermath_ns = AFTERMATH_RTTS * self.longest_rtt_ns
        times, flows, _ = self.drops(self.start_ns, self.end_ns)
        first = np.flatnonzero(np.diff(times, prepend=self.start_ns - aftermath_ns) >= aftermath_ns)
        losses = []
        for rows in np.split(np.arange(len(times)), first)[1:]:
            start = int(times[rows[0]])
            if start + aftermath_ns <= self.end_ns:
                losses.append((start, sorted(set(flows[rows].tolist()) - {-1}), start + aftermath_ns))
        return losses

    def window(self, flow: int) -> tuple[np.ndarray, np.ndarray]:
        """(times, packets in flight) of a flow at each of its records with a window."""
        rows = (self.records["flow"] == flow) & (self.records["in_flight_packets"] >= 0)
        return self.records["mono_ns"][rows], self.records["in_flight_packets"][rows].astype(np.int64)

    def fall(self, flow: int, drop_ns: int, end_ns: int) -> tuple[int, int]:
        """(window at a loss's first drop, window after recovery) of a flow; packets.

        The window after recovery is read one base RTT before the loss's end. By then recovery is over, and the window
        has grown by a few packets only. During recovery the window would read too small: PRR then keeps one burst of
        packets less in flight.
        """
        times, window = self.window(flow)
        before, after = np.searchsorted(times, (drop_ns, end_ns - self.rtt_ns), side="right") - 1
        return int(window[before]), int(window[after])

    def answered_losses(self, half: float) -> list[AnsweredLoss]:
        """The losses of the first flow that has a retransmission and a window of at most `half` of the window at the
        drop.
        """
        flow = self.flows[0]["id"]
        times, window = self.window(flow)
        answered = []
        for drop, _, end in self.losses():
            again, _ = self.retransmissions(drop, end)
            before, settled = self.fall(flow, drop, end)
            after = slice(*np.searchsorted(times, (drop, end)))
            halved = times[after][window[after] <= before * half]
            if not len(again) or not len(halved):
                continue
            came = self.queue["enqueue_mono_ns"][self.arrivals(int(again[0]), int(halved[0]))]
            depths = self.queue["depth_packets"][self.arrivals(drop, end)]
            answered.append(
                AnsweredLoss(
                    drop, before, int(window[after].min()), int(depths.min()), settled, int(again[0]) - drop,
                    int(halved[0] - again[0]), int(np.diff(came).max(initial=0)),
                )
            )  # fmt: skip
        return answered

    def window_steps(self, flow: int, start_ns: int, end_ns: int) -> np.ndarray:
        """A flow's window in [start, end]: 2 x steps, ns and packets."""
        return value_steps(*self.window(flow), start_ns, end_ns)

    def retransmissions(self, start_ns: int, end_ns: int) -> tuple[np.ndarray, np.ndarray]:
        """(times, flows) of segments that were retransmitted in [start, end)."""
        times = self.records["mono_ns"]
        inside = (times >= start_ns) & (times < end_ns) & (self.records["event"] == EVENT["TCP_EVENT_RETRANSMIT"])
        return times[inside], self.records["flow"][inside]
