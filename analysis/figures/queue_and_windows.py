# SPDX-License-Identifier: MIT
"""Queue depth and drops from the start of the traffic to the end of the measurement window. Below them, on the same
time axis, are the aggregate window and each flow's window, or with more than MANY_FLOWS flows the distribution of their
windows. After Spang et al.'s Figures 1, 8 and 9: the queue follows the sawtooth of the windows.
"""

from __future__ import annotations

import numpy as np

from analysis.arithmetic.by_flow import Groups
from analysis.figures import bands, canvas, common
from analysis.figures.common import BLACK, BLUE, BROWN, GREEN, GREY, LABEL_RED, ORANGE, RED, Data
from analysis.measure.flow_distribution import MANY_FLOWS
from analysis.read.columns import parts
from analysis.read.link_loss import NAME as LINK_LOST
from analysis.read.postcards import dropped

BAND_COLUMNS = 400
LOST_HEIGHT = 0.93  # of the marks of packets that the link lost, as a share of the depth axis; drops are above
ROOM_ON_PHONE = 1.22  # on a phone: top of the depth axis / the larger of buffer and largest depth


def prepare(a: common.Analysis) -> Data:
    """Envelopes of at most COLUMNS columns each, and the thinned times of drops. With more than MANY_FLOWS flows,
    percentiles over flows instead of an envelope for each flow.
    """
    facts = common.run_facts(a)
    end = facts["end_s"]
    flows = a.windows.flows_of(a.run)
    many = len(flows) > MANY_FLOWS
    chosen = [] if many else flows
    classes = common.flow_classes(a.run)
    return {
        "facts": facts,
        **_queue(a, end),
        **_envelopes(a, chosen, end),
        "ccs": [classes[entry.id] for entry in chosen],
        "ids": [entry.id for entry in chosen],
        **({"bands": _bands(a, flows, end)} if many else {}),
    }


def _queue(a: common.Analysis, end: float) -> Data:
    """The envelope of the depth, and the thinned times of drops and of packets that the link lost."""
    depth, drops, lost = common.Envelope(0, end), [np.empty(0)], [np.empty(0)]
    names = ("enqueue_mono_ns", "depth_packets", "flags", *([LINK_LOST] if LINK_LOST in a.queue else []))
    for cards in parts(a.queue, *names):
        arrival_s = common.seconds(a, cards["enqueue_mono_ns"])
        depth.add(arrival_s, cards["depth_packets"])
        drops.append(common.thin_drops(arrival_s[dropped(cards)], end))
        if LINK_LOST in cards:
            lost.append(common.thin_drops(arrival_s[cards[LINK_LOST]], end))
    of_link = {"lost": np.unique(np.concatenate(lost))} if LINK_LOST in a.queue else {}
    return {"depth": depth.line(), "drops": np.unique(np.concatenate(drops)), **of_link}


def _envelopes(a: common.Analysis, flows: list[common.Flow], end: float) -> Data:
    """Envelopes of the sums of all windows, and of the packets in flight of some flows."""
    sums = {"aggregate": "in_flight_packets"} | ({"cwnd": "cwnd_packets"} if a.windows.has_cwnd else {})
    of_sums = {name: common.Envelope(0, end) for name in sums}
    columns = common.COLUMNS if len(flows) <= 32 else common.COLUMNS // 3
    of_flows = {entry.number: common.Envelope(0, end, columns) for entry in flows}
    names = ("mono_ns", "flow", "of_flow_in_flight", *sums.values())
    for part in a.windows.parts(*names, last=a.windows.until(a.window.end_ns)):
        since_s = common.seconds(a, part["mono_ns"])
        for name, column in sums.items():
            of_sums[name].add(since_s, part[column])
        groups = Groups.of(part["flow"])
        for number, first, last in zip(groups.flow.tolist(), groups.starts, groups.ends, strict=True):
            if number in of_flows:
                of_flow = groups.rows[first:last]
                of_flows[number].add(since_s[of_flow], part["of_flow_in_flight"][of_flow])
    lines = {name: of_sum.line() for name, of_sum in of_sums.items()}
    return lines | {"flows": [of_flows[entry.number].line() for entry in flows]}


