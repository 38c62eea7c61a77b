# SPDX-License-Identifier: MIT
"""Reads and sets rx-usecs, the time that a received frame waits for others before the interrupt (ethtool -c, -C)."""

from __future__ import annotations

import re

from hosts.tune.commands import CommandError, TuneError, run


def read(interface: str) -> int | None:
    """The device's rx-usecs; None if the device has no such setting."""
    try:
        match = re.search(r"^rx-usecs:\s*(\d+)$", run("ethtool", "-c", interface), re.M)
    except CommandError:
        return None
    return int(match[1]) if match else None


def write(interface: str, usecs: int) -> None:
    """Raises TuneError if the device refuses the value, or keeps another one."""
    attempt = f"setting rx-usecs of {interface} to {usecs}"
    try:
        run("ethtool", "-C", interface, "rx-usecs", str(usecs))
    except CommandError as error:
        raise TuneError(f"{attempt}: {error.reason}") from error
    kept = read(interface)
    if kept != usecs:
        raise TuneError(f"{attempt}: the device keeps {kept}")
