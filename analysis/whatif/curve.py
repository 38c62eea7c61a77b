# SPDX-License-Identifier: MIT
"""`make replay RUN=... BUF=10p..1bdp`: a run's arrivals through tail-drop queues of many lengths, all in one pass of
captures/queue_curve, in the memory of the queues. Writes curve-<n>/ beside the run: curve.csv, summary.json and a
figure. A queue drops, delays and transmits as the switch core's does; open loop, like each what-if.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from analysis.figures import canvas, common
from analysis.figures.drawing import save_both, warm_up
from analysis.measure import metrics
from analysis.read import complete_run
from analysis.read.columns import Columns, parts
from analysis.read.link_rate import LinkRate
from analysis.read.load import Run
from analysis.read.postcards import wire_bytes
from analysis.whatif import CAVEAT, open_loop
from captures.reader import program
from lib import files
from lib.errors import InputError
from lib.terminal import one_line
from runs.lock import only_one
from runs.names import SUMMARY

POINTS = 25  # of a curve, in geometric steps
MOST_PACKETS = 1 << 24
SCRATCH = ".curve"


class Point(NamedTuple):
    """What one length of the queue gives in the measurement window."""

    packets: int
    bdp: float
    ms: float  # that a full queue delays
    arrivals: int
    drops: int
    loss: float  # share of the packets
    utilization: float
    empty: float  # share of the time in which the link had nothing to send
    delay_mean_ms: float
    delay_p50_ms: float  # to 1 %
    delay_p99_ms: float
    delay_max_ms: float


def lengths(low: int, high: int, points: int = POINTS) -> list[int]:
    """Whole packets from `low` to `high` in geometric steps, each once."""
    return sorted({low, high, *np.rint(np.geomspace(low, high, points)).astype(int).tolist()})


def of_run(run: Run, queue: Columns, rate: LinkRate, limits: Sequence[int]) -> list[Point]:
    """The curve over the run's measurement window. Raises InputError if the program fails, or the rate changes."""
    if rate.schedule is not None:
        raise InputError("a curve needs a constant rate; allowed: RATE=, or a single BUF")
    window = metrics.measurement_window(run, queue)
    command = [
        str(program().with_name("queue_curve")), "--rate", str(rate.rate_bps), "--limits", ",".join(map(str, limits)),
        "--from", str(window.start_ns), "--until", str(window.end_ns),
    ]  # fmt: skip
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin
        try:
            for part in parts(queue, "enqueue_mono_ns", "packet_bytes"):
                sizes = wire_bytes(part["packet_bytes"])
                process.stdin.write(np.column_stack((part["enqueue_mono_ns"], sizes)).astype("<i8").tobytes())
        except BrokenPipeError:
            pass  # it says why
        said, complaint = process.communicate()
    if process.returncode:
        raise InputError(f"queue_curve failed: {one_line(Exception(complaint.decode()))}")
    length_ns = max(window.length_ns, 1)
    return [_point(run, rate, json.loads(line), length_ns) for line in said.splitlines()]


def _point(run: Run, rate: LinkRate, found: dict[str, Any], length_ns: int) -> Point:
    limit, wire = found["limit_packets"], run.experiment.wire_bytes
    busy = found["busy_ns"] / length_ns
    return Point(
        limit, float(limit / bdp_packets(run, rate)), limit * wire * 8e3 / rate.rate_bps, found["arrivals"],
        found["drops"], found["drops"] / max(found["arrivals"], 1), busy, 1 - busy,
        *(found[f"delay_{name}_ns"] / 1e6 for name in ("mean", "p50", "p99", "max")),
    )  # fmt: skip


def bdp_packets(run: Run, rate: LinkRate) -> Fraction:
    return Fraction(rate.rate_bps * run.experiment.rtt_ns, 8 * 10**9 * run.experiment.wire_bytes)


def load(repetition: Path) -> tuple[Run, Columns]:
    """The run and the columns of its queue. Raises InputError if it lacks arrival times or lengths."""
    complete_run.check(repetition, derived=[SUMMARY])
    run = complete_run.load_complete(repetition)
    if run.experiment.unknown_columns & {"enqueue_switch_ns", "sojourn_ns", "packet_bytes"}:
        raise InputError(f"{repetition}: its packets have no arrival times or lengths, so nothing can be replayed")
    _, queue = metrics.bottleneck(run)
    if not len(queue["flags"]):
        raise InputError(f"{repetition}: no packet arrived at the bottleneck's queue; nothing can be replayed")
    return run, queue


