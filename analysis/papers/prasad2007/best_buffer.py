# SPDX-License-Identifier: MIT
"""Figures 13 and 14: measured throughput of S-flows and L-flows against the buffer, beside the S-model and the L-model
with the fitted loss and delay.

The classes are by congestion events, as the paper defines them, and by size. The S-model is for one size, so S-flows
are transfers of about that size with few congestion events. L-flows have any size. Losses select the L-flows: with a
large buffer only few, unlucky transfers are L-flows. The classes by size do not depend on the buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from analysis.figures.common import BLUE, GREY, ORANGE, Data
from analysis.papers import look
from analysis.papers.facts import Fact, absent, each, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.prasad2007 import transfers
from analysis.papers.prasad2007.rows import BY_NAME, LEAST_FITTED, Measured, capacity, models_bps
from analysis.papers.prasad2007.testbed import best
from analysis.papers.published_numbers import BEST_BUFFER, Key
from analysis.papers.series import Series
from analysis.theory import capacity_ratio

SMALL = (28 * transfers.PAYLOAD_BYTES, 32 * transfers.PAYLOAD_BYTES)  # about S_SEGMENTS segments
Pick = Callable[[pl.DataFrame], pl.DataFrame]


class FlowClass(NamedTuple):
    """A class by congestion events, and the class by size that stands beside it."""

    by_events: Pick
    events_text: str
    by_size: Pick
    size_text: str
    shade: str


CLASSES = {
    "S": FlowClass(
        lambda flows: transfers.s_flows(transfers.of_sizes(flows, SMALL)),
        "28 to 32 packets, at most 4 congestion events",
        lambda flows: transfers.of_sizes(flows, SMALL), "28 to 32 packets", BLUE,
    ),
    "L": FlowClass(
        transfers.l_flows, "5 congestion events or more",
        lambda flows: transfers.of_sizes(flows, transfers.LARGE), "above 1 MB", ORANGE,
    ),
}  # fmt: skip


class Means(NamedTuple):
    """Mean throughput by class and buffer."""

    by_events: dict[str, Series]
    by_size: dict[str, Series]


def means(by_buffer: dict[int, list[PaperRun]]) -> Means:
    """Raises InputError."""

    def of_class(name: str, pick: Pick) -> Series:
        points = {buffer: transfers.mean_bps(name, runs, pick) for buffer, runs in by_buffer.items()}
        return {buffer: point for buffer, point in points.items() if point is not None}

    return Means(
        {name: of_class(of.events_text, of.by_events) for name, of in CLASSES.items()},
        {name: of_class(of.size_text, of.by_size) for name, of in CLASSES.items()},
    )


# Figures --------------------------------------------------------------------------------------------------------------

UNITS = 1e6
NEAR = 0.25  # a measured mean is near its model up to this relative difference
KEYS = {"S": "small", "L": "large"}  # values of `transfers` in the keys of published numbers


def prepare(row: str, form: str, runs: PaperRuns) -> Data:
    """Measured means by buffer and class; the models between the least fitted buffer and the cutoff of the delay."""
    measured, beside_ns3 = Measured.of(runs, BY_NAME[row]), BY_NAME[row].beside_ns3
    if measured is None:
        return {"by_events": {}, "by_size": {}, "models": None, "beside_ns3": beside_ns3}
    return {**means(measured.by_buffer())._asdict(), "models": _models(measured, form), "beside_ns3": beside_ns3}


def _models(measured: Measured, form: str) -> dict[str, Any] | None:
    fits, delay = measured.forms, measured.delay_fit
    if fits is None or delay is None:
        return None
    fit = fits.power_law if form == "PL" else fits.exponential
    if fit.b <= 0:
        return None  # loss does not fall with the buffer
    link, rtt_s, pipe = capacity(measured.runs[0]), measured.base_rtt_s, measured.pipe
    buffers = np.unique(np.geomspace(LEAST_FITTED, delay.cutoff, 80).astype(int))
    small, large = models_bps(
        buffers, link, rtt_s, delay.f, transfers.PAYLOAD_BYTES, lambda buffer: min(fit.loss(float(buffer)), 1.0)
    )
    if form == "PL":
        best_small = capacity_ratio.pl_s_buffer(pipe, capacity_ratio.S_SEGMENTS, fit.a, fit.b, delay.f)
        best_large = capacity_ratio.pl_l_buffer(pipe, fit.b, delay.f)
    else:
        best_small = capacity_ratio.ex_s_buffer(pipe, capacity_ratio.S_SEGMENTS, fit.a, fit.b, delay.f).buffer
        best_large = capacity_ratio.ex_l_buffer(pipe, fit.b, delay.f).buffer
    return {"form": form, "buffers": buffers, "S": small, "L": large, "best": {"S": best_small, "L": best_large},
            "b": fit.b, "f": delay.f, "pipe": pipe}  # fmt: skip


def draw(data: Data) -> look.Figure:
    """A panel for each class."""
    figure, axes = look.new_figure(look.PAGE_IN, 2.5, 1, len(CLASSES))
    for ax, (name, of) in zip(axes[0], CLASSES.items(), strict=True):
        shade = of.shade
        points = {buffer: point.scaled(1 / UNITS) for buffer, point in data["by_events"].get(name, {}).items()}
        ax.set_title(f"{name}-flows: {of.events_text}", loc="left", pad=3)
        if not points:
            look.absent(ax, text="no such transfer")
            continue
        look.log_axis(ax.xaxis)
        look.interval_bars(ax, points, points.values(), shade, label="measured")
        if simulated := look.of_ns3(data, "by_size", name):
            look.ns3_points(ax, simulated, [point.scaled(1 / UNITS) for point in simulated.values()], GREY)
        sized = {buffer: point.value / UNITS for buffer, point in data["by_size"][name].items()}
        squares: dict[str, Any] = {
            "color": GREY,
            "markerfacecolor": "none",
            "markersize": 6,
            "label": f"all {of.size_text}",
        }
        ax.plot(list(sized), list(sized.values()), "s", **squares)
        if data["models"]:
            values = [value / UNITS for value in data["models"][name]]
            ax.plot(data["models"]["buffers"], values, "--", color=shade, label=f"{name}-model", linewidth=0.8)
        ax.set_xlabel("buffer B (packets)")
        ax.margins(0.05)
        ax.set_ylim(0, 1.06 * ax.get_ylim()[1])
        ax.legend(loc="best", frameon=False)
    axes[0, 0].set_ylabel("throughput (Mb/s)")
    return figure


def facts(printed: dict[str, str], data: Data) -> list[Fact]:
    """The best buffer of each class: measured, and by the model; the share of means that are near the models."""
    rows = []
    models = data["models"]
    kinds = (("", data["by_events"]), (" by size", data["by_size"]))
    for words, curves in kinds:
        for name, points in curves.items():
            if not points:
                rows.append(absent(f"{name}-flows{words}: no transfer"))
                continue
            top = best(points)
            predicted = models["best"][name] if models else None
            what = f"{name}-flows{words}: best buffer (interval: within 5 % of the largest throughput)"
            finite = predicted if predicted is not None and np.isfinite(predicted) else None
            endless = predicted is not None and finite is None
            why = "the model has no best buffer: more is always better" if endless else ""
            # Only the best buffers by size have a key: a sender knows its sizes, but no congestion events.
            key: Key | None = {"quantity": BEST_BUFFER, "transfers": KEYS[name], "scale": 1} if words else None
            row = Fact(what, printed[name], finite, top, "packets", why, over_points=True, key=key)
            rows.append(row._replace(headline=not words))
    if large := data["by_events"].get("L"):
        what, most = "L-flows: largest buffer at which any transfer is an L-flow", max(large)
        rows.append(Fact(what, "", None, exactly(float(most)), "packets", over_points=True))
    for name, points in data["by_size"].items():
        beside = {buffer: points[buffer].scaled(1 / UNITS) for buffer in data["beside_ns3"] if buffer in points}
        what = f"{name}-flows by size ({CLASSES[name].size_text}), B = {{}}: mean throughput"
        rows += each(beside, what, unit="Mb/s")
    if models is None:
        return [*rows, absent("no models: loss does not fall with the buffer, or too few buffers have loss")]
    for words, curves in kinds:
        rows += [fact for name, points in curves.items() if (fact := _nearness(name, words, points, models))]
    typical = {"b": "typically 0.5", "f": "typically 0.4"} if models["form"] == "PL" else {}
    for constant, text in (("b", "b of the loss"), ("f", "f of the delay"), ("pipe", "C T_o (packets)")):
        rows.append(Fact(text, typical.get(constant, ""), None, exactly(models[constant]), "", over_points=True))
    if models["form"] == "PL":
        for constant, b, f in (
            ("b", capacity_ratio.TYPICAL_B, models["f"]),
            ("f", models["b"], capacity_ratio.TYPICAL_F),
        ):
            at = capacity_ratio.pl_l_buffer(models["pipe"], b, f)
            what = f"L-model: best buffer with the paper's {constant} in place of the fitted one"
            rows.append(Fact(what, printed["L"], None, exactly(at), "packets", over_points=True))
    return rows


def _nearness(name: str, words: str, points: Series, models: dict[str, Any]) -> Fact | None:
    """The share of buffers with a mean within NEAR of its model. None if no buffer is in the model's range."""
    ends = models["buffers"][0], models["buffers"][-1]
    within = [buffer for buffer in points if ends[0] <= buffer <= ends[1]]
    if not within:
        return None
    expected = np.interp(within, models["buffers"], models[name])
    near = [abs(points[at].value / model - 1) <= NEAR for at, model in zip(within, expected, strict=True)]
    what = f"{name}-flows{words}: share of the {len(within)} buffers with a mean within 25 % of the {name}-model"
    return Fact(what, "", 1.0, exactly(sum(near) / len(near)), "", over_points=True)


def _figure(name: str, row: str, form: str, caption: str, printed: dict[str, str]) -> PaperFigure:
    """The figure of one row of Table 1 with the form that the paper has for its loss."""
    return PaperFigure(name, caption, (BY_NAME[row].stem,), partial(prepare, row, form), draw, partial(facts, printed))


FIGURE_13 = _figure(
    "figure_13", "20/100/0.1", "PL",
    "throughput against the buffer for a capacity ratio of 0.1 (20 inputs, 100 users, 50 Mb/s, 60 ms): models with the "
    "fitted loss and delay, and measured means. Models end at the cutoff of the delay.",
    {"S": "about 100", "L": "about 400"},
)  # fmt: skip
FIGURE_14 = _figure(
    "figure_14", "1000/500/10", "EX",
    "throughput against the buffer for a capacity ratio of 10 (1,000 inputs, 500 users, 100 Mb/s, "
    "60 ms): models with the fitted loss and delay, and measured means. Models end at the cutoff of the delay.",
    {"S": "0, below 10", "L": "0, below 10"},
)  # fmt: skip
