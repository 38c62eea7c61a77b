# SPDX-License-Identifier: MIT
"""Utilization of 40 flows against the buffer for several kinds of hosts and paths, in the axes of Figures 1 and 4, and
the least buffer of each kind for 80 %: `hosts` changes one property of Figure 1's hosts or path at a time, `today` has
today's Linux senders.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from analysis.figures import algorithms
from analysis.figures.common import Data
from analysis.papers import crossing, curves, look
from analysis.papers.curves import RIGHT, Curve, Panel, Shape, numbered
from analysis.papers.enachescu2006.model import BUFFER_AXIS, USED
from analysis.papers.facts import each
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import series
from analysis.wording.formats import si

ENOUGH = 0.8
Kinds = dict[str, list[PaperRun]]


def _prepare(
    runs: PaperRuns, stem: str, kind: Callable[[PaperRun], str], shown: Callable[[Kinds], dict[str, Curve]],
    printed: dict[str, str], most_packets: int,
) -> Data:  # fmt: skip
    """The least buffer of each kind, with the paper's words for it, and u with buffers of up to `most_packets`. `shown`
    gives the curves of the kinds their looks and their order.
    """
    kinds: Kinds = {}
    for run in runs.select(stem):
        kinds.setdefault(kind(run), []).append(run)
    kinds = dict(sorted(kinds.items(), key=lambda item: item[0] != AS_FIGURE_1))
    rows, used = [], []
    for name, same in kinds.items():
        what = f"{name}: least buffer for u of {ENOUGH:g} or more"
        rows.append(crossing.of_utilization(same, ENOUGH).fact(what, printed.get(name, ""), None))
        points = series(same, "buffer_packets", USED)
        few = {buffer: point for buffer, point in points.items() if buffer <= most_packets}
        used += each(few, f"{name}, B = {{}}: u")
    return {"panels": {"": Panel(shown(kinds))}, "facts": rows + used}


def _figure(stem: str, caption: str, **how: Any) -> PaperFigure:
    shape = Shape(BUFFER_AXIS, size_in=(look.PAGE_IN, 3.0), level=ENOUGH, legend=RIGHT)
    return curves.figure(stem, caption, (stem,), partial(_prepare, stem=stem, **how), shape)


# Figure 1 with one change ---------------------------------------------------------------------------------------------

AS_FIGURE_1 = "as Figure 1"
CAPTION_OF_HOSTS = (
    "utilization of 40 unpaced Reno flows against the buffer, as in Figure 1, with one property of the hosts or of the "
    "path changed at a time."
)


def change(run: PaperRun) -> str:
    """The properties in which a run differs from Figure 1, in words; AS_FIGURE_1 if none. Raises InputError."""
    spec = run.experiment
    spread_s, rtt_s = (spec.rtt_spread_ns or 0) / 1e9, spec.rtt_ns / 1e9
    words = []
    if run["profile"] == "linux":
        words.append("TCP as Linux has it")
    else:
        words += ["delayed ACKs"] if run["acks"] == "delayed" else []
        words += ["SACK"] if run["sack"] == "on" else []
    if run["access_bps"]:
        words.append(f"behind links of {si(run['access_bps'], 'b/s')}")
    if not spread_s:
        words.append(f"RTTs of {si(rtt_s, 's')}")
    elif spread_s > 0.05:
        words.append(f"RTTs of {si(rtt_s, 's')} to {si(rtt_s + spread_s, 's')}")
    return ", ".join(words) or AS_FIGURE_1


def _in_turn(kinds: Kinds) -> dict[str, Curve]:
    return numbered({name: Curve(series(same, "buffer_packets", USED)) for name, same in kinds.items()})


HOSTS = _figure(
    "hosts", CAPTION_OF_HOSTS, kind=change, shown=_in_turn, printed={AS_FIGURE_1: "about 100"}, most_packets=10
)

# Today's senders ------------------------------------------------------------------------------------------------------

CAPTION_OF_TODAY = (
    "utilization against the buffer with senders as Linux 6.12 has them: 40 flows on 100 Mb/s, 90 to 110 ms, "
    "uncapped windows, SACK and RACK on, delayed ACKs. TSO: the sender's NIC of 10 Gb/s cuts segments of up to 64 kB."
)
PACINGS = {"linux": ("Linux's pacing", "--"), "exact": ("even pacing", ":"), "fq": ("fq", "-.")}
UNPACED = ("", "-")


def _today(run: PaperRun) -> str:
    """Algorithm, pacing and offloads in words."""
    pacing, _ = PACINGS.get(run["pacing"] or "", UNPACED)
    words = [algorithms.name(run["cc"]), pacing, "TSO" if run["nic_rate_bps"] else ""]
    return ", ".join(word for word in words if word)


def _by_algorithm(kinds: Kinds) -> dict[str, Curve]:
    """The colour shows the algorithm, the line the pacing, the marker TSO."""
    shown = {}
    for name, same in sorted(kinds.items()):
        run = same[0]
        marker, (_, style) = "s" if run["nic_rate_bps"] else "o", PACINGS.get(run["pacing"] or "", UNPACED)
        shown[name] = Curve(series(same, "buffer_packets", USED), algorithms.color(run["cc"]), marker, style)
    return shown


TODAY = _figure("today", CAPTION_OF_TODAY, kind=_today, shown=_by_algorithm, printed={}, most_packets=20)
