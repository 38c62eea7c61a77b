# SPDX-License-Identifier: MIT
"""The time that a queue takes to settle after the rate of its link has fallen."""

from __future__ import annotations

import numpy as np

from analysis.papers.paper_run import PaperRun

PARTS = 25  # windows of the time at the lower rate
LAST = 10  # of them say what is settled
MOST = 2  # times the mean of the last windows


def settled_ms(run: PaperRun) -> float | None:
    """From the fall of the rate to the end of the last window whose mean sojourn is more than MOST times the mean of
    the last windows before the rate rises; 0 if none is. None if the rate does not fall and rise, or a window is
    without departures. Needs the table of postcards. Raises InputError.
    """
    steps = run.experiment.rate_steps or ()
    if len(steps) != 3 or steps[1][1] >= min(steps[0][1], steps[2][1]):
        return None
    zero_ns, port = run.value("traffic_start_mono_ns"), run.summary["bottleneck_port"]
    edges_ns = np.linspace(steps[1][0], steps[2][0], PARTS + 1) + zero_ns
    sums, counts = np.zeros(PARTS), np.zeros(PARTS)
    for cards in run.slabs("postcards", "enqueue_mono_ns", "sojourn_ns", "egress_port"):
        left = cards.filter(cards["egress_port"] == port).drop_nulls("sojourn_ns")
        waits_ns = left["sojourn_ns"].to_numpy()
        ends_ns = left["enqueue_mono_ns"].to_numpy() + waits_ns
        sums += np.histogram(ends_ns, edges_ns, weights=waits_ns)[0]
        counts += np.histogram(ends_ns, edges_ns)[0]
    if not counts.all():
        return None
    means_ns = sums / counts
    above = np.flatnonzero(means_ns > MOST * sums[-LAST:].sum() / counts[-LAST:].sum())
    return float((edges_ns[above[-1] + 1] - edges_ns[0]) / 1e6) if len(above) else 0.0
