# SPDX-License-Identifier: MIT
"""Frames that the kernel lost between two namespaces, where no program of ours could count them.

A frame that crosses a veth waits in a per-processor backlog (net.core.netdev_max_backlog). If the backlog is full, the
frame is lost, and `tx_dropped` of the sending veth counts it (drivers/net/veth.c). If the switch is a driver, the
hosts' interfaces count the frames that they could not send.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable

from lib.errors import RunError

COUNTERS = ("dropped", "errors", "carrier_errors")


def lost(namespaces: Iterable[str]) -> dict[str, int]:
    """Frames that each interface of the lab failed to send since it was made: `NAMESPACE/INTERFACE` -> frames."""
    counted = statistics(namespaces).items()
    return {name: sum(stats["tx"].get(counter, 0) for counter in COUNTERS) for name, stats in counted}


def passed(namespaces: Iterable[str]) -> dict[str, dict[str, int]]:
    """Frames that the kernel counts on each interface of the lab: `NAMESPACE/INTERFACE` -> received, sent."""
    counted = statistics(namespaces).items()
    return {name: {"received": stats["rx"]["packets"], "sent": stats["tx"]["packets"]} for name, stats in counted}


def statistics(namespaces: Iterable[str]) -> dict[str, dict[str, dict[str, int]]]:
    """The kernel's counters of each interface but loopback, `rx` and `tx` apart. Raises RunError."""
    counters = {}
    for name in namespaces:
        command = ["ip", "-netns", name, "-json", "-statistics", "link", "show"]
        shown = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if shown.returncode != 0:
            raise RunError(f"read the interface counters of {name}: {' '.join(shown.stderr.split())}")
        for link in json.loads(shown.stdout):
            if link["link_type"] != "loopback":
                counters[f"{name}/{link['ifname']}"] = link["stats64"]
    return counters
