# SPDX-License-Identifier: MIT
"""Metrics of one repetition: link, queue, goodput, windows, fairness. Each function states exactly what it counts.

Packets belong to the measurement window by their arrival at the queue, bits and bytes by their departure. Times are
ns on CLOCK_MONOTONIC. All sums of bytes are 64 bits wide.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from analysis.arithmetic.by_flow import Groups
from analysis.arithmetic.counted import Counted
from analysis.arithmetic.counted import percentiles as quantiles
from analysis.arithmetic.reproducible_sums import dot
from analysis.join.in_flight import InFlight, knows_cwnd, window_known
from analysis.join.join import NONE, Segments
from analysis.read.columns import ColumnFile, in_order, kinds, parts, rows_of, slabs, sums_before, until
from analysis.read.flows import Flow
from analysis.read.link_loss import NAME as LINK_LOST
from analysis.read.link_loss import delivered
from analysis.read.link_rate import LinkRate
from analysis.read.load import Run
from analysis.read.postcards import NEVER_NS, admissions, admitted, busiest, dropped, has_data, queue_keys
from analysis.read.raw import Columns
from lib.frames import (
    ETHERNET_BYTES,
    IPV4_BYTES,
    IPV6_BYTES,
    UDP_BYTES,
)
from model.groups import Datagrams, Group, Long
from wire import wire

CARD = wire.POSTCARD.const
EVENT = wire.TCP_RECORD.const
UTILIZATION_WINDOW_RTTS = 10
TCP, UDP = 6, 17
CARDS = ("enqueue_mono_ns", "sojourn_ns", "flags", "flow", "packet_bytes", LINK_LOST)
NO_GROUP = -1
SPAN, LEAST = 1 << 33, 1 << 31  # of counts of flows' windows: each flow has an interval from -LEAST on
SUMS = {"in_flight_packets": "of_flow_in_flight", "cwnd_packets": "of_flow_cwnd"}
SERIES: dict[str, DTypeLike] = {"is_ack": bool, "of_flow_in_flight": np.int32, "of_flow_cwnd": np.uint32}


@dataclass(frozen=True)
class Window:
    """The measurement window: DURATION from the end of WARMUP. It ends early with the traffic (iperf3: with the first
    flow), or one base RTT after the queue's last packet. If the user's programs are the only traffic, it ends early
    only when their client ends, and nothing is missing.
    """

    traffic_start_ns: int
    start_ns: int
    end_ns: int
    missing_ns: int  # the part of DURATION after the window's early end

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns

    def of_group(self, group: Group) -> Window:
        """The part of the window in which the group was there, from its START to its STOP."""
        begin_ns = self.traffic_start_ns + (group.start_ns or 0)
        stop_ns = self.end_ns if group.stop_ns is None else self.traffic_start_ns + group.stop_ns
        first_ns = min(max(self.start_ns, begin_ns), self.end_ns)
        return replace(self, start_ns=first_ns, end_ns=max(first_ns, min(self.end_ns, stop_ns)), missing_ns=0)


def shared_window(run: Run, window: Window) -> Window:
    """The part of the window in which all groups of long flows were there; empty if there is none."""
    parts = [window.of_group(group) for group in run.experiment.long] or [window]
    first_ns = max(part.start_ns for part in parts)
    return replace(window, start_ns=first_ns, end_ns=max(first_ns, min(part.end_ns for part in parts)))


def measurement_window(run: Run, queue: Columns) -> Window:
    """The window, from the traffic's times in traffic.json; without them, from the queue's first and last packet."""
    traffic, arrivals = run.documents.traffic, queue["enqueue_mono_ns"]
    start, end = traffic.start_mono_ns, traffic.end_mono_ns
    if start is None:
        start = int(arrivals[0]) if len(arrivals) else 0
    if end is None:
        end = int(arrivals[-1]) if len(arrivals) else start
    first = start + run.experiment.warmup_ns
    last = first + run.experiment.duration_ns
    if run.experiment.traffic == "program":  # pauses are part of this traffic, and its end is recorded
        last = max(first, min(last, end))
    elif len(arrivals):  # when packets stop before every STOP, the run is over, even if clients still wait
        stops = [group.stop_ns or end - start for group in run.experiment.flow_groups]
        quiet = int(arrivals[-1]) + run.experiment.rtt_ns
        end = quiet if quiet < min(end, start + max(stops, default=end - start)) else end
    stop = max(_first_flow_end_ns(run, queue, min(last, end)), first)
    return Window(start, first, stop, last - stop)


def _first_flow_end_ns(run: Run, queue: Columns, stop_ns: int) -> int:
    """When the last data of the iperf3 flow that ended first came to the queue, if before `stop_ns`; else `stop_ns`.

    iperf3 does not record when flows end. The end in traffic.json is the time of the first observation of the flows,
    plus their duration. On a busy machine this observation is late, so flows end before the end in traffic.json. Our
    own generators record when they stop their flows. A flow with a hole (a dropped packet that was not retransmitted)
    waits for its retransmission timer and has not ended.
    """
    if run.documents.traffic.generator != "iperf3":
        return stop_ns
    latest_ns = np.full(len(run.flows) + 1, NEVER_NS, dtype=np.int64)  # when each flow's last data packet came
    lost = np.empty(0, dtype=np.int64)  # flow and sequence number, in one integer
    names = ("flags", "flow", "enqueue_mono_ns", "packet_bytes", "tcp_seq")

    def data() -> Iterator[tuple[Columns, np.ndarray]]:
        for cards in parts(queue, *names):
            cards = rows_of(cards, has_data(cards))
            yield cards, cards["flow"].astype(np.int64) << 32 | cards["tcp_seq"]

    for cards, segment in data():
        latest_ns[cards["flow"]] = cards["enqueue_mono_ns"]  # NumPy keeps the last of several assignments to one flow
        lost = np.union1d(lost, segment[dropped(cards)])
    came = np.zeros(len(lost), dtype=bool)
    for cards, segment in data() if len(lost) else ():
        came |= np.isin(lost, segment[~dropped(cards)])
    latest_ns[~of_experiment(run)] = NEVER_NS
    latest_ns[lost[~came] >> 32] = NEVER_NS
    ended = latest_ns[(latest_ns > NEVER_NS) & (latest_ns < stop_ns)]
    return int(ended.min(initial=stop_ns))


def bottleneck(run: Run) -> tuple[int | None, Columns]:
    """The bottleneck's port, and the postcards of its queue: the queue with the most postcards at the port that
    switch.json names; without such a name, of all queues.
    """
    postcards, port = run.postcards, run.documents.switch.bottleneck_port
    chosen, counts = busiest(
        _queue_keys(run, cards)[slice(None) if port is None else cards["egress_port"] == port]
        for cards in parts(postcards, "egress_port", *(name for name in ("switch_id", "queue_id") if name in postcards))
    )
    if counts.get(chosen, 0) == len(postcards["flags"]):
        queue = postcards
    else:
        file = ColumnFile(run.directory, kinds(postcards))
        for part in slabs(len(postcards["flags"])):
            cards = rows_of(postcards, part)
            of_queue = _queue_keys(run, cards) == chosen
            file.append({name: column[of_queue] for name, column in cards.items()})
        queue = file.columns()
    if port is None and counts:
        port = int(queue["egress_port"][0])
    return port, queue


def _queue_keys(run: Run, cards: Columns) -> np.ndarray:
    """`queue_keys`; a program of the user's has all queues of a port as one, whose depth its postcards have."""
    keys = queue_keys(cards)
    return keys >> np.uint64(8) if run.experiment.has_own_program else keys


