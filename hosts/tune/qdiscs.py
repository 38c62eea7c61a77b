# SPDX-License-Identifier: MIT
"""The root qdisc of an interface: fq, which keeps each TCP segment until the departure time that follows from its
flow's pacing rate (net/sched/sch_fq.c), or the kernel's default.
"""

from __future__ import annotations

import json

from hosts.tune.commands import CommandError, TuneError, run

FQ = "fq"
DEFAULT = ""  # the kernel's choice for a new interface, and after `tc qdisc del`
# fq's default limits (10,000 packets, 100 per flow) are below large windows: packets would be lost before the switch.
LIMITS = ("limit", "1000000", "flow_limit", "100000")


def read(interface: str) -> str:
    """FQ if the root qdisc is fq; DEFAULT for every other qdisc, also one that a user has set: undoing restores the
    kernel's default then. Raises TuneError.
    """
    text = run("tc", "-j", "qdisc", "show", "dev", interface, "root")
    try:
        kinds = {entry["kind"] for entry in json.loads(text or "[]")}
    except (ValueError, LookupError, TypeError) as error:
        raise TuneError(f"reading the qdisc of {interface}: tc does not say it: {error}") from error
    return FQ if FQ in kinds else DEFAULT


def write(interface: str, kind: str) -> None:
    """Raises TuneError if the kernel lacks fq, or refuses."""
    words = ("replace", "dev", interface, "root", FQ, *LIMITS) if kind == FQ else ("del", "dev", interface, "root")
    try:
        run("tc", "qdisc", *words)
    except CommandError as error:
        raise TuneError(
            f"setting the qdisc of {interface} to {kind or 'the default'}: {error.reason}: this needs root and, for "
            "PACING=fq, a kernel with CONFIG_NET_SCH_FQ"
        ) from error
