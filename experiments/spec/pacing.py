# SPDX-License-Identifier: MIT
"""The keys of an experiment for its senders' bursts and windows: PACING and WINDOW.

PACING=linux, exact and poisson start TCP's own pacing, for every congestion control whose pace follows from its window.
PACING=fq paces by the sender's qdisc. BBR paces itself, whatever PACING says. WINDOW is the kernel's clamp of the
congestion window. No socket option sets the clamp. In virtual time the kernel's traffic device sets the clamp, in real
time a BPF program (hosts/congestion_bpf/window.bpf.c).
"""

from __future__ import annotations

from typing import Any

from experiments.spec.transfers import TCP
from lib.keys import GROUP, Keys, field
from lib.quantities import Packets

POISSON, FQ = "poisson", "fq"
PACING = ("off", "linux", "exact", POISSON, FQ)
# The virtual-time kernel's tcp_pacing_gaps (virtual/kernel/patches/pacing-gaps.patch). By default (0) a late segment
# shortens the next gap by up to half.
GAPS = {"exact": 1, POISSON: 2}


class PacingKeys(Keys):
    # fmt: off
    pacing: str = field(
        "how senders spread their packets: off (in bursts, as ACKs come), linux (at 2 windows per RTT in slow start, "
        "then 1.2), exact (at one window per RTT), poisson (as exact, with exponential gaps; CLOCK=virtual), fq (as "
        "linux, by the sender's qdisc fq); BBR paces itself", default="off", values=PACING, scope=GROUP, kinds=TCP)
    window: Packets | None = field(
        "most packets in a flow's congestion window, whatever its congestion control: 32p (default: no bound)",
        Packets.within("1p", "1000000p"), scope=GROUP, kinds=TCP)
    # fmt: on


def options(pacing: str | None, window_packets: int | None, clock: str) -> dict[str, Any]:
    """The keys of the traffic program's plan. In real time a BPF program bounds the windows (hosts/congestion_bpf). fq
    paces every socket, so the program starts no pacing of TCP's own.
    """
    window = {"window_segments": window_packets} if window_packets and clock == "virtual" else {}
    return ({"pacing": True} if pacing and pacing != FQ else {}) | window


def setup(pacing: str | None) -> dict[str, Any]:
    """The playbooks' variables. `exact` and `poisson` pace at 1 window per RTT (100 %), not at Linux's 2 and 1.2."""
    if pacing == FQ:
        return {"sender_qdisc": FQ}
    return {"tune_pacing_percent": 100} if pacing in GAPS else {}


def kernel_parameters(pacing: str | None) -> dict[str, str]:
    """Words of the virtual-time kernel's command line."""
    return {"tcp_pacing_gaps": str(GAPS[pacing])} if pacing in GAPS else {}
