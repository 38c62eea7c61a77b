# SPDX-License-Identifier: MIT
"""Figure 8 and section 5: M/M/1/B in heavy load, and the buffers that suit small and large transfers best."""

from __future__ import annotations

import numpy as np

from analysis.figures.common import BLUE, GREEN, ORANGE, RED, Data
from analysis.papers import look
from analysis.papers.facts import Fact, each
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRuns
from analysis.papers.prasad2007.rows import models_bps
from analysis.papers.series import loss, series
from analysis.theory import capacity_ratio, mm1b, packet_sizes, queues

CAPTION = (
    "throughput by the S-model (30 packets) and by the L-model through M/M/1/B in heavy load (p = 1/B, d = B/2C), "
    "against the buffer: 1 Gb/s, 60 ms. Right: the loss of Poisson packets at load 1 in our switch, beside 1/(B + 1) "
    "and M/G/1/B with our sizes, which end at the MTU."
)
STEM = "heavy-load"
CAPACITY, RTT_S = 1e9 / 8 / 1500, 0.06
PACKET_BYTES, MTU = 1500, 1500
PRINTED = {10_000: (225, 7), 100_000: (450, 67), 1_000_000: (1125, 667)}  # bytes: (printed KB, segments)
BUFFERS = np.unique(np.logspace(0.5, 4.5, 80).astype(int))


def exact(buffer: int, rate_bps: float) -> float:
    """The loss of M/G/1/B at load 1 with exponential sizes cut at the MTU."""
    seconds, probabilities = packet_sizes.service_times("exponential", MTU, int(rate_bps))
    return float(queues.mg1k_depth_distribution(1.0, seconds, probabilities, buffer)[-1])


def prepare(runs: PaperRuns) -> Data:
    """Equations 3 and 4 for the paper's example, equation 3 for its three sizes, and measured loss beside M/G/1/B."""
    selected, pipe = runs.select(STEM, traffic="open-loop"), CAPACITY * RTT_S
    measured = series(selected, "buffer_packets", loss)
    predicted = {buffer: exact(buffer, selected[0]["rate_bps"]) for buffer in measured}
    small, large = capacity_ratio.mm1b_s_buffer(pipe, capacity_ratio.S_SEGMENTS), capacity_ratio.mm1b_l_buffer(pipe)
    rows = [
        Fact("equation 3: best buffer of 30 packets", "245 packets", small, None, "packets", none="computed"),
        Fact("equation 4: best buffer of the L-model", "10000 packets", large, None, "packets", none="computed"),
    ]
    for size, (printed, count) in PRINTED.items():
        kilobytes = capacity_ratio.mm1b_s_buffer(pipe, count) * PACKET_BYTES / 1e3
        rows.append(Fact(f"equation 3, {size:,} bytes", f"{printed} KB", kilobytes, None, "kB", none="computed"))
    limit = {buffer: f"{mm1b.heavy_load_loss(buffer):.3g} (1/B)" for buffer in measured}
    rows += each(measured, "load 1, B = {}: dropped share", limit.get, predicted.get)
    return {"loss": measured, "predicted": predicted, "facts": rows}


def draw(data: Data) -> look.Figure:
    """Models left, loss right."""
    figure, axes = look.new_figure(look.PAGE_IN, 2.5, 1, 2)
    left, right = axes[0]
    look.log_axis(left.xaxis, subs=(1.0,))  # four decades in half a page have no room for other ticks
    small, large = models_bps(BUFFERS, CAPACITY, RTT_S, capacity_ratio.MM1B_F, PACKET_BYTES, mm1b.heavy_load_loss)
    left.plot(BUFFERS, np.array(small) / 1e6, color=BLUE, label="S-model, 30 packets")
    left.plot(BUFFERS, np.array(large) / 1e6, color=ORANGE, label="L-model")
    left.set_xlabel("buffer (packets)")
    left.set_ylabel("throughput (Mb/s)")
    left.legend(loc="upper left", frameon=False)
    points = data["loss"]
    if not points:
        return look.absent(right)
    look.log_axis(right.xaxis)
    right.set_yscale("log")
    right.plot(list(points), [1 / (buffer + 1) for buffer in points], ":", color=RED, label="M/M/1/B")
    right.plot(list(points), list(data["predicted"].values()), color=GREEN, label="M/G/1/B")
    look.interval_bars(right, points, points.values(), BLUE, label="measured")
    right.set_xlabel("buffer (packets)")
    right.set_ylabel("dropped share")
    right.legend(loc="lower left", frameon=False)
    return figure


FIGURE_8 = PaperFigure("figure_08", CAPTION, (STEM,), prepare, draw)
