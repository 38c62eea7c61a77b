# SPDX-License-Identifier: MIT
"""`make advise FROM=results/mine`: the question about a link from an import of one capture, what other buffers would do
with its packets, and lines to paste into switches.

Each number of the table says where it comes from: a what-if (open loop; the interval is the error that such what-ifs
had in our own runs, analysis/whatif/open_loop.py), published runs with senders (analysis/advise/estimates.py), or the
rule that the five lines would start with, if the buffer is as large as it asks for. The
buffer that is enough is that of the published runs and rules if connections that this link limits carry most of the
bytes; else the senders hardly react to this queue, and it is the least with which the what-if loses MOST_LOSS.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from analysis.advise.brief import Answer
    from analysis.advise.captured import Captured
    from analysis.advise.estimates import Estimate
    from analysis.advise.link import Link
    from analysis.advise.parameters import Question
    from analysis.whatif.curve import Point

MOST_LOSS = 1e-3
MOSTLY = 0.5  # of the bytes
PEAK = 1.1  # of the computed queue: a switch that measured so much more saw other packets


class Row(NamedTuple):
    """A line of the table."""

    what: str
    packets: int
    source: str
    utilization: Estimate | None
    delay_p99_s: Estimate | None
    loss: Estimate | None


class Advice(NamedTuple):
    enough: int  # packets
    why: str
    rows: list[Row]
    counters: list[str]  # what WATERMARK and DROPS say


def advise(captured: Captured, question: Question, answer: Answer) -> Advice:
    """The table, and whether a switch's counters agree. Raises InputError."""
    from analysis.advise import estimates
    from analysis.whatif import curve

    link = question.link
    frame = link.bytes(1)
    mark = None if question.watermark is None else max(math.ceil(question.watermark.base_units / frame), 1)
    today = question.buffer_packets or (mark if question.drops else None)
    top = max(round(2 * link.bdp), captured.deepest_packets + 1, today or 1, mark or 1, 2)
    points = captured.curve(link.rate_bps, curve.lengths(1, min(top, curve.MOST_PACKETS), 120))
    enough, why = answer.packets, "the upper end of the least buffer by published runs" if answer.least else "by rule"
    if captured.limited_here < MOSTLY:
        enough = next((point.packets for point in points if point.loss <= MOST_LOSS), points[-1].packets)
        why = (
            f"the what-if loses at most {100 * MOST_LOSS:g} % with it; connections that this link limits carry only "
            f"{100 * captured.limited_here:.0f} % of the bytes, so senders hardly react"
        )
    counters = _counters(captured, question, points, mark)
    if mark and not question.drops and mark < enough:
        enough, why = mark, "the most that the switch ever held (WATERMARK), without drops"
    tenth = max(round((today or link.bdp) / 10), 1)
    sizes = [("today", today)] if today else []
    sizes += [("enough", enough), ("a tenth of today's" if today else "a tenth of the BDP", tenth)]
    rows: list[Row] = []
    for what, packets in sizes:
        assert packets
        (point,) = captured.curve(link.rate_bps, [packets])
        rows.append(_open_loop(what, point, captured))
        known = estimates.outcome(answer.stored, replace(link, flows=captured.flows), packets)
        if captured.limited_here >= MOSTLY and known.utilization_mean:
            rows.append(Row("", packets, "published runs", known.utilization_mean, known.delay_p99_s, known.loss))
        if packets >= answer.by_rule.packets and captured.limited_here >= MOSTLY:
            promised = estimates.Estimate(link.utilization, link.utilization, 1.0)
            rows.append(Row("", packets, f"rule: {answer.by_rule.advice.rule.name}", promised, None, None))
    return Advice(enough, why, rows, counters)


def _open_loop(what: str, point: Point, captured: Captured) -> Row:
    """The what-if with the error that what-ifs of our own runs had near this load and buffer."""
    from analysis.advise.estimates import Estimate
    from analysis.whatif import open_loop

    def within(value: float, *ends: float, most: float = math.inf) -> Estimate:
        return Estimate(value, max(min(value, *ends), 0.0), min(max(value, *ends), most))

    errors = open_loop.spread(captured.flows, captured.passed["load"], point.bdp)
    known = errors or open_loop.Spread((0, 0), (1, 1), (1, 1))
    delay_s = point.delay_p99_ms / 1e3
    return Row(
        what, point.packets, "what-if, open loop" + " (error unknown)" * (errors is None),
        within(point.utilization, *(point.utilization + error for error in known.utilization), most=1.0),
        within(delay_s, *(delay_s * error for error in known.delay)),
        within(point.loss, *(point.loss * error for error in known.loss), most=1.0),
    )  # fmt: skip


