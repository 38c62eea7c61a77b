# SPDX-License-Identifier: MIT
"""Figures 13 and 14: measured throughput against the buffer, beside the S-model and the L-model with the fitted loss
and delay.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from analysis.figures.common import GREY, Data
from analysis.papers import look
from analysis.papers.facts import Fact, absent, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.prasad2007 import transfers
from analysis.papers.prasad2007.flow_classes import CLASSES, means
from analysis.papers.prasad2007.rows import BY_NAME, LEAST_FITTED, Measured, capacity
from analysis.papers.prasad2007.throughput_figure import best
from analysis.papers.series import Series
from analysis.papers.stored_runs import StoredRuns
from analysis.published_numbers import BEST_BUFFER, Key
from analysis.theory import capacity_ratio

UNITS = 1e6
NEAR = 0.25  # a measured mean is near its model up to this relative difference
KEYS = {"S": "small", "L": "large"}  # values of `transfers` in the keys of published numbers
NO_EVENTS = "by size: these runs did not count congestion events"


def figure(name: str, row: str, form: str, printed: dict[str, str], caption: str) -> PaperFigure:
    """The figure of one row of Table 1 with the form that the paper has for its loss."""
    return PaperFigure(name, caption, (BY_NAME[row].stem,), partial(prepare, row, form), draw, partial(facts, printed))


def prepare(row: str, form: str, runs: StoredRuns) -> Data:
    """Measured means by buffer and class; the models between the least fitted buffer and the cutoff of the delay."""
    measured = Measured.of(runs, BY_NAME[row])
    data: Data = {"provenance": runs.provenance(), "curves": {}, "by_size": {}, "counted": False, "models": None,
                  "beside_ns3": BY_NAME[row].beside_ns3}  # fmt: skip
    if measured is None:
        return data
    class_means = means(measured.by_buffer())
    return data | {
        "curves": class_means.best_known, "by_size": class_means.by_size, "counted": class_means.by_events is not None,
        "models": _models(measured, form),
    }  # fmt: skip


def _models(measured: Measured, form: str) -> dict[str, Any] | None:
    fits, delay = measured.forms, measured.delay_fit
    if fits is None or delay is None:
        return None
    fit = fits.power_law if form == "PL" else fits.exponential
    if fit.b <= 0:
        return None  # loss does not fall with the buffer
    link, rtt_s, pipe = capacity(measured.runs[0]), measured.base_rtt_s, measured.pipe
    buffers = np.unique(np.geomspace(LEAST_FITTED, delay.cutoff, 80).astype(int))
    small, large = [], []
    for buffer in buffers:
        rtt = capacity_ratio.rtt(rtt_s, buffer, link, delay.f)
        share = min(fit.loss(float(buffer)), 1.0)
        size = capacity_ratio.S_SEGMENTS * transfers.PAYLOAD_BYTES
        small.append(8 * capacity_ratio.s_model_throughput(size, capacity_ratio.S_SEGMENTS, rtt, share))
        large.append(8 * capacity_ratio.l_model_throughput(transfers.PAYLOAD_BYTES, rtt, share))
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
        points = {buffer: point.scaled(1 / UNITS) for buffer, point in data["curves"].get(name, {}).items()}
        text = of.events_text if data["counted"] else of.size_text
        ax.set_title(f"{name}-flows: {text}", loc="left", pad=3)
        if not points:
            look.absent(ax, text="no such transfer")
            continue
        look.log_axis(ax.xaxis)
        look.interval_bars(ax, points, points.values(), shade, label="measured")
        simulated = data.get("ns3", {}).get("by_size", {}).get(name)
        if simulated:
            look.ns3_points(ax, simulated, [point.scaled(1 / UNITS) for point in simulated.values()], GREY)
        if data["counted"]:
            sized = data["by_size"][name]
            values = [point.value / UNITS for point in sized.values()]
            label = f"all {of.size_text}"
            ax.plot(list(sized), values, "s", color=GREY, markerfacecolor="none", markersize=6, label=label)
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
    kinds = [("", data["curves"], True)] + ([(" by size", data["by_size"], False)] if data["counted"] else [])
    for words, curves, is_headline in kinds:
        for name, points in curves.items():
            top = best(points)
            if top is None:
                rows.append(absent(f"{name}-flows{words}: no transfer"))
                continue
            predicted = models["best"][name] if models else None
            what = f"{name}-flows{words}: best buffer (interval: within 5 % of the largest throughput)"
            finite = predicted if predicted is not None and np.isfinite(predicted) else None
            endless = predicted is not None and finite is None
            why = "the model has no best buffer: more is always better" if endless else ""
            why = why or ("" if data["counted"] else NO_EVENTS)
            # Only the best buffers by size have a key: a sender knows its sizes, but no congestion events.
            row = Fact(what, printed[name], finite, top, "packets", why, headline=is_headline, over_points=True)
            rows.append(row._replace(key=best_key(name)) if words else row)
    if data["counted"] and data["curves"]["L"]:
        most = exactly(float(max(data["curves"]["L"])))
        rows.append(
            Fact(
                "L-flows: largest buffer at which any transfer is an L-flow",
                "",
                None,
                most,
                "packets",
                over_points=True,
            )
        )
    for name, points in data["by_size"].items():
        for buffer in data["beside_ns3"]:
            if buffer in points:
                what = f"{name}-flows by size ({CLASSES[name].size_text}), B = {buffer}: mean throughput"
                rows.append(Fact(what, "", None, points[buffer].scaled(1 / UNITS), "Mb/s"))
    if models is None:
        return [*rows, absent("no models: loss does not fall with the buffer, or too few buffers have loss")]
    for words, curves, _ in kinds:
        rows += [fact for name, points in curves.items() if (fact := _nearness(name, words, points, models))]
    typical = {"b": "typically 0.5", "f": "typically 0.4"} if models["form"] == "PL" else {}
    for key, text in (("b", "b of the loss"), ("f", "f of the delay"), ("pipe", "C T_o (packets)")):
        rows.append(Fact(text, typical.get(key, ""), None, exactly(models[key]), "", over_points=True))
    if models["form"] == "PL":
        for key, b, f in (("b", capacity_ratio.TYPICAL_B, models["f"]), ("f", models["b"], capacity_ratio.TYPICAL_F)):
            at = capacity_ratio.pl_l_buffer(models["pipe"], b, f)
            what = f"L-model: best buffer with the paper's {key} in place of the fitted one"
            rows.append(Fact(what, printed["L"], None, exactly(at), "packets", over_points=True))
    return rows


def best_key(name: str) -> Key:
    return {"quantity": BEST_BUFFER, "transfers": KEYS[name], "scale": 1}


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
