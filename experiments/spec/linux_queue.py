# SPDX-License-Identifier: MIT
"""QUEUE: a Linux qdisc as the bottleneck's queue, with the arguments of tc. tc itself judges the arguments, when the
run sets the qdisc (plan/configure.py).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping

from lib.frames import ETHERNET_BYTES
from lib.words import unknown

PREFIX = "linux:"
FORM = "linux:NAME and the arguments of tc: linux:codel target 5ms interval 100ms"
# Linux's default limit, in packets; None: the limit is in bytes.
LIMITS: dict[str, int | None] = {
    "pfifo": 1000, "bfifo": None, "red": None, "codel": 1000, "pie": 1000, "fq_codel": 10240, "fq_pie": 10240,
    "cake": 10240, "fq": 10000, "sfq": 127, "dualpi2": 10000,
}  # fmt: skip
DEFAULT_FRAMES = 1000  # limit of bfifo: the device's tx_queue_len, in full frames
WITH_CLASSES = ("drr", "ets", "hfsc", "htb", "mq", "mqprio", "multiq", "prio", "qfq", "taprio")
ARGUMENT = re.compile(r"[A-Za-z0-9_.:/%+-]+")
PACKETS = re.compile(r"(0|[1-9][0-9]*)()")  # tc reads 0x20 and 010, too, as hexadecimal and octal numbers
BYTES = re.compile(r"([0-9]+)(k|m|g|)b?", re.IGNORECASE)  # tc's sizes: k is 1024
MOST_PACKETS = 10**6
REPLACED = ("p4", "mode", "buf", "ecn_threshold", "drop_cost")  # keys of our own queue


def read(value: object) -> str:
    """The qdisc and its arguments, with single spaces and without PREFIX; limit=100 is limit 100. Raises ValueError."""
    text = str(value).strip()
    name, *words = text.removeprefix(PREFIX).split() if text.startswith(PREFIX) else [""]
    if not name:
        raise ValueError(f"names no queue of Linux; allowed: {FORM}")
    if name in WITH_CLASSES:
        raise ValueError(f"has classes, and the bottleneck has one queue; allowed: {', '.join(LIMITS)}")
    if name not in LIMITS:
        raise ValueError(f"is no queue of Linux that bufferscope knows; {unknown(name, LIMITS)}")
    arguments = " ".join(words).replace("=", " ").split()
    if wrong := [word for word in arguments if not ARGUMENT.fullmatch(word)]:
        raise ValueError(f"cannot be read at {wrong[0]!r}; allowed: {FORM}")
    _limit(name, arguments)
    return " ".join([name, *arguments])


def _limit(name: str, arguments: list[str]) -> int | None:
    """The qdisc's limit in its unit, packets or bytes; tc takes the last of several. None: not given. Raises
    ValueError.
    """
    given = [word for before, word in itertools.pairwise(arguments) if before == "limit"]
    if not given:
        return None
    in_bytes = LIMITS[name] is None
    size = (BYTES if in_bytes else PACKETS).fullmatch(given[-1])
    if not size:
        allowed = "whole bytes, as 30000 or 300kb" if in_bytes else "whole packets, as 100"
        raise ValueError(f"has a limit of {given[-1]!r}; allowed: {allowed}")
    return int(size[1]) * 1024 ** "_kmg".find(size[2].lower() or "_")


def most_packets(queue: str, mtu_bytes: int) -> int:
    """The packets that the qdisc holds at most: its limit, or Linux's default; of a limit in bytes, in full frames."""
    name, *arguments = queue.split()
    limit, packets = _limit(name, arguments), LIMITS[name]
    if packets is None:
        packets = DEFAULT_FRAMES if limit is None else -(-limit // (mtu_bytes + ETHERNET_BYTES))
    elif limit is not None:
        packets = limit
    return min(max(packets, 1), MOST_PACKETS)


def wrong(queue: str | None, given: Mapping[str, object], runs_it: bool) -> Iterator[tuple[str, str]]:
    """(key, problem) of QUEUE and of the keys that it replaces. `runs_it`: whether the run has a kernel with qdiscs."""
    if queue is None:
        return
    if not runs_it:
        yield (
            "queue",
            ("is a qdisc of the virtual-time kernel; allowed: with CLOCK=virtual and TARGET=soft, without SWITCH"),
        )
    limit = f"QUEUE='{PREFIX}{queue.split()[0]} limit ...'"
    for key in REPLACED:
        if key in given and not (key == "mode" and given[key] == "tail-drop"):
            more = f"; the qdisc has its own limit: {limit}" if key == "buf" else ""
            yield key, f"is of our own queue, which QUEUE replaces; allowed: without QUEUE{more}"
