# SPDX-License-Identifier: MIT
"""The packets that the bottleneck's link lost behind the queue (LOSS). The soft switch draws two numbers for each
departed packet, so its seed and the order of departures name the lost packets (softswitch/runtime/impairment.c).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from analysis.read.columns import ColumnFile, Columns, in_order, parts, rows_of, slabs
from analysis.read.documents import Port
from analysis.read.postcards import dropped
from wire import wire

CARD = wire.POSTCARD.const
NAME = "link_lost"  # a column of postcards


def lost(cards: Columns, port: int | None, link: Port, directory: Path) -> np.ndarray | None:
    """Mask of the lost packets among a soft switch's postcards, in a file; None if the settings of the loss are
    unknown.
    """
    chances = (link.loss_good, link.loss_bad, link.loss_to_bad, link.loss_to_good)
    if link.loss_seed is None or None in chances:
        return None
    good, bad, to_bad, to_good = (np.uint64(chance or 0) for chance in chances)
    file = ColumnFile(directory, {NAME: np.dtype(np.bool_)})
    for part in slabs(len(cards["flags"])):
        file.append({NAME: np.zeros(part.stop - part.start, dtype=np.bool_)})
    mask, drawn, state = file.columns()[NAME], 0, 0
    for left in in_order(_departed(cards, port), "left_ns", "came_ns", "card_seq"):
        count = len(left["row"])
        draws = splitmix64(link.loss_seed, 2 * count, 2 * drawn).reshape(-1, 2)
        leaves = [np.flatnonzero(draws[:, 1] < chance) for chance in (to_bad, to_good)]
        is_bad, at = np.zeros(count, dtype=bool), 0
        while at < count:
            changes = leaves[state][np.searchsorted(leaves[state], at) :][:1]
            end = int(changes[0]) + 1 if len(changes) else count
            is_bad[at:end] = bool(state)
            at, state = end, 1 - state if len(changes) else state
        mask[left["row"]] = draws[:, 0] < np.where(is_bad, bad, good)
        drawn += count
    return mask


def _departed(cards: Columns, port: int | None) -> Iterator[Columns]:
    """Row, number and times of the packets that left a port."""
    row = 0
    for part in parts(cards, "egress_port", "flags", "enqueue_mono_ns", "sojourn_ns", "card_seq"):
        rows = np.flatnonzero((part["egress_port"] == port) & ~dropped(part))
        left = rows_of(part, rows) | {"row": row + rows}
        row += len(part["flags"])
        came = left["enqueue_mono_ns"]
        yield left | {"came_ns": came, "left_ns": came + left["sojourn_ns"]}


def delivered(cards: Columns, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
    """Mask of the packets of `rows` that were neither dropped nor lost by the link."""
    left = (cards["flags"][rows] & CARD["POSTCARD_DROPPED"]) == 0
    return left & ~cards[NAME][rows] if NAME in cards else left


def splitmix64(seed: int, count: int, first: int) -> np.ndarray:
    """Numbers (uint64) of lib/splitmix64.h, from the number `first` on."""
    value = np.uint64(seed) + np.arange(first + 1, first + count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = (value ^ (value >> np.uint64(shift))) * np.uint64(factor)
    return value ^ (value >> np.uint64(31))
