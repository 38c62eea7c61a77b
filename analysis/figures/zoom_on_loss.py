# SPDX-License-Identifier: MIT
"""A few RTTs around one loss, packet by packet: the queue above the windows (Spang et al., Figure 1).

The figure shows the most isolated loss or, without a loss, the deepest queue.
"""

from __future__ import annotations

import numpy as np

from analysis.figures import canvas, common
from analysis.figures.common import BLACK, BLUE, GREY, ORANGE, RED, Data
from analysis.figures.steps import queue_steps, value_steps
from analysis.measure.metrics import cards_in
from analysis.read.columns import slabs

BEFORE_RTTS, AFTER_RTTS = 2, 6  # multiples of the longest RTT (with a full queue)
MAX_LOSERS_DRAWN = 6


def prepare(a: common.Analysis) -> Data:
    """Exact steps of queue and windows around one moment."""
    facts = common.run_facts(a)
    moment, is_loss = _moment(a)
    data: Data = {"facts": facts, "is_loss": is_loss, "queue": None, "rtt_ms": a.run.experiment.rtt_ns / 1e6}
    if moment is None:
        return data
    start, end = moment - BEFORE_RTTS * a.rtt_max_ns, moment + AFTER_RTTS * a.rtt_max_ns
    if "rate" in facts:  # the BDP of the rate in force
        times_s, _, bdp = facts["rate"]
        at = np.searchsorted(times_s, (moment - a.window.traffic_start_ns) / 1e9, side="right") - 1
        facts["bdp"] = float(bdp[max(at, 0)])
    data["span_ms"] = ((start - moment) / 1e6, (end - moment) / 1e6)
    data["queue"], data["drops"], losers = _queue(a, moment, start, end)
    flows = a.windows.flows_of(a.run)
    if flows:
        total = [(a.windows.in_flight_packets, "in flight"), (a.windows.cwnd_packets, "cwnd")][: 1 + a.windows.has_cwnd]
        data["total"] = [(_steps(a.windows.mono_ns, values, moment, start, end), text) for values, text in total]
    lost = [entry for entry in flows if entry.number in losers and len(flows) > 1]
    data["each"] = [
        (_steps(*_window(a, entry.number, start, end), moment, start, end), f"flow {entry.id} {entry.cc}")
        for entry in lost[:MAX_LOSERS_DRAWN]
    ]
    data["losers"] = len(losers)
    return data


def _moment(a: common.Analysis) -> tuple[int | None, bool]:
    """(time in ns, whether it is a loss): the start of the most isolated loss event. Events whose aftermath lies in the
    measurement window have priority. Without events, the arrival at the deepest queue; None without arrivals.
    """
    events = [event for event in a.events if event.min_utilization is not None] or a.events
    if events:
        times = np.array([event.start_ns for event in events])
        every = np.array([event.start_ns for event in a.events])
        place = np.searchsorted(every, times)
        padded = np.concatenate(([a.window.start_ns], every, [a.window.end_ns]))
        apart = np.minimum(padded[place + 1] - padded[place], padded[place + 2] - padded[place + 1])
        return int(times[apart.argmax()]), True
    deepest, moment = -1, None
    for cards in cards_in(a.queue, a.window, "depth_packets", "enqueue_mono_ns"):
        row = cards["depth_packets"].argmax()
        if cards["depth_packets"][row] > deepest:
            deepest, moment = int(cards["depth_packets"][row]), int(cards["enqueue_mono_ns"][row])
    return moment, False


def _queue(a: common.Analysis, moment: int, start: int, end: int) -> tuple[np.ndarray, np.ndarray, set[int]]:
    """Steps of the queue's length; times and depths of drops; flows with a drop within a.rtt_max_ns after `moment`."""
    from wire import wire

    # In a queue with the spec's buffer no packet stays longer than this. So `rows` have all that are queued at `start`.
    rtt = a.rtt_max_ns
    rows = slice(*np.searchsorted(a.queue["enqueue_mono_ns"], (start - 2 * rtt, end)))
    came, flags, depth = (a.queue[name][rows] for name in ("enqueue_mono_ns", "flags", "depth_packets"))
    left = came + a.queue["sojourn_ns"][rows]
    is_dropped = (flags & wire.POSTCARD.const["POSTCARD_DROPPED"]) != 0
    refused = is_dropped & ((flags & wire.POSTCARD.const["POSTCARD_AT_INGRESS"]) != 0)
    steps = queue_steps(came, left, depth, refused, start, end)
    shown = is_dropped & (came >= start)
    drops = np.array([(came[shown] - moment) / 1e6, depth[shown]])
    first = shown & (came >= moment) & (came < moment + rtt)
    return np.array([(steps[0] - moment) / 1e6, steps[1]]), drops, set(a.queue["flow"][rows][first].tolist())


