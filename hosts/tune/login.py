# SPDX-License-Identifier: MIT
"""The SSH connection over which this program was started, if any: its interfaces must go on sending."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from hosts.tune.commands import CommandError, run


def interfaces() -> set[str]:
    """The interface that sends to the SSH client, and the interfaces below it (of a VLAN, bond or bridge). Empty if
    there is no such connection in this network namespace. Raises TuneError, OSError.
    """
    addresses = _addresses()
    if addresses is None:
        return set()
    (client, _, zone), (server, _, _) = (address.partition("%") for address in addresses)
    words = [client, "from", server, *(["oif", zone] if zone else [])]
    try:
        found = {str(route["dev"]) for route in json.loads(run("ip", "-j", "route", "get", *words))}
    except CommandError:  # no route: the connection is in another namespace
        return set()
    links = json.loads(run("ip", "-j", "link", "show"))
    for _ in links:  # each round goes one level down
        found |= {link["link"] for link in links if link["ifname"] in found and "link" in link}
        found |= {link["ifname"] for link in links if link.get("master") in found}
    return found


def _addresses() -> tuple[str, str] | None:
    """The addresses of the SSH client and of this host. sudo removes the variable that has them, but sudo is a parent
    of this process and was started with it.
    """
    pid = os.getpid()
    while pid:
        words: list[bytes] = []
        with contextlib.suppress(PermissionError):  # the first process of a container may have more capabilities
            words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        for word in words:
            if word.startswith(b"SSH_CONNECTION="):
                client, _, server, _ = word.decode().partition("=")[2].split()
                return client, server
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return None
