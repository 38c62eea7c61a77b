# SPDX-License-Identifier: MIT
"""Figures 6 and 7: mean throughput against the size of transfers, beside the S-model and the L-model."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import polars as pl

from analysis.figures.common import BLACK, BLUE, GREY, ORANGE, Data
from analysis.papers import look, series
from analysis.papers.facts import Fact, absent, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.prasad2007 import transfers
from analysis.papers.prasad2007.rows import OF_USERS
from analysis.papers.prasad2007.testbed import FULL_STEM

ASKED = 0.25  # the largest accepted relative difference between the throughput of a bin and of the nearer model
UNITS = 1e6


class BySize(NamedTuple):
    """One run: its dropped share, and from its early transfers (transfers.early): bins of size, the fitted v of the
    S-model, the number of timeouts, and the number of these transfers.
    """

    bins: list[transfers.Bin]
    loss: float
    v: float | None
    timeouts: int | None
    flows: int


def prepare(buffers: list[int], runs: PaperRuns) -> Data:
    """Bins of the first repetition with 3,000 users (short version: 300), and both models with its loss and RTTs: loss,
    v and timeouts; the bytes of bins that are not near a model; each bin beside the nearer model.
    """
    chosen = (pl.col("users").is_in([3000, 300]), pl.col("buffer_packets").is_in(buffers))
    selected = runs.select(FULL_STEM, *chosen, repetition=1, **OF_USERS)
    if not selected:
        return {"bins": [], "facts": [absent("no valid run")]}
    bins, loss, v, timeouts, flows = selected[0].measure("sizes", BySize, by_size)
    rows = [Fact("dropped share", "", None, exactly(loss), "")]
    far = sum(of.bytes_share for of in bins if not is_near(of))
    rows.append(Fact("bytes of bins farther than 25 % from both models", "below 0.15", None, exactly(far), "of all"))
    if v is not None:
        rows.append(Fact("S-model, fitted: RTTs that a lost packet costs, v", "1", None, exactly(v), ""))
        far = sum(of.bytes_share for of in bins if not is_near(of, fitted=True))
        rows.append(Fact("the same bytes, with the fitted v", "below 0.15", None, exactly(far), "of all"))
    if timeouts is not None:
        rows.append(Fact("timeouts", "", None, exactly(timeouts / flows), "a transfer"))
    for of in bins:
        name, model = nearer(of)
        size = f"{of.size_bytes / 1e3:.3g} kB ({of.transfers} transfers, {100 * of.bytes_share:.2g} % of bytes)"
        what, measured = f"{size}: mean throughput, beside the {name}", exactly(of.throughput_bps / UNITS)
        rows.append(Fact(what, "", model / UNITS, measured, "Mb/s"))
    return {"bins": bins, "v": v, "facts": rows}


def by_size(run: PaperRun) -> BySize:
    """Raises InputError."""
    loss, flows = series.loss(run) or 0.0, transfers.early(run)
    timeouts = int(flows["timeouts"].sum()) if flows["timeouts"].null_count() < len(flows) else None
    v = transfers.fitted_v(flows, loss)
    return BySize(transfers.bins(flows, loss, v), loss, v, timeouts, len(flows))


def draw(data: Data) -> look.Figure:
    """One panel, both axes logarithmic; bins that are not near a model are hollow."""
    figure, ax = look.new_panel(look.PAGE_IN * 0.72, 2.8)
    bins = data["bins"]
    if not bins:
        return look.absent(ax)
    look.log_axis(ax.xaxis)
    look.log_axis(ax.yaxis)
    sizes = [each.size_bytes / 1e3 for each in bins]
    for shade, style, text, values in (
        (GREY, ":", "slow start alone", [each.slow_start_bps for each in bins]),
        (BLACK, "--", "S-model, v = 1", [each.small_bps for each in bins]),
        (BLACK, "-.", "S-model, fitted v", [each.fitted_bps if data["v"] is not None else None for each in bins]),
        (ORANGE, "-", "L-model", [each.large_bps for each in bins]),
    ):
        known = [(size, value / UNITS) for size, value in zip(sizes, values, strict=True) if value is not None]
        if known:
            ax.plot(*zip(*known, strict=True), style, color=shade, linewidth=0.9, label=text)
    for size, each in zip(sizes, bins, strict=True):
        face = BLUE if is_near(each) else "white"
        ax.plot(size, each.throughput_bps / UNITS, "o", color=BLUE, markerfacecolor=face)
    ax.plot([], [], "o", color=BLUE, label="measured")
    ax.set_xlabel("size (kB)")
    ax.set_ylabel("mean throughput (Mb/s)")
    ax.legend(loc="upper left", frameon=False)
    return figure


def nearer(each: transfers.Bin) -> tuple[str, float]:
    """The model that is nearer to a bin, and its throughput."""
    models = [("S-model", each.small_bps)]
    models += [("L-model", each.large_bps)] if each.large_bps is not None else []
    return min(models, key=lambda pair: abs(pair[1] - each.throughput_bps))


def is_near(each: transfers.Bin, fitted: bool = False) -> bool:
    """Whether a model is within ASKED of a bin; `fitted`: the S-model has the fitted v."""
    model = nearer(each._replace(small_bps=each.fitted_bps) if fitted else each)[1]
    return abs(each.throughput_bps / model - 1) <= ASKED


def _figure(name: str, buffers: list[int], size: str) -> PaperFigure:
    """The figure of one buffer (packets): at full scale, and at a tenth of the scale, which short versions have."""
    caption = (
        f"mean throughput of transfers against their size, U3000, {size} of buffer. Lines: slow start without loss, "
        "the S-model and the L-model with the measured loss and RTTs. Hollow: farther than 25 % from both models."
    )
    return PaperFigure(name, caption, (FULL_STEM,), partial(prepare, buffers), draw)


FIGURE_6 = _figure("figure_06", [20, 3], "30 KB")
FIGURE_7 = _figure("figure_07", [26564, 2656], "38 MB")
