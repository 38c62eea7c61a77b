# SPDX-License-Identifier: MIT
"""The keys of an experiment for its senders' bursts and windows: PACING and WINDOW.

PACING starts TCP's own pacing, for every congestion control whose pace follows from its window. BBR paces itself,
whatever PACING says. WINDOW is the kernel's clamp of the congestion window. No socket option sets the clamp; the
virtual-time kernel's traffic device does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator

from lib import units
from lib.values import choice, optional, quantity

Read = BeforeValidator
PACING = ("off", "linux", "exact")


class PacingKeys(BaseModel):
    pacing: Annotated[str, Read(choice(*PACING))] = "off"
    window: Annotated[Any, Read(optional(quantity("packets", low="1p", high="1000000p")))] = None


KEYS = tuple(PacingKeys.model_fields)
MEANINGS = {
    "pacing": "how senders spread their packets: off (in bursts, as ACKs come), linux (at 2 windows an RTT in slow "
    "start, then 1.2), exact (at one window an RTT); BBR paces itself",
    "window": "most packets of a flow in flight, whatever its congestion control: 32p (default: no bound)",
}
VALUES = {"pacing": PACING}


def resolve(
    keys: PacingKeys, given: Mapping[str, object], traffic: str, clock: str, switch: str, testbed: bool,
    wrong: Callable[[str, str], None],
) -> dict[str, Any]:  # fmt: skip
    """The values in the resolved spec; None without pacing and without a bound. Calls `wrong` with each key that cannot
    be.
    """
    for key in KEYS:
        if key not in given or (key == "pacing" and keys.pacing == "off"):
            continue
        if traffic == "open-loop":
            wrong(key, "has no meaning with TRAFFIC=open-loop; allowed: with TCP flows only")
        elif testbed or clock != "virtual":
            wrong(key, "needs the virtual-time kernel; allowed: with CLOCK=virtual only")
        elif switch == "ns3":
            wrong(key, "sets Linux's TCP, ns-3 has its own; allowed: not with SWITCH=ns3")
    return {
        "pacing": None if keys.pacing == "off" else keys.pacing,
        "window_packets": None if keys.window is None else units.whole(keys.window),
    }


def options(pacing: str | None, window_packets: int | None) -> dict[str, Any]:
    """The keys of the traffic program's plan."""
    return ({"pacing": True} if pacing else {}) | ({"window_segments": window_packets} if window_packets else {})


def setup(pacing: str | None) -> dict[str, Any]:
    """The playbooks' variables. Linux's own pace is 2 and 1.2 windows an RTT."""
    return {"tune_pacing_percent": 100} if pacing == "exact" else {}
