# SPDX-License-Identifier: MIT
"""Queue depth and drops from the start of the traffic to the end of the measurement window. Below them, on the same
time axis, are the aggregate window and each flow's window, or with more than MANY_FLOWS flows the distribution of their
windows. After Spang et al.'s Figures 1, 8 and 9: the queue follows the sawtooth of the windows.
"""

from __future__ import annotations

import numpy as np

from analysis.figures import bands, canvas, common
from analysis.figures.common import BLACK, BLUE, BROWN, GREEN, GREY, LABEL_RED, ORANGE, RED, Data
from analysis.measure.flow_distribution import MANY_FLOWS
from analysis.read.link_loss import NAME as LINK_LOST

BAND_COLUMNS = 400
LOST_HEIGHT = 0.93  # of the marks of packets that the link lost, as a share of the depth axis; drops are above
ROOM_ON_PHONE = 1.22  # on a phone: top of the depth axis / the larger of buffer and largest depth


def prepare(a: common.Analysis) -> Data:
    """Envelopes of at most COLUMNS columns each, and the thinned times of drops. With more than MANY_FLOWS flows,
    percentiles over flows instead of an envelope for each flow.
    """
    from analysis.measure.metrics import experiment_groups
    from wire import wire

    facts = common.run_facts(a)
    end = facts["end_s"]
    arrival_s = common.seconds(a, a.queue["enqueue_mono_ns"])
    drops = arrival_s[(a.queue["flags"] & wire.POSTCARD.const["POSTCARD_DROPPED"]) != 0]
    lost = {"lost": common.thin_drops(arrival_s[a.queue[LINK_LOST]], end)} if LINK_LOST in a.queue else {}
    groups = experiment_groups(a.run, a.trace)
    many = len(groups) > MANY_FLOWS
    chosen = [] if many else groups
    columns = common.COLUMNS if len(chosen) <= 32 else common.COLUMNS // 3
    window_s = common.seconds(a, a.windows.mono_ns)
    return {
        "facts": facts,
        "depth": common.envelope(arrival_s, a.queue["depth_packets"], 0, end),
        "drops": common.thin_drops(drops, end),
        **lost,
        "aggregate": common.envelope(window_s, a.windows.in_flight_packets, 0, end),
        "cwnd": common.envelope(window_s, a.windows.cwnd_packets, 0, end),
        "flows": [
            common.envelope(common.seconds(a, a.run.tcp["mono_ns"][rows]), a.trace.in_flight[rows], 0, end, columns)
            for _, rows in chosen
        ],
        "ccs": [common.flow_classes(a.run)[entry.id] for entry, _ in chosen],
        "ids": [entry.id for entry, _ in chosen],
        **({"bands": _bands(a, groups, end)} if many else {}),
    }


def _bands(a: common.Analysis, groups: list[tuple[common.Flow, np.ndarray]], end: float) -> Data:
    """Percentiles over flows of the packets in flight, at BAND_COLUMNS times. A flow whose group has a STOP counts
    until its last record.
    """
    from analysis.measure.metrics import of_groups_with_stop

    times, stopped = np.linspace(0, end, BAND_COLUMNS), of_groups_with_stop(a.run)
    series = []
    for entry, rows in groups:
        since, packets = common.seconds(a, a.run.tcp["mono_ns"][rows]), a.trace.in_flight[rows]
        series.append((since, np.append(packets[:-1], np.nan) if stopped[entry.number] else packets))
    classes = common.flow_classes(a.run)
    ccs = [classes[entry.id] for entry, _ in groups]
    return {"times": times, "kinds": bands.by_algorithm(ccs, bands.at_times(series, times)), "ccs": ccs}


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
        ax.step(*data["cwnd"], where="post", color=GREY, linewidth=0.4, zorder=3, label="sum of cwnd")
        ax.step(*data["aggregate"], where="post", color=ORANGE, linewidth=0.6, label="packets in flight")
        canvas.legend(ax, "upper right", columns=2)
        # In slow start, windows can be far larger than later. So only values after the warm-up set the scale.
        most_bdp = float(facts["rate"][2].max()) if "rate" in facts else facts["bdp"]
        high = max(_highest([data["cwnd"], data["aggregate"]], facts), most_bdp + facts["buffer"])
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
