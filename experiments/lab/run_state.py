# SPDX-License-Identifier: MIT
"""The state of a run at one moment. The counters of the switch are read by requests. Collector and tracer write their
counters to their logs, at the interval that run_plan.py sets.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.plan.switches import Counters, Switches, packets_waiting
from experiments.spec.topology import LINE_TO_SENDER

LOG_TAIL_BYTES = 4096


@dataclass(frozen=True)
class RunState:
    """Counts are since the programs' start: they include the measurement of the idle path and the warm-up. The
    throughput is since the previous sample, and the lateness since the start of the traffic.
    """

    throughput_bps: float
    depth_packets: int | None  # None, likewise `drops`: no counters
    drops: int | None
    postcards_received: int
    postcards_missing: int
    trace_records: int
    trace_lost: int
    lateness_p99_us: float


class RunStateReader:
    """Takes samples of a running repetition from the P4 program's counters, which every switch has. A sample takes
    about ten requests, so in real time there is one sample per second.
    """

    def __init__(self, switches: Switches, logs: Path) -> None:
        self.switches = switches
        self.logs = logs
        self.last_mono_ns = time.monotonic_ns()
        self.last_bytes = self._bytes_out(switches.read_counters())

    def _bytes_out(self, counters: Counters) -> int:
        line = self.switches.line
        if counters or not line:
            return bytes_out(counters, self.switches.ports.receiver)
        return line.stats()[f"port.{LINE_TO_SENDER}.rx_bytes"]

    def take(self) -> RunState:
        counters, now_ns = self.switches.read_counters(), time.monotonic_ns()
        bottleneck = self.switches.ports.receiver
        now_bytes = self._bytes_out(counters)
        throughput_bps = 8e9 * (now_bytes - self.last_bytes) / max(1, now_ns - self.last_mono_ns)
        self.last_mono_ns, self.last_bytes = now_ns, now_bytes
        drops = [counters[name].get(bottleneck) for name in ("arrival_drops", "departure_drops") if counters]
        collector, tracer = last_object(self.logs / "collector.log"), last_object(self.logs / "tcp_trace.log")
        return RunState(
            throughput_bps=throughput_bps,
            depth_packets=packets_waiting(counters),
            drops=sum(count.packets for count in drops if count) if counters else None,
            postcards_received=int(collector.get("received", 0)),
            postcards_missing=int(collector.get("missing", 0)),
            trace_records=int(tracer.get("stored", 0)),
            trace_lost=int(tracer.get("lost", 0)),
            lateness_p99_us=percentile(self.switches.lateness(), 0.99) / 1e3,
        )


def bytes_out(counters: Counters, bottleneck: int) -> int:
    """Frame bytes that the bottleneck's queue took in and did not drop. Some may still wait in the queue."""
    came, *dropped = (counters[name].get(bottleneck) for name in ("arrivals", "arrival_drops", "departure_drops"))
    return (came.bytes if came else 0) - sum(count.bytes for count in dropped if count)


def percentile(histogram: list[tuple[int, int]], share: float) -> int:
    """The upper edge of the bucket in which `share` of all counts is reached; 0 if the histogram is empty."""
    wanted = share * sum(count for _, count in histogram)
    for edge, count in histogram:
        wanted -= count
        if wanted <= 0 and count:
            return edge
    return 0


def last_object(log: Path) -> dict[str, Any]:
    """The last whole line of a log that is a JSON object; {} if there is none yet."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - LOG_TAIL_BYTES))
            lines = file.read().split(b"\n")[:-1]
    except OSError:
        return {}
    for line in reversed(lines):
        try:
            content = json.loads(line)
        except ValueError:
            continue
        if isinstance(content, dict):
            return content
    return {}
