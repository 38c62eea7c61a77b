# SPDX-License-Identifier: MIT
"""What the control plane can ask of a queue, whatever the switch: one dataclass per policy of design and P4 program."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """What a threshold counts. Which of them a switch can compare with, its Capabilities say."""

    PACKETS = "packets"
    BYTES = "bytes"
    CELLS = "cells"


@dataclass(frozen=True)
class TailDrop:
    """A packet that arrives to a queue of `threshold` or more is dropped."""

    threshold: int
    unit: Unit = Unit.PACKETS


@dataclass(frozen=True)
class Ecn:
    """As TailDrop, but ECN-capable packets are marked instead, up to `hard_limit`, where everything is dropped."""

    threshold: int
    hard_limit: int
    unit: Unit = Unit.PACKETS


@dataclass(frozen=True)
class EgressThreshold:
    """A packet that leaves `threshold` or more behind is dropped on departure, or marked if it is ECN-capable."""

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


def mode_of(policy: Policy) -> str:
    """The name that people write for this kind of policy."""
    return next(name for name, kind in MODES.items() if isinstance(policy, kind))
