# SPDX-License-Identifier: MIT
"""Figures 1 and 9: the topology, drawn from the resolved spec of a run, and whether the run's packets obey its links.

A connection's handshake through an empty queue takes the idle RTT, apart from the transmission of small packets. An
input link's packets cannot arrive at the queue closer together than their transmission time on that link.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from analysis.figures.common import BLACK, BLUE, GREY, Data
from analysis.papers import look
from analysis.papers.facts import Fact, absent, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.prasad2007.rows import OF_USERS
from analysis.read.postcards import wire_bytes
from analysis.wording import formats
from model.paths import paths

SHOWN_LINKS = 3
TOP, BOTTOM = 0.86, 0.3  # heights of the first and the last input link
ROUTER, CLIENTS = (0.5, 0.62), (0.86, 0.98)  # left and right edges of both boxes


def prepare(stem: str, sources: str, runs: PaperRuns) -> Data:
    """The numbers of the spec; idle RTTs and gaps, beside the spec's RTTs and the packets' transmission times."""
    selected = runs.select(stem, repetition=1, **OF_USERS)
    if not selected:
        return {"spec": None, "facts": [absent("no valid run")]}
    run = selected[0]
    spec, rtts_ns = run.experiment, run.measure("RTTs of the servers, ns", list[int], _rtts_ns)
    excess = run.measure("handshakes", list[tuple[int, float]], handshake_excess)
    gap: Gaps = run.measure("gaps", Gaps, gaps)
    rows = []
    if excess:
        rtt_ns, worst = max(excess, key=lambda pair: pair[1])
        what = f"idle RTT, {len(excess)} RTTs in the spec: largest relative excess of the fastest handshake"
        rows.append(Fact(f"{what} (at {rtt_ns / 1e6:g} ms; accepted up to 0.01)", "", 0.0, exactly(worst), ""))
    what = f"input links ({gap.links:,} used, {gap.number:,} gaps): smallest gap less the packet's transmission time"
    rows.append(Fact(f"{what} (accepted from 0 on)", "", 0.0, exactly(gap.least_ns), "ns"))
    rows.append(Fact("input links: share of packets back to back", "", None, exactly(gap.back_to_back), ""))
    numbers = {
        "sources": sources, "servers": len(rtts_ns), "links": spec.shared.access_links, "users": run["users"],
        "access_bps": spec.shared.access_bps, "rate_bps": spec.rate_bps, "buffer": spec.buffer_packets,
        "rtts_ms": sorted({rtt_ns / 1e6 for rtt_ns in rtts_ns}),
    }  # fmt: skip
    return {"spec": numbers, "facts": rows}


def _rtts_ns(run: PaperRun) -> list[int]:
    return [path.rtt_ns for path in paths(run.experiment)]


def handshake_excess(run: PaperRun) -> list[tuple[int, float]]:
    """For each base RTT (ns): (shortest handshake / base RTT) - 1. Raises InputError."""
    flows = run.table("flows").filter(pl.col("connected_mono_ns").is_not_null(), pl.col("base_rtt_ns").is_not_null())
    took = (pl.col("connected_mono_ns") - pl.col("syn_mono_ns")).min() / pl.col("base_rtt_ns").first() - 1
    least = flows.group_by("base_rtt_ns").agg(took.alias("excess")).sort("base_rtt_ns")
    return list(least.iter_rows())


class Gaps(NamedTuple):
    """Gaps of one run, and the number of input links that carried packets."""

    number: int
    links: int
    least_ns: float
    back_to_back: float


def gaps(run: PaperRun) -> Gaps:
    """Gaps between successive packets of an input link: their number, the least excess of a gap over the packet's
    transmission time on that link (ns), and the share of gaps with at most 1 ns of excess. Raises InputError.
    """
    spec = run.experiment
    links = pl.DataFrame(
        {"path": range(len(paths(spec))), "link": [path.access_link for path in paths(spec)]},
        schema_overrides={"path": pl.Int64},
    )
    flows = run.table("flows").select(pl.col("flow").cast(pl.Int64), pl.col("path").cast(pl.Int64)).drop_nulls()
    cards = run.table("postcards").filter(pl.col("egress_port") == run.summary["bottleneck_port"])
    cards = cards.select(pl.col("flow").cast(pl.Int64), "enqueue_mono_ns", "packet_bytes")
    cards = cards.join(flows, on="flow").join(links, on="path").sort("link", "enqueue_mono_ns")
    follows = np.diff(cards["link"].to_numpy()) == 0
    gap_ns = np.diff(cards["enqueue_mono_ns"].to_numpy().astype(np.int64))[follows]
    took_ns = wire_bytes(cards["packet_bytes"].to_numpy()[1:][follows]) * 8 * 10**9 // (spec.shared.access_bps or 1)
    beyond_ns = gap_ns - took_ns
    return Gaps(
        len(beyond_ns), cards["link"].n_unique(), float(beyond_ns.min()) if len(beyond_ns) else np.nan,
        float((beyond_ns <= 1).mean()) if len(beyond_ns) else np.nan,
    )  # fmt: skip


def draw(data: Data) -> look.Figure:
    """Boxes and arrows: servers and input links on the left, the router with its buffer, the link, the clients."""
    figure, ax = look.new_panel(look.PAGE_IN * 0.85, 2.0)
    drawn = data["spec"]
    if drawn is None:
        return look.absent(ax)
    look.sketch(ax)
    middle = (TOP + BOTTOM) / 2
    shown = min(SHOWN_LINKS, drawn["links"])
    for place, height in enumerate(np.linspace(TOP, BOTTOM, shown)):
        is_last = place == shown - 1 and drawn["links"] > shown
        number = drawn["links"] if is_last else place + 1
        ax.text(0.1, height, f"{drawn['sources']} {number}", bbox=_frame(), **look.CENTRED)
        end = middle + (height - middle) * 0.3
        ax.annotate("", (ROUTER[0], end), (0.18, height), arrowprops={"arrowstyle": "->", "linewidth": 0.8})
        if is_last:
            ax.text(0.1, height + (TOP - BOTTOM) / (shown - 1) / 2, "⋮", **look.CENTRED)
    inputs = f"{drawn['links']:,} × C_in = {formats.si(drawn['access_bps'], 'b/s')}"
    ax.text(0.33, TOP + 0.1, inputs, color=BLUE, **look.CENTRED)
    for (left, right), text in ((ROUTER, f"router\nB = {drawn['buffer']}\npackets"), (CLIENTS, "clients")):
        look.box(ax, left, right, middle, 0.34, text)
    ax.annotate("", (CLIENTS[0], middle), (ROUTER[1], middle), arrowprops={"arrowstyle": "->", "linewidth": 1.4})
    rate = formats.si(drawn["rate_bps"], "b/s")
    ax.text((ROUTER[1] + CLIENTS[0]) / 2, middle + 0.12, f"C_out = {rate}", color=BLUE, **look.CENTRED)
    ax.text(0.5, 0.06, _words(drawn), color=GREY, **look.CENTRED)
    return figure


def _words(drawn: dict[str, Any]) -> str:
    rtts = [f"{rtt:g}" for rtt in drawn["rtts_ms"]]
    listed = ", ".join(rtts) if len(rtts) <= 4 else f"{len(rtts)} from {rtts[0]} to {rtts[-1]}"
    ratio = drawn["rate_bps"] / drawn["access_bps"]
    return f"{drawn['users']:,} users; {drawn['servers']:,} paths; RTTs without queues (ms): {listed}; Γ = {ratio:g}"


def _frame() -> dict[str, Any]:
    return {"boxstyle": "square,pad=0.35", "facecolor": "white", "edgecolor": BLACK, "linewidth": 0.8}


def _figure(name: str, stem: str, sources: str, caption: str) -> PaperFigure:
    """The figure of the first run of a sweep; the sweep must keep postcards. `sources` is the paper's word for the
    hosts behind the input links.
    """
    return PaperFigure(name, caption, (stem,), partial(prepare, stem, sources), draw)


FIGURE_1 = _figure(
    "figure_01", "windows", "servers",
    "the testbed at a tenth of its scale: two input links, each shared by half of the servers, before one link. Values "
    "are those of a run of Figure 3.",
)  # fmt: skip
FIGURE_9 = _figure(
    "figure_09", "input-links", "server",
    "the simulations' topology, with the values of the row 1000/500/10 of Table 1. Each transfer draws its server. "
    "Think times of this run are long, so that the queue is often empty.",
)  # fmt: skip