def arrivals_in(queue: Columns, start_ns: int, end_ns: int) -> slice:
    """Rows of the packets that arrived in [start, end)."""
    first, last = np.searchsorted(queue["enqueue_mono_ns"], (start_ns, end_ns))
    return slice(int(first), int(last))


def cards_in(queue: Columns, window: Window, *names: str) -> Iterator[Columns]:
    """The named columns of the packets that arrived in the window, slab by slab."""
    return parts(queue, *names, rows=arrivals_in(queue, window.start_ns, window.end_ns))


# The link -------------------------------------------------------------------------------------------------------------


class LinkUsage:
    """The bits that left the queue on the wire, as a function of time. A packet's bits are spread over its
    transmission, which ends at enqueue + sojourn, as the rate then was; with delivery opportunities, whose bits are
    those of IP packets, they all leave at its end.
    """

    def __init__(self, queue: Columns, rate: LinkRate, directory: Path | None = None) -> None:
        place = directory or Path(tempfile.gettempdir())
        file = ColumnFile(place, {"departure_ns": np.dtype(np.int64), "bytes": np.dtype(np.int64)})
        for cards in admissions(queue, "packet_bytes"):
            sent = rows_of(cards, ~dropped(cards))
            file.append({"departure_ns": sent["left_ns"], "bytes": rate.link_bytes(sent["packet_bytes"])})
        columns = file.columns()
        self.rate = rate
        self.departure_ns = columns["departure_ns"]
        self.bytes_before = sums_before(columns["bytes"], place)

    def bits_until(self, times_ns: np.ndarray) -> np.ndarray:
        """Bits that left by each time (float64)."""
        done = np.searchsorted(self.departure_ns, times_ns, side="right")
        before = self.bytes_before[done]
        bits = before * 8.0
        going = np.flatnonzero(done < len(self.departure_ns))
        packet = done[going]
        packet_bits = (self.bytes_before[packet + 1] - before[going]) * 8.0
        left_ns = self.departure_ns[packet] - times_ns[going]
        left_bits = (
            self.rate.bits(times_ns[going], left_ns) if self.rate.schedule else left_ns * (self.rate.rate_bps / 1e9)
        )
        if self.rate.schedule and self.rate.schedule.opportunities:
            left_bits = packet_bits
        bits[going] += np.clip(packet_bits - left_bits, 0, packet_bits)
        return bits

    def utilization(self, start_ns: np.ndarray, width_ns: int) -> np.ndarray:
        """Share of the rate used in [start, start + width), for each start (float64); NaN in an outage."""
        before, after = np.split(self.bits_until(np.append(start_ns, start_ns + width_ns)), 2)
        bits = after - before
        capacity = self.rate.bits(start_ns, width_ns)
        return np.divide(bits, capacity, out=np.full(len(bits), np.nan), where=capacity > 0)


