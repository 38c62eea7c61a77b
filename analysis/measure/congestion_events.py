# SPDX-License-Identifier: MIT
"""Congestion events of flows: a drop within 2 RTTs of the flow's previous drop belongs to the same event.

One overflow of the queue drops several packets of a window, and a sender that counts duplicate ACKs reduces its window
once for all of them. The number of events, not of drops, is therefore an estimate of the number of reductions.
"""

from __future__ import annotations

import numpy as np

RTTS_APART = 2


def count(flow: np.ndarray, times_ns: np.ndarray, rtt_ns: np.ndarray) -> np.ndarray:
    """Congestion events of each flow number (int64). `flow` and `times_ns` are of the dropped packets, in any order;
    `rtt_ns` has an RTT for each flow number.
    """
    order = np.lexsort((times_ns, flow))
    of, at = flow[order], times_ns[order]
    is_new = np.ones(len(of), dtype=bool)
    is_new[1:] = (of[1:] != of[:-1]) | (at[1:] - at[:-1] > RTTS_APART * rtt_ns[of[1:]])
    return np.bincount(of[is_new], minlength=len(rtt_ns))
