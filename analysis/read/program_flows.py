# SPDX-License-Identifier: MIT
"""The flows of the user's own programs. No plan lists them, so postcards identify them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from analysis.read.flows import PROTOCOL_NUMBERS, Flow, Flows
from analysis.read.raw import Columns

PROTOCOLS = tuple(PROTOCOL_NUMBERS[name] for name in ("tcp", "udp"))


def entries(
    cc: str | None, port: int | None, postcards: Columns, flows: Flows, planned: Iterable[int], first_id: int
) -> list[Flow]:
    """Entries of Run.traffic: one for each TCP or UDP 5-tuple that has a postcard of the bottleneck `port` and is not
    among the `planned` flow numbers. If `port` is None, postcards of any port count. The order is that of the flows'
    first packets.

    `cc` is the default congestion control of the programs' sockets. A program may choose another. None for UDP.
    """
    at = postcards["flow"] if port is None else postcards["flow"][postcards["egress_port"] == port]
    numbers, first = np.unique(at, return_index=True)
    known = np.fromiter(planned, dtype=np.int64)
    mine = (numbers < len(flows)) & ~np.isin(numbers, known)
    numbers = numbers[mine][np.argsort(first[mine], kind="stable")]
    protocol = flows.words[4, numbers] >> np.uint64(32) & np.uint64(0xFF)
    chosen = numbers[np.isin(protocol, PROTOCOLS)].tolist()
    tuples = [flows[number] for number in chosen]
    return [
        Flow(first_id + index, cc if each.protocol == PROTOCOLS[0] else None, each, number, program=True)
        for index, (number, each) in enumerate(zip(chosen, tuples, strict=True))
    ]
