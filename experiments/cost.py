# SPDX-License-Identifier: MIT
"""How long a repetition takes by the clock on the wall: not exact, processors differ by a factor of 2.

The figures are processor time on the reference machine; other work beside a run adds to the time on the wall. While
traffic flows, its measured pace is better (lab/virtual.py).
"""

from __future__ import annotations

import math

from experiments.resolved import Resolved

SETUP_S = 3.5  # the plan, the boot, the hosts, and their end
PACKET_S = 12e-6  # two TCP stacks, the switch, postcard and trace record
BYTE_S = 4e-9  # copies and checksums
PROCESS_FACTOR = 3.0  # a switch that is a process waits, wakes and copies, too
LEAST_LOOKS = 100  # at the traffic
LOOK_EVERY_S = 10.0  # of wall time, about: a machine that reports nothing for much longer counts as hung
REAL_OVERHEAD_S = 6.0  # of a lab in real time, before and after the traffic
ANALYSIS_S = 2.5  # most of it figures
ANALYSIS_PACKET_S = 4e-6


def traffic_s(spec: Resolved) -> float:
    """Wall time of the traffic, without set-up and analysis."""
    packet_s = PACKET_S + BYTE_S * spec.frame_bytes
    return spec.packets * packet_s * (PROCESS_FACTOR if spec.switch == "process" else 1.0)


def tick_s(spec: Resolved) -> float:
    """Virtual time between two progress reports. It must follow from the spec only: each report changes the machine's
    schedule, and the same spec must give the same bytes.
    """
    looks = max(LEAST_LOOKS, math.ceil(traffic_s(spec) / LOOK_EVERY_S))
    return spec.traffic_ns / 1e9 / looks


def analysis_s(spec: Resolved) -> float:
    """Of the analysis."""
    return ANALYSIS_S + ANALYSIS_PACKET_S * spec.packets


def repetition_s(spec: Resolved) -> float:
    """Of the whole repetition."""
    recorded_s = (spec.connect_ns + spec.traffic_ns) / 1e9 + REAL_OVERHEAD_S
    return analysis_s(spec) + (SETUP_S + traffic_s(spec) if spec.clock == "virtual" else recorded_s)
