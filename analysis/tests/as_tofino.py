# SPDX-License-Identifier: MIT
"""Converts a run in virtual time into the postcards that a Tofino would have sent for the same packets.

The chip's clock has an offset, drifts, wraps around, and may restart. Its traffic manager stamps the start of a
transmission; on Tofino 1 the stamp has 18 bits, and the program extends it (p4src/tna/queue_time.p4). The traffic
manager counts only the cells of packets whose transmission has not begun. It deflects refused packets, which
therefore get their stamp later. Mirrored copies arrive late and out of order.

Two differences remain. A chip's depths are some cycles old, and depths here are exact. In virtual time hosts send
bursts within a few ns, faster than any link.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from analysis.judge.analyse import Analysis
from analysis.read.load import load
from analysis.read.postcards import dropped
from analysis.read.raw import Columns
from analysis.tests import simulate
from analysis.tests.documents import change, change_spec
from controlplane.targets import TARGETS
from wire import wire

CARD = wire.POSTCARD.const
CELL_BYTES = {"tofino": 80, "tofino2": 176}
EXTRA_BYTES = TARGETS["tofino"].capabilities.queued_extra_bytes
STAMP_BYTES = simulate.BLOCK["BLOCK_STAMP_BYTES"]
INGRESS_NS, EGRESS_NS = 350, 270  # a packet's time in the pipelines
# From the start of a transmission to the receive stamp: a constant, and the mean of an exponential addition.
MIRROR_NS, MIRROR_JITTER_NS = 1000, 2000
# From the refusal of a packet to its stamp: a constant, and the bound of a uniform addition.
REFUSED_NS, REFUSED_JITTER_NS = 100, 60
PORT, COLLECTOR_PORT = 2, 3


@dataclass(frozen=True)
class Clock:
    """The switch's clock is (offset + elapsed * (1 + drift)) mod 2^48 ns; `elapsed` counts from the first packet. At
    `restart_ns` the clock restarts from `restart_at_ns`.
    """

    offset_ns: int = (1 << 48) - 1_000_000_000  # wraps within the run
    drift: float = 20e-6
    restart_ns: int | None = None
    restart_at_ns: int = 40_000_000_000
    steps_ns: tuple[int, int] = (1 << 62, 0)  # elapsed time of a step, and its size

    def stamps(self, elapsed_ns: np.ndarray) -> np.ndarray:
        """Stamps without wrap-around (int64). The clock is faster than CLOCK_MONOTONIC, so no two ns share a stamp."""
        ticks = elapsed_ns + np.floor(elapsed_ns * self.drift).astype(np.int64)
        stamps = ticks + self.offset_ns
        if self.restart_ns is not None:
            stamps = np.where(elapsed_ns >= self.restart_ns, ticks - self.restart_ns + self.restart_at_ns, stamps)
        when, by = self.steps_ns
        return stamps + np.where(elapsed_ns >= when, by, 0)


def queue_time(chip: str, came: np.ndarray, begins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(enqueue_switch_ns, sojourn_ns) as p4src/tna/queue_time.p4 computes them from the chip's stamps."""
    ingress, egress = came - INGRESS_NS, begins + EGRESS_NS
    if chip == "tofino":
        stamp = (1 << 18) - 1
        low = (ingress + (((came & stamp) - ingress) & stamp)) & 0xFFFFFFFF
        whole = (egress - ingress) & 0xFFFFFFFF
        sojourn = whole - ((whole - ((begins - came) & stamp)) & stamp)
    else:
        low, sojourn = came & 0xFFFFFFFF, (begins - came) & 0xFFFFFFFF
    wrapped = (ingress & 0xFFFFFFFF) > low
    high = ((ingress >> 32) + wrapped) & 0xFFFF
    return high << 32 | low, sojourn


def begins(queue: Columns) -> np.ndarray:
    """Start of each packet's transmission, or time of its drop (CLOCK_MONOTONIC). The start is inferred, because
    postcards of the soft switch have only the end of the transmission.
    """
    ends = queue["enqueue_mono_ns"] + queue["sojourn_ns"]
    result = ends.copy()
    sent = np.flatnonzero(~dropped(queue))
    sent = sent[np.argsort(ends[sent], kind="stable")]
    free = np.concatenate(([0], ends[sent][:-1]))
    result[sent] = np.maximum(queue["enqueue_mono_ns"][sent], free)
    return result


