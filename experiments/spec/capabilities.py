# SPDX-License-Identifier: MIT
"""Parameters that a target or a testbed refuses. Every rule for targets follows from the target's row of capabilities
(controlplane/targets.py), so a new target needs no line in this file. Most of these refusals name the capability. Keys
with a module of their own, such as PACING and OFFLOADS, are refused on a testbed by that module.
"""

from __future__ import annotations

from fractions import Fraction

from controlplane.switch import Capabilities
from experiments.spec.keys import Spec
from experiments.spec.transfers import PROGRAM, kinds
from lib import units
from lib.keys import Wrong

LEAST_PPS = 100
MAX_RATE_ROUNDING = Fraction(1, 2 * LEAST_PPS)


def refuse(spec: Spec, clock: str, wire_bytes: int, can: Capabilities, testbed: bool, wrong: Wrong) -> None:
    """Calls `wrong` with the key and the problem for each parameter that the target or the testbed cannot have."""
    who = f"TARGET={can.name}"
    if clock == "virtual" and on_testbed(can):
        wrong("clock", f"needs a switch that is a program of this machine; {who} is a switch with cables (capability "
              "front_panel: yes); allowed: real")  # fmt: skip
    if clock == "virtual" and not can.exact_time and spec.delay == "tc":
        wrong("delay", f"can replace the sender's queue (bufferscope_tc_at), which spaces the frames to {who} in "
              "virtual time; allowed: switch")  # fmt: skip
    if not can.exact_time and spec.switch is not None:
        wrong("switch", f"is for the soft switch; {who} is another switch (capability exact_time: no); "
              "allowed: no SWITCH")  # fmt: skip
    if not can.links and spec.rtt_spread.amount:
        wrong("rtt_spread", f"needs a delay for each flow; {who} has no links (capability links: no); allowed: 0ns")
    if not can.links and spec.rtts is not None:
        wrong("rtts", f"needs a delay for each flow; {who} has no links (capability links: no); allowed: no RTTS")
    if not can.links and spec.access is not None:
        wrong("access", f"needs a link for each flow; {who} has no links (capability links: no); allowed: no ACCESS")
    if spec.traffic == "open-loop" and (can.rate_unit != "bps" or not can.exact_depth):
        wrong("traffic", f"is compared with theory, which needs a rate in bit/s and exact depths; {who} lacks one of "
              f"them (capabilities rate_unit: {can.rate_unit}, exact_depth: {_yes(can.exact_depth)}); "
              "allowed: long")  # fmt: skip
    if testbed:
        _refuse_on_testbed(spec, clock, wrong)
    if not can.byte_thresholds:
        for key, quantity in (("buf", spec.buf), ("ecn_threshold", spec.ecn_threshold)):
            if quantity is not None and quantity.dimension == "bytes":
                wrong(key, f"is in bytes; {who} compares {', '.join(can.depth_units)} (capability depth_units); "
                      "allowed: p, bdp or time, which are rounded to these")  # fmt: skip
    if on_testbed(can) and spec.delay == "switch":
        wrong("delay", f"needs a switch that delays; {who} is a switch with cables (capability links: no); allowed: tc")
    _refuse_rate(spec, wire_bytes, can, wrong)


def _refuse_on_testbed(spec: Spec, clock: str, wrong: Wrong) -> None:
    """Refuses parameters that need the lab of one machine."""
    if clock == "virtual":
        wrong("clock", "needs the lab of one machine; an inventory names other machines; allowed: real")
    if PROGRAM in kinds(spec.traffic):
        wrong("traffic", "starts programs, which run only in the lab of one machine; an inventory names others; "
              f"allowed: without {PROGRAM}")  # fmt: skip
    for key in ("rtts", "access_links", "servers"):
        if getattr(spec, key, None):
            wrong(key, "needs addresses of the sender that only the lab of one machine has; an inventory names other "
                  f"machines; allowed: no {key.upper()}")  # fmt: skip


def _refuse_rate(spec: Spec, wire_bytes: int, can: Capabilities, wrong: Wrong) -> None:
    """Refuses a rate that rounding to whole packets per second changes by more than half a percent."""
    pps = rate_pps(spec.rate.bps, wire_bytes, can)
    if pps is None:
        return
    exact = Fraction(spec.rate.bps, 8 * wire_bytes)
    if abs(pps - exact) > MAX_RATE_ROUNDING * exact:
        least = units.show(8 * wire_bytes * LEAST_PPS, "rate")
        wrong("rate", f"is {float(exact):.2f} packets/s of {wire_bytes} bytes; TARGET={can.name} takes whole packets/s "
              f"only (capability rate_unit: pps); allowed: {least} ({LEAST_PPS} packets/s) and more")  # fmt: skip


def rate_pps(rate_bps: int, wire_bytes: int, can: Capabilities) -> int | None:
    """The rate in full-size packets per second; None if the target takes bits per second."""
    return units.nearest(Fraction(rate_bps, 8 * wire_bytes)) if can.rate_unit == "pps" else None


def on_testbed(can: Capabilities) -> bool:
    """Whether the target is a machine with cables, not a process of the lab."""
    return can.front_panel


def default_delay(can: Capabilities, testbed: bool) -> str:
    """The default of DELAY. In the lab `switch`: links of the target or of a delay line have the RTT. On a testbed
    `switch` if the target has links, else `tc`. BMv2 may have a delay line on a testbed, for DELAY=switch.
    """
    return "tc" if testbed and not can.links else "switch"


def _yes(value: bool) -> str:
    return "yes" if value else "no"
