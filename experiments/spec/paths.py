# SPDX-License-Identifier: MIT
"""Rules of the keys that make paths and access links: RTTS, RTT_SPREAD, ACCESS, ACCESS_LINKS, SERVERS. model/paths.py
makes the paths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from experiments.spec.transfers import LONG, finite_kinds, kinds
from lib.keys import Wrong
from lib.quantities import Time
from model import paths
from model.experiment import Experiment
from model.paths import SPREAD_CLASSES

MOST_RTTS = 64
MOST_ACCESS_LINKS = 1000  # the switch has more: CORE_SHARED_LINKS
MOST_PATHS = 1000  # the traffic program accepts more: MOST_SOURCES of hosts/traffic/transfers.py


def read_rtts(read_one: Callable[[object], Time]) -> Callable[[object], tuple[Time, ...]]:
    """A list of RTTs; `read_one` reads each."""

    def read(value: object) -> tuple[Time, ...]:
        words = value.split(",") if isinstance(value, str) else []
        if not 2 <= len(words) <= MOST_RTTS:
            raise ValueError(f"is not a list of RTTs; allowed: 2 to {MOST_RTTS} with commas, as in 30ms,50ms,120ms")
        result = []
        for word in map(str.strip, words):
            try:
                result.append(read_one(word))
            except ValueError as error:
                raise ValueError(f"has {word!r}, which {error}") from None
        return tuple(result)

    return read


def rtts_ns(spec: Any) -> list[int] | None:
    """RTTS as given. `spec` is a Spec of experiments/spec/keys.py, which imports this module."""
    return None if spec.rtts is None else [rtt.ns for rtt in spec.rtts]


def refuse(spec: Any, given: Mapping[str, object], wrong: Wrong) -> None:
    """Calls `wrong` for keys that contradict each other."""
    if spec.rtts is not None:
        for key in ("rtt", "rtt_spread"):
            if key in given:
                wrong(
                    "rtts",
                    f"has every RTT; {key.upper()} is given too; allowed: one of them (RTT is the least of RTTS)",
                )
    classes = len(spec.rtts) if spec.rtts else SPREAD_CLASSES if spec.rtt_spread.amount else 1
    least = max(classes, spec.access_links or 1)
    if spec.servers is not None and finite_kinds(spec.traffic) and spec.servers < least:
        wrong("servers", f"leaves RTTs or access links without a path; allowed: {least} to {MOST_PATHS}, for "
              f"{classes} RTTs and {spec.access_links or 'no'} access links")  # fmt: skip
    if spec.access_links is None:
        return
    if spec.access is None:
        wrong("access_links", "needs the links' rate; allowed: with ACCESS=25mbit or another rate")
    if finite_kinds(spec.traffic) and spec.servers is None and classes * spec.access_links > MOST_PATHS:
        wrong("access_links", f"and {classes} RTTs make {classes * spec.access_links} paths; allowed: {MOST_PATHS}, or "
              "a number of SERVERS that share RTTs and links")  # fmt: skip


def refuse_access(spec: Any, wrong: Wrong) -> None:
    """Calls `wrong` if the experiment cannot have access links. Targets without links: capabilities.py."""
    if spec.access is None:
        return
    if LONG in kinds(spec.traffic) and finite_kinds(spec.traffic) and spec.access_links is None:
        wrong("access", "would be a link of each long flow, and finite flows share links; allowed: with ACCESS_LINKS, "
              "with only long flows, or a file with groups")  # fmt: skip
    elif finite_kinds(spec.traffic) and spec.access_links is None:
        wrong("access", f"is the rate of links that finite flows share; their number is missing; allowed: with "
              f"ACCESS_LINKS=1 to {MOST_ACCESS_LINKS}")  # fmt: skip


def refuse_groups(experiment: Experiment, wrong: Wrong) -> None:
    """Calls `wrong` if groups have too many paths or links together."""
    if not experiment.has_own_settings:
        return
    if (count := len(paths.paths(experiment))) > MOST_PATHS:
        wrong("groups", f"makes {count} paths of finite flows (RTTs times access links); allowed: {MOST_PATHS}")
    if (count := len(paths.links_bps(experiment))) > MOST_ACCESS_LINKS:
        wrong("groups", f"makes {count} access links; allowed: {MOST_ACCESS_LINKS}")
