# SPDX-License-Identifier: MIT
"""A live table of a switch: arrivals, drops and marks per second at each watched queue, and the queue's depth.

A rate is the difference of a counter between two readings, divided by the time between them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table

from controlplane import apply, commands
from controlplane.policy import Unwatched
from controlplane.program import Switch
from controlplane.switch import Count, SwitchError

INTERVAL_S = (0.01, 3600)
COLUMNS = ("arrivals", "arrival_drops", "departure_drops", "arrival_marks", "departure_marks")


class Reading(NamedTuple):
    """One reading of the switch. `depths`: port -> histogram."""

    mono_s: float
    counters: Mapping[str, Mapping[int, Count]]
    depths: Mapping[int, list[tuple[int, int]]]
    target: Mapping[str, int]


def watch(options: argparse.Namespace) -> int:
    """Runs until Ctrl-C, or for --count readings."""
    low, high = INTERVAL_S
    if not low <= options.interval <= high:
        raise SwitchError(f"--interval {options.interval:g} is out of bounds; allowed: {low} to {high} seconds")
    if options.count is not None and options.count < 1:
        raise SwitchError(f"--count {options.count} is out of bounds; allowed: 1 or more, or leave it out")
    with commands.opened(options) as (switch, _):
        before = read(switch)
        left = options.count
        with Live(console=Console(), auto_refresh=False) as live:
            while left is None or left > 0:
                time.sleep(options.interval)
                now = read(switch)
                live.update(table(switch, before, now), refresh=True)
                before, left = now, None if left is None else left - 1
    return 0


def read(switch: Switch) -> Reading:
    watched = [port for port in switch.ports().values() if not isinstance(switch.policy(port), Unwatched)]
    depths = {port: switch.histogram(port) for port in watched}
    return Reading(time.monotonic(), switch.counters(), depths, switch.target_counters())


def table(switch: Switch, before: Reading, now: Reading) -> Table:
    """One row for each watched queue."""
    seconds = now.mono_s - before.mono_s
    unit = switch.capabilities.depth_units[0]
    heads = ("packets/s", "Mbit/s", "drops/s", "marks/s", "p50", "p99", "most")
    title = f"{switch}, the last {seconds:.1f} s; depths in {unit}"
    table = Table(title=title, caption=_target_drops(before, now, seconds), box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("port")
    table.add_column("policy", min_width=12)
    for head in heads:
        table.add_column(head, justify="right")
    for name, port in switch.ports().items():
        if port not in now.depths:
            continue
        arrived, *lost_and_marked = (_difference(before, now, counter, port) for counter in COLUMNS)
        drops, marks = (sum(count.packets for count in pair) for pair in (lost_and_marked[:2], lost_and_marked[2:]))
        rates = (arrived.packets / seconds, arrived.bytes * 8 / 1e6 / seconds, drops / seconds, marks / seconds)
        depths = (str(depth) for depth in quantiles(before.depths.get(port, []), now.depths[port]))
        shown = (f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}" for rate in rates)
        table.add_row(name, apply.words(switch.policy(port)), *shown, *depths)
    return table


def quantiles(before: list[tuple[int, int]], now: list[tuple[int, int]]) -> tuple[int | str, ...]:
    """(median, 99th percentile, maximum) of the depths counted between the readings. A depth is the lowest depth of its
    bucket; '-' if nothing was counted.
    """
    earlier = dict(before)
    counted = [(depth, packets - earlier.get(depth, 0)) for depth, packets in now]
    total = sum(packets for _, packets in counted)
    if total <= 0:
        return ("-",) * 3
    depths: list[int | str] = []
    for share in (0.5, 0.99, 1.0):
        passed = 0
        for depth, packets in counted:
            passed += packets
            if packets and passed >= share * total:
                depths.append(depth)
                break
    return tuple(depths)


def _difference(before: Reading, now: Reading, counter: str, port: int) -> Count:
    nothing = Count(0, 0)
    new, old = (reading.counters[counter].get(port, nothing) for reading in (now, before))
    return Count(new.packets - old.packets, new.bytes - old.bytes)


def _target_drops(before: Reading, now: Reading, seconds: float) -> str:
    """Rates of the target's own drop counters that grew."""
    moved = {name: value - before.target.get(name, 0) for name, value in now.target.items() if "drop" in name}
    return ", ".join(f"{name} {value / seconds:,.1f}/s" for name, value in moved.items() if value > 0)
