# SPDX-License-Identifier: MIT
"""Matches retransmitted packets of the queue with the trace's retransmit records."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from analysis.read.columns import Columns


@dataclass
class Retransmits:
    """One side of the match: packets, or segments of records."""

    frames: list[pl.DataFrame] = field(default_factory=list)

    def add(self, flow: np.ndarray, seq: np.ndarray, ns: np.ndarray, row: np.ndarray) -> None:
        if len(seq):
            columns = {"seq": seq, "ns": ns, "row": row, "flow": flow}
            self.frames.append(pl.DataFrame({name: values.astype(np.int64) for name, values in columns.items()}))


def segments_of(tcp: Columns, rows: np.ndarray) -> np.ndarray:
    """How many segments each retransmit record covers."""
    mss = np.maximum(tcp["mss_bytes"][rows].astype(np.int64), 1)
    return np.maximum(-(-tcp["data_bytes"][rows].astype(np.int64) // mss), 1)


def pieces(tcp: Columns, rows: np.ndarray, seq: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(seq, time, row) of each segment of retransmit records. One record can cover several segments (TSO)."""
    mss = np.maximum(tcp["mss_bytes"][rows].astype(np.int64), 1)
    segments = segments_of(tcp, rows)
    at = np.repeat(np.arange(len(rows)), segments)
    number = np.arange(len(at)) - np.repeat(np.cumsum(segments) - segments, segments)
    return seq[at] + number * mss[at], tcp["mono_ns"][rows[at]], rows[at]


def match(copies: Retransmits, records: Retransmits, tolerance_ns: int, retransmit_row: np.ndarray) -> int:
    """Fills `retransmit_row` with the record of the same flow and sequence number that is nearest in time, if it is
    within `tolerance_ns`.

    The tracepoint fires after the packet was passed to the device, so the record can be later than the arrival.
    Returns the number of record segments without a packet.
    """
    total = sum(len(frame) for frame in records.frames)
    if not total or not copies.frames:
        return total
    matched = (
        pl.concat(copies.frames)
        .sort("ns", maintain_order=True)
        .join_asof(
            pl.concat(records.frames).sort("ns", maintain_order=True),
            on="ns",
            by=["flow", "seq"],
            strategy="nearest",
            tolerance=tolerance_ns,
            suffix="_record",
            check_sortedness=False,  # cannot be checked with `by`; both were sorted just now
        )
        .drop_nulls("row_record")
    )
    retransmit_row[matched["row"].to_numpy()] = matched["row_record"].to_numpy()
    return total - matched.select("seq", "row_record").n_unique()
