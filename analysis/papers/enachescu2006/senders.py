# SPDX-License-Identifier: MIT
"""Ways to send: the paper's Reno, paced Reno, Reno behind slow access links, and Poisson gaps; and Linux's pacing."""

from __future__ import annotations

from analysis.figures.common import BLUE, GREEN, ORANGE, PURPLE
from analysis.papers.stored_runs import StoredRun

RENO, PACED, ACCESS, POISSON, LINUX = "reno", "paced", "access", "poisson", "linux"
NAMES = {RENO: "Reno", PACED: "paced Reno", ACCESS: "Reno behind 5 Mb/s", POISSON: "Reno with Poisson gaps"}
COLORS = {RENO: ORANGE, PACED: BLUE, ACCESS: GREEN, POISSON: PURPLE}
MARKERS = {RENO: "o", PACED: "s", ACCESS: "^", POISSON: "D"}
OF_PACING = {"off": RENO, "exact": PACED, "poisson": POISSON, "linux": LINUX}


def sender(run: StoredRun) -> str:
    """The way in which the flows of a run send."""
    return ACCESS if run["access_bps"] else OF_PACING[run["pacing"] or "off"]