def mean_rate_bps(run: Run, window: Window) -> float:
    """The rate of the link; of a rate that changes the mean over the measurement window, in bits on the wire."""
    rate, spec = run.rate, run.experiment
    if rate.schedule is None or window.length_ns <= 0:
        return spec.rate_bps
    of_wire = spec.wire_bytes / spec.mtu_bytes if rate.schedule.opportunities else 1.0
    return max(rate.capacity_bits(window.start_ns, window.length_ns) * 1e9 / window.length_ns * of_wire, 1.0)


def sliding_starts(window: Window, width_ns: int, step_ns: int) -> np.ndarray:
    """Starts, one every `step_ns`, of the windows of `width_ns` that fit into `window`. If none fits, the only start is
    that of `window`.
    """
    last = max(window.end_ns - width_ns, window.start_ns)
    return np.arange(window.start_ns, last + 1, max(step_ns, 1), dtype=np.int64)


def utilization_windows(link: LinkUsage, window: Window, rtt_ns: int) -> np.ndarray:
    """Utilization of each sliding window of 10 base RTTs, one every RTT, without windows in an outage; empty if the
    measurement was shorter.
    """
    width = UTILIZATION_WINDOW_RTTS * rtt_ns
    if window.length_ns < width:
        return np.empty(0)
    starts = sliding_starts(window, width, rtt_ns)
    values = np.concatenate([link.utilization(starts[part], width) for part in slabs(len(starts))])
    return values[~np.isnan(values)]


