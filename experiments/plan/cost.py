# SPDX-License-Identifier: MIT
"""Estimates the wall time of a repetition.

The constants are times on the idle reference machine; `slow` is the factor by which this machine is slower now
(machine_speed.py). While traffic flows, the measured pace is the better estimate (lab/virtual.py).
"""

from __future__ import annotations

import math

from experiments.spec import demand
from model.experiment import Experiment
from runs.thinned import KEEP, OF_PACKETS, removes

SETUP_S = 3.2  # the plan; boot, set-up and end of the machine and its hosts
FLOW_S = 3e-3  # for each flow: its sockets and records
VIRTUAL_S = 0.08  # for each second of virtual time: timers and progress reports
PACKET_S = 6e-6  # two TCP stacks, the switch, postcard and trace record
BYTE_S = 0.3e-9  # copies and checksums
PROCESS_PACKET_S = 150e-6  # in addition if the switch is a process, which waits, wakes and copies
OTHER_PACKET_S = 700e-6  # in addition if the switch is BMv2
LEAST_LOOKS = 10  # progress reports of a run
LOOK_EVERY_S = 1.0  # approximate wall time between reports of longer runs; a report takes 3 ms
REAL_OVERHEAD_S = 6.0  # of a lab in real time, before and after the traffic
ANALYSIS_S = 2.5  # most of it figures
ANALYSIS_PACKET_S = 4e-6
SUMMARY_S = 0.5  # analysis of a run that keeps neither packet tables nor figures
SUMMARY_PACKET_S = 2e-6


def traffic_s(spec: Experiment) -> float:
    """Wall time of the traffic, without set-up and analysis."""
    more_s = PROCESS_PACKET_S if spec.switch == "process" else 0.0
    more_s += OTHER_PACKET_S if spec.target != "soft" else 0.0
    packets, flows = demand.data_packets(spec), spec.flows + demand.open_finite_flows(spec)
    return driver_traffic_s(packets, spec.frame_bytes, flows, demand.traffic_ns(spec) / 1e9) + packets * more_s


def driver_traffic_s(packets: float, frame_bytes: int, flows: int, virtual_s: float) -> float:
    """Wall time of traffic that runs for `virtual_s` of virtual time, with the switch as a driver."""
    return packets * (PACKET_S + BYTE_S * frame_bytes) + FLOW_S * flows + VIRTUAL_S * virtual_s


def tick_s(spec: Experiment) -> float:
    """Virtual time between two progress reports. The interval must depend on the spec only: each report changes the
    machine's schedule, and the same spec must give the same bytes.
    """
    looks = max(LEAST_LOOKS, math.ceil(traffic_s(spec) / LOOK_EVERY_S))
    return demand.traffic_ns(spec) / 1e9 / looks


def analysis_s(spec: Experiment, keep: str = KEEP[0]) -> float:
    """Wall time of the analysis of a repetition that a sweep will thin to `keep`."""
    if removes(keep, OF_PACKETS[0]):
        return SUMMARY_S + SUMMARY_PACKET_S * demand.data_packets(spec)
    return ANALYSIS_S + ANALYSIS_PACKET_S * demand.data_packets(spec)


def repetition_s(spec: Experiment, slow: float = 1.0, keep: str = KEEP[0]) -> float:
    """Wall time of the whole repetition. In real time a slow machine prolongs the analysis only."""
    recorded_s = (demand.connect_ns(spec) + demand.traffic_ns(spec)) / 1e9 + REAL_OVERHEAD_S
    return slow * analysis_s(spec, keep) + (
        slow * (SETUP_S + traffic_s(spec)) if spec.clock == "virtual" else recorded_s
    )
