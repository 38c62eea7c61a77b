# SPDX-License-Identifier: MIT
"""The numbers of the lab's ports at the switch, for plans that a virtual-time machine reads: it imports no parser."""

from __future__ import annotations

from typing import NamedTuple

from experiments.spec.topology import COLLECTOR, RECEIVER, SENDER

QUEUES = 32  # of a port with a scheduler: v1model's priority has 3 bits, changed v1models have 5


class Ports(NamedTuple):
    """A program of the user's may have other numbers than the lab."""

    sender: int = SENDER.port
    receiver: int = RECEIVER.port
    collector: int = COLLECTOR.port
