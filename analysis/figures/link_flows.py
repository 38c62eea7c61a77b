# SPDX-License-Identifier: MIT
"""The connections of a captured link: how bursty they are together, their sizes and RTTs, and what limits them."""

from __future__ import annotations

import numpy as np

from analysis.figures import canvas, common
from analysis.figures.common import BLUE, GREEN, GREY, ORANGE, Data

POINTS = 200


def prepare(a: common.Analysis) -> Data:
    """Curves: the index of dispersion by window; shares of connections by bytes and by RTT; shares by limit."""
    import polars as pl

    from analysis.measure.captured_link import dispersions, summarize
    from analysis.read.connections import collect, of_data, scan

    flows = of_data(scan(a.run.directory)).filter(pl.col("forward"))
    shares = np.linspace(0, 1, POINTS)
    curves = {}
    for name in ("data_bytes", "rtt_ns"):
        row = collect(flows.select(pl.col(name).quantile(q, "nearest").alias(str(n)) for n, q in enumerate(shares)))
        curves[name] = np.array([value for value in row.row(0) if value is not None], dtype=float)
    return {
        "facts": common.run_facts(a), "dispersion": dispersions(a.run.directory), "curves": curves,
        "limits": summarize(a.run.directory, a.run.experiment.rate_bps)["limits"],
    }  # fmt: skip


def draw(data: Data) -> common.Figure:
    facts = data["facts"]
    figure = canvas.new(facts, 9.6 if facts.get("phone") else 5.4)
    grid = (4, 1) if facts.get("phone") else (2, 2)
    bursts, sizes, rtts, limits = np.ravel(figure.subplots(*grid))
    for ax in (bursts, sizes, rtts, limits):
        common.tidy(ax)
    common.label(figure, facts)
    bursts.plot(*data["dispersion"], ".-", color=BLUE, markersize=4)
    bursts.set(xscale="log", yscale="log", xlabel="window (s)", ylabel="Var(N) / E(N) of packets")
    common.level(bursts, 1, "Poisson", GREY)
    for ax, name, factor, unit in ((sizes, "data_bytes", 1e-3, "payload (kB)"), (rtts, "rtt_ns", 1e-6, "RTT (ms)")):
        values = data["curves"][name] * factor
        ax.set_xlabel(unit)
        ax.set_ylabel("connections up to this (%)")
        if not len(values):
            common.say(ax, "unknown: no handshake, and no timestamps of both ways")
            continue
        ax.plot(values, np.linspace(0, 100, len(values)), color=GREEN)
        ax.set_xscale("log")
        ax.set_ylim(0, 103)
    names = list(data["limits"])
    places = np.arange(len(names))
    for shift, key, label, color in (
        (0.2, "bytes", "of the bytes", BLUE),
        (-0.2, "flows", "of the connections", ORANGE),
    ):
        every = sum(one[key] for one in data["limits"].values()) or 1
        shares = [100 * data["limits"][name][key] / every for name in names]
        limits.barh(places - shift, shares, 0.38, color=color, label=label)
    limits.set_yticks(places, names)
    limits.invert_yaxis()
    limits.set_xlim(0, 100)
    limits.set_xlabel("what limits most of a connection's time (%)")
    canvas.legend(limits, columns=2)
    return figure