def write(
    repetition: Path, rate: LinkRate | None, low: int, high: int, asked: dict[str, str]
) -> tuple[Path, list[Point], str]:
    """The new directory, the curve, and the sentence on its error. Raises InputError, OSError."""
    with only_one(repetition) as place:
        run, queue = load(repetition)
        points = of_run(run, queue, rate or run.rate, lengths(low, high))
        error = error_of(run, points)
        name = _next(repetition, place)
        with files.scratch(SCRATCH, place) as made:
            new = files.path_of(made) / name
            new.mkdir()
            pl.DataFrame(points, schema=list(Point._fields), orient="row").write_csv(new / "curve.csv")
            summary = {
                "caveat": CAVEAT, "error": error, "run": f"{repetition.parent.name}/{repetition.name}", "asked": asked,
                "rate_bps": (rate or run.rate).rate_bps, "points": [point._asdict() for point in points],
            }  # fmt: skip
            (new / SUMMARY).write_text(json.dumps(summary, indent=1, allow_nan=False) + "\n")
            warm_up()
            data = {"facts": _facts(run, rate or run.rate), "points": points, "note": error or CAVEAT}
            save_both(draw, common.plain(data), new, "curve")
            files.deliver([name], made, place)
    return repetition / name, points, error


def error_of(run: Run, points: Sequence[Point]) -> str:
    """How far such a what-if was off in our own runs; "" if the table cannot be read."""
    flows = sum(group.flows for group in run.experiment.long) or len(run.traffic)
    load = max(point.utilization + point.loss for point in points)
    middle = points[len(points) // 2]
    try:
        rows = open_loop.near(flows, load, middle.bdp)
    except (OSError, ValueError, KeyError):
        return ""
    return open_loop.text(rows)


def _facts(run: Run, rate: LinkRate) -> dict[str, Any]:
    name = f"{run.directory.parent.name}/{run.directory.name}"
    return {
        "text": f"open loop: the arrivals of {name} through tail-drop queues at {rate.rate_bps / 1e6:g} Mb/s",
        "valid": True,
    }


def draw(data: dict[str, Any]) -> common.Figure:
    """Drops, empty link and delay against the length of the queue."""
    figure, axes = common.new_figure(data["facts"], 6.0, 3, sharex=True)
    points = [Point(*each) for each in data["points"]]
    packets = [point.packets for point in points]
    shares = (
        ([100 * p.loss for p in points], "dropped (%)", common.RED),
        ([100 * p.empty for p in points], "link empty (%)", common.BLUE),
    )
    for ax, (values, label, color) in zip(axes[:2], shares, strict=True):
        ax.plot(packets, values, ".-", color=color, markersize=4)
        ax.set_ylabel(label)
        ax.set_ylim(bottom=0)
    for name, label, color in (
        ("delay_p99_ms", "p99", common.ORANGE),
        ("delay_p50_ms", "median", common.GREEN),
        ("ms", "a full queue", common.GREY),
    ):
        axes[2].plot(
            packets,
            [getattr(point, name) for point in points],
            color=color,
            label=label,
            linestyle=":" if name == "ms" else "-",
        )
    axes[2].set_ylabel("delay (ms)")
    axes[2].set_ylim(bottom=0)
    canvas.legend(axes[2], columns=3)
    if packets[-1] > 10 * packets[0]:
        common.log_axis(axes[2].xaxis)
    axes[2].set_xlabel("buffer (packets). Open loop: senders would have reacted")
    return figure


def _next(repetition: Path, place: int) -> str:
    for number in range(1, 10_000):
        if not files.exists(name := f"curve-{number}", place):
            return name
    raise InputError(f"{repetition}: has curve-1 to curve-9999; remove some")


def lines(directory: Path, points: Sequence[Point], error: str) -> list[str]:
    """The lines for the terminal: the whole table."""
    names = ("buffer", "BDP", "full", "drops", "loss", "link used", "empty", "delay p50", "p99")
    rows = [
        (
            f"{p.packets}p", f"{p.bdp:.3g}", f"{p.ms:.4g} ms", f"{p.drops}", f"{100 * p.loss:.3g} %",
            f"{100 * p.utilization:.2f} %", f"{100 * p.empty:.2f} %", f"{p.delay_p50_ms:.3g} ms",
            f"{p.delay_p99_ms:.3g} ms",
        )
        for p in points
    ]  # fmt: skip
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    table = [
        "  " + "  ".join(f"{text:>{width}}" for text, width in zip(row, widths, strict=True)) for row in (names, *rows)
    ]
    return [
        f"{directory}: {points[0].arrivals} arrivals of the measured time through {len(points)} tail-drop queues",
        *(f"  {text}" for text in (CAVEAT, error) if text), *table, f"  figure: {directory / 'curve.svg'}",
    ]  # fmt: skip
