# SPDX-License-Identifier: MIT
"""TCP's sequence space as the queue sees it: header lengths, retransmissions, reordering, new bytes.

Each function works on many flows at once. Rows are sorted by flow, then by arrival; `group` counts the flows from 0 and
`starts` holds each flow's first row. `start` and `end` of a packet's bytes are places on an Axis (by_flow.py), where no
two flows share a number.
"""

from __future__ import annotations

import numpy as np

from lib.frames import ETHERNET_BYTES, IPV4_BYTES, IPV6_BYTES, TCP_BYTES, TIMESTAMP_OPTION_BYTES

MIN_HEADER_BYTES, MAX_HEADER_BYTES = ETHERNET_BYTES + IPV4_BYTES + TCP_BYTES, 255
_SIZES = MAX_HEADER_BYTES + 1


def header_bytes(
    frame_bytes: np.ndarray, seq: np.ndarray, control: np.ndarray, starts: np.ndarray, is_ipv4: np.ndarray
) -> np.ndarray:
    """Ethernet, IP and TCP header bytes of each flow's data packets. Postcards do not carry the length of TCP options.

    A packet's payload is the step to the next sequence number, and its header is the rest of the frame. The result is
    the flow's most frequent header length: retransmissions and gaps give rarer values. A flow without a usable step is
    assumed to carry timestamps, the default of Linux.
    """
    group = groups(starts, len(seq))
    step = np.diff(seq)
    header = frame_bytes[:-1] - step
    usable = (control[:-1] == 0) & (step >= 0) & (header >= MIN_HEADER_BYTES) & (header <= MAX_HEADER_BYTES)
    usable &= group[1:] == group[:-1]
    occurred = np.bincount(group[:-1][usable] * _SIZES + header[usable], minlength=len(starts) * _SIZES)
    occurred = occurred.reshape(len(starts), _SIZES)
    assumed = ETHERNET_BYTES + np.where(is_ipv4, IPV4_BYTES, IPV6_BYTES) + TCP_BYTES + TIMESTAMP_OPTION_BYTES
    return np.where(occurred.any(axis=1), occurred.argmax(axis=1), assumed)


def groups(starts: np.ndarray, rows: int) -> np.ndarray:
    """The group of each row."""
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=rows))


def order(start: np.ndarray, end: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """(mask of retransmissions, mask of reordered first arrivals, number of arrivals that left a hole)."""
    before = np.empty_like(start)
    np.maximum.accumulate(end[:-1], out=before[1:])
    before[starts] = start[starts]
    below = (start < before) & (end > start)
    skipped = int(np.count_nonzero(start > before))
    reordered = np.zeros(len(start), dtype=bool)
    late = np.flatnonzero(below)
    if len(late):
        # Timely packets are in sequence order. A late packet is reordered if no timely packet carried its first byte,
        # and no earlier late packet has the same start.
        timely = np.flatnonzero(~below & (end > start))
        at = np.searchsorted(start[timely], start[late], side="right") - 1
        in_hole = (at < 0) | (start[late] >= end[timely[at]])
        _, first = np.unique(start[late[in_hole]], return_index=True)
        reordered[late[in_hole][first]] = True
    return below & ~reordered, reordered, skipped


def new_bytes(start: np.ndarray, payload: np.ndarray) -> np.ndarray:
    """New bytes of each packet: each byte of a flow counts once, although several packets may carry it.

    If two packets overlap, the packet with the lower start (of equal starts, the earlier packet) is credited with the
    overlap. So a packet can be credited with bytes that an earlier packet carried; the sum is exact.
    """
    if (np.diff(start) >= payload[:-1]).all():
        return payload
    ascending = np.argsort(start, kind="stable")
    first, end = start[ascending], start[ascending] + payload[ascending]
    covered = np.empty_like(end)
    covered[:1] = first[:1]
    np.maximum.accumulate(end[:-1], out=covered[1:])
    result = np.empty_like(payload)
    result[ascending] = np.maximum(end - np.maximum(first, covered), 0)
    return result
