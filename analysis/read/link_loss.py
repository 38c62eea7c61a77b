# SPDX-License-Identifier: MIT
"""The packets that the bottleneck's link lost behind the queue (LOSS). The soft switch draws two numbers for each
departed packet, so its seed and the order of departures name the lost packets (softswitch/runtime/impairment.c).
"""

from __future__ import annotations

import numpy as np

from analysis.read.documents import Port
from analysis.read.postcards import dropped
from analysis.read.raw import Columns
from wire import wire

CARD = wire.POSTCARD.const
NAME = "link_lost"  # a column of postcards


def lost(cards: Columns, port: int | None, link: Port) -> np.ndarray | None:
    """Mask of the lost packets among a soft switch's postcards; None if the settings of the loss are unknown."""
    chances = (link.loss_good, link.loss_bad, link.loss_to_bad, link.loss_to_good)
    if link.loss_seed is None or None in chances:
        return None
    good, bad, to_bad, to_good = (np.uint64(chance or 0) for chance in chances)
    rows = np.flatnonzero((cards["egress_port"] == port) & ~dropped(cards))
    departure = cards["enqueue_mono_ns"][rows] + cards["sojourn_ns"][rows]
    rows = rows[np.lexsort((cards["card_seq"][rows], departure))]
    draws = splitmix64(link.loss_seed, 2 * len(rows)).reshape(-1, 2)
    leaves = [np.flatnonzero(draws[:, 1] < chance) for chance in (to_bad, to_good)]
    is_bad, at, state = np.zeros(len(rows), dtype=bool), 0, 0
    while at < len(rows):
        changes = leaves[state][np.searchsorted(leaves[state], at) :][:1]
        end = int(changes[0]) + 1 if len(changes) else len(rows)
        is_bad[at:end] = bool(state)
        at, state = end, 1 - state
    mask = np.zeros(len(cards["flags"]), dtype=bool)
    mask[rows] = draws[:, 0] < np.where(is_bad, bad, good)
    return mask


def delivered(cards: Columns, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
    """Mask of the packets of `rows` that were neither dropped nor lost by the link."""
    left = (cards["flags"][rows] & CARD["POSTCARD_DROPPED"]) == 0
    return left & ~cards[NAME][rows] if NAME in cards else left


def splitmix64(seed: int, count: int) -> np.ndarray:
    """The first numbers (uint64) of lib/splitmix64.h."""
    value = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = (value ^ (value >> np.uint64(shift))) * np.uint64(factor)
    return value ^ (value >> np.uint64(31))