def utilization(link: LinkUsage, window: Window, rtt_ns: int) -> dict[str, float | None]:
    """Mean over the measurement window; percentile and extremes over sliding windows of 10 base RTTs, one every RTT.
    All are None if the measurement window is shorter than 10 base RTTs.

    Utilization is bits on the wire / (rate x time). Spang et al. (3.3 and 5.1) used iperf's goodput in place
    of the bits.
    """
    width = UTILIZATION_WINDOW_RTTS * rtt_ns
    values = utilization_windows(link, window, rtt_ns)
    if not len(values):
        return {"mean": None, "p01": None, "min": None, "max": None, "window_s": width / 1e9}
    mean = link.utilization(np.array([window.start_ns]), window.length_ns)[0]
    return {
        "mean": float(mean),
        "p01": float(np.percentile(values, 1)),
        "min": float(values.min()),
        "max": float(values.max()),
        "window_s": width / 1e9,
    }


# The queue ------------------------------------------------------------------------------------------------------------


def percentiles(values: np.ndarray, **names: float) -> dict[str, float | int | None]:
    """Percentiles by inverted CDF: the smallest value with at least that share at or below it; None without values."""
    if not len(values):
        return dict.fromkeys(names)
    results = np.percentile(values, list(names.values()), method="inverted_cdf")
    return {name: value.item() for name, value in zip(names, results, strict=True)}


def spread(values: np.ndarray) -> dict[str, float | None]:
    """Minimum, median and maximum; None without values."""
    if not len(values):
        return dict.fromkeys(("min", "median", "max"))
    return {"min": float(values.min()), "median": float(np.median(values)), "max": float(values.max())}


def queue_depth(queue: Columns, window: Window, column: str = "depth_packets") -> dict[str, float | int | None]:
    """Depth at arrivals, dropped packets included; `time_mean` is the mean over time.

    Depth counts the packets admitted and not yet completely departed: with the packet on the link, without the
    arriving packet.
    """
    result = _of_slabs(lambda: (cards[column] for cards in cards_in(queue, window, column)), p01=1, p50=50, p99=99)
    if column == "depth_packets":
        result["time_mean"] = _time_mean_depth(queue, window)
    return result


def _of_slabs(parts: Callable[[], Iterable[np.ndarray]], **names: float) -> dict[str, float | int | None]:
    """Mean, percentiles as `percentiles` has them, and maximum of integers of which most may differ, as a depth in
    bytes; None without any. `parts` gives them slab by slab, each time that it is called.
    """
    values: Sequence[int | None] = quantiles(parts, (*names.values(), 100)) or [None] * (len(names) + 1)
    count = total = 0
    for part in parts():
        count, total = count + len(part), total + int(part.sum(dtype=np.int64))
    return {"mean": total / count if count else None, **dict(zip((*names, "max"), values, strict=True))}


def _time_mean_depth(queue: Columns, window: Window) -> float | None:
    """Mean packets in the queue over time: the sum of all sojourn times within the window / its length (Little)."""
    if window.length_ns <= 0:
        return None
    rows, total_ns = slice(int(np.searchsorted(queue["enqueue_mono_ns"], window.end_ns))), 0
    for cards in parts(queue, "enqueue_mono_ns", "sojourn_ns", "flags", rows=rows):
        came = cards["enqueue_mono_ns"]
        inside_ns = np.minimum(came + cards["sojourn_ns"], window.end_ns) - np.maximum(came, window.start_ns)
        total_ns += int(inside_ns[(inside_ns > 0) & admitted(cards)].sum(dtype=np.int64))
    return total_ns / window.length_ns


def counts(queue: Columns, window: Window) -> dict[str, int | float | None]:
    """Arrivals, drops and marks in the measurement window, with LOSS also the packets that the link lost behind the
    queue; the share of drops, and of arrivals at a non-empty queue.
    """
    of_link = (LINK_LOST,) if LINK_LOST in queue else ()
    arrivals = drops = marks = deep = lost = 0
    for cards in cards_in(queue, window, "flags", "depth_packets", *of_link):
        arrivals += len(cards["flags"])
        drops += int(np.count_nonzero(cards["flags"] & CARD["POSTCARD_DROPPED"]))
        marks += int(np.count_nonzero(cards["flags"] & CARD["POSTCARD_CE_MARKED"]))
        deep += int(np.count_nonzero(cards["depth_packets"]))
        lost += int(np.count_nonzero(cards[LINK_LOST])) if of_link else 0
    return {
        "arrivals": arrivals,
        "drops": drops,
        "marks": marks,
        **({"link_lost": lost} if of_link else {}),
        "drop_fraction": drops / arrivals if arrivals else None,
        "queue_nonempty_fraction": deep / arrivals if arrivals else None,
    }


