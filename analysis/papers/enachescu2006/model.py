# SPDX-License-Identifier: MIT
"""A run in the paper's terms: how its flows send, its peak load, the carried share of this load, and the predictions
of the TCP equation with the losses of M/M/1/B and of M/D/1/B.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import harmonic_mean

from analysis.figures.common import BLUE, GREEN, ORANGE, PURPLE
from analysis.papers.curves import Curve
from analysis.papers.paper_runs import PaperRun
from analysis.papers.series import Of, series
from analysis.theory import mm1b, queues, tiny_buffers
from hosts.traffic.open_loop import Arrivals, read_arrivals
from lib.errors import InputError

USED = "utilization_mean"
BUFFER_AXIS, WINDOW_AXIS = "buffer B (packets)", "largest window W (packets)"
RENO, PACED, ACCESS, POISSON = "Reno", "paced Reno", "Reno behind 5 Mb/s", "Reno with Poisson gaps"
LINUX = "Linux's pacing"
OF_PACING = {"off": RENO, "exact": PACED, "poisson": POISSON, "linux": LINUX}
LOOKS = {RENO: (ORANGE, "o"), PACED: (BLUE, "s"), ACCESS: (GREEN, "^"), POISSON: (PURPLE, "D")}


def sender(run: PaperRun) -> str:
    """The way in which the flows of a run send: one of the names above."""
    return ACCESS if run["access_bps"] else OF_PACING[run["pacing"] or "off"]


def by_sender(runs: Iterable[PaperRun], senders: Iterable[str], by: str, number: Of = USED) -> dict[str, Curve]:
    """A curve for each of these senders."""
    listed = list(runs)
    return {
        name: Curve(series((run for run in listed if sender(run) == name), by, number), *LOOKS[name], "-")
        for name in senders
    }


def bdp(run: PaperRun) -> float:
    """C x RTT in packets. RTT is the harmonic mean over the flows, because their rates W / RTT add up. Raises
    InputError.
    """
    spec, flows = run.experiment, run["flows"]
    steps = max(flows - 1, 1)
    rtts_ns = [spec.rtt_ns + (spec.rtt_spread_ns or 0) * step / steps for step in range(flows)]
    return float(spec.rate_bps * harmonic_mean(rtts_ns) / 8e9 / spec.wire_bytes)


def peak_load(run: PaperRun) -> float:
    """rho = N W / (C RTT). Windows must be capped. Raises InputError."""
    return tiny_buffers.peak_load(bdp(run), run["flows"], run["window_packets"])


def effective_utilization(run: PaperRun) -> float | None:
    """theta = u / rho: the share of the peak load that the link carried."""
    used = run[USED]
    return None if used is None else used / peak_load(run)


def used_with_exponential(flows: int, bdp_packets: float, buffer: int, largest_window: float) -> float:
    """u that satisfies both the TCP equation and the loss of M/M/1/B (section IV-A)."""
    load = tiny_buffers.tcp_mm1b_load(bdp_packets / flows, buffer, largest_window)
    return mm1b.utilization(load, buffer)


def used_with_equal(flows: int, bdp_packets: float, buffer: int, largest_window: float) -> float:
    """u that satisfies both the TCP equation and the loss of M/D/1/B: packets have one size."""
    load = tiny_buffers.tcp_md1b_load(bdp_packets / flows, buffer, largest_window)
    return load * (1 - queues.md1_loss(load, buffer))


EXPONENTIAL, EQUAL = "TCP equation, M/M/1/B", "TCP equation, M/D/1/B"
MODELS = ((EXPONENTIAL, ":", used_with_exponential), (EQUAL, "--", used_with_equal))  # name, style of the line, u


# Rounds of periodic datagrams (hosts/traffic/schedule.h) --------------------------------------------------------------


def _parts(run: PaperRun) -> Arrivals:
    alone = run.experiment.open_loop
    parts = read_arrivals(alone and alone.arrivals)
    if parts is None:
        raise InputError(f"{run.label}: summary.json: the spec has no kind of arrivals; replay the run")
    return parts


def round_packets(run: PaperRun) -> int:
    """W: packets of a flow in a round."""
    return _parts(run).round_packets or 1


def spacing(run: PaperRun) -> float | None:
    """S as the spec gives it, in slots; None: evenly spaced."""
    ppm = _parts(run).spacing_ppm
    return None if ppm is None else ppm / 1e6


def slots(run: PaperRun) -> float:
    """S: slots between a flow's packets."""
    given = spacing(run)
    return float(run["flows"] / run["load"]) if given is None else given
