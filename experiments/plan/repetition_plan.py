# SPDX-License-Identifier: MIT
"""The plan of a repetition as data. run_plan.py computes the plan from a spec.

A virtual-time machine reads a finished plan. There every module that Python imports costs milliseconds, so this module
imports neither the spec nor its parser.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from experiments.plan.configure import SwitchSettings
from experiments.spec.topology import Network
from experiments.spec.traffic import TrafficPlan


class Sizes(NamedTuple):
    """`tcp_mib` is the memory of all socket buffers. `machine_mib` includes `tcp_mib`, and is an upper bound."""

    pool_packets: int
    frame_bytes: int
    trace_ring_mib: int
    trace_read_ms: int
    tcp_mib: int
    machine_mib: int


class Durations(NamedTuple):
    """`unmeasured_ns` is the part of `traffic_ns` before the measurement, without the time that iperf3 takes to connect
    the flows. `round_trip_ns` is the longest RTT of all flows on the idle path. In virtual time the traffic is polled
    every `tick_s`. `repetition_s` and `analysis_s` are wall time.
    """

    connect_ns: int
    unmeasured_ns: int
    traffic_ns: int
    round_trip_ns: int
    tick_s: float
    repetition_s: float
    analysis_s: float


@dataclass(frozen=True)
class RunPlan:
    """`stored_spec` is the content of spec.yaml; `congestion_sources`, `rate_trace` and `p4` are files that are stored
    beside it.
    `congestion_controls` are those of the run, `cc_parameters` their parameters. `kernel_names` maps the plain names of
    the run's BPF congestion controls to their names in the kernel. `setup` has the playbooks' variables, except the
    run's directory. `machine_seed` seeds everything random in a virtual machine. `kernel_parameters` are words of the
    virtual machine's kernel command line.
    """

    title: str
    target: str
    stored_spec: Mapping[str, Any]
    congestion_sources: list[dict[str, str]]
    rate_trace: list[dict[str, str]]  # one, if any
    p4: list[dict[str, str]]  # one, if any
    congestion_controls: tuple[str, ...]
    cc_parameters: Mapping[str, str]
    network: Network
    settings: SwitchSettings
    traffic: TrafficPlan
    setup: Mapping[str, Any]
    sizes: Sizes
    durations: Durations
    machine_seed: int
    kernel_names: Mapping[str, str]
    kernel_parameters: Mapping[str, str]
    recorded_ns: int | None = None  # the longest stay in the queue, if frames are recorded before and behind the switch

    def variables(self, directory: Path) -> dict[str, Any]:
        """The playbooks' variables of a run in `directory`."""
        return {**self.setup, "run_dir": str(directory), "logs_dir": str(directory / "logs")}
