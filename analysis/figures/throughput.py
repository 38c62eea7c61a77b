# SPDX-License-Identifier: MIT
"""Throughput of the long flows, and of the TCP flows of the user's programs beside them: for each algorithm over time
(left), and as a distribution over flows (right). Throughput counts payload that left the queue for the first time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.figures import algorithms, canvas, common
from analysis.figures.common import Data
from analysis.measure import group_results
from analysis.measure.metrics import mean_rate_bps
from analysis.read.columns import slabs

MOST_STEPS = 200
STYLES = ("-", "--", "-.", ":")


def prepare(a: common.Analysis) -> Data:
    """Mb/s of each algorithm in steps of ten RTTs or more, and of each flow in the measurement window, while its group
    was there.
    """
    facts = common.run_facts(a)
    drawn = [entry for entry in a.run.traffic if entry.number >= 0 and entry.cc is not None]  # no datagrams
    kinds = list(dict.fromkeys(entry.cc for entry in drawn))
    of_kind = np.full(len(a.run.flows) + 1, -1)
    for entry in drawn:
        of_kind[entry.number] = kinds.index(entry.cc)
    step_s = max(10 * a.run.experiment.rtt_ns / 1e9, facts["end_s"] / MOST_STEPS)
    steps = max(int(facts["end_s"] / step_s), 1)
    bits = np.zeros(len(kinds) * steps)
    for rows in slabs(len(a.good.flow)):
        kind, left_s = of_kind[a.good.flow[rows]], common.seconds(a, a.good.departure_ns[rows])
        inside = (kind >= 0) & (left_s >= 0) & (left_s < steps * step_s)
        cell = kind[inside] * steps + (left_s[inside] / step_s).astype(np.int64)
        payload = np.diff(a.good.bytes_before[rows.start : rows.stop + 1])[inside]
        bits += 8 * np.bincount(cell, weights=payload, minlength=len(bits))
    mbps = bits.reshape(len(kinds), steps) / step_s / 1e6
    rates_bps = group_results.flow_rates_bps(a.run, a.good, a.window)
    rates = {name: rates_bps[[entry.number for entry in drawn if entry.cc == name]] / 1e6 for name in kinds}
    each = {name: np.sort(of[~np.isnan(of)]) for name, of in rates.items()}
    return {
        "facts": facts, "kinds": kinds, "step_s": step_s, "mbps": mbps, "flows": each,
        "rate_mbps": a.run.experiment.rate_bps / 1e6,
        **({"mean_mbps": mean_rate_bps(a.run, a.window) / 1e6} if a.run.rate.schedule else {}),
    }  # fmt: skip


def draw(data: Data) -> common.Figure:
    """Two axes, on a phone below each other. An algorithm has the same colour and style of line in both."""
    figure, left, right = canvas.pair(data["facts"], 3.6, (1.6, 1))
    for ax in (left, right):
        common.tidy(ax)
    common.label(figure, data["facts"])
    left.set_ylabel("throughput (Mb/s)")
    left.set_xlabel("time since traffic started (s)")
    right.set_ylabel("share of flows (%)")
    right.set_xlabel("throughput of a flow (Mb/s)")
    common.shade_warmup(left, data["facts"])
    if not data["kinds"]:
        common.say(left, "no long flow sent anything")
        return figure
    times = (np.arange(data["mbps"].shape[1]) + 0.5) * data["step_s"]
    colors = algorithms.colors(data["kinds"])
    for number, (kind, mbps) in enumerate(zip(data["kinds"], data["mbps"], strict=True)):
        look: dict[str, Any] = {"color": colors[kind], "linestyle": STYLES[number % len(STYLES)], "linewidth": 1.2}
        rates = data["flows"][kind]
        left.plot(times, mbps, label=f"{len(rates)} {algorithms.name(kind)}", **look)
        shares = np.arange(len(rates) + 1) * 100 / max(len(rates), 1)
        right.step([0, *rates], shares, where="post", **look)
    changes = data["facts"].get("rate")
    if changes:
        left.step(*changes[:2], where="post", color=common.GREY, linewidth=0.9, linestyle=":", label="rate")
    left.set_ylim(0, (float(changes[1].max()) if changes else data["rate_mbps"]) * 1.06)
    left.set_xlim(0, max(data["facts"]["end_s"], 1e-9))
    canvas.legend(left, columns=4, line=2)
    flows = sum(map(len, data["flows"].values()))
    fair = data["mean_mbps" if changes else "rate_mbps"] / flows
    right.axvline(fair, color=common.GREY, linewidth=0.9, linestyle=":")
    right.set_xlim(0, max([fair, *(float(rates.max()) for rates in data["flows"].values() if len(rates))]) * 1.08)
    right.set_ylim(0, 106)
    right.set_title(f"dotted: {'mean ' * bool(changes)}rate / {flows} flows", fontsize=9, loc="left")
    return figure
