# SPDX-License-Identifier: MIT
"""The least buffer that is enough, as a bracket between two buffers of the runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from analysis.papers import look
from analysis.papers.series import series
from analysis.papers.stored_runs import StoredRun
from analysis.statistics import Interval


class Bracket(NamedTuple):
    """More than `low`, at most `high` packets. `low` is None if every buffer of the runs is enough. `high` is None if
    the largest buffer is not enough.
    """

    low: int | None
    high: int | None

    def interval(self, unit_packets: float = 1.0) -> Interval | None:
        """Its geometric middle and its ends, in units of `unit_packets`; None if an end is open."""
        if self.low is None or self.high is None:
            return None
        low, high = self.low / unit_packets, self.high / unit_packets
        return Interval((low * high) ** 0.5, low, high, 1)

    def open_text(self, unit_packets: float = 1.0) -> str:
        """The known end of a bracket with an open end, as text."""
        if self.high is not None:
            return f"at most {self.high / unit_packets:.3g}"
        return "not measured" if self.low is None else f"more than {self.low / unit_packets:.3g}"


def bracket(enough: Mapping[int, bool]) -> Bracket:
    """The bracket from the largest buffer that is not enough to the next larger buffer of the runs."""
    low = max((buffer for buffer, is_enough in enough.items() if not is_enough), default=None)
    return Bracket(low, min((buffer for buffer in enough if low is None or buffer > low), default=None))


def of_utilization(runs: Iterable[StoredRun], least: float) -> Bracket:
    """The bracket by mean utilization over repetitions: the papers' criterion is a long mean, not a percentile."""
    means = series(runs, "buffer_packets", "utilization_mean")
    return bracket({buffer: mean.value >= least for buffer, mean in means.items()})


def axes_of(ax: look.Axes, of_curves: Iterable[Mapping[int, Bracket]], x_label: str, margin: float) -> list[int]:
    """Prepares logarithmic axes for the least buffer (y) against the number of flows (x). Returns the numbers of flows
    that the curves have. If there are none, the panel says so.
    """
    flows = sorted({n for curve in of_curves for n in curve})
    if not flows:
        look.absent(ax)
        return flows
    ax.set_yscale("log")
    look.log2_axis(ax, flows, margin)
    ax.set_xlabel(x_label)
    ax.set_ylabel("least buffer (packets)")
    return flows


def draw_ns3(ax: look.Axes, x: float, edges: Bracket, shade: str) -> None:
    """The bracket of ns-3's runs. If an end is open, a triangle at the known end points towards the open end."""
    middle = edges.interval()
    if middle is None:
        end, marker = (edges.high, "v") if edges.high is not None else (edges.low, "^")
        ax.plot(x, end or 1, marker, color=shade, **look.NS3)
    else:
        look.ns3_points(ax, [x], [middle], shade)


def draw(ax: look.Axes, x: float, edges: Bracket, shade: str, marker: str = "o") -> None:
    """A bar with its middle. If an end is open, only a dash at the known end."""
    middle = edges.interval()
    if middle is None or middle.low is None or middle.high is None:
        ax.plot(x, edges.high or edges.low or 1, "_", color=shade, markersize=6, markeredgewidth=1.2)
        return
    ax.plot([x, x], [middle.low, middle.high], color=shade, linewidth=1.2, solid_capstyle="butt")
    ax.plot(x, middle.value, marker, color=shade)
