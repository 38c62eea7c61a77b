# SPDX-License-Identifier: MIT
"""Finite flows of the measurement window: completion time against size, and the distribution of throughput.

A completion time runs from the SYN to the ACK of the last byte and FIN. A triangle is a flow that did not finish, at
its age when the flow or the measurement ended. Ages far below the completion time on an empty path are outside the
axes.
"""

from __future__ import annotations

import numpy as np

from analysis.figures import canvas, common
from analysis.figures.common import BLACK, DISTINCT, GREY, Data
from analysis.wording.traffic_text import transfers_text

MAX_POINTS = 3000  # points of a group; a sample of a larger group keeps its slowest flows
SLOWEST_KEPT = 300
MAX_STEPS = 500  # of a distribution


def prepare(a: common.Analysis) -> Data:
    """Points and distributions of each group, thinned, and the RTT and rate of the empty path."""
    from analysis.measure import finite_flows

    records, spec = a.run.flow_records, a.run.experiment
    assert records is not None
    group = finite_flows.groups_of(a.run)
    began = records["syn_mono_ns"]
    measured = (began >= a.window.start_ns) & (began < a.window.end_ns)
    groups = []
    for number, of_group in enumerate(spec.finite):
        rows = np.flatnonzero(measured & (group == number))
        ended = records["ended_mono_ns"][rows]
        took_s = (np.where(ended > 0, ended, a.window.end_ns) - began[rows]) / 1e9
        finished = records["end"][rows] == finite_flows.RECORD["FLOW_END_FINISHED"]
        sizes = records["size_bytes"][rows]
        rates = np.sort(8 * sizes[finished] / np.maximum(took_s[finished], 1e-9))
        shown = _sample(took_s)
        groups.append(
            {
                "name": transfers_text(of_group),
                "sizes": sizes[shown],
                "took_s": took_s[shown],
                "finished": finished[shown],
                "count": len(rows),
                "rates": rates[np.unique(np.linspace(0, len(rates) - 1, MAX_STEPS).astype(int))]
                if len(rates)
                else rates,
                "median_bps": float(np.median(rates)) if len(rates) else None,
            }
        )
    facts = common.run_facts(a)
    fastest_bps = float(facts["rate"][1].max()) * 1e6 if "rate" in facts else spec.rate_bps
    return {"facts": facts, "groups": groups, "rtt_s": spec.rtt_ns / 1e9, "rate_bps": fastest_bps}


def _sample(took_s: np.ndarray) -> np.ndarray:
    """Rows to draw: all, or the slowest and an even choice of the others."""
    if len(took_s) <= MAX_POINTS:
        return np.arange(len(took_s))
    order = np.argsort(took_s, kind="stable")
    even = order[np.linspace(0, len(order) - 1 - SLOWEST_KEPT, MAX_POINTS - SLOWEST_KEPT).astype(int)]
    return np.sort(np.concatenate((even, order[-SLOWEST_KEPT:])))


def draw(data: Data) -> common.Figure:
    """Left: completion times. Right: throughput of each finished flow."""
    figure, left, right = canvas.pair(data["facts"], 4.0, (1.7, 1))
    common.label(figure, data["facts"])
    for ax in (left, right):
        common.tidy(ax)
    drawn = [group for group in data["groups"] if group["count"]]
    if not drawn:
        common.say(left, "no flow began in the measurement window")
        return figure
    for group, color in zip(drawn, DISTINCT, strict=False):
        _points(left, group, color)
        if len(group["rates"]):
            shares = 100 * np.arange(1, len(group["rates"]) + 1) / len(group["rates"])
            right.step(group["rates"] / 1e6, shares, where="post", color=color, linewidth=1.2, label=group["name"])
    _empty_path(left, drawn, data)
    left.set_xscale("log")
    left.set_yscale("log")
    left.set_xlabel("size of the flow (bytes)")
    left.set_ylabel("completion time (s)")
    right.set_xscale("log")
    right.set_ylim(0, 100)
    right.set_xlabel("throughput of a flow (Mb/s)")
    right.set_ylabel("share of flows (%)")
    if len(drawn) > 1:
        right.legend(frameon=False, fontsize=8)
    return figure


def _points(ax: common.Axes, group: Data, color: str) -> None:
    done = group["finished"]
    size = 14 if group["count"] < 300 else 6
    ax.scatter(
        group["sizes"][done], group["took_s"][done], s=size, color=color, alpha=0.5, linewidths=0, rasterized=True
    )
    if not done.all():
        ax.scatter(
            group["sizes"][~done], group["took_s"][~done], s=size + 8, marker="^", facecolors="none", edgecolors=color,
            linewidths=0.8,
        )  # fmt: skip


def _empty_path(ax: common.Axes, groups: list[Data], data: Data) -> None:
    """The least time: two round trips (handshake; data and its ACK), and the bits at the link's rate."""
    sizes = np.concatenate([group["sizes"] for group in groups]).astype(np.float64)
    low, high = sizes.min(), sizes.max()
    x = np.geomspace(low / 1.3, high * 1.3, 60)
    least_s = 2 * data["rtt_s"] + 8 * x / data["rate_bps"]
    ax.plot(x, least_s, color=GREY, linewidth=1, linestyle="--")
    ax.annotate("2 RTT + size / rate", (x[0], least_s[0]), xytext=(2, -11), textcoords="offset points", fontsize=8,
                color=BLACK)  # fmt: skip
    ax.set_ylim(bottom=least_s[0] / 1.6)
