# SPDX-License-Identifier: MIT
"""The packets in flight at each record of the sender's trace.

A trace may leave fields unknown (wire/tcp_record.def). Where the packets in flight are unknown, they are estimated as
(snd_nxt - snd_una) / mss, as in Spang et al., whose tcp_probe does not count packets in flight. The estimate includes
lost and selectively acknowledged packets. Results that need another unknown field are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.read.columns import ColumnFile, parts
from analysis.read.load import Run
from analysis.read.raw import Columns, known
from lib.frames import IPV4_BYTES, IPV6_BYTES, TCP_BYTES, TIMESTAMP_OPTION_BYTES

PACKETS_OUT, SEQUENCE_NUMBERS = "packets_out", "snd_nxt - snd_una"  # sources of packets in flight
NAMES = ("unknown_fields", "flow", "in_flight_packets", "mss_bytes", "snd_nxt", "snd_una")


@dataclass
class InFlight:
    """Packets in flight, per row of Run.tcp."""

    packets: np.ndarray  # int32; meaningful in the rows of `window_known`
    source: str | None  # SEQUENCE_NUMBERS if any row is estimated, else PACKETS_OUT; None if no row knows the window


def knows_cwnd(run: Run) -> bool:
    """Whether the run's trace has cwnd, which captures cannot know. True without records."""
    rows = len(run.tcp["unknown_fields"])
    return not rows or any(known(part, "cwnd_packets").any() for part in parts(run.tcp, "unknown_fields"))


def window_known(tcp: Columns, with_cwnd: bool) -> np.ndarray:
    """Mask of the records that know the packets in flight, or what these are estimated from, and in a trace
    `with_cwnd` (knows_cwnd) cwnd, too.
    """
    usable = known(tcp, "in_flight_packets") | known(tcp, "snd_nxt", "snd_una")
    return usable & known(tcp, "cwnd_packets") if with_cwnd else usable


def in_flight(run: Run, largest_payload: np.ndarray) -> InFlight:
    """The packets in flight; where they are unknown, (snd_nxt - snd_una) / mss, rounded up.

    mss is the record's `mss_bytes` if known; else the flow's largest payload in the queue, `largest_payload` (by flow
    number, 0 if the flow has none); else the payload of a packet as long as the MTU, with TCP timestamps.
    """
    has_windows, lacking, with_cwnd = False, False, knows_cwnd(run)
    for part in parts(run.tcp, "unknown_fields"):
        usable = window_known(part, with_cwnd)
        has_windows |= bool(usable.any())
        lacking |= bool((usable & ~known(part, "in_flight_packets")).any())
    if not lacking:
        return InFlight(run.tcp["in_flight_packets"], PACKETS_OUT if has_windows else None)
    ip_bytes = np.where(np.append(run.flows.is_ipv4, True), IPV4_BYTES, IPV6_BYTES)
    assumed = run.experiment.mtu_bytes - ip_bytes - TCP_BYTES - TIMESTAMP_OPTION_BYTES
    of_flow = np.where(largest_payload > 0, largest_payload, assumed)
    file = ColumnFile(run.directory, {"packets": np.dtype(np.int32)})
    for part in parts(run.tcp, *NAMES):
        mss = np.where(known(part, "mss_bytes"), part["mss_bytes"], of_flow[part["flow"]])
        outstanding = -(-(part["snd_nxt"] - part["snd_una"]).astype(np.int64) // np.maximum(mss, 1))
        estimated = window_known(part, with_cwnd) & ~known(part, "in_flight_packets")
        file.append({"packets": np.where(estimated, outstanding, part["in_flight_packets"])})
    return InFlight(file.columns()["packets"], SEQUENCE_NUMBERS)
