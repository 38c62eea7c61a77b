# SPDX-License-Identifier: MIT
"""What a host is set to: every sysctl that bears on TCP, every interface with its offloads, and every queue."""

from __future__ import annotations

import json
import platform
from typing import Any

from hosts.tune import congestion, offloads, sysctls
from hosts.tune.commands import TuneError, run

# ip -d link says more; these are queues, or change what a frame is
LINK_KEYS = (
    *("mtu", "txqlen", "qdisc", "operstate", "address", "link_type", "linkinfo", "num_tx_queues", "num_rx_queues"),
    *("gso_max_size", "gso_max_segs", "gro_max_size", "tso_max_size"),
)


def json_of(*words: str) -> Any:
    """What a program prints as JSON; None when it cannot say (a device without rings, an old version)."""
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
    found = {}
    for link in json_of("ip", "-j", "-d", "link", "show") or []:
        name = link["ifname"]
        try:
            states = {n: "on" if one.on else "off" for n, one in offloads.read(name).items()}
        except TuneError:
            states = {}
        found[name] = {
            **{key: link[key] for key in LINK_KEYS if key in link},
            "offloads": states,
            "rings": text_of("ethtool", "-g", name),
            "coalescing": text_of("ethtool", "-c", name),
        }
    return found


def show() -> dict[str, Any]:
    """All of it, ready for JSON."""
    return {
        "kernel": platform.release(),
        "congestion_controls": congestion.available(),
        "sysctls": {
            **sysctls.read_all("net/ipv4", "tcp_"),
            **sysctls.read_all("net/ipv4", "ip_local"),
            **sysctls.read_all("net/core"),
        },
        "interfaces": interfaces(),
        "qdiscs": json_of("tc", "-j", "-s", "qdisc", "show"),
    }
