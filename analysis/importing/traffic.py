# SPDX-License-Identifier: MIT
"""Infers the experiment's flows and the time of its traffic, which sources do not record. The flows are those with the
most packets; without postcards, those with the most trace records. Connections of SSH, and protocols other than TCP and
UDP, are left out. The traffic lasts from the first to the last packet or trace record of these flows. If packet lengths
are known, only packets of full length count for these times, so that connection set-up is excluded.
"""

from __future__ import annotations

import numpy as np

from analysis.flows import PROTOCOL_NUMBERS, WORDS, FiveTuple, FlowTable
from analysis.importing.fields import Cards, Events

SSH = 22  # the artifact's hosts were controlled over the measured link
CARRIERS = (PROTOCOL_NUMBERS["tcp"], PROTOCOL_NUMBERS["udp"])


def find(cards: Cards | None, events: Events | None, most: int | None) -> tuple[list[FiveTuple], tuple[int, int]]:
    """At most `most` flows, sorted by ports; and the first and last mono_ns of their packets and records."""
    table = FlowTable()
    parts = [(part, table.numbers(_words(part))) for part in (cards, events) if part and len(part.columns["mono_ns"])]
    if not parts:
        return [], (0, 1)
    flows = table.tuples()
    counts = np.bincount(parts[0][1], minlength=len(flows))[: len(flows)]
    chosen = [n for n in np.argsort(-counts, kind="stable").tolist() if counts[n] and _may_carry(flows[n])][:most]
    times = [part.columns["mono_ns"][_rows(part, numbers, chosen)] for part, numbers in parts]
    span = min(int(t.min()) for t in times if len(t)), max(int(t.max()) for t in times if len(t))
    return sorted(
        (flows[number] for number in chosen), key=lambda flow: (flow.src_port, flow.dst_port, flow.src, flow.dst)
    ), span


def _may_carry(flow: FiveTuple) -> bool:
    return flow.protocol in CARRIERS and SSH not in (flow.src_port, flow.dst_port)


def _rows(part: Cards | Events, numbers: np.ndarray, chosen: list[int]) -> np.ndarray:
    """Mask of the traffic's rows; all rows if no flow was chosen."""
    rows = np.isin(numbers, chosen) if chosen else np.ones(len(numbers), dtype=bool)
    packet_bytes = part.columns.get("packet_bytes")
    return rows if packet_bytes is None or not chosen else rows & (packet_bytes == packet_bytes[rows].max())


def _words(part: Cards | Events) -> np.ndarray:
    """The input of FlowTable.numbers; trace records are TCP."""
    ends = part.addresses
    words = np.zeros((WORDS, len(ends.src)), dtype=np.uint64)
    words[0], words[1] = ends.src.T
    words[2], words[3] = ends.dst.T
    protocol = part.columns.get("ip_protocol", np.full(len(ends.src), PROTOCOL_NUMBERS["tcp"])).astype(np.uint64)
    ports = (ends.src_port.astype(np.uint64), ends.dst_port.astype(np.uint64))
    words[4] = protocol << np.uint64(32) | ports[0] << np.uint64(16) | ports[1]
    return words