def _bands(a: common.Analysis, flows: list[common.Flow], end_s: float) -> Data:
    """Percentiles over flows of the packets in flight, at BAND_COLUMNS times. A flow whose group has a STOP counts
    until its last record.
    """
    from analysis.measure.metrics import of_groups_with_stop

    times, classes = np.linspace(0, end_s, BAND_COLUMNS), common.flow_classes(a.run)
    latest, numbers = np.full(len(a.windows.last), np.nan), [entry.number for entry in flows]
    last = a.windows.last[of_groups_with_stop(a.run)]
    columns: list[np.ndarray] = []  # of the times that no later slab changes
    rows = 0
    for part in a.windows.parts("mono_ns", "flow", "of_flow_in_flight"):
        packets = part["of_flow_in_flight"].astype(np.float64)
        packets[last[(last >= rows) & (last < rows + len(packets))] - rows] = np.nan
        rows, first = rows + len(packets), 0
        for end in np.searchsorted(common.seconds(a, part["mono_ns"]), times[len(columns) :], side="right").tolist():
            latest[part["flow"][first:end]] = packets[first:end]
            if end == len(packets):
                break
            columns.append(latest[numbers])
            first = end
        latest[part["flow"][first:]] = packets[first:]
    columns += [latest[numbers]] * (len(times) - len(columns))
    ccs = [classes[entry.id] for entry in flows]
    return {"times": times, "kinds": bands.by_algorithm(ccs, np.array(columns).T), "ccs": ccs}


def draw(data: Data) -> common.Figure:
    """Three axes with one time axis, and one for a rate that changes. Open-loop traffic, and the user's programs
    without a trace, have no windows: their figure has only the axes of the queue.
    """
    facts = data["facts"]
    ratios = (1.15, *((0.45,) if "rate" in facts else ()), *((1, 1) if facts["windows"] else ()))
    inches = 3.2 if not facts["windows"] else 7.2
    figure, axes = common.new_figure(
        facts, inches + 1.2 * ("rate" in facts), len(ratios), sharex=True, height_ratios=ratios
    )
    for ax in axes:
        common.shade_warmup(ax, facts)
    _draw_queue(axes[0], data)
    if "rate" in facts:
        _draw_rate(axes[1], facts)
    if facts["windows"]:
        _draw_total(axes[-2], data)
        if "bands" in data:
            _draw_bands(axes[-1], data)
        else:
            _draw_each(axes[-1], data)
    axes[-1].set_xlim(0, max(facts["end_s"], 1e-9))
    axes[-1].set_xlabel("time since traffic started (s); grey: warm-up, not measured")
    figure.align_ylabels()
    return figure


def _draw_queue(ax: common.Axes, data: Data) -> None:
    facts = data["facts"]
    ax.plot(*data["depth"], color=BLUE, linewidth=0.6)
    deepest = data["depth"][1].max(initial=0)
    buffer = common.buffer_shown(facts, deepest)
    # On a phone the buffer's label stands above its line: the marks of drops need room above the label.
    room = 1.12 + 0.06 * bool(len(data.get("lost", ())))
    top = max(buffer or 0, deepest) * (ROOM_ON_PHONE if canvas.is_phone(ax.figure) else room) + 0.5
    ax.set_ylim(0, top)
    if buffer:
        common.level(ax, buffer, f"buffer {facts['unit'].text(buffer)}")
    marks = [("drops", top, RED, LABEL_RED), ("lost", top * LOST_HEIGHT, BROWN, BROWN)]
    for name, at, color, of_text in marks:
        if len(times := data.get(name, ())):
            height = np.full(len(times), at - top * 0.035)
            ax.plot(times, height, "|", color=color, markersize=5, markeredgewidth=0.7, rasterized=len(times) > 500)
            canvas.note(ax, at, name if name == "drops" else "lost by link", of_text)
    common.in_unit(ax.yaxis, facts)
    ax.set_ylabel(f"queue depth ({facts['unit'].name})")