def _counters(captured: Captured, question: Question, points: Sequence[Point], mark: int | None) -> list[str]:
    """What the counters of the switch say beside the capture: they narrow the answer, or contradict it."""
    result, given, peak = [], question.watermark, captured.deepest_bytes
    if given and mark:
        if question.buffer_packets and mark > question.buffer_packets + 1:
            result.append(f"Contradiction: WATERMARK={given} is {mark} packets, more than BUF={question.buf}.")
        if given.base_units > PEAK * peak:
            result.append(
                f"WATERMARK={given} is more than the {peak / 1000:.4g} kB that the captured packets ever fill at RATE: "
                "they were captured behind the queue, or the switch saw other traffic, so their what-ifs say too little"
            )
        elif not question.drops and given.base_units * PEAK < peak:
            result.append(
                f"Contradiction: the captured packets fill {peak / 1000:.4g} kB at RATE, and the switch held at most "
                f"WATERMARK={given} without drops: the capture has packets that it dropped, RATE is too low, or the "
                "counters are of another time"
            )
        else:
            result.append(
                f"WATERMARK={given} agrees with the capture, whose packets fill {peak / 1000:.4g} kB at RATE."
            )
    if question.drops and (today := question.buffer_packets or mark):
        point = min(points, key=lambda each: abs(math.log(each.packets / today)))
        loss = _open_loop("", point, captured).loss
        assert loss
        text = f"the what-if's {100 * loss.value:.3g} % ({100 * loss.low:.3g} to {100 * loss.high:.3g}) at {today}p"
        if loss.low <= question.drops <= loss.high:
            result.append(f"DROPS={100 * question.drops:g}% agrees with {text}.")
        else:
            result.append(
                f"Contradiction: DROPS={100 * question.drops:g}% is outside of {text}: the counters are of another "
                "time, or of another queue"
            )
    return result


def lines(captured: Captured, advice: Advice, link: Link) -> list[str]:
    """The table, the counters' words, and lines to paste."""
    names = ("buffer", "", "link used", "delay, p99", "dropped", "from")

    def size(packets: int) -> str:
        return f"{packets}p ({link.bytes(packets) / 1e3:.4g} kB, {1e3 * link.time_s(packets):.3g} ms)"

    rows = [
        (
            row.what, size(row.packets), _shown(row.utilization, 100, "%"), _shown(row.delay_p99_s, 1e3, "ms"),
            _shown(row.loss, 100, "%"), row.source,
        )
        for row in advice.rows
    ]  # fmt: skip
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    table = [
        "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip()
        for row in (names, *rows)
    ]
    return [
        f"Enough: {advice.enough}p, {advice.why}.", *table, *advice.counters, *paste(link, advice.enough),
    ]  # fmt: skip


def _shown(value: Estimate | None, factor: float, unit: str) -> str:
    if value is None:
        return "unknown"
    middle, low, high = (factor * each for each in value)
    return f"{middle:.3g} {unit}" + (f" ({low:.3g} to {high:.3g})" if high > low else "")


def paste(link: Link, packets: int) -> list[str]:
    """The buffer for Linux, SONiC and our own switch. The marking thresholds are DCTCP's form: all between a tenth and
    the whole of the buffer, at 10 % at most, and ECN for those who ask for it.
    """
    size = int(link.bytes(packets))
    pool = {"pool": "egress_lossy_pool", "size": "0", "static_th": str(size)}
    colours = ("green", "yellow", "red")
    wred = {"ecn": "ecn_all"} | {
        name: value
        for colour in colours
        for name, value in {
            f"wred_{colour}_enable": "true", f"{colour}_min_threshold": str(size // 10),
            f"{colour}_max_threshold": str(size), f"{colour}_drop_probability": "10",
        }.items()
    }  # fmt: skip
    return [
        "To paste (Linux; SONiC's CONFIG_DB; our switch.yaml):",
        f"  tc qdisc replace dev eth0 root bfifo limit {size}",
        "  " + json.dumps({"BUFFER_PROFILE": {"advised": pool}}),
        "  " + json.dumps({"WRED_PROFILE": {"advised": wred}}),
        f"  policy: {{mode: tail-drop, threshold: {packets}p}}",
    ]
