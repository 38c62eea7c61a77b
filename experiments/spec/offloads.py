# SPDX-License-Identifier: MIT
"""The keys of an experiment for its hosts' NICs: OFFLOADS, NIC_RATE, COALESCE.

With OFFLOADS=on a sender's TCP hands down super-segments (TSO, GSO). In virtual time the kernel segments them in the ns
of their transmission, and the access link of the sender's port spaces the segments at NIC_RATE. At both hosts a
received frame waits up to COALESCE for further frames, and GRO merges the segments of a flow. On a testbed the
machines' NICs do all this.
"""

from __future__ import annotations

from lib.keys import Keys, field
from lib.quantities import Rate, Time
from model.experiment import Offloads

# The NIC must not be the bottleneck: the NIC's queue has no limit, and would fill in place of the measured queue.
LEAST_NIC_RATE_BPS, NIC_RATE_PER_RATE = 10**10, 4
DEFAULT_COALESCE_NS = 20_000
LEAST_COALESCE, MOST_COALESCE = "1us", "10ms"


def _whole_us(value: object) -> Time:
    coalesce = Time.within(LEAST_COALESCE, MOST_COALESCE)(value)
    if coalesce.ns % 1000:
        raise ValueError(
            f"is not a whole number of us, which ethtool takes; allowed: {LEAST_COALESCE} to {MOST_COALESCE}"
        )
    return coalesce


class OffloadKeys(Keys):
    # fmt: off
    offloads: str = field(
        "off: hosts send and receive single segments; on: TSO, GSO and GRO, with bursts as from a NIC",
        default="off", values=("off", "on"))
    nic_rate: Rate | None = field(
        "with OFFLOADS=on: rate of the sender's NIC, which spaces a burst (default 10gbit, or four times RATE)",
        Rate.within("64kbit", "1tbit"))
    coalesce: Time | None = field(
        "with OFFLOADS=on: how long a received frame waits for further frames, in whole us (default 20us)", _whole_us)
    # fmt: on


def resolve(keys: OffloadKeys, testbed: bool, rate_bps: int) -> Offloads | None:
    """None without offloads. On a testbed the NICs have their own rate and waiting time."""
    if keys.offloads == "off":
        return None
    if testbed:
        return Offloads()
    nic_rate_bps = keys.nic_rate.bps if keys.nic_rate else max(LEAST_NIC_RATE_BPS, NIC_RATE_PER_RATE * rate_bps)
    return Offloads(
        nic_rate_bps=nic_rate_bps, coalesce_us=(keys.coalesce.ns if keys.coalesce else DEFAULT_COALESCE_NS) // 1000
    )
