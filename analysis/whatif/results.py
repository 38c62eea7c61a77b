# SPDX-License-Identifier: MIT
"""Writes a what-if beside its run, in `whatif-<n>/`: queue.parquet with one row per packet, for both queues;
summary.json with the question and the measures of both queues; queue.png and queue.svg with both. The directory appears
only when complete, together with the run's report, which lists it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from analysis.figures import common
from analysis.measure import metrics
from analysis.read import complete_run
from analysis.read.columns import Columns, parts, rows_of
from analysis.read.documents import Environment
from analysis.read.link_rate import LinkRate
from analysis.read.load import Run
from analysis.read.postcards import dropped
from analysis.results.summary import plain
from analysis.results.tables import write_frames
from analysis.whatif import CAVEAT, figure, queue, stored
from lib import files
from lib.errors import InputError
from lib.terminal import located
from model.experiment import UNKNOWN_IF_RECORDED
from runs import record, verdict
from runs.lock import only_one
from runs.names import PAGE, RECORD, SUMMARY
from runs.quantities import BY_NAME, WHATIF
from wire import wire

CARD = wire.POSTCARD.const
SCRATCH = ".whatif"
SAME = ("depth_packets", "depth_bytes", "sojourn_ns")


# The postcards of a run's packets, given its own, in another queue.
Replay = Callable[[Run, Columns, queue.Setting], Columns]


def what_if(
    repetition: Path, setting: queue.Setting, asked: dict[str, str], replay: Replay = queue.replay
) -> tuple[Path, dict[str, Any]]:
    """Replays the arrivals of `repetition` into a new directory. Returns the directory and its summary. Raises
    InputError, OSError.
    """
    with only_one(repetition) as place:
        return _what_if(repetition, place, setting, asked, replay)


def _what_if(
    repetition: Path, place: int, setting: queue.Setting, asked: dict[str, str], replay: Replay
) -> tuple[Path, dict[str, Any]]:
    complete_run.check(repetition, derived=[SUMMARY, *stored.sources_of_page(repetition)])
    run = complete_run.load_complete(repetition)
    if run.experiment.imported and run.experiment.unknown_columns - UNKNOWN_IF_RECORDED:
        raise InputError(
            f"{repetition}: was imported from postcards without arrival times or other fields; allowed: runs of "
            "bufferscope, and imports of their postcards"
        )
    port, recorded = metrics.bottleneck(run)
    if port is None or _count(recorded, _without_depth):
        raise InputError(f"{repetition}: its postcards have no depths in packets; allowed: runs of bufferscope")
    replayed = replay(run, recorded, setting)
    window = metrics.measurement_window(run, recorded)
    summary = {
        "caveat": CAVEAT,
        "run": f"{repetition.parent.name}/{repetition.name}",
        "asked": asked,
        "setting": {"run": _of_run(run), "whatif": setting.text()},
        "packets": len(recorded["flags"]),
        "ecn_capable_packets": _count(recorded, lambda cards: cards["flags"] & CARD["POSTCARD_ECT"]),
        "same_as_the_run": _same(recorded, replayed),
        "arrivals_off_ns": _off_ns(recorded, replayed),
        "run_measures": measures(run, recorded, window, run.rate),
        "whatif_measures": measures(run, replayed, window, setting.rate),
    }
    name = _next(repetition, place)
    with files.scratch(SCRATCH, place) as made:
        scratch = files.path_of(made)
        new = scratch / name
        new.mkdir()
        rows = len(recorded["flags"])
        write_frames(new / "queue.parquet", rows, lambda part: _frame(rows_of(recorded, part), rows_of(replayed, part)))
        (new / SUMMARY).write_text(json.dumps(plain(summary), indent=1, allow_nan=False) + "\n")
        _draw(new, run, recorded, replayed, setting, window)
        digests = record.digests(new, [path.name for path in new.iterdir()])
        (new / RECORD).write_text(record.text_of_what_if(repetition, digests))
        page = _page(repetition, run.documents.environment, plain(summary) | {"name": name})
        for file, text in page.items():
            (scratch / file).write_text(text, encoding="utf-8")
        try:
            files.deliver([name, *page], made, place)
        except OSError:
            files.remove(name, place)
            raise
    return repetition / name, plain(summary)


def _of_run(run: Run) -> str:
    return replace(queue.Setting.of(run.experiment, run.rate), mode=run.experiment.queue_rule).text()


def _page(repetition: Path, environment: Environment, new: dict[str, Any]) -> dict[str, str]:
    """As stored.page. Raises InputError."""
    try:
        return stored.page(repetition, environment, new)
    except (OSError, ValueError) as error:
        fault = located(error, PAGE) if isinstance(error, OSError) else verdict.unread(error)
        raise InputError(f"{repetition}: its report cannot list the what-if: {fault}; nothing was written") from None


def measures(run: Run, cards: Columns, window: metrics.Window, rate: LinkRate) -> dict[str, Any]:
    """Measures over the run's measurement window, as defined for its summary (analysis/README.md)."""
    link = metrics.LinkUsage(cards, rate, run.directory)
    return {
        **metrics.counts(cards, window),
        "queue_depth_packets": metrics.queue_depth(cards, window),
        "queue_delay_ns": metrics.queue_delay(cards, window),
        "utilization": metrics.utilization(link, window, run.experiment.rtt_ns),
        "drops_of_the_whole_run": _count(cards, dropped),
    }


