# SPDX-License-Identifier: MIT
"""The delay of each queue beside what it uses of the link: with long flows of one kind, and in the scenarios of RFC
7928 that one bottleneck can show. Each scenario names its section.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from analysis.figures import algorithms
from analysis.figures.common import BLUE, GREY, Data
from analysis.papers import look
from analysis.papers.aqm.queues import Measured, by_queue, rank
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRuns

CAPTION_OF_LONG = (
    "queueing delay of each queue with 16 long flows of one congestion control (5.1, 5.2, 5.4, 8.2.2): a dot at the "
    "median, the line ends at the 99th percentile; hollow and grey: one flow. At the left, what 16 flows use of the "
    "link. 50 Mb/s, 20 ms; a BDP is 82 packets."
)
CAPTION_OF_TRAFFIC = (
    "the same with other traffic: 16 Cubic flows with RTTs of 20 to 160 ms (6.2); 8 beside datagrams for half of the "
    "link, which do not yield (5.3); short flows of 14 packets beside 4 long ones (7.2, 9); bursts of 64 datagrams at "
    "ten times the link's rate beside 4 flows (7); 16 DCTCP flows with ECN, behind queues that mark."
)
CAPTION_OF_LINKS = (
    "the same with links that change: a rate that falls to a quarter for 5 of the 10 s, and a rate like a cellular "
    "network's (8.2.5); random loss of 0.1 %. 16 Cubic flows, 4 with the trace."
)
CAPTION_OF_TABLE = (
    "every queue in every scenario: queueing delay (ms, median / 99th percentile), utilization, dropped and marked "
    "share of the packets, fairness (Jain), the 99th percentile of the short flows' completion times (ms), and the "
    "time after a fall of the rate until the mean delay of 200 ms is at most twice what it is in the end (ms)."
)
TRAFFIC = {  # stem of the sweep: its panel
    "rtts": "unequal RTTs", "unresponsive": "unresponsive", "short": "short flows", "bursts": "bursts",
    "dctcp": "DCTCP",
}  # fmt: skip
LINKS = {"steps": "rate steps", "trace": "cellular rate", "loss": "random loss"}
LOW_MS, HIGH_MS = 0.004, 8000  # the shares stand where no delay is
ROW_IN = 0.165
MANY, ONE = 16, 1

Panel = Mapping[str, Measured]  # by queue


def _long(runs: PaperRuns) -> dict[str, dict[int, Panel]]:
    return {
        algorithms.name(cc): {flows: by_queue(runs.select("long", cc=cc, flows=flows)) for flows in (MANY, ONE)}
        for cc in runs.paper.algorithms
    }


def _scenarios(runs: PaperRuns, titles: Mapping[str, str]) -> dict[str, dict[int, Panel]]:
    return {title: {MANY: by_queue(runs.select(stem))} for stem, title in titles.items()}


def _facts(panels: Mapping[str, Mapping[int, Panel]], headline: str = "") -> list[Fact]:
    rows = []
    for title, of_flows in panels.items():
        for flows, panel in of_flows.items():
            where = f"{title}, {flows} flow{'s' * (flows > 1)}" if len(of_flows) > 1 else title
            for queue, found in panel.items():
                first = title == headline and flows == MANY
                rows.append(Fact(f"{where}, {queue}: delay p99", "", None, found.p99, "ms", headline=first))
                rows.append(Fact(f"{where}, {queue}: utilization", "", None, found.used, ""))
    return rows


def _prepare_long(runs: PaperRuns) -> Data:
    panels = _long(runs)
    return {"panels": panels, "facts": _facts(panels, algorithms.name("cubic"))}


def _preparing(titles: Mapping[str, str]) -> Callable[[PaperRuns], Data]:
    def prepare(runs: PaperRuns) -> Data:
        panels = _scenarios(runs, titles)
        return {"panels": panels, "facts": _facts(panels)}

    return prepare


def _draw(data: Data) -> look.Figure:
    panels = data["panels"]
    shown = {queue for of in panels.values() for panel in of.values() for queue in panel}
    queues = sorted(shown, key=rank)
    figure, axes = look.new_figure(look.PAGE_IN, 0.75 + ROW_IN * max(len(queues), 3), 1, len(panels), sharey=True)
    at = {queue: -number for number, queue in enumerate(queues)}
    for ax, (title, of_flows) in zip(axes[0], panels.items(), strict=True):
        ax.set_title(title, loc="left", pad=3)
        if not any(of_flows.values()):
            look.absent(ax)
            continue
        ax.set_xscale("log")
        ax.set_xlim(LOW_MS, HIGH_MS)
        ax.set_xticks([1, 10, 100, 1000], ["1", "", "100", ""])
        ax.minorticks_off()
        ax.set_xlabel("delay (ms)")
        for flows, panel in of_flows.items():
            for queue, found in panel.items():
                _row(ax, at[queue] - 0.28 * (flows == ONE), found, flows == ONE)
    axes[0, 0].set_yticks(list(at.values()), list(at))
    axes[0, 0].set_ylim(-len(queues) + 0.3, 0.7)
    return figure


def _row(ax: look.Axes, y: float, found: Measured, is_single: bool) -> None:
    if found.p50 is None or found.p99 is None:
        return
    low, high = max(found.p50.value, LOW_MS), max(found.p99.value, LOW_MS)
    shade = GREY if is_single else BLUE
    ax.plot([low, high], [y, y], color=shade, linewidth=0.7 if is_single else 1.1, solid_capstyle="butt")
    ax.plot(low, y, "o", color=shade, markerfacecolor="white" if is_single else shade, markersize=3)
    if found.used is not None and not is_single:
        text, beside = f"{100 * found.used.value:.0f} %", {"xycoords": ("axes fraction", "data"), "ha": "left"}
        look.note(ax, text, (0, y), (2, 0), **beside)


def _prepare_table(runs: PaperRuns) -> Data:
    panels = {**{f"{cc}, {flows}": panel for cc, of in _long(runs).items() for flows, panel in of.items()},
              **{title: of[MANY] for title, of in _scenarios(runs, TRAFFIC | LINKS).items()}}  # fmt: skip
    facts = [
        fact
        for title, panel in panels.items()
        for queue, found in panel.items()
        for fact in (
            Fact(f"{title}, {queue}: dropped", "", None, found.dropped, ""),
            Fact(f"{title}, {queue}: Jain's index", "", None, found.fair, ""),
        )
    ]
    return {"panels": {title: panel for title, panel in panels.items() if panel}, "facts": facts}


HEADS = ("scenario", "queue", "p50 / p99 ms", "used", "dropped", "marked", "Jain", "short, p99 ms", "settled, ms")


def _cells(title: str, queue: str, found: Measured) -> list[str]:
    def text(value: object, times: float = 1, form: str = "{:.3g}") -> str:
        return "–" if value is None else form.format(times * value.value)  # type: ignore[attr-defined]

    return [
        title, queue, f"{text(found.p50)} / {text(found.p99)}", text(found.used, 100, "{:.1f} %"),
        text(found.dropped, 100, "{:.2g} %"), text(found.marked, 100, "{:.2g} %"), text(found.fair),
        text(found.completed), text(found.settled),
    ]  # fmt: skip


def _rows(data: Data) -> list[list[str]]:
    return [_cells(title, queue, found) for title, panel in data["panels"].items() for queue, found in panel.items()]


def _markdown(data: Data) -> str:
    rows = [list(HEADS), ["---"] * len(HEADS), *_rows(data)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


COLUMNS_AT = (0, 0.13, 0.31, 0.45, 0.53, 0.62, 0.70, 0.77, 0.89)  # places of HEADS in the drawn table
LINE_IN = 0.115


def _draw_table(data: Data) -> look.Figure:
    rows = [list(HEADS), *_rows(data)]
    figure, ax = look.new_panel(look.PAGE_IN, 0.3 + LINE_IN * len(rows))
    look.sketch(ax)
    for place, row in enumerate(rows):
        for at, cell in zip(COLUMNS_AT, row, strict=True):
            text = ax.text(at, 1 - place / len(rows), cell, fontsize=look.FOOTER_POINTS, va="top")
            text.set_in_layout(False)  # else the layout makes room beside the columns
    return figure


LONG = PaperFigure("figure_01", CAPTION_OF_LONG, ("long",), _prepare_long, _draw)
WITH_TRAFFIC = PaperFigure("figure_02", CAPTION_OF_TRAFFIC, tuple(TRAFFIC), _preparing(TRAFFIC), _draw)
WITH_LINKS = PaperFigure("figure_03", CAPTION_OF_LINKS, tuple(LINKS), _preparing(LINKS), _draw)
TABLE = PaperFigure(
    "table_1", CAPTION_OF_TABLE, ("long", *TRAFFIC, *LINKS), _prepare_table, _draw_table, table=_markdown
)
