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
from analysis.papers.prasad2007 import testbed, transfers
from analysis.papers.prasad2007.rows import OF_USERS
from analysis.papers.stored_runs import StoredRun, StoredRuns

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


def figure(name: str, buffer_packets: int, scaled_packets: int, caption: str) -> PaperFigure:
    """The figure of one buffer, at full scale. Short versions are at a tenth of the scale."""
    return PaperFigure(
        name, caption, (testbed.FULL_STEM,), partial(prepare, (buffer_packets, scaled_packets)), draw, facts
    )


def prepare(buffers: tuple[int, int], runs: StoredRuns) -> Data:
    """Bins of the first repetition with 3,000 users (short version: 300), and both models with its loss and RTTs."""
    chosen = (pl.col("users").is_in([3000, 300]), pl.col("buffer_packets").is_in(list(buffers)))
    selected = runs.select(testbed.FULL_STEM, *chosen, repetition=1, **OF_USERS)
    data: Data = {"provenance": runs.provenance(), "bins": []}
    if not selected:
        return data
    measured: BySize = selected[0].measure("sizes", BySize, by_size)
    return data | measured._asdict()


def by_size(run: StoredRun) -> BySize:
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


def facts(data: Data) -> list[Fact]:
    """Loss, v and timeouts; the bytes of bins that are not near a model; each bin beside the nearer model."""
    if not data["bins"]:
        return [absent("no valid run")]
    far = sum(each.bytes_share for each in data["bins"] if not is_near(each))
    rows = [
        Fact("dropped share", "", None, exactly(data["loss"]), ""),
        Fact("bytes of bins farther than 25 % from both models", "below 0.15", None, exactly(far), "of all"),
    ]
    if data["v"] is not None:
        rows.append(Fact("S-model, fitted: RTTs that a lost packet costs, v", "1", None, exactly(data["v"]), ""))
        far = sum(each.bytes_share for each in data["bins"] if not is_near(each, fitted=True))
        rows.append(Fact("the same bytes, with the fitted v", "below 0.15", None, exactly(far), "of all"))
    if data["timeouts"] is not None:
        rows.append(Fact("timeouts", "", None, exactly(data["timeouts"] / data["flows"]), "a transfer"))
    for each in data["bins"]:
        name, model = nearer(each)
        what = (
            f"{each.size_bytes / 1e3:.3g} kB ({each.transfers} transfers, {100 * each.bytes_share:.2g} % of bytes): "
            f"mean throughput, beside the {name}"
        )
        rows.append(Fact(what, "", model / UNITS, exactly(each.throughput_bps / UNITS), "Mb/s"))
    return rows