def _draw_rate(ax: common.Axes, facts: Data) -> None:
    """The rate in force."""
    times, mbps, _ = facts["rate"]
    ax.step(times, mbps, where="post", color=GREEN, linewidth=0.9)
    ax.set_ylim(0, max(float(mbps.max()), 1e-9) * 1.12)
    ax.set_ylabel("rate (Mb/s)")


def _draw_total(ax: common.Axes, data: Data) -> None:
    facts = data["facts"]
    if data["aggregate"].size:
        if "cwnd" in data:
            ax.step(*data["cwnd"], where="post", color=GREY, linewidth=0.4, zorder=3, label="sum of cwnd")
        ax.step(*data["aggregate"], where="post", color=ORANGE, linewidth=0.6, label="packets in flight")
        canvas.legend(ax, "upper right", columns=2)
        # In slow start, windows can be far larger than later. So only values after the warm-up set the scale.
        most_bdp = float(facts["rate"][2].max()) if "rate" in facts else facts["bdp"]
        drawn = [data[name] for name in ("cwnd", "aggregate") if name in data]
        high = max(_highest(drawn, facts), most_bdp + facts["buffer"])
        ax.set_ylim(0, high * 1.15)
    else:
        common.say(ax, "no trace of the windows")
    if "rate" in facts:
        times, _, bdp = facts["rate"]
        for added, text, color in ((0, "BDP", GREY), (facts["buffer"], "BDP + buffer", BLACK)):
            ax.step(times, bdp + added, where="post", color=color, linewidth=0.9, linestyle="--")
            canvas.note(ax, float(bdp[-1]) + added, text, color)
    else:
        both = facts["bdp"] + facts["buffer"]
        common.two_levels(ax, (facts["bdp"], "BDP", GREY), (both, "BDP + buffer", BLACK))
    common.in_unit(ax.yaxis, facts)
    ax.set_ylabel(f"aggregate window ({facts['unit'].name})")


def _draw_each(ax: common.Axes, data: Data) -> None:
    colors = common.flow_colors(data["ccs"])
    for line, color in zip(data["flows"], colors, strict=True):
        ax.step(*line, where="post", color=color, linewidth=0.6, alpha=0.9, rasterized=len(data["flows"]) > 4)
    if not data["flows"]:
        common.say(ax, "no trace of the windows")
    ax.set_ylim(0, max(_highest(data["flows"], data["facts"]), 1) * 1.08)
    common.flow_legend(ax, data["ccs"], data["ids"], colors)
    ax.set_ylabel("window of each flow (packets)")


def _draw_bands(ax: common.Axes, data: Data) -> None:
    times, kinds, ccs = data["bands"]["times"], data["bands"]["kinds"], data["bands"]["ccs"]
    several = len(kinds) > 1
    for number, (kind, percentiles) in enumerate(kinds.items()):
        bands.draw(ax, times, percentiles, bands.color_of(number), several, f"{ccs.count(kind)} {kind}")
    measured = times >= data["facts"]["warmup_s"]
    highest = max((np.nanmax(percentiles[:, measured], initial=0) for percentiles in kinds.values()), default=0)
    ax.set_ylim(0, max(highest, 1) * 1.15)
    bands.legend(ax, several)
    ax.set_ylabel("window of a flow (packets)")


def _highest(lines: list[np.ndarray], facts: Data) -> float:
    """Largest value of the lines after the warm-up; of the whole lines if none has a value after the warm-up."""
    values = [line[1][line[0] >= facts["warmup_s"]] for line in lines]
    values = [value for value in values if len(value)] or [line[1] for line in lines if len(line[1])]
    return float(max((value.max() for value in values), default=0.0))
