# SPDX-License-Identifier: MIT
"""Between which two buffers of the runs a mean crosses a level: what two of the papers call the least buffer. The least
buffer of analysis/papers/least_buffer.py judges the mean's interval instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from analysis.arithmetic.statistics import Interval
from analysis.papers import look
from analysis.papers.facts import Fact
from analysis.papers.paper_runs import PaperRun
from analysis.papers.series import series


class Crossing(NamedTuple):
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

    def fact(
        self, what: str, paper: str, predicted: float | None, unit: str = "packets", unit_packets: float = 1.0
    ) -> Fact:
        """The crossing in units of `unit_packets`; if an end is open, the known end in words."""
        if self.high is not None:
            words = f"at most {self.high / unit_packets:.3g}"
        else:
            words = "not measured" if self.low is None else f"more than {self.low / unit_packets:.3g}"
        return Fact(what, paper, predicted, self.interval(unit_packets), unit, none=words)


def crossing(enough: Mapping[int, bool]) -> Crossing:
    """From the largest buffer that is not enough to the next larger buffer of the runs."""
    low = max((buffer for buffer, is_enough in enough.items() if not is_enough), default=None)
    return Crossing(low, min((buffer for buffer in enough if low is None or buffer > low), default=None))


def of_utilization(runs: Iterable[PaperRun], level: float) -> Crossing:
    """The crossing of the mean utilization over repetitions."""
    means = series(runs, "buffer_packets", "utilization_mean")
    return crossing({buffer: mean.value >= level for buffer, mean in means.items()})


class Kind(NamedTuple):
    """Crossings by number of flows, and what theory says for them."""

    label: str
    shade: str
    of_flows: Mapping[int, Crossing]
    theory: Mapping[int, float] = {}


def draw_by_flows(
    ax: look.Axes, kinds: Sequence[Kind], ns3: Sequence[Kind], x_label: str, margin: float, sidestep: float,
    rule: Callable[[look.Axes, list[int]], None],
) -> None:  # fmt: skip
    """The crossings of each kind against the number of flows, both axes logarithmic. Kinds are drawn a factor
    `sidestep` apart, so that they do not hide each other. `rule` draws a rule at these numbers of flows.
    """
    flows = sorted({n for kind in kinds for n in kind.of_flows})
    if not flows:
        look.absent(ax)
        return
    ax.set_yscale("log")
    look.log2_axis(ax, flows, margin)
    ax.set_xlabel(x_label)
    ax.set_ylabel("least buffer (packets)")
    rule(ax, flows)
    simulated = {kind.label: kind.of_flows for kind in ns3}
    for at, kind in enumerate(kinds):
        step = sidestep ** (at - (len(kinds) - 1) / 2)
        if kind.theory:
            ax.plot(list(kind.theory), list(kind.theory.values()), color=kind.shade, linewidth=0.6)
        for n, of in kind.of_flows.items():
            draw(ax, n * step, of, kind.shade)
        for n, of in simulated.get(kind.label, {}).items():
            draw_ns3(ax, n * step, of, kind.shade)
        ax.plot([], [], "o", color=kind.shade, label=kind.label)


def draw_ns3(ax: look.Axes, x: float, of: Crossing, shade: str) -> None:
    """The crossing of ns-3's runs. If an end is open, a triangle at the known end points towards the open end."""
    middle = of.interval()
    if middle is None:
        end, marker = (of.high, "v") if of.high is not None else (of.low, "^")
        ax.plot(x, end or 1, marker, color=shade, **look.NS3)
    else:
        look.ns3_points(ax, [x], [middle], shade)


def draw(ax: look.Axes, x: float, of: Crossing, shade: str, marker: str = "o") -> None:
    """A bar with its middle. If an end is open, only a dash at the known end."""
    middle = of.interval()
    if middle is None or middle.low is None or middle.high is None:
        ax.plot(x, of.high or of.low or 1, "_", color=shade, markersize=6, markeredgewidth=1.2)
        return
    ax.plot([x, x], [middle.low, middle.high], color=shade, linewidth=1.2, solid_capstyle="butt")
    ax.plot(x, middle.value, marker, color=shade)
