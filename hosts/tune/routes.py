# SPDX-License-Identifier: MIT
"""Reads and sets initcwnd (the initial window) and quickack (an ACK for each segment) of an interface's routes. Linux
has no sysctl for either.

A route is identified by its line of `ip route show`, without these two attributes and without the words that only
report a state. All unicast routes of the interface change, except the link-local route and routes that expire, so that
flows to any address behind the interface behave the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hosts.tune.commands import CommandError, TuneError, run

ATTRIBUTES = ("initcwnd", "quickack")
STATES = ("linkdown", "dead", "offload", "rt_offload", "trap", "rt_trap")  # ip prints these words but refuses them
# First words of routes that are left alone: routes that are not unicast, and the link-local route, because ip cannot
# tell apart the link-local routes of several interfaces.
NOT_OF_FLOWS = (
    "multicast",
    "broadcast",
    "local",
    "anycast",
    "unreachable",
    "blackhole",
    "prohibit",
    "throw",
    "fe80::/",
)


class Route(NamedTuple):
    """`identity`: the interface, the family, and all words of the route except its attributes and states."""

    identity: str
    attributes: dict[str, str]


def parse(interface: str, family: str, line: str) -> Route:
    words = [word for word in line.split() if word not in STATES]
    attributes = {}
    for name in ATTRIBUTES:
        if name in words:
            place = words.index(name)
            attributes[name] = words[place + 1]
            del words[place : place + 2]
    return Route(" ".join([interface, family, *words]), attributes)


def read(interface: str) -> dict[str, dict[str, str]]:
    """{identity: attributes} of the unicast routes of an interface. Routes that expire are left out: they come from a
    router's advertisements. Raises TuneError for a route over several interfaces.
    """
    routes = {}
    for family in ("-4", "-6"):
        for line in run("ip", family, "route", "show", "dev", interface).splitlines():
            if line.startswith((" ", "\t")):
                raise TuneError(
                    f"{interface} is one of several interfaces of a route (nexthop): give the interface its own route"
                )
            if line.strip() and not line.startswith(NOT_OF_FLOWS) and " expires " not in line:
                route = parse(interface, family, line)
                routes[route.identity] = route.attributes
    return routes


def attributes_of(identity: str) -> dict[str, str] | None:
    """The attributes of one route; None if the host no longer has it."""
    return read(identity.split()[0]).get(identity)


def write(identity: str, attributes: Mapping[str, str]) -> None:
    """Raises TuneError if the kernel refuses the attributes, or keeps others."""
    interface, family, *words = identity.split()
    attempt = f"setting the route {' '.join(words)} of {interface} to '{shown(attributes)}'"
    try:
        run("ip", family, "route", "replace", *words, *shown(attributes).split(), "dev", interface)
    except CommandError as error:
        raise TuneError(f"{attempt}: {error.reason}") from error
    kept = attributes_of(identity)
    if kept != dict(attributes):
        raise TuneError(f"{attempt}: the kernel keeps '{shown(kept or {})}'")


def shown(attributes: Mapping[str, str]) -> str:
    return " ".join(f"{name} {value}" for name, value in sorted(attributes.items()))
