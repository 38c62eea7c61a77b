# SPDX-License-Identifier: MIT
"""The queue policies of the P4 program, one dataclass each, the same for every switch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """The unit of a threshold. A switch's Capabilities list the units that it can compare."""

    PACKETS = "packets"
    BYTES = "bytes"
    CELLS = "cells"


@dataclass(frozen=True)
class TailDrop:
    """A packet that arrives when the queue holds `threshold` or more is dropped."""

    threshold: int
    unit: Unit = Unit.PACKETS


@dataclass(frozen=True)
class Ecn:
    """As TailDrop, but below `hard_limit` ECN-capable packets are marked instead of dropped."""

    threshold: int
    hard_limit: int
    unit: Unit = Unit.PACKETS


@dataclass(frozen=True)
class EgressThreshold:
    """Drops a departing packet if `threshold` or more stay queued. `mark_instead_of_drop`: marks it if ECN-capable."""

    threshold: int
    mark_instead_of_drop: bool = False
    unit: Unit = Unit.PACKETS


@dataclass(frozen=True)
class Unwatched:
    """No policy, no depth, no postcards."""


Watched = TailDrop | Ecn | EgressThreshold
Policy = Watched | Unwatched

MODES: dict[str, type[Policy]] = {
    "tail-drop": TailDrop,
    "ecn": Ecn,
    "egress-threshold": EgressThreshold,
    "unwatched": Unwatched,
}
EGRESS_ECN = "egress-ecn"  # a run's mode: EgressThreshold that marks
# Modes of a measured queue: every policy except unwatched; EgressThreshold that marks is a mode of its own
WATCHED_MODES = (*(name for name, kind in MODES.items() if kind is not Unwatched), EGRESS_ECN)
MARKING_MODES = ("ecn", EGRESS_ECN)
EGRESS_MODES = ("egress-threshold", EGRESS_ECN)  # the policy decides at departure


def mode_of(policy: Policy) -> str:
    """The policy's name in files and commands."""
    return next(name for name, kind in MODES.items() if isinstance(policy, kind))
