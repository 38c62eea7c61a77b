# SPDX-License-Identifier: MIT
"""What a run looks like at one moment: the switch is asked; collector and tracer say it in their logs, as often as
somebody looks (repetition.status_options).
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controlplane.soft import SoftSwitch
from experiments.configure import BOTTLENECK

LAST_WORDS_BYTES = 4096


@dataclass(frozen=True)
class Sample:
    """Counts are since the start of the traffic, warm-up included; the throughput is that since the sample before."""

    throughput_bps: float
    depth_packets: int
    drops: int
    postcards_received: int
    postcards_missing: int
    trace_records: int
    trace_lost: int
    lateness_p99_us: float


class Sampler:
    """Takes samples of a running repetition. Each is five requests to the switch: in real time, one a second."""

    def __init__(self, switch: SoftSwitch, logs: Path) -> None:
        self.switch = switch
        self.logs = logs
        self.last_mono_ns = time.monotonic_ns()
        self.last_bytes = self._bytes_out()

    def take(self) -> Sample:
        now_ns, bytes_out = time.monotonic_ns(), self._bytes_out()
        throughput_bps = 8e9 * (bytes_out - self.last_bytes) / max(1, now_ns - self.last_mono_ns)
        self.last_mono_ns, self.last_bytes = now_ns, bytes_out
        drops = [self.switch.counter(name).get(BOTTLENECK) for name in ("arrival_drops", "departure_drops")]
        collector, tracer = last_object(self.logs / "collector.log"), last_object(self.logs / "tcp_trace.log")
        return Sample(
            throughput_bps=throughput_bps,
            depth_packets=queue_length(self.switch),
            drops=sum(count.packets for count in drops if count),
            postcards_received=int(collector.get("received", 0)),
            postcards_missing=int(collector.get("missing", 0)),
            trace_records=int(tracer.get("stored", 0)),
            trace_lost=int(tracer.get("lost", 0)),
            lateness_p99_us=percentile(self.switch.lateness(BOTTLENECK), 0.99) / 1e3,
        )

    def _bytes_out(self) -> int:
        return self.switch.stats()[f"port.{BOTTLENECK}.tx_bytes"]


def queue_length(switch: SoftSwitch) -> int:
    """Packets in the bottleneck queue now, by the P4 program's own account (modulo 2^32, as there)."""
    admitted, departed = (
        int(switch.request("register", "read", name, BOTTLENECK)[0].split()[-1])
        for name in ("admitted_packets", "departed_packets")
    )
    return (admitted - departed) % 2**32


def percentile(histogram: list[tuple[int, int]], share: float) -> int:
    """The upper edge of the bucket in which `share` of all counts is reached; 0 of an empty histogram."""
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
            file.seek(max(0, file.seek(0, 2) - LAST_WORDS_BYTES))
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
