# SPDX-License-Identifier: MIT
"""How many segments TCP may hand an interface at once: its gso_max_segs, through ip. settings.py says why it matters.

What ip and the kernel keep is read back: kernels and versions of ip before 4.16 refuse to set it, or pass over it.
"""

from __future__ import annotations

import json

from hosts.tune.commands import CommandError, TuneError, run

NEEDS = "this needs root, and Linux and iproute2 4.16 or later"


def read(interface: str) -> int:
    """Raises TuneError when ip does not say: it does with -d alone, and old ones never."""
    text = run("ip", "-j", "-d", "link", "show", "dev", interface)
    try:
        return int(json.loads(text)[0]["gso_max_segs"])
    except (ValueError, LookupError, TypeError) as error:
        raise TuneError(f"reading gso_max_segs of {interface}: ip does not say it: {NEEDS}") from error


def write(interface: str, segments: int) -> None:
    """Raises TuneError when ip or the kernel does not take it, or the kernel keeps something else."""
    what = f"setting gso_max_segs of {interface} to {segments}"
    try:
        run("ip", "link", "set", "dev", interface, "gso_max_segs", str(segments))
    except CommandError as error:
        raise TuneError(f"{what}: {error.reason}: {NEEDS}") from error
    kept = read(interface)
    if kept != segments:
        raise TuneError(f"{what}: the kernel keeps {kept}: {NEEDS}")
