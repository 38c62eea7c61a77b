# SPDX-License-Identifier: MIT
"""The mean depth over time with its standard error, and the queue of short TCP flows compared with the theory of their
bursts.

Depth over time differs from the depth at arrivals, because a packet also finds the earlier packets of its own burst.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.measure.metrics import Columns, Window
from analysis.read.columns import parts, rows_of
from analysis.read.load import Run
from analysis.read.postcards import NO_DATA_BYTES, admitted
from analysis.theory import short_flows
from hosts.tune.tcp_options import LINUX
from model.experiment import Experiment

BATCHES = 20  # for the standard error: each is long enough to be nearly independent of the others


def time_mean(queue: Columns, window: Window, longer_bytes: int = 0) -> dict[str, float | None]:
    """Mean packets in the queue over the window, and its standard error by batch means: successive depths are
    correlated, but the means of BATCHES equal parts of the window are nearly independent. Only frames of more than
    `longer_bytes` count.
    """
    if window.length_ns < BATCHES:
        return {"measured": None, "standard_error": None}
    edges_ns = window.start_ns + np.arange(BATCHES + 1, dtype=np.int64) * window.length_ns // BATCHES
    total = np.zeros(len(edges_ns), dtype=np.uint64)
    for cards in parts(queue, "flags", "enqueue_mono_ns", "sojourn_ns", "packet_bytes"):
        total += _packet_ns(rows_of(cards, admitted(cards) & (cards["packet_bytes"] > longer_bytes)), edges_ns)
    packet_ns = np.diff(total).view(np.int64)
    means = packet_ns / np.diff(edges_ns)
    return {
        "measured": float(packet_ns.sum() / window.length_ns),
        "standard_error": float(means.std(ddof=1) / np.sqrt(BATCHES)),
    }


def _packet_ns(cards: Columns, edges_ns: np.ndarray) -> np.ndarray:
    """Integral of these packets' part of the depth up to each edge, in packet x ns, from a common zero (uint64). The
    sums may wrap around, but their differences are right, because unsigned arithmetic is modulo 2^64.
    """
    came = cards["enqueue_mono_ns"] - edges_ns[0]
    left = np.sort(came + cards["sojourn_ns"])
    total = np.zeros(len(edges_ns), dtype=np.uint64)
    for times_ns, sign in ((came, 1), (left, -1)):
        before = np.searchsorted(times_ns, edges_ns - edges_ns[0])
        sums = np.concatenate(([0], np.cumsum(times_ns.astype(np.int64)))).view(np.uint64)
        spent = before.astype(np.uint64) * (edges_ns - edges_ns[0]).astype(np.uint64) - sums[before]
        total = total + spent if sign > 0 else total - spent
    return total


def of_slow_start(run: Run, queue: Columns, window: Window, mss_bytes: np.ndarray) -> dict[str, Any] | None:
    """The depth in data packets over time, and short_flows.mean_depth for the bursts of slow start at the run's load
    and initial window. None unless the only traffic is Poisson arrivals of flows of one size (a whole number of
    segments), at a load below 1.
    """
    packets = None if run.experiment.rate_changes else _flow_packets(run.experiment, mss_bytes)
    if packets is None:
        return None
    (group,) = run.experiment.finite
    bursts = short_flows.slow_start_bursts(packets, int((run.experiment.tcp or LINUX)["initcwnd"]))
    theory = short_flows.mean_depth(group.load or 0.0, bursts)
    depth = time_mean(queue, window, NO_DATA_BYTES)
    return {
        "bursts_packets": list(bursts),
        "time_mean_depth_data_packets": {"theory": theory, **depth},
        "measured_over_theory": None if depth["measured"] is None else depth["measured"] / theory,
    }


def _flow_packets(spec: Experiment, mss_bytes: np.ndarray) -> int | None:
    """Segments of each flow; None if the theory does not hold for the run."""
    if spec.traffic != "finite" or len(spec.finite) != 1 or not mss_bytes.any():
        return None
    (group,) = spec.finite
    size = group.sizes.get("value")  # of the distribution "fixed"
    if group.arrivals != "poisson" or not 0 < (group.load or 0) < 1 or not isinstance(size, (int, float)):
        return None
    packets, rest = divmod(size, int(mss_bytes.max()))
    return int(packets) if packets >= 1 and rest == 0 else None
