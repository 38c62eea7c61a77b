# SPDX-License-Identifier: MIT
"""Figures 6 and 7: mean throughput against the size of transfers, beside the S-model and the L-model."""

from __future__ import annotations

from functools import partial

from analysis.figures.common import BLACK, BLUE, GREY, ORANGE, Data
from analysis.papers import look
from analysis.papers.facts import Fact, absent
from analysis.papers.paper import PaperFigure
from analysis.papers.prasad2007 import rows as table_1
from analysis.papers.prasad2007 import testbed, transfers
from analysis.papers.stored_runs import StoredRuns
from analysis.statistics import Interval
from analysis.theory import capacity_ratio

ASKED = 0.25  # of a bin's throughput from its model
FEW_BYTES = 0.15  # bins with less of all bytes are not held against a model
MSS_BYTES = float(transfers.PAYLOAD_BYTES)
UNITS = 1e6


def figure(name: str, buffer_packets: int, scaled_packets: int, caption: str) -> PaperFigure:
    """The figure of one buffer at full scale. Short versions are at a tenth of it."""
    return PaperFigure(
        name, caption, (testbed.FULL_STEM,), partial(prepare, (buffer_packets, scaled_packets)), draw, facts
    )


def prepare(buffers: tuple[int, int], runs: StoredRuns) -> Data:
    """Bins of the run with 3,000 users, and both models fed with its loss and RTTs."""
    selected = [
        run for run in runs.select(testbed.FULL_STEM)
        if run["buffer_packets"] in buffers and run["users"] in (3000, 300)
    ]  # fmt: skip
    data: Data = {"provenance": runs.provenance(), "bins": []}
    if not selected:
        return data
    run = selected[0]
    found = transfers.bins(transfers.finished(run))
    loss = table_1.loss(run) or 0.0
    return data | {
        "bins": found, "loss": loss,
        "slow_start": [transfers.slow_start_bps(each.size_bytes, each.inverse_rtt) for each in found],
        "small": [_small(each, loss) for each in found], "large": [_large(each, loss) for each in found],
    }  # fmt: skip


def _small(each: transfers.Bin, loss: float) -> float:
    count = transfers.segments(each.size_bytes)
    return 8 * capacity_ratio.s_model_throughput(each.size_bytes, count, 1 / each.inverse_rtt, loss)


def _large(each: transfers.Bin, loss: float) -> float | None:
    return 8 * capacity_ratio.l_model_throughput(MSS_BYTES, 1 / each.inverse_rtt, loss) if loss else None


def draw(data: Data) -> look.Figure:
    """One panel, both axes logarithmic; bins with few bytes are hollow."""
    figure, axes = look.new_figure(look.PAGE_IN * 0.72, 2.8)
    ax, bins = axes[0, 0], data["bins"]
    if not bins:
        look.absent(ax, "no valid run")
        return figure
    look.log_axis(ax.xaxis)
    look.log_axis(ax.yaxis)
    sizes = [each.size_bytes / 1e3 for each in bins]
    for key, shade, style, text in (
        ("slow_start", GREY, ":", "slow start alone"), ("small", BLACK, "--", "S-model"),
        ("large", ORANGE, "-", "L-model"),
    ):  # fmt: skip
        values = [None if value is None else value / UNITS for value in data[key]]
        if any(value is not None for value in values):
            ax.plot(sizes, values, style, color=shade, linewidth=0.9, label=text)
    for size, each in zip(sizes, bins, strict=True):
        few = each.bytes_share < FEW_BYTES
        ax.plot(size, each.throughput_bps / UNITS, "o", color=BLUE, markerfacecolor="white" if few else BLUE)
    ax.plot([], [], "o", color=BLUE, label="measured")
    ax.set_xlabel("size (kB)")
    ax.set_ylabel("mean throughput (Mb/s)")
    ax.legend(loc="upper left", frameon=False)
    return figure


def facts(data: Data) -> list[Fact]:
    """Loss; each bin beside the model that is nearer."""
    if not data["bins"]:
        return [absent("no valid run")]
    rows = [Fact("dropped share", "", None, Interval(data["loss"], None, None, 1), "")]
    for each, small, large in zip(data["bins"], data["small"], data["large"], strict=True):
        name, model = min(
            ((name, value) for name, value in (("S-model", small), ("L-model", large)) if value is not None),
            key=lambda pair: abs(pair[1] - each.throughput_bps),
        )
        what = (
            f"{each.size_bytes / 1e3:.3g} kB ({each.transfers} transfers, {100 * each.bytes_share:.2g} % of bytes): "
            f"mean throughput, beside the {name}"
        )
        measured = Interval(each.throughput_bps / UNITS, None, None, 1)
        rows.append(Fact(what, "", model / UNITS, measured, "Mb/s"))
    return rows
