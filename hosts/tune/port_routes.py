# SPDX-License-Identifier: MIT
"""Routes of some TCP ports: initcwnd and quickack of the flows of one group. Linux keeps both only in routes. A rule
(ip-rule(8)) can give the packets of some ports a routing table of their own.

A selector names the ports: `dport 5201-5203` for packets to these ports, `sport` for packets from them. Its table has
the interfaces' IPv4 routes, each with the group's attributes. The numbers of our rules and tables begin at FIRST.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from typing import Any

from hosts.tune import routes, tcp_options
from hosts.tune.commands import CommandError, TuneError, run

FIRST = 10770  # preference of our first rule, and number of its table
MOST = 1000
MOST_PORT = 65535
DIRECTIONS = ("dport", "sport")
OPTIONS = ("initcwnd", "acks")  # the options of tcp_options.OPTIONS that are attributes of routes
NEEDS = "this needs root, iproute2 4.17 or later, and a kernel with CONFIG_IP_MULTIPLE_TABLES"


def parse(text: str) -> tuple[str, dict[str, int | str]]:
    """DIRECTION:FIRST-LAST:NAME=VALUE[,NAME=VALUE], for argparse. Returns the selector and the options."""
    match = re.fullmatch(rf"({'|'.join(DIRECTIONS)}):(\d{{1,5}})-(\d{{1,5}}):([^:]+)", text)
    if not match or not 0 < int(match[2]) <= int(match[3]) <= MOST_PORT:
        raise argparse.ArgumentTypeError(f"'{text}': give dport:FIRST-LAST:NAME=VALUE, or sport:FIRST-LAST:NAME=VALUE")
    values = dict(tcp_options.parse(word) for word in match[4].split(","))
    if wrong := sorted(values.keys() - {*OPTIONS}):
        raise argparse.ArgumentTypeError(
            f"'{text}': {wrong[0]} belongs to the whole host; ports can have {', '.join(OPTIONS)}"
        )
    return _selector(match[1], int(match[2]), int(match[3])), values


def wanted(interfaces: Sequence[str], values: dict[str, int | str]) -> list[str]:
    """The routes of a group's table, as `ip route show` prints them. Raises TuneError if an interface has no IPv4
    route.
    """
    attributes = tcp_options.route_attributes(values)
    lines = []
    for interface in interfaces:
        present = [route.split() for route in routes.read(interface) if route.split()[1] == "-4"]
        if not present:
            raise TuneError(f"{interface} has no IPv4 route to carry {routes.shown(attributes)}: give it an address")
        for _, _, destination, *words in present:
            lines.append(" ".join([destination, "dev", interface, *_rest(words), *routes.shown(attributes).split()]))
    return sorted(lines)


def read_all() -> dict[str, list[str]]:
    """{selector: routes of its table} of all rules that this module made. Raises TuneError."""
    return {selector: _routes(number) for selector, number in _rules().items()}


def read(selector: str) -> list[str] | None:
    """The routes of a selector's table; None if there is no such rule."""
    number = _rules().get(selector)
    return None if number is None else _routes(number)


def write(selector: str, lines: list[str] | None) -> None:
    """Gives the ports of `selector` these routes; None removes the rule and its table. Raises TuneError if the kernel
    refuses, or keeps other routes.
    """
    numbers = _rules()
    attempt = f"setting the routes of {selector}"
    try:
        if (former := numbers.get(selector)) is not None:
            run("ip", "-4", "rule", "del", "preference", str(former))
            run("ip", "-4", "route", "flush", "table", str(former))
        if lines is not None:
            free = next(number for number in range(FIRST, FIRST + MOST) if number not in numbers.values())
            for line in lines:
                run("ip", "-4", "route", "add", *line.split(), "table", str(free))
            ports = ["ipproto", "tcp", *selector.split()]
            run("ip", "-4", "rule", "add", "preference", str(free), *ports, "lookup", str(free))
    except CommandError as error:
        raise TuneError(f"{attempt}: {error.reason}: {NEEDS}") from error
    except StopIteration:
        raise TuneError(f"{attempt}: {MOST} ranges of ports have rules already") from None
    if (kept := read(selector)) != lines:
        raise TuneError(f"{attempt}: the kernel keeps {kept}: {NEEDS}")


def shown(lines: list[str] | None) -> str:
    return "none" if lines is None else "; ".join(lines)


def _rules() -> dict[str, int]:
    """{selector: number} of our rules."""
    numbers = {}
    for rule in _json("-4", "rule", "show"):
        number = int(rule.get("priority", 0))
        direction = next((word for word in DIRECTIONS if word in rule or f"{word}_start" in rule), "")
        if FIRST <= number < FIRST + MOST and direction:
            first = int(rule.get(direction, rule.get(f"{direction}_start", 0)))
            numbers[_selector(direction, first, int(rule.get(f"{direction}_end", first)))] = number
    return numbers


def _routes(number: int) -> list[str]:
    """The routes of a table. A table without a route does not exist, and ip calls that an error."""
    try:
        printed = run("ip", "-4", "route", "show", "table", str(number)).splitlines()
    except CommandError:
        return []
    lines = []
    for line in printed:
        destination, *words = line.split()
        lines.append(" ".join([destination, *_rest(words)]))
    return sorted(lines)


def _rest(words: list[str]) -> list[str]:
    """The words of a route without the states and without its origin (`proto kernel`)."""
    kept = [word for word in words if word not in routes.STATES]
    if "proto" in kept:
        place = kept.index("proto")
        del kept[place : place + 2]
    return kept


def _selector(direction: str, first: int, last: int) -> str:
    return f"{direction} {first}-{last}"


def _json(*words: str) -> list[dict[str, Any]]:
    text = run("ip", "-json", *words)
    try:
        listed = json.loads(text or "[]")
    except ValueError as error:
        raise TuneError(f"ip {' '.join(words)}: ip prints no JSON: {NEEDS}") from error
    return [entry for entry in listed if isinstance(entry, dict)]
