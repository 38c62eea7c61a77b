# SPDX-License-Identifier: MIT
"""The effect of properties of the queue and of the hosts on the depth. Nearly all points change one property; all other
properties are as in the other sweeps.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

from analysis.arithmetic.statistics import Interval, mean_interval
from analysis.figures import algorithms
from analysis.figures.common import BLACK, Data
from analysis.papers import look
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import bdp, grouped
from analysis.papers.spang2021.beside import PERCENTILES
from analysis.wording.formats import si
from hosts.tune import tcp_options
from model.experiment import Experiment

CAPTION = (
    "how far the 1st percentile, the median and the 99th percentile of depth move if one property of the queue or of "
    "the hosts changes (where a label has several, all of them change), with all else as in the other sweeps (B = 131 "
    "packets, the published 15000 cells). Filled: 16 flows; hollow: one flow."
)
STEM = "factors"
AS_THE_SET = "as the other sweeps"
# Properties: the keys in spec.yaml, the set's value (experiments/specs/spang2021), the text for another value, and the
# function that writes the value into the text
PROPERTIES: tuple[tuple[tuple[str, ...], Any, str, Callable[[Any], str]], ...] = (
    (("mode",), "egress-threshold", "{}", str),
    (("drop_cost_permille",), 280, "a drop takes {} ‰ of a packet time", str),
    (("delay",), "tc", "delay in the links", str),
    (("offloads", "nic_rate_bps"), 20 * 10**9, "NIC of {}", lambda rate_bps: si(rate_bps, "b/s")),
    (("shared", "access_bps"), None, "each flow sends at {} beside the others", lambda rate_bps: si(rate_bps, "b/s")),
    (("offloads", "coalesce_us"), 125, "received frames wait {}", lambda us: si(us / 1e6, "s")),
    (("tcp", "comp_sack_slack_ns"), 0, "SACK timer's slack {}", lambda ns: si(ns / 1e9, "s")),
    (("warmup_ns",), 333_600_000, "warm-up of {}", lambda ns: si(ns / 1e9, "s")),
)
LABEL_LETTERS = 28  # largest number of characters in a line of a label
LINE = 0.45  # height of a line of a label, in units of the least height of a change's row
LATER_SCALABLE = "d"  # the marker of `scalable`: the set's own Scalable (scalable_50) has the same colour
SINGLE_SEGMENTS = "single segments (no offloads)"


def changes(spec: Experiment) -> str:
    """The changed properties of a run, in words."""
    words = [] if spec.offloads else [SINGLE_SEGMENTS]
    for path, usual, text, written in PROPERTIES:
        if path[0] == "offloads" and not spec.offloads:
            continue
        if path[0] == "drop_cost_permille" and spec.mode == "tail-drop":
            continue  # a packet that is dropped on arrival takes no link time
        value: Any = spec
        for key in path:
            value = value.get(key) if isinstance(value, dict) else value and getattr(value, key)
        if value != usual:
            usual_of_linux = tcp_options.LINUX[path[1]] if path[0] == "tcp" else 0
            words.append(text.format(written(usual_of_linux if value is None else value)))
    return "; ".join(words) or AS_THE_SET


def prepare(runs: PaperRuns) -> Data:
    """Each percentile of each change, for each algorithm and number of flows. The unchanged runs come first, then the
    changes by name.
    """
    selected = runs.select(STEM, imported=False, needs=tuple(f"depth_{name}_packets" for name in PERCENTILES))
    groups: dict[tuple[str, int], dict[str, dict[str, Interval]]] = {}
    for cc, same_cc in grouped(selected, "cc").items():
        for flows, same in grouped(same_cc, "flows").items():
            groups[cc, flows] = _by_change(same)
    names = [AS_THE_SET, *sorted({change for group in groups.values() for change in group} - {AS_THE_SET})]
    published = {} if runs.beside is None else {
        (row["cc"], row["flows"]): row for row in runs.beside.depths.iter_rows(named=True)
        if selected and row["buffer_packets"] == selected[0]["buffer_packets"]
    }  # fmt: skip
    rows = []
    for (cc, flows), group in groups.items():
        row = published.get((cc, flows), {})
        for change in names:
            for which, interval in group.get(change, {}).items():
                said = f"{row[which]} packets" if row else ""
                what = f"{algorithms.name(cc)}, n = {flows}, {change}: {PERCENTILES[which]} of depth"
                rows.append(Fact(what, said, None, interval, "packets"))
    return {"groups": groups, "changes": names, "bdp": bdp(selected[0]) if selected else 1.0, "facts": rows}


def _by_change(runs: list[PaperRun]) -> dict[str, dict[str, Interval]]:
    by_change = grouped(runs, lambda run: changes(run.experiment))
    return {
        change: {
            which: interval
            for which in PERCENTILES
            if (interval := mean_interval(run[f"depth_{which}_packets"] for run in same)) is not None
        }
        for change, same in by_change.items()
    }


def _shift(group: dict[str, dict[str, Interval]], change: str, which: str) -> float | None:
    """How far a change moves a percentile from the unchanged runs, in packets; None if either has no runs."""
    if change not in group or AS_THE_SET not in group:
        return None
    return group[change][which].value - group[AS_THE_SET][which].value


def draw(data: Data) -> look.Figure:
    """A panel for each percentile, a row for each change."""
    names = data["changes"][1:]
    labels = [textwrap.fill(name, LABEL_LETTERS) for name in names]
    lines = [label.count("\n") + 1 for label in labels]
    heights = [max(1.0, LINE * count) for count in lines]
    places = [sum(heights[:at]) + heights[at] / 2 for at in range(len(labels))]
    from matplotlib.lines import Line2D

    figure, axes = look.new_figure(look.PAGE_IN, 0.9 + 0.34 * max(sum(heights), 3), 1, len(PERCENTILES), sharey=True)
    if not names:
        return look.absent(*axes.flat)
    keys = list(data["groups"])
    for ax, which in zip(axes[0], PERCENTILES, strict=True):
        ax.axvline(0, color=BLACK, linewidth=0.6)
        for number, (cc, flows) in enumerate(keys):
            for at, change in enumerate(names):
                shift = _shift(data["groups"][cc, flows], change, which)
                if shift is not None:
                    place = places[at] + (number - (len(keys) - 1) / 2) * 0.8 / len(keys)
                    shade = algorithms.color(cc)
                    ax.plot(shift / data["bdp"], place, _marker(cc), color=shade, markersize=2.6,
                            markerfacecolor=shade if flows > 1 else "white", markeredgewidth=0.6, clip_on=False,
                            zorder=3)  # fmt: skip
        ax.set_title(PERCENTILES[which], loc="left", pad=3)
        ax.set_xlabel("moved by (BDP)")
        ax.margins(x=0.06)
    axes[0, 0].set_yticks(places, labels)
    axes[0, 0].set_ylim(sum(heights), 0)
    handles = [
        Line2D([], [], linestyle="", color=algorithms.color(cc), marker=_marker(cc), label=algorithms.name(cc))
        for cc in dict.fromkeys(cc for cc, _ in keys)
    ]
    axes[0, -1].legend(handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, handlelength=1.2)
    return figure


def _marker(cc: str) -> str:
    return LATER_SCALABLE if cc == "scalable" else algorithms.marker(cc)


FIGURE = PaperFigure("factors", CAPTION, (STEM,), prepare, draw)