def queue_delay(queue: Columns, window: Window) -> dict[str, float | None]:
    """Sojourn time in ns, from arrival to the departure of the last bit, of packets that were not dropped."""
    return _of_slabs(lambda: delays(queue, window), p50=50, p99=99)


def delays(queue: Columns, window: Window) -> Iterator[np.ndarray]:
    """The sojourn times in ns of packets that were not dropped, slab by slab."""
    return (cards["sojourn_ns"][~dropped(cards)] for cards in cards_in(queue, window, "sojourn_ns", "flags"))


# Flows ----------------------------------------------------------------------------------------------------------------


@dataclass
class Goodput:
    """TCP payload that left the queue for the first time, and the payload of datagrams beside TCP. No packet
    that the link lost counts.
    """

    bits_per_flow: np.ndarray  # int64, by flow number, in the measurement window
    departure_ns: np.ndarray  # of every packet with new payload, ascending
    bytes_before: np.ndarray  # int64, cumulative: payload before each departure, and the total
    flow: np.ndarray  # the flow number of each of these packets

    def bits_in(self, window: Window) -> np.ndarray:
        """Bits by flow number (int64) that left the queue in the window."""
        first, last = np.searchsorted(self.departure_ns, (window.start_ns, window.end_ns)).tolist()
        result = np.zeros(len(self.bits_per_flow), dtype=np.int64)
        for rows in slabs(last, first=first):
            payload = np.diff(self.bytes_before[rows.start : rows.stop + 1])
            result += np.bincount(self.flow[rows], weights=payload, minlength=len(result)).astype(np.int64)
        return 8 * result


def of_experiment(run: Run) -> np.ndarray:
    """Whether each flow number is of a flow in Run.traffic, which has no finite flows."""
    mask = np.zeros(len(run.flows) + 1, dtype=bool)
    mask[[entry.number for entry in run.traffic if entry.number >= 0]] = True
    return mask


def group_of_entries(run: Run) -> list[int]:
    """For each entry of Run.traffic, the index of its group in Experiment.groups; NO_GROUP for flows of the user's
    programs. traffic.json has long flows in the order of their groups, then the flows of datagrams.
    """
    listed = run.experiment.flow_groups
    whole: tuple[Long | Datagrams, ...] = (*run.experiment.long, *run.experiment.datagrams)
    places = [place for group in whole for place in [listed.index(group)] * group.flows]
    return [places[number] if number < len(places) else NO_GROUP for number in range(len(run.traffic))]


def windows_of_entries(run: Run, window: Window) -> list[Window]:
    """For each entry of Run.traffic, the part of the window in which its group was there."""
    of_groups = [window.of_group(group) for group in run.experiment.flow_groups]
    whole = window.of_group(Group())
    return [whole if place == NO_GROUP else of_groups[place] for place in group_of_entries(run)]


def of_groups_with_stop(run: Run) -> np.ndarray:
    """Whether each flow number is of a flow in Run.traffic whose group has a STOP."""
    mask = np.zeros(len(run.flows) + 1, dtype=bool)
    for entry, place in zip(run.traffic, group_of_entries(run), strict=True):
        if place != NO_GROUP and entry.number >= 0:
            mask[entry.number] = run.experiment.flow_groups[place].stop_ns is not None
    return mask


def of_datagrams(run: Run) -> np.ndarray:
    """Whether each flow number is of datagrams in Run.traffic."""
    mask = np.zeros(len(run.flows) + 1, dtype=bool)
    mask[[entry.number for entry in run.traffic if entry.number >= 0 and entry.five_tuple.protocol == UDP]] = True
    return mask


