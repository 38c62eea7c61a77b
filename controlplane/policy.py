# SPDX-License-Identifier: MIT
"""What the control plane can ask of a queue, whatever the switch: one dataclass per policy of design and P4 program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TailDrop:
    """A packet that arrives to a queue of `threshold` or more is dropped."""

    threshold: int
    in_bytes: bool = False


@dataclass(frozen=True)
class Ecn:
    """As TailDrop, but ECN-capable packets are marked instead, up to `hard_limit`, where everything is dropped."""

    threshold: int
    hard_limit: int
    in_bytes: bool = False


@dataclass(frozen=True)
class EgressThreshold:
    """A packet that leaves `threshold` or more behind is dropped on departure, or marked if it is ECN-capable."""

    threshold: int
    mark_instead_of_drop: bool = False
    in_bytes: bool = False


@dataclass(frozen=True)
class Unwatched:
    """No policy, no depth, no postcards."""


Policy = TailDrop | Ecn | EgressThreshold | Unwatched
