# SPDX-License-Identifier: MIT
"""The settings of a host: the sysctls of TCP, local ports and net.core, every interface with its offloads, the routes
of the main table, and every queue.
"""

from __future__ import annotations

import json
import platform
from typing import Any

from hosts.tune import congestion, offloads, sysctls
from hosts.tune.commands import TuneError, run

# Keys of ip -d link that are kept: the interface's kind, address and state, its queues, and limits of frame sizes.
LINK_KEYS = (
    *("mtu", "txqlen", "qdisc", "operstate", "address", "link_type", "linkinfo", "num_tx_queues", "num_rx_queues"),
    *("gso_max_size", "gso_max_segs", "gro_max_size", "tso_max_size"),
)
LOOPBACK = "lo"


def json_of(*words: str) -> Any:
    """A program's JSON output; None if the program fails or prints no JSON (an old version)."""
    try:
        text = run(*words)
        return json.loads(text) if text.strip() else []
    except (TuneError, ValueError):
        return None


def text_of(*words: str) -> list[str] | None:
    try:
        return [" ".join(line.split()) for line in run(*words).splitlines() if line.strip()]
    except TuneError:
        return None


def interfaces() -> dict[str, Any]:
    result = {}
    for link in json_of("ip", "-j", "-d", "link", "show") or []:
        name = link["ifname"]
        try:
            states = {key: "on" if feature.on else "off" for key, feature in offloads.read(name).items()}
        except TuneError:
            states = {}
        result[name] = {
            **{key: link[key] for key in LINK_KEYS if key in link},
            "offloads": states,
            # Loopback has neither rings nor coalescing: ethtool would fail.
            "rings": None if name == LOOPBACK else text_of("ethtool", "-g", name),
            "coalescing": None if name == LOOPBACK else text_of("ethtool", "-c", name),
        }
    return result


def show() -> dict[str, Any]:
    """All settings, ready for JSON."""
    return {
        "kernel": platform.release(),
        "congestion_controls": congestion.available(),
        "sysctls": {
            **sysctls.read_all("net/ipv4", "tcp_"),
            **sysctls.read_all("net/ipv4", "ip_local"),
            **sysctls.read_all("net/core"),
        },
        "interfaces": interfaces(),
        "routes": [*(text_of("ip", "-4", "route", "show") or []), *(text_of("ip", "-6", "route", "show") or [])],
        "qdiscs": json_of("tc", "-j", "-s", "qdisc", "show"),
    }