def convert(
    source: Path, target: Path, chip: str = "tofino", clock: Clock | None = None, seed: int = 1, lose: int | None = None
) -> Path:
    """Writes the run of `source` into `target` as a run of a Tofino. `lose`: the card_seq of an admitted
    packet whose postcard is lost on the way.
    """
    clock = clock or Clock()
    run = load(source)
    cards, rng = run.postcards, np.random.default_rng(seed)
    refused = (cards["flags"] & CARD["POSTCARD_AT_INGRESS"]) != 0
    cells_each = -(-(cards["packet_bytes"].astype(np.int64) + EXTRA_BYTES) // CELL_BYTES[chip])
    came, begin = cards["enqueue_mono_ns"].copy(), begins(cards)
    depth_cells = _cells(came, begin, refused, cells_each)
    late = REFUSED_NS + rng.integers(0, REFUSED_JITTER_NS, len(came))
    came[refused] += late[refused]
    begin[refused] = came[refused]
    origin = int(came.min())
    enqueue, sojourn = queue_time(chip, clock.stamps(came - origin), clock.stamps(begin - origin))
    rx = begin + MIRROR_NS + rng.exponential(MIRROR_JITTER_NS, len(came)).astype(np.int64)
    spec = yaml.safe_load((source / "spec.yaml").read_text())
    limit = spec["ecn_threshold_packets"] if spec["mode"] == "ecn" else spec["buffer_packets"]
    threshold = limit * -(-(spec["mtu_bytes"] + 14 + EXTRA_BYTES) // CELL_BYTES[chip])
    stored = _stored(source)
    order = np.argsort(rx, kind="stable")
    number = cards["card_seq"]
    told_number = number.astype(np.int64)
    if clock.restart_ns is not None:  # the numbers restart with the clock
        for of in (refused, ~refused):
            later = of & (came - origin >= clock.restart_ns)
            told_number[later] -= told_number[later].min(initial=1 << 32)
    if lose is not None:
        order = order[refused[order] | (number[order] != lose)]
    rows = []
    for row in order.tolist():
        unit = "UNKNOWN" if refused[row] else "CELLS"
        values: dict[str, Any] = stored[int(number[row]), bool(refused[row])] | {
            "card_seq": int(told_number[row]), "enqueue_switch_ns": int(enqueue[row]),
            "sojourn_ns": 0 if refused[row] else int(sojourn[row]),
            "depth_packets": 0, "depth_bytes": 0, "depth_cells": 0 if refused[row] else int(depth_cells[row]),
            "depth_unit": CARD[f"POSTCARD_DEPTH_{unit}"], "threshold": threshold,
        }  # fmt: skip
        rows.append(int(rx[row]).to_bytes(STAMP_BYTES, "little") + wire.POSTCARD.encode(**values))
    shutil.copytree(source, target, dirs_exist_ok=True)
    simulate.write_postcards(target, rows)
    _documents(target, spec, chip, len(came), int(refused.sum()), len(rows))
    return target


def _cells(came: np.ndarray, begin: np.ndarray, refused: np.ndarray, cells_each: np.ndarray) -> np.ndarray:
    """At each arrival: the cells of the queued packets whose transmission has not begun."""
    inside = np.flatnonzero(~refused)
    order = inside[np.argsort(begin[inside], kind="stable")]
    before = np.concatenate(([0], np.cumsum(cells_each[inside])))
    left = np.concatenate(([0], np.cumsum(cells_each[order])))
    entered = np.searchsorted(inside, np.arange(len(came)), side="left")
    gone = np.searchsorted(begin[order], came, side="right")
    return np.maximum(before[entered] - left[gone], 0)


def by_number(a: Analysis, restart_mono_ns: int = 0) -> Columns:
    """The queue's columns in the order of the postcards' numbers, refused packets after all others. The numbers restart
    at `restart_mono_ns`.
    """
    refused = (a.queue["flags"] & CARD["POSTCARD_AT_INGRESS"]) != 0
    order = np.lexsort((a.queue["card_seq"], a.queue["enqueue_mono_ns"] >= restart_mono_ns, refused))
    return {name: column[order] for name, column in a.queue.items()}


def random_queue(seed: int, limit: int, egress_threshold: int | None) -> tuple[Columns, np.ndarray]:
    """Simulates random packets at 1 Gb/s one by one. The traffic manager refuses a packet when `limit` packets wait;
    egress drops a packet when `egress_threshold` packets wait behind it. Returns the postcards and the true depths.
    """
    rng = np.random.default_rng(seed)
    came = np.cumsum(rng.integers(20, 11_000, 3000))
    sizes = rng.integers(60, 1515, len(came))
    begins, ends, gone_at, free = {}, {}, np.zeros(len(came), dtype=np.int64), 0
    waiting: list[int] = []
    flags = np.zeros(len(came), dtype=np.uint8)
    depths, cells = np.zeros(len(came), dtype=np.int64), np.zeros(len(came), dtype=np.int64)

    def serve(until: int) -> None:
        nonlocal free
        while waiting and max(free, int(came[waiting[0]])) <= until:
            packet = waiting.pop(0)
            begins[packet] = ends[packet] = max(free, int(came[packet]))
            behind = sum(came[other] <= begins[packet] for other in waiting)
            if egress_threshold is not None and behind >= egress_threshold:
                flags[packet] = CARD["POSTCARD_DROPPED"]
                free = begins[packet] + 5
            else:
                ends[packet] = free = begins[packet] + (int(sizes[packet]) + 24) * 8

    for packet, now in enumerate(came.tolist()):
        serve(now)
        depths[packet] = len(waiting) + sum(end > now for end in list(ends.values())[-2:])
        cells[packet] = sum(-(-(int(sizes[other]) + EXTRA_BYTES) // 80) for other in waiting)
        if len(waiting) >= limit:
            flags[packet] = CARD["POSTCARD_DROPPED"] | CARD["POSTCARD_AT_INGRESS"]
        else:
            waiting.append(packet)
    serve(1 << 62)
    refused = (flags & CARD["POSTCARD_AT_INGRESS"]) != 0
    gone_at[~refused] = [begins[packet] for packet in np.flatnonzero(~refused).tolist()]
    number = np.where(refused, np.cumsum(refused), np.cumsum(~refused)) - 1
    stamps = came + np.where(refused, REFUSED_NS, 0)
    columns = {
        "timeline_ns": stamps, "enqueue_mono_ns": stamps.copy(), "sojourn_ns": np.where(refused, 0, gone_at - came),
        "rx_mono_ns": np.maximum(stamps, gone_at) + MIRROR_NS, "flags": flags, "card_seq": number.astype(np.uint32),
        "packet_bytes": sizes.astype(np.uint16), "egress_port": np.full(len(came), PORT, dtype=np.uint16),
        "depth_packets": np.zeros(len(came), dtype=np.uint32), "depth_bytes": np.zeros(len(came), dtype=np.uint32),
        "clock_part": np.zeros(len(came), dtype=np.int64),
        "depth_cells": cells.astype(np.uint32), "depth_unit": np.ones(len(came), dtype=np.uint8),
    }  # fmt: skip
    return columns, depths


def _stored(source: Path) -> dict[tuple[int, bool], dict[str, Any]]:
    """The fields of each stored postcard, by its number and whether it was made at ingress."""
    cards = [wire.POSTCARD.decode(stored[STAMP_BYTES:]) for stored in simulate.read_postcards(source)]
    return {(card["card_seq"], bool(card["flags"] & CARD["POSTCARD_AT_INGRESS"])): card for card in cards}


def counts(arrivals: int, refused: int, extra: int = 0) -> dict[str, Any]:
    """The switch's counters. Each counter of packets had counted `extra` packets before the run."""
    port, collector = str(PORT), str(COLLECTOR_PORT)
    counters = {"arrivals": {port: arrivals}, "arrival_drops": {port: refused}, "postcards_made": {collector: arrivals}}
    return {
        "stats": {
            f"port.{PORT}.queue_drops": refused + extra, f"port.{COLLECTOR_PORT}.queue_drops": extra,
            f"port.{PORT}.queue_max_cells": 20, "pipe.0.mirror_drops": extra,
        },
        "counters": {
            name: {at: {"packets": packets + extra, "bytes": 0} for at, packets in ports.items()}
            for name, ports in counters.items()
        },
    }  # fmt: skip


def _documents(target: Path, spec: dict[str, Any], chip: str, packets: int, refused: int, stored: int) -> None:
    """Rewrites spec.yaml, switch.json, collector.json and environment.json as those of a Tofino run."""
    change_spec(target, target="tofino", clock="real", switch="process", delay="tc")
    capabilities = asdict(TARGETS["tofino"].capabilities) | {"cell_bytes": CELL_BYTES[chip]}
    switch = {
        "target": "tofino", "capabilities": capabilities, "program": {"name": "bufferscope", "digest": "ab" * 32},
        "bottleneck_port": PORT, "runs_between_experiments": True, "front_panel": {"speed_bps": spec["rate_bps"]},
        "settings": {str(PORT): {"rate_bps": None, "limit_packets": None}},
        **counts(packets, refused, 1000), "before": counts(0, 0, 1000),
    }  # fmt: skip
    (target / "switch.json").write_text(json.dumps(switch))
    for name in ("received", "stored"):
        change(target, "collector", (name,), stored)
    environment = json.loads((target / "environment.json").read_text())
    environment.pop("virtual_machine", None)
    (target / "environment.json").write_text(json.dumps(environment))
