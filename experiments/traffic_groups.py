# SPDX-License-Identifier: MIT
"""The resolved groups of a run's long flows and of its datagrams. transfers.py has the groups of finite flows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

DEFAULT_LOAD = Fraction(4, 5)


@dataclass(frozen=True, kw_only=True)
class OwnSettings:
    """The settings that belong to a group of a file's `groups`. Without `groups` all of them are None, and the run's
    settings apply.

    `number` is the group's place in the file. A group of datagrams has no other setting of its own.
    """

    number: int | None = None
    rtt_ns: int | None = None  # the least of the group
    rtt_spread_ns: int | None = None
    rtts_ns: list[int] | None = None
    ack_delay_ns: int | None = None  # None: as the run
    access_bps: int | None = None
    access_links: int | None = None
    servers: int | None = None
    window_packets: int | None = None
    pacing: str | None = None
    ecn: str | None = None  # None, also in the next two fields: as the run
    initcwnd: int | None = None
    acks: str | None = None

    @property
    def is_own(self) -> bool:
        return self.rtt_ns is not None


OWN = tuple(OwnSettings.__dataclass_fields__)


@dataclass(frozen=True)
class Group(OwnSettings):
    """Long flows that share a congestion control. `flows` is their number."""

    cc: str
    flows: int | None


@dataclass(frozen=True)
class Datagrams(OwnSettings):
    """Open-loop traffic beside other groups. `flows` is its number of 5-tuples, `load` its share of RATE."""

    flows: int
    load: float
    sizes: str
    arrivals: str


def to_dict(group: OwnSettings) -> dict[str, Any]:
    """For spec.yaml. Omits own settings and `path_of` where they are None."""
    return {key: value for key, value in asdict(group).items() if value is not None or key not in (*OWN, "path_of")}
