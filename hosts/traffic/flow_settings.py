# SPDX-License-Identifier: MIT
"""Settings of the TCP flows of a group. A plan sets them for all groups; a group may override them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from hosts.traffic.plan_reader import record


@dataclass(frozen=True)
class FlowSettings:
    """`window_segments`: bound on the congestion window (0: no bound). A bound needs the virtual-time kernel.
    `buffer_bytes`: size of the send buffer (0: the host's settings bound it). `ecn`: a connection without ECN is an
    error; if only some flows of a plan have `ecn`, the others do not ask for ECN. `start_ns`: when the flows begin;
    `stop_ns`: when long flows end, and from when on no finite flow begins (both 0: with the traffic; see span_ns).
    """

    window_segments: int = 0
    buffer_bytes: int = 0
    pacing: bool = False
    ecn: bool = False
    start_ns: int = 0
    stop_ns: int = 0

    def words(self) -> str:
        """The settings as words of a flow's line for build/tcp_flows, each after a space."""
        numbers = {"window": self.window_segments, "buffer": self.buffer_bytes}
        flags = {"pacing": self.pacing, "ecn": self.ecn}
        words = [f"{name}={value}" for name, value in numbers.items() if value]
        return "".join(f" {word}" for word in (*words, *(name for name, is_on in flags.items() if is_on)))


NO_SETTINGS = FlowSettings()


def take(values: dict[str, Any], where: str, default: FlowSettings = NO_SETTINGS) -> FlowSettings:
    """Removes the settings from an object of a plan. `default` has the values of missing keys. Raises PlanError."""
    given = {field.name: values.pop(field.name) for field in fields(FlowSettings) if field.name in values}
    return record(FlowSettings, {**asdict(default), **given}, where)


def span_ns(start_ns: int, stop_ns: int, spread_ns: int, duration_ns: int) -> tuple[int, int]:
    """From when to when flows with these times begin, in ns from the common start. `start_ns` and `stop_ns` count from
    `spread_ns` on, when the last of the flows that begin with the traffic has begun.
    """
    return spread_ns + start_ns if start_ns else 0, spread_ns + (stop_ns or duration_ns)
