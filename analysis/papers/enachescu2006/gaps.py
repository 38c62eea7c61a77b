# SPDX-License-Identifier: MIT
"""Theorem 1's assumption, measured: how close the arrivals of many flows are to a Poisson process."""

from __future__ import annotations

import numpy as np

from analysis.figures.common import BLACK, BLUE, GREEN, ORANGE, PURPLE, Data
from analysis.papers import look
from analysis.papers.facts import Fact, exactly
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns

CAPTION = (
    "index of dispersion of the packets that arrive (variance over mean of their number in an interval) against the "
    "interval's length. A Poisson process has 1 at any length. 50 flows, windows of 64 packets at most, a peak load of "
    "0.5, 15 packets of buffer."
)
STEM = "gaps"
PACINGS = ("poisson", "exact", "linux", "off")
SHADES = dict(zip(PACINGS, (PURPLE, BLUE, GREEN, ORANGE), strict=True))
TEXTS = {"poisson": "Poisson gaps", "exact": "even gaps", "linux": "Linux's pacing", "off": "no pacing"}
BUFFER = 15
LENGTHS = np.unique(np.append(np.rint(np.logspace(0, 4, 33)).astype(np.int64), BUFFER))  # transmission times
LEAST_INTERVALS = 50  # fewer give no useful variance


def dispersion(arrivals_ns: np.ndarray, start_ns: int, end_ns: int, packet_ns: float) -> list[tuple[int, float]]:
    """(interval in transmission times, variance / mean of the arrivals in such intervals), for whole intervals only, up
    to the longest length with LEAST_INTERVALS of them.
    """
    result = []
    for length in LENGTHS:
        count = int((end_ns - start_ns) / (length * packet_ns))
        if count < LEAST_INTERVALS:
            break
        edges = start_ns + np.arange(count + 1) * length * packet_ns
        numbers = np.diff(np.searchsorted(arrivals_ns, edges))
        if numbers.mean() > 0:
            result.append((int(length), float(numbers.var(ddof=1) / numbers.mean())))
    return result


def prepare(runs: PaperRuns) -> Data:
    """By pacing: the index of dispersion, and over BUFFER packet times; the gaps' variation, drops and utilization."""
    selected = {run["pacing"] or "off": run for run in runs.select(STEM, repetition=1)}
    of_pacings = {pacing: run.measure("arrivals", Data, _of) for pacing, run in selected.items()}
    rows = []
    for pacing, of in of_pacings.items():
        who, poisson = TEXTS[pacing], 1.0 if pacing == "poisson" else None
        length, index = min(of["index"], key=lambda point: abs(point[0] - BUFFER))
        rows += [
            Fact(f"{who}: index of dispersion over {length} packet times", "", poisson, exactly(index), ""),
            Fact(f"{who}: coefficient of variation of the gaps", "", poisson, exactly(of["variation"]), ""),
            Fact(f"{who}: dropped share", "", None, exactly(of["drops"]), ""),
            Fact(f"{who}: u", "", None, exactly(of["used"]), ""),
        ]
    return {"curves": of_pacings, "facts": rows}


def _of(run: PaperRun) -> Data:
    trace = PacketTrace(run)
    arrivals = trace.queue["enqueue_mono_ns"][trace.arrivals(trace.start_ns, trace.end_ns)]
    index = dispersion(arrivals, trace.start_ns, trace.end_ns, trace.packet_ns)
    gaps = np.diff(arrivals)
    return {"index": index, "variation": float(gaps.std() / gaps.mean()), "used": run["utilization_mean"],
            "drops": run["drops"] / run["arrivals"]}  # fmt: skip


def draw(data: Data) -> look.Figure:
    """One panel, both axes logarithmic."""
    figure, ax = look.new_panel(look.PAGE_IN * 0.72, 2.6)
    curves = data["curves"]
    if not curves:
        return look.absent(ax)
    ax.set_xscale("log")
    ax.set_yscale("log")
    for pacing in PACINGS:
        if pacing in curves:
            lengths, values = zip(*curves[pacing]["index"], strict=True)
            ax.plot(lengths, values, color=SHADES[pacing], label=TEXTS[pacing])
    ax.axhline(1, color=BLACK, linewidth=0.6, linestyle="--", label="Poisson")
    ax.set_xlabel("length of the interval (packet times)")
    ax.set_ylabel("variance / mean of arrivals")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


FIGURE = PaperFigure("gaps", CAPTION, (STEM,), prepare, draw)
