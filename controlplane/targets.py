# SPDX-License-Identifier: MIT
"""One table of all targets: the exact abilities of each, and the module that drives it. A new target is a new row."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import NamedTuple

from controlplane.policy import Unit
from controlplane.program import Switch
from controlplane.switch import Capabilities, SwitchError


class Target(NamedTuple):
    """`module` has a function `connect(address)`. The module is imported at first use, because the libraries that
    it needs may be missing.
    """

    module: str
    address: str  # an example of an address
    capabilities: Capabilities
    programs: tuple[str, ...] = ()  # third-party programs, on the PATH in the lab; a run records their versions


SOFT = Capabilities(
    name="soft",
    depth_units=(Unit.PACKETS, Unit.BYTES),
    exact_depth=True,
    exact_time=True,
    time_step_ns=1,
    tail_drop_seen_by_program=True,
    rate_unit="bps",
    limit_units=(Unit.PACKETS, Unit.BYTES),
    links=True,
    front_panel=False,
)
TARGETS = {
    "soft": Target("controlplane.soft", "/run/switch.sock, or /dev/bufferscope-switch", SOFT),
    "bmv2": Target(
        "controlplane.bmv2",
        "127.0.0.1:9090",
        Capabilities(
            name="bmv2",
            depth_units=(Unit.PACKETS, Unit.BYTES),
            exact_depth=False,  # ingress and egress run concurrently: packets between the two are missed
            exact_time=False,
            time_step_ns=1000,
            tail_drop_seen_by_program=True,
            rate_unit="pps",
            limit_units=(Unit.PACKETS,),
            links=False,
            front_panel=False,
        ),
        programs=("simple_switch",),
    ),
    "tofino": Target(
        "controlplane.tofino",
        "127.0.0.1:50052",
        Capabilities(
            name="tofino",
            depth_units=(Unit.CELLS,),
            exact_depth=False,  # the depth at enqueue is the traffic manager's, some clock cycles old
            exact_time=False,
            time_step_ns=1,
            tail_drop_seen_by_program=False,
            rate_unit="bps",
            limit_units=(Unit.CELLS,),
            links=False,
            front_panel=True,
            clock_readable=False,
            queued_extra_bytes=22,  # watched_h (p4src/tna/internal_headers.p4) and the FCS
        ),
    ),
}
RUN_TARGETS = tuple(TARGETS)


def connect(target: str, address: str, program: Path | None = None) -> Switch:
    """A connection to a switch that runs our program, or the user's in the JSON file `program`. SwitchError: unknown
    target, no answer, another program, or another version of ours.
    """
    if target not in TARGETS:
        raise SwitchError(f"target {target!r} is not known; allowed: {', '.join(TARGETS)}")
    switch: Switch = importlib.import_module(TARGETS[target].module).connect(address, *([program] if program else []))
    try:
        switch.program()
    except SwitchError:
        switch.close()
        raise
    return switch
