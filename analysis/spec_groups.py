# SPDX-License-Identifier: MIT
"""The groups of a run's spec: their order, and the kind of traffic of each. Imports nothing large, because the runner
prints the traffic before it starts (experiments/announce.py).
"""

from __future__ import annotations

from typing import Any

LONG, OPEN_LOOP = "long", "open-loop"


def in_order(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """All groups of spec.yaml, by `number`. Groups without a number come in the order long, finite, datagrams."""
    groups = [*spec["groups"], *(spec.get("transfers") or ()), *(spec.get("datagrams") or ())]
    return sorted(groups, key=lambda group: group.get("number") or 0)


def kind(group: dict[str, Any]) -> str:
    """The kind of traffic, in the words of TRAFFIC."""
    return str(group.get("kind") or (LONG if "cc" in group else OPEN_LOOP))