def goodput(run: Run, queue: Columns, segments: Segments, window: Window) -> Goodput:
    """The experiment's payload that left the queue for the first time, without headers and second copies."""
    counted = of_experiment(run)
    if run.flow_records is not None:
        counted[run.flow_records["flow"]] = True
        counted[-1] = False  # the place of flows without packets
    names = {"departure_ns": np.dtype(np.int64), "payload_bytes": np.dtype(np.int64), "flow": queue["flow"].dtype}
    beside = of_datagrams(run) & bool(run.experiment.datagrams and not run.experiment.open_loop)
    headers = np.append(np.where(run.flows.is_ipv4, IPV4_BYTES, IPV6_BYTES), 0) + ETHERNET_BYTES + UDP_BYTES
    file = ColumnFile(run.directory, names)

    def useful() -> Iterator[Columns]:
        at = 0
        for part in slabs(len(queue["flow"])):
            cards = rows_of({name: queue[name] for name in CARDS if name in queue}, part)
            came_ns, flow = cards["enqueue_mono_ns"], cards["flow"]
            first, at = at, until(segments.rows, at, part.stop - 1)
            payload = np.zeros(len(flow), dtype=np.int64)
            payload[segments.rows[first:at] - part.start] = segments.new_bytes[first:at]
            payload[~counted[flow]] = 0
            if beside.any():
                sent = beside[flow] & delivered(cards)
                payload[sent] = cards["packet_bytes"][sent].astype(np.int64) - headers[flow[sent]]
            left = {"departure_ns": came_ns + cards["sojourn_ns"], "payload_bytes": payload, "flow": flow}
            yield rows_of(left | {"came_ns": came_ns}, payload > 0)

    for slab in in_order(useful(), "departure_ns", "came_ns"):
        file.append(slab)
    columns = file.columns()
    before = sums_before(columns["payload_bytes"], run.directory)
    result = Goodput(np.zeros(len(run.flows), dtype=np.int64), columns["departure_ns"], before, columns["flow"])
    result.bits_per_flow = result.bits_in(window)
    return result


def goodput_p01_bps(good: Goodput, window: Window, rtt_ns: int) -> float | None:
    """1st percentile of the goodput in sliding windows of 10 base RTTs, which Spang et al. measured with iperf."""
    width = UTILIZATION_WINDOW_RTTS * rtt_ns
    if window.length_ns < width:
        return None
    starts = sliding_starts(window, width, rtt_ns)
    first, last = (np.searchsorted(good.departure_ns, times) for times in (starts, starts + width))
    bits = 8 * (good.bytes_before[last] - good.bytes_before[first])
    return float(np.percentile(bits, 1) * 1e9 / width)


def jain_index(values: np.ndarray) -> float | None:
    """(sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one flow takes everything (Jain, Chiu, Hawe 1984)."""
    squares = dot(values.astype(np.float64), values)
    return float(values.sum()) ** 2 / (len(values) * squares) if squares else None


# Windows --------------------------------------------------------------------------------------------------------------


@dataclass
class WindowSeries:
    """The trace records of the experiment's flows that know the window, in time order, as columns in a file. The sums
    are over all these flows after each record.
    """

    mono_ns: np.ndarray
    flow: np.ndarray  # whose record it is
    is_ack: np.ndarray  # bool: not the record of a retransmission
    of_flow_in_flight: np.ndarray  # int32, packets
    of_flow_cwnd: np.ndarray  # uint32, packets
    in_flight_packets: np.ndarray  # int64, the sum: the window of the literature
    cwnd_packets: np.ndarray  # int64, the sum of snd_cwnd
    last: np.ndarray  # by flow number: the row of the flow's last record; NONE without rows
    has_cwnd: bool = True  # whether the records know cwnd, too: a capture does not

    def parts(self, *names: str, first: int = 0, last: int | None = None) -> Iterator[Columns]:
        """The named columns of these rows, slab by slab, in memory."""
        return parts(vars(self), *names, rows=slice(first, last))

    def until(self, ns: int) -> int:
        """The number of rows before a time."""
        return int(np.searchsorted(self.mono_ns, ns))

    def flows_of(self, run: Run) -> list[Flow]:
        """The entries of Run.traffic that have rows."""
        return [entry for entry in run.traffic if entry.number >= 0 and self.last[entry.number] != NONE]

    def counts_at_acks(self, name: str, window: Window) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """How often column `name` had each value at the ACKs of each flow in the window: (flow numbers, values, counts)
        in ascending order, int64.
        """
        counted = Counted()
        inside = {"first": self.until(window.start_ns), "last": self.until(window.end_ns)}
        for part in self.parts("flow", "is_ack", name, **inside):
            counted.add((part["flow"].astype(np.int64) * SPAN + part[name])[part["is_ack"]])
        flow = (counted.values + LEAST) // SPAN
        return flow, counted.values - flow * SPAN, counted.counts


