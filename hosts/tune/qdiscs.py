# SPDX-License-Identifier: MIT
"""The root qdisc of an interface: fq, which keeps each TCP segment until the departure time that follows from its
flow's pacing rate (net/sched/sch_fq.c), blackhole, which discards each frame, or the kernel's default.
"""

from __future__ import annotations

import json
from typing import NoReturn

from hosts.tune import login
from hosts.tune.commands import CommandError, TuneError, run

FQ = "fq"
BLACKHOLE = "blackhole"
DEFAULT = ""  # the kernel's choice for a new interface, and after `tc qdisc del`
# fq's default limits (10,000 packets, 100 per flow) are below large windows: packets would be lost before the switch.
WORDS = {FQ: ("limit", "1000000", "flow_limit", "100000"), BLACKHOLE: ()}


def read(interface: str) -> str | None:
    """DEFAULT if the kernel chose the root qdisc (handle 0:), else the kind of WORDS that it has. None: somebody set
    another qdisc, which `write` cannot restore. Raises TuneError.
    """
    entries = _roots(interface)
    if all(entry["handle"] == "0:" for entry in entries):
        return DEFAULT
    return next((entry["kind"] for entry in entries if entry["kind"] in WORDS), None)


def may_discard(interface: str, former: str | None) -> bool:
    """Whether BLACKHOLE may take the place of the qdisc that the host had, `former`: undo can restore the kernel's
    default alone, and a host never discards the frames of the login over which it is reached.
    """
    return former == DEFAULT and interface not in login.interfaces()


def refuse(interface: str) -> NoReturn:
    """Raises TuneError for an interface whose root qdisc somebody has set."""
    kinds = ", ".join(entry["kind"] for entry in _roots(interface))
    raise TuneError(
        f"{interface} has the root qdisc {kinds}, which bufferscope did not set and could not restore: to replace it "
        f"by fq, remove it first: tc qdisc del dev {interface} root"
    )


def _roots(interface: str) -> list[dict[str, str]]:
    text = run("tc", "-j", "qdisc", "show", "dev", interface, "root")
    try:
        return [{"kind": str(entry["kind"]), "handle": str(entry["handle"])} for entry in json.loads(text or "[]")]
    except (ValueError, LookupError, TypeError) as error:
        raise TuneError(f"reading the qdisc of {interface}: tc's output has no kind or handle: {error}") from error


def write(interface: str, kind: str) -> None:
    """Raises TuneError if the kernel lacks fq, or refuses."""
    words = ("replace", "dev", interface, "root", kind, *WORDS[kind]) if kind else ("del", "dev", interface, "root")
    try:
        run("tc", "qdisc", *words)
    except CommandError as error:
        raise TuneError(
            f"setting the qdisc of {interface} to {kind or 'the default'}: {error.reason}: this needs root and, for "
            "PACING=fq, a kernel with CONFIG_NET_SCH_FQ"
        ) from error
