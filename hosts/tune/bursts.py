# SPDX-License-Identifier: MIT
"""Reads and sets gso_max_segs, the number of segments that TCP may hand to an interface at once (why: settings.py).

A value is read back after it is set, because kernels and versions of ip before 4.16 refuse or ignore it.
"""

from __future__ import annotations

import json

from hosts.tune.commands import CommandError, TuneError, run

NEEDS = "this needs root, and Linux and iproute2 4.16 or later"


def read(interface: str) -> int:
    """Raises TuneError if ip does not print the value: old versions never do, newer ones need -d."""
    text = run("ip", "-j", "-d", "link", "show", "dev", interface)
    try:
        return int(json.loads(text)[0]["gso_max_segs"])
    except (ValueError, LookupError, TypeError) as error:
        raise TuneError(f"reading gso_max_segs of {interface}: ip does not print it: {NEEDS}") from error


def write(interface: str, segments: int) -> None:
    """Raises TuneError if ip or the kernel refuses the value, or the kernel keeps another one."""
    attempt = f"setting gso_max_segs of {interface} to {segments}"
    try:
        run("ip", "link", "set", "dev", interface, "gso_max_segs", str(segments))
    except CommandError as error:
        raise TuneError(f"{attempt}: {error.reason}: {NEEDS}") from error
    kept = read(interface)
    if kept != segments:
        raise TuneError(f"{attempt}: the kernel keeps {kept}: {NEEDS}")
