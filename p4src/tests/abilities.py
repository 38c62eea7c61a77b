# SPDX-License-Identifier: MIT
"""The abilities of a target that a test may need: one table, which `@needs(...)` consults.

Most abilities follow from the control plane's Capabilities. A target's class lists those that only tests need.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from controlplane.switch import Capabilities


class Ability(NamedTuple):
    """`otherwise`: why a test is skipped on a target without the ability."""

    has: Callable[[Capabilities], bool] | None  # None: the target has it if its class lists it
    otherwise: str


ABILITIES = {
    "exact_time": Ability(lambda can: can.exact_time, "stamps are readings of a wall clock"),
    "bit_rate": Ability(lambda can: can.rate_unit == "bps", "the rate of a queue is in packets, not in bits"),
    "byte_thresholds": Ability(lambda can: can.byte_thresholds, "thresholds cannot be in bytes"),
    "drops_seen": Ability(
        lambda can: can.tail_drop_seen_by_program, "the traffic manager drops on arrival, not the program"
    ),
    "exact_depth": Ability(lambda can: can.exact_depth, "depths may not count exactly the packets ahead"),
    "held_queue": Ability(None, "packets cannot be made to wait in the queue while others come"),
    "counted_bytes": Ability(None, "counters include bytes that the target adds to frames"),
    "register_presets": Ability(None, "the program's counters cannot be brought to given values"),
}


def needs(*abilities: str) -> pytest.MarkDecorator:
    """Skips the test, visibly, on targets that lack one of `abilities`."""
    unknown = set(abilities) - ABILITIES.keys()
    if unknown:
        raise ValueError(f"no ability {', '.join(sorted(unknown))}; there are {', '.join(ABILITIES)}")
    return pytest.mark.needs(*abilities)


def lacking(abilities: tuple[str, ...], can: Capabilities, listed: frozenset[str]) -> list[str]:
    """Why a target cannot run a test that needs `abilities`; [] if it can. `listed`: abilities that its class lists."""
    has = {name for name, ability in ABILITIES.items() if (ability.has(can) if ability.has else name in listed)}
    return [ABILITIES[name].otherwise for name in abilities if name not in has]
