# SPDX-License-Identifier: MIT
"""The sender's trace by flow, and the packets in flight at each record.

A trace may leave fields unknown (wire/tcp_record.def). Where the packets in flight are unknown, they are estimated as
(snd_nxt - snd_una) / mss, as in Spang et al., whose tcp_probe does not count packets in flight. The estimate includes
lost and selectively acknowledged packets. Results that need another unknown field are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.arithmetic.by_flow import ByFlow
from analysis.read.load import Run
from analysis.read.raw import Columns, known
from lib.frames import IPV4_BYTES, IPV6_BYTES, TCP_BYTES, TIMESTAMP_OPTION_BYTES

PACKETS_OUT, SEQUENCE_NUMBERS = "packets_out", "snd_nxt - snd_una"  # sources of packets in flight


@dataclass
class TraceByFlow:
    """The rows of Run.tcp by flow number, in time order."""

    rows: ByFlow
    windows: ByFlow  # the rows that know cwnd and packets in flight
    in_flight: np.ndarray  # int32, packets, per row of Run.tcp; meaningful in the rows of `windows`
    in_flight_from: str | None  # SEQUENCE_NUMBERS if any row is estimated, else PACKETS_OUT; None without windows


def trace_by_flow(run: Run) -> TraceByFlow:
    """The trace by flow, before `estimate_in_flight`."""
    tcp = run.tcp
    rows = ByFlow.of(tcp["flow"], len(run.flows))
    counted, usable = known(tcp, "in_flight_packets"), window_known(tcp)
    windows = rows if usable.all() else rows.only(usable)
    source = (PACKETS_OUT if counted[usable].all() else SEQUENCE_NUMBERS) if usable.any() else None
    return TraceByFlow(rows, windows, tcp["in_flight_packets"], source)


def window_known(tcp: Columns) -> np.ndarray:
    """Mask of the records that know cwnd, and the packets in flight or what these are estimated from."""
    return (known(tcp, "in_flight_packets") | known(tcp, "snd_nxt", "snd_una")) & known(tcp, "cwnd_packets")


def estimate_in_flight(run: Run, trace: TraceByFlow, largest_payload: np.ndarray) -> None:
    """Estimates unknown packets in flight as (snd_nxt - snd_una) / mss, rounded up.

    mss is the record's `mss_bytes` if known; else the flow's largest payload in the queue, `largest_payload` (by flow
    number, 0 if the flow has none); else the payload of a packet as long as the MTU, with TCP timestamps.
    """
    if trace.in_flight_from != SEQUENCE_NUMBERS:
        return
    tcp = run.tcp
    trace.in_flight = trace.in_flight.copy()
    unknown = trace.windows.only(~known(tcp, "in_flight_packets"))
    rows, flow = unknown.rows, unknown.flow()
    ip_bytes = np.where(np.append(run.flows.is_ipv4, True), IPV4_BYTES, IPV6_BYTES)
    assumed = run.experiment.mtu_bytes - ip_bytes - TCP_BYTES - TIMESTAMP_OPTION_BYTES
    of_flow = np.where(largest_payload > 0, largest_payload, assumed)[flow]
    mss = np.where(known(tcp, "mss_bytes")[rows], tcp["mss_bytes"][rows], of_flow)
    outstanding = (tcp["snd_nxt"][rows] - tcp["snd_una"][rows]).astype(np.int64)
    trace.in_flight[rows] = -(-outstanding // np.maximum(mss, 1))