def window_series(run: Run, in_flight: InFlight) -> WindowSeries:
    """The windows of the experiment's flows, and the sums over flows of the latest packets in flight (Spang et al.,
    3.3: W(t)) and of the latest cwnd. After the last record of a flow whose group has a STOP, its window is 0.
    """
    always, others = ("flow", "unknown_fields"), ("mono_ns", "event", "cwnd_packets")
    tcp = {name: run.tcp[name] for name in (*always, *others)} | {"in_flight_packets": in_flight.packets}
    counts, size, with_cwnd = of_experiment(run), len(run.flows) + 1, knows_cwnd(run)

    def records(*names: str) -> Iterator[Columns]:
        for part in parts(tcp, *names):
            chosen = np.flatnonzero(window_known(part, with_cwnd) & counts[part["flow"]])
            if len(chosen):
                yield {name: column[chosen] for name, column in part.items()}

    last, at = np.full(size, NONE, dtype=np.int64), 0
    for part in records(*always):
        last[part["flow"]] = np.arange(at, at + len(part["flow"]))  # NumPy keeps the last of several assignments
        at += len(part["flow"])
    types = SERIES | dict.fromkeys((*SUMS, "mono_ns"), np.int64) | {"flow": tcp["flow"].dtype}
    file = ColumnFile(run.directory, {name: np.dtype(kind) for name, kind in types.items()})
    latest, ended = {name: np.zeros(size + 1, dtype=np.int64) for name in SUMS}, last[of_groups_with_stop(run)]
    for part in records(*tcp):
        groups = Groups.of(part["flow"])
        columns = {
            "mono_ns": part["mono_ns"],
            "flow": part["flow"],
            "is_ack": part["event"] == EVENT["TCP_EVENT_PROBE"],
        }
        here = ended[(ended >= file.rows) & (ended < file.rows + len(part["flow"]))] - file.rows
        for name, of_flow in SUMS.items():
            columns[of_flow] = part[name]
            values = part[name].astype(np.int64)
            values[here] = 0
            values = values[groups.rows]
            step = np.diff(values, prepend=0)
            step[groups.starts] = values[groups.starts] - latest[name][groups.flow]
            change = np.empty_like(step)
            change[groups.rows] = step
            columns[name] = latest[name][size] + np.cumsum(change)
            latest[name][groups.flow], latest[name][size] = values[groups.ends - 1], columns[name][-1]
        file.append(columns)
    return WindowSeries(**file.columns(), last=last, has_cwnd=with_cwnd)


def almost_fairness(run: Run, windows: WindowSeries, window: Window, bdp_packets: int) -> dict[str, float | int | None]:
    """The smallest Delta with BDP/(n Delta) <= w <= Delta BDP/n for all w from the 1st to the 99th percentile.

    w are the packets in flight at every ACK of every flow. Definition: Spang et al., 4.1; measurement: 5.6.
    """
    at_acks = Counted()
    _, values, counts = windows.counts_at_acks("of_flow_in_flight", window)
    at_acks.merge(values, counts)
    low, middle, high = at_acks.percentiles(p01=1, p50=50, p99=99).values()
    flows = sum(entry.is_tcp for entry in run.traffic)
    share = bdp_packets / flows if flows else None
    delta = None
    if share and low is not None and high is not None and low > 0:
        delta = max(high / share, share / low, 1.0)
    return {
        "fair_window_packets": share, "window_p01_packets": low, "window_p50_packets": middle,
        "window_p99_packets": high, "delta": delta,
    }  # fmt: skip