def _count(cards: Columns, mask: Callable[[Columns], np.ndarray]) -> int:
    """The number of postcards for which `mask` of their flags and depth units is true."""
    return sum(int(np.count_nonzero(mask(part))) for part in parts(cards, "flags", "depth_unit"))


def _without_depth(cards: Columns) -> np.ndarray:
    return cards["depth_unit"] != CARD["POSTCARD_DEPTH_EXACT"]


def _off_ns(recorded: Columns, replayed: Columns) -> int:
    """The farthest that an arrival of the replay is from the recorded one; 0 for the switch core alone."""
    both = zip(parts(recorded, "enqueue_mono_ns"), parts(replayed, "enqueue_mono_ns"), strict=True)
    return max(int(np.abs(was["enqueue_mono_ns"] - now["enqueue_mono_ns"]).max()) for was, now in both)


def _same(recorded: Columns, replayed: Columns) -> bool:
    """Whether every depth, time, drop and mark equals the recorded one. With the run's own queue all must be equal."""
    fate = np.uint8(CARD["POSTCARD_DROPPED"] | CARD["POSTCARD_CE_MARKED"] | CARD["POSTCARD_AT_INGRESS"])
    for was, now in zip(parts(recorded, "flags", *SAME), parts(replayed, "flags", *SAME), strict=True):
        if ((was["flags"] ^ now["flags"]) & fate).any() or not all(np.array_equal(was[n], now[n]) for n in SAME):
            return False
    return True


def _frame(recorded: Columns, replayed: Columns) -> pl.DataFrame:
    columns: dict[str, np.ndarray] = {name: recorded[name] for name in ("enqueue_mono_ns", "flow", "packet_bytes")}
    for suffix, cards in (("", replayed), ("_run", recorded)):
        columns |= {f"{name}{suffix}": cards[name] for name in SAME}
        columns[f"dropped{suffix}"] = dropped(cards)
        columns[f"ce_marked{suffix}"] = (cards["flags"] & CARD["POSTCARD_CE_MARKED"]) != 0
    return pl.DataFrame(columns)


def _draw(
    directory: Path, run: Run, recorded: Columns, replayed: Columns, setting: queue.Setting, window: metrics.Window
) -> None:
    start = window.traffic_start_ns
    facts = {
        "text": f"what if: {setting.text()}, with the arrivals of {run.directory.parent.name}/{run.directory.name}",
        "valid": True,
        "unit": common.unit_of(run.experiment),
        "warmup_s": (window.start_ns - start) / 1e9,
        "end_s": (window.end_ns - start) / 1e9,
    }
    own_setting = queue.Setting.of(run.experiment, run.rate)
    own_buffer = None if own_setting.threshold_bytes else own_setting.buffer_packets
    panels = [
        (f"as it was: {_of_run(run)}", own_buffer, recorded),
        (f"what if: {setting.text()}", None if setting.threshold_bytes else setting.buffer_packets, replayed),
    ]
    figure.draw(directory, facts, panels, start)


def _next(repetition: Path, place: int) -> str:
    """The first free whatif-<n>."""
    for number in range(1, 10_000):
        if not files.exists(name := f"whatif-{number}", place):
            return name
    raise InputError(f"{repetition}: has whatif-1 to whatif-9999; remove some")


def lines(directory: Path, summary: dict[str, Any]) -> list[str]:
    """The lines for the terminal."""

    def shown(measures: str, name: str) -> str:
        value = BY_NAME[name].of(summary[measures])
        return "unknown" if value is None else BY_NAME[name].unit.text(value).replace(" %", "%")

    asked = " ".join(f"{key}={value}" for key, value in summary["asked"].items())
    rows = [
        ("queue", summary["setting"]["run"], summary["setting"]["whatif"]),
        *((title, shown("run_measures", name), shown("whatif_measures", name) + " packets" * title.startswith("queue"))
          for title, name in WHATIF.items()),
    ]  # fmt: skip
    width = max(len(was) for _, was, _ in rows)
    table = [f"  {title:<12} {was:<{width}}  ->  {now}" for title, was, now in rows]
    if summary["asked"].get("MODE", "").lower() == "ecn":
        capable = summary["ecn_capable_packets"]
        table.append(
            f"  {capable} arrivals are ECN-capable: at the marking threshold the queue marks these and drops the others"
        )
    off_ns = summary["arrivals_off_ns"]
    if off_ns:
        table.append(f"  the arrivals are within {off_ns / 1000:.4g} us of the run's")
    same = ["  every depth, time, drop and mark is unchanged"] if summary["same_as_the_run"] else []
    return [
        f"{directory}: {summary['packets']} arrivals through another queue",
        f"  {CAVEAT}",
        *table,
        *same,
        f"  both queues  {directory / 'queue.svg'}",
        f"  to measure it: the command that made the run, with {asked}",
    ]
