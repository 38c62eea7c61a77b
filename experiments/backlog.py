# SPDX-License-Identifier: MIT
"""Frames that the kernel lost between two namespaces, where no program of ours could count them.

A frame that crosses a veth waits in a per-processor backlog (net.core.netdev_max_backlog). When that is full the frame
is gone: the only trace is `tx_dropped` of the veth it was sent on (drivers/net/veth.c). Of a switch that is a driver,
the hosts' interfaces say what they could not send.
"""

from __future__ import annotations

import json
import subprocess

from experiments import topology
from experiments.errors import RunError

COUNTERS = ("dropped", "errors", "carrier_errors")


def lost() -> dict[str, int]:
    """Frames lost by each interface of the lab on sending, since it was made: `NAMESPACE/INTERFACE` -> frames."""
    found = {}
    for name in (topology.SWITCH, *(host.name for host in topology.HOSTS)):
        command = ["ip", "-netns", name, "-json", "-statistics", "link", "show"]
        shown = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if shown.returncode != 0:
            raise RunError(f"read the interface counters of {name}: {' '.join(shown.stderr.split())}")
        for link in json.loads(shown.stdout):
            if link["link_type"] == "loopback":
                continue
            sent = link["stats64"]["tx"]
            found[f"{name}/{link['ifname']}"] = sum(sent.get(counter, 0) for counter in COUNTERS)
    return found