def _window(a: common.Analysis, flow: int, start: int, end: int) -> tuple[np.ndarray, np.ndarray]:
    """(times, packets in flight) of a flow's records in [start, end), and of its last record before."""
    first, last = a.windows.until(start), a.windows.until(end)
    mine = first + np.flatnonzero(a.windows.flow[first:last] == flow)
    for rows in reversed(list(slabs(first))):
        before = rows.start + np.flatnonzero(a.windows.flow[rows] == flow)
        if len(before):
            mine = np.append(before[-1:], mine)
            break
    return a.windows.mono_ns[mine], a.windows.of_flow_in_flight[mine]


def _steps(times: np.ndarray, values: np.ndarray, moment: int, start: int, end: int) -> np.ndarray:
    at, held = value_steps(times, values, start, end)
    return np.array([(at - moment) / 1e6, held], dtype=np.float64)


def draw(data: Data) -> common.Figure:
    """Up to three panels with a common time axis in ms from the drop, or from the deepest queue if nothing was dropped:
    the queue, the sum of all windows and, with several flows, the windows of flows with a drop.
    """
    facts = data["facts"]
    rows = 1 if not facts["windows"] else 3 if data.get("each") else 2
    figure, axes = common.new_figure(facts, max(2.7 * rows, 3.2), rows, sharex=True)
    if data["queue"] is None:
        common.say(axes[0], "no packets in the measurement window")
        return figure
    _draw_queue(axes[0], data)
    if rows > 1:
        _draw_total(axes[1], data)
    if rows == 3:
        _draw_losers(axes[2], data)
    axes[-1].set_xlim(*data["span_ms"])
    origin = "the drop" if data["is_loss"] else "the deepest queue (no packet was dropped)"
    axes[-1].set_xlabel(f"time since {origin} (ms); base RTT {data['rtt_ms']:.4g} ms")
    figure.align_ylabels()
    return figure


def _draw_queue(ax: common.Axes, data: Data) -> None:
    facts, drops = data["facts"], data["drops"]
    ax.step(*data["queue"], where="post", color=BLUE, linewidth=0.7, rasterized=data["queue"].shape[1] > 6000)
    if drops.size:
        ax.plot(*drops, "x", color=RED, markersize=6, markeredgewidth=1.4, label="dropped", clip_on=False, zorder=4)
        canvas.legend(ax, "upper right")
    deepest = data["queue"][1].max(initial=0)
    buffer = common.buffer_shown(facts, deepest)
    ax.set_ylim(0, max(buffer or 0, deepest) * 1.12 + 0.5)
    if buffer:
        common.level(ax, buffer, f"buffer {facts['unit'].text(buffer)}")
    common.in_unit(ax.yaxis, facts)
    ax.set_ylabel(f"queue ({facts['unit'].name})")


def _draw_total(ax: common.Axes, data: Data) -> None:
    facts = data["facts"]
    if data.get("total"):
        for (line, text), color in reversed(list(zip(data["total"], (ORANGE, GREY), strict=False))):
            ax.step(*line, where="post", color=color, linewidth=0.9, label=text)
        high = max(*(line[1].max(initial=0) for line, _ in data["total"]), facts["bdp"] + facts["buffer"])
        ax.set_ylim(0, high * 1.12)
        canvas.legend(ax, "upper right", columns=2, frameon=True, framealpha=0.85, edgecolor="none")
    else:
        common.say(ax, "no trace of the windows")
    both = facts["bdp"] + facts["buffer"]
    common.two_levels(ax, (facts["bdp"], "BDP", GREY), (both, "BDP + buffer", BLACK))
    common.in_unit(ax.yaxis, facts)
    whose = "window" if facts["flows"] == 1 else "all flows' window"
    ax.set_ylabel(f"{whose} ({facts['unit'].name})")


def _draw_losers(ax: common.Axes, data: Data) -> None:
    for (line, text), color in zip(data["each"], common.DISTINCT, strict=False):
        ax.step(*line, where="post", color=color, linewidth=0.9, label=text)
    shown, losers = len(data["each"]), data["losers"]
    title = "lost a packet" if shown == losers else f"lost a packet\n({shown} of {losers})"
    canvas.legend(ax, "beside", title=title, title_fontsize=8, alignment="left")
    ax.set_ylim(0, max(line[1].max(initial=0) for line, _ in data["each"]) * 1.12 + 0.5)
    ax.set_ylabel("window (packets)")
