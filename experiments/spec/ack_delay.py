# SPDX-License-Identifier: MIT
"""The key ACK_DELAY: the propagation delay of the ACK direction, of a run or of a group. The data direction has the
rest of RTT.
"""

from __future__ import annotations

from typing import Any

from lib import units
from lib.keys import Wrong

NETEM, SIMULATOR = "tc", "ns3"


def resolve(spec: Any, rtt_ns: int, delay: str, wrong: Wrong) -> int | None:
    """ACK_DELAY in ns; None if it is not given. `delay` is the run's DELAY, `rtt_ns` the least RTT of the flows, `spec`
    a Spec (experiments/spec/keys.py). Calls `wrong` if the run cannot have this delay.
    """
    if spec.ack_delay is None:
        return None
    delay_ns: int = spec.ack_delay.ns
    if delay == NETEM:
        wrong("ack_delay", "needs a delay of its own in each direction; netem has one for both; allowed: with "
              "DELAY=switch only")  # fmt: skip
    elif spec.switch == SIMULATOR:
        wrong("ack_delay", "is not simulated; allowed: not with SWITCH=ns3")
    elif delay_ns > rtt_ns:
        wrong("ack_delay", f"is longer than the RTT of {units.show(rtt_ns, 'time')}; allowed: 0ns to RTT")
    return delay_ns
