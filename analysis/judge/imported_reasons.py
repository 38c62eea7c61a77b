# SPDX-License-Identifier: MIT
"""The reasons against an imported run that a recorded run cannot have: faults of the source that the import noted, and
contradictions between source and conditions. validity.py makes all other checks that the source allows.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from analysis.arithmetic.by_flow import Groups
from analysis.arithmetic.counted import Counted
from analysis.arithmetic.sequence import Unwrapped
from analysis.measure.loss import longest_rtt_ns
from analysis.measure.metrics import Columns, Window, arrivals_in, of_experiment
from analysis.read import imported
from analysis.read.columns import ColumnFile, parts, rows_of, slabs, sort_file
from analysis.read.load import Run
from analysis.read.postcards import has_data
from analysis.read.raw import known
from lib.frames import ETHERNET_BYTES
from wire import wire

CARD = wire.POSTCARD.const
MOST_PAUSE = 2  # longest RTTs without a packet or record, of all flows together
LEAST_SRTT = 0.9  # of the base RTT
PLACE_BITS, BEFORE_FIRST = 39, 1 << 33  # of a byte of a flow, whose first packet begins at most 2^32 bytes later


def reasons(run: Run, queue: Columns, window: Window, utilization: float | None) -> list[str]:
    """One line each; the first is imported.REASON. `utilization` is the mean over the window."""
    postcards, inside = len(queue["flags"]), arrivals_in(queue, window.start_ns, window.end_ns)
    result = [imported.REASON, *(run.experiment.imported.notes if run.experiment.imported else ())]
    if postcards and inside.stop == inside.start:
        result.append(
            f"none of the {postcards} postcards is in the measurement window (warmup_ns, duration_ns of spec.yaml): "
            "import them again with another WARMUP or DURATION"
        )
    if utilization is not None and utilization > imported.MAX_UTILIZATION:
        result.append(
            f"link: a utilization of {utilization:.0%}, which is impossible: rate_bps of spec.yaml is not the "
            "bottleneck's rate; import the run again with the bottleneck's rate as RATE"
        )
    longest = run.experiment.mtu_bytes + ETHERNET_BYTES
    largest = max((int(cards["packet_bytes"].max()) for cards in parts(queue, "packet_bytes")), default=0)
    if "packet_bytes" not in run.experiment.unknown_columns and largest > longest:
        result.append(
            f"queue: packets of up to {largest} bytes, but mtu_bytes of spec.yaml is "
            f"{run.experiment.mtu_bytes}: import the run again with the right MTU"
        )
    return [*result, *_hole_reasons(run, queue), *_time_reasons(run, queue, window)]


def _hole_reasons(run: Run, queue: Columns) -> list[str]:
    """One line each for bytes of the flows that never come to the queue, or later than reordering explains: every byte
    of a flow goes through the queue.
    """
    file = ColumnFile(run.directory, {"byte": np.dtype(np.int64), "came_ns": np.dtype(np.int64)})
    unwrapped, counts = Unwrapped(len(run.flows) + 1), of_experiment(run)
    for cards in parts(queue, "flow", "flags", "packet_bytes", "tcp_seq", "enqueue_mono_ns"):
        data = rows_of(cards, counts[cards["flow"]] & has_data(cards))
        groups = Groups.of(data["flow"])
        data = rows_of(data, groups.rows)
        place = BEFORE_FIRST + unwrapped.add(groups, data["tcp_seq"])
        file.append({"byte": data["flow"].astype(np.int64) << PLACE_BITS | place, "came_ns": data["enqueue_mono_ns"]})
    sort_file(run.directory, firsts := file.columns(), "byte", "came_ns")
    missing, late = _holes(firsts, imported.full_payload(run.experiment.mtu_bytes), run.experiment.rtt_ns)
    result = []
    if "packet_bytes" in run.experiment.unknown_columns and missing:  # and the postcards have no numbers
        result.append(
            f"queue: {missing} packets have no postcard (holes in the flows' sequence numbers): utilization "
            "and goodput are without them; or mtu_bytes of spec.yaml is too small"
        )
    if late:
        result.append(
            f"queue: {late} packets came for the first time an RTT or more after later ones of their flow: their first "
            "copies have no postcard, or were lost before the queue"
        )
    return result


def _holes(firsts: Columns, full_bytes: int, rtt_ns: int) -> tuple[int, int]:
    """From the packets' first bytes, each with its flow, and times, sorted: (full packets that are missing between
    neighbours, bytes that came for the first time an RTT or more after a later one of their flow).
    """
    missing = late = 0
    above, above_ns = -1, 0  # the lowest byte of the slab after, and when it or a later one of its flow came first
    for part in reversed(list(slabs(len(firsts["byte"])))):
        before = firsts["byte"][part.start - 1] if part.start else -1
        is_first = np.diff(firsts["byte"][part], prepend=before) > 0
        byte, came = np.append(firsts["byte"][part][is_first], above), firsts["came_ns"][part][is_first]
        same_flow = byte[1:] >> PLACE_BITS == byte[:-1] >> PLACE_BITS
        missing += int(np.maximum(np.rint(np.diff(byte)[same_flow] / full_bytes) - 1, 0).sum())
        # The minimum over later bytes, from the end on: numbers of later flows are larger, so each flow begins anew.
        came = np.append(came, above_ns)
        order = np.argsort(came, kind="stable")
        number = np.append(0, np.cumsum(~same_flow)) * len(came)
        number[order] += np.arange(len(came))
        earliest = came[order][np.minimum.accumulate(number[::-1])[::-1] % len(came)]
        late += int(np.count_nonzero(same_flow & (came[:-1] - earliest[1:] >= rtt_ns)))
        above, above_ns = int(byte[0]), int(earliest[0])
    return missing, late


def _time_reasons(run: Run, queue: Columns, window: Window) -> list[str]:
    spec, result, counts = run.experiment, [], of_experiment(run)
    records = parts(run.tcp, "flow", "srtt_us", "unknown_fields")
    srtt_us = Counted.of(tcp["srtt_us"][counts[tcp["flow"]] & known(tcp, "srtt_us")] for tcp in records)
    srtt_ns = srtt_us.values[srtt_us.values > 0] * 1000
    rtt_ns = longest_rtt_ns(spec.rtt_ns, spec.buffer_packets, spec.wire_bytes, spec.rate_bps)
    most_ns = MOST_PAUSE * max(rtt_ns, int(srtt_ns.max(initial=0)))
    for name, table, column in (("trace", run.tcp, "mono_ns"), ("postcards", queue, "enqueue_mono_ns")):
        times = (part[column][counts[part["flow"]]] for part in parts(table, "flow", column))
        pause_ns = _longest_pause_ns(times, window)
        if pause_ns > most_ns:
            result.append(
                f"{name}: nothing for {pause_ns / 1e9:.3f} s (the longest RTT is {most_ns / MOST_PAUSE / 1e9:.3f} s): "
                "a part is missing, the clock was set, or all flows paused"
            )
    if len(srtt_ns) and srtt_ns.min() < LEAST_SRTT * spec.rtt_ns:
        result.append(
            f"trace: a smoothed RTT of {srtt_ns.min() / 1e6:.3f} ms, below the base RTT of "
            f"{spec.rtt_ns / 1e6:.3f} ms: import the run again with the path's RTT without queue as RTT"
        )
    return result


def _longest_pause_ns(parts: Iterable[np.ndarray], window: Window) -> int:
    """The longest gap between times that ascend, from the start of the traffic to the window's end; 0 without any."""
    last, longest, some = window.traffic_start_ns, 0, False
    for part in parts:
        times = np.append(last, part[part >= window.traffic_start_ns])
        longest = max(longest, int(np.diff(times)[times[:-1] < window.end_ns].max(initial=0)))
        last, some = times[-1], some or bool(len(part))
    return max(longest, window.end_ns - int(last)) if some else 0
