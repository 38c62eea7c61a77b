# SPDX-License-Identifier: MIT
"""Rate of each flow over time in a run with user programs: bits on the wire that left the queue. Bits on the wire need
no sequence numbers, so QUIC and TCP can be compared.
"""

from __future__ import annotations

import numpy as np

from analysis.figures import canvas, common
from analysis.figures.common import BLACK, DISTINCT, GREY, Data
from analysis.wording.formats import si

MOST_BINS = 400
LEAST_RTTS = 2  # minimum width of a bin
MOST_DRAWN = len(DISTINCT) - 1  # flows with a line of their own: those with most bits; all other flows share a line


def prepare(a: common.Analysis) -> Data:
    """Rates of the largest flows and of all others in equal bins from the start of the traffic."""
    from analysis.read.columns import parts
    from analysis.read.postcards import dropped, wire_bytes

    facts = common.run_facts(a)
    span_ns = max(a.window.end_ns - a.window.traffic_start_ns, 1)
    width_ns = max(LEAST_RTTS * a.run.experiment.rtt_ns, -(-span_ns // MOST_BINS))
    bins = -(-span_ns // width_ns)

    def bits_in_bins(row: np.ndarray, bins: int, bin_ns: int) -> np.ndarray:
        """Bits in each of `bins` bins (rows x bins), in a row by flow number, -1: in none."""
        result = np.zeros((int(row.max()) + 1) * bins)
        for cards in parts(a.queue, "flow", "flags", "enqueue_mono_ns", "sojourn_ns", "packet_bytes"):
            at, of = cards["enqueue_mono_ns"] + cards["sojourn_ns"] - a.window.traffic_start_ns, row[cards["flow"]]
            inside = ~dropped(cards) & (at >= 0) & (at < span_ns) & (of >= 0)
            bits = 8.0 * wire_bytes(cards["packet_bytes"][inside])
            result += np.bincount(of[inside] * bins + at[inside] // bin_ns, weights=bits, minlength=len(result))
        return result.reshape(-1, bins)

    entries = [entry for entry in a.run.traffic if entry.number >= 0]
    totals = bits_in_bins(np.arange(len(a.run.flows) + 1), 1, span_ns)[:, 0]
    largest = sorted(entries, key=lambda entry: -totals[entry.number])[:MOST_DRAWN]
    drawn = sorted(largest, key=lambda entry: entry.id)
    edges_ns = np.minimum(np.arange(bins + 1) * width_ns, span_ns)
    rest = [entry.number for entry in entries if entry not in largest]
    row = np.full(len(a.run.flows) + 1, -1)
    row[rest], row[[entry.number for entry in drawn]] = len(drawn), np.arange(len(drawn))
    row[-1] = -1
    rates = list(bits_in_bins(row, bins, width_ns) * 1e9 / np.diff(edges_ns))
    return {
        "facts": facts,
        "edges": edges_ns / 1e9,
        "rates": rates[: len(drawn)],
        "names": [f"{entry.five_tuple.src_port} > {entry.five_tuple.dst_port} {_kind(entry)}" for entry in drawn],
        "rest": rates[-1] if rest else None,
        "rest_name": f"{len(rest)} more flows",
        "rate_bps": a.run.experiment.rate_bps,
    }


def _kind(entry: common.Flow) -> str:
    """Planned flows have an algorithm's name, programs' flows a protocol's."""
    return "udp" if entry.cc is None else "tcp" if entry.program else str(entry.cc)


def draw(data: Data) -> common.Figure:
    """A step line for each flow, and the link's rate."""
    facts, edges = data["facts"], data["edges"]
    figure, (ax,) = common.new_figure(facts, 3.4)
    common.shade_warmup(ax, facts)
    ax.set_xlim(0, max(facts["end_s"], 1e-9))
    changes = facts.get("rate")
    ax.set_ylim(0, 1.1 * (float(changes[1].max()) if changes else data["rate_bps"] / 1e6))
    ax.set_xlabel("time since traffic started (s)")
    ax.set_ylabel("on the wire (Mb/s)")
    for rates, name, color in zip(data["rates"], data["names"], DISTINCT, strict=False):
        ax.stairs(rates / 1e6, edges, color=color, linewidth=0.9, label=name, baseline=None)
    if data["rest"] is not None:
        ax.stairs(data["rest"] / 1e6, edges, color=GREY, linewidth=0.9, label=data["rest_name"], baseline=None)
    if data["rates"]:
        canvas.legend(ax, "beside")
    else:
        common.say(ax, "no flow came to the queue")
    if changes:
        ax.step(*changes[:2], where="post", color=BLACK, linewidth=0.9, linestyle="--")
        canvas.note(ax, float(changes[1][-1]), "rate", BLACK)
    else:
        common.level(ax, data["rate_bps"] / 1e6, si(data["rate_bps"], "b/s"))
    return figure
