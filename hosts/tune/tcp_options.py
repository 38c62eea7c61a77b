# SPDX-License-Identifier: MIT
"""How a host's TCP sends and acknowledges: each option, its value in Linux and in the papers, and the
sysctl or the attribute of routes that sets the option. Standard library only (Python 3.9 or later): hosts of a testbed
run this file.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from hosts.tune.commands import TuneError


class Option(NamedTuple):
    """`linux` and `paper` are the values of the two profiles. `values` are the allowed values: words, or a range of
    numbers. `sysctl` and `sysctl_value` set the option; an option without sysctl is an attribute of the host's routes.
    """

    linux: int | str
    paper: int | str
    values: tuple[str, ...] | range
    sysctl: str = ""
    sysctl_value: Callable[[int | str], str] = str


def _on(value: str) -> Callable[[int | str], str]:
    """`value` if the option is on, else 0."""
    return lambda word: value if word == "on" else "0"


SWITCH = ("on", "off")
MOST_SLACK = "1s"
# The papers simulated or ran NewReno: an initial window of 2, one ACK per packet, no SACK and nothing that needs SACK.
OPTIONS: dict[str, Option] = {
    "initcwnd": Option(10, 2, range(1, 1025)),
    "acks": Option("delayed", "each", ("delayed", "each")),
    "sack": Option("on", "off", SWITCH, "net.ipv4.tcp_sack", _on("1")),
    # 1: RACK only. Without RACK, losses are found by counting SACKed segments (RFC 6675).
    "rack": Option("on", "off", SWITCH, "net.ipv4.tcp_recovery", _on("1")),
    # 3: tail loss probes after two RTTs (Linux no longer has early retransmit)
    "tlp": Option("on", "off", SWITCH, "net.ipv4.tcp_early_retrans", _on("3")),
    "frto": Option("on", "off", SWITCH, "net.ipv4.tcp_frto", _on("2")),
    "comp_sack_slack_ns": Option(100_000, 100_000, range(10**9 + 1), "net.ipv4.tcp_comp_sack_slack_ns"),
    "comp_sack_nr": Option(44, 0, range(256), "net.ipv4.tcp_comp_sack_nr"),
}
LINUX: dict[str, int | str] = {name: option.linux for name, option in OPTIONS.items()}
PAPER: dict[str, int | str] = {name: option.paper for name, option in OPTIONS.items()}
PROFILES = {"linux": LINUX, "paper": PAPER}

RFC6675_REMOVED = (6, 17)  # "tcp: remove obsolete and unused RFC3517/RFC6675 loss recovery code", June 2025


MIXED = "mixed"


def profile(values: Mapping[str, int | str]) -> str:
    """The name of the profile with these values; MIXED if none has them."""
    return next((name for name, of_profile in PROFILES.items() if of_profile == dict(values)), MIXED)


def sysctls(values: Mapping[str, int | str]) -> dict[str, str]:
    """{name as in sysctl(8): wanted value}."""
    options = [(option, values[name]) for name, option in OPTIONS.items() if option.sysctl and name in values]
    return {option.sysctl: option.sysctl_value(value) for option, value in options}


def route_attributes(values: Mapping[str, int | str]) -> dict[str, str]:
    """The attributes of routes, as ip-route(8) calls them. Linux's own values need none."""
    attributes = {}
    if values.get("initcwnd", LINUX["initcwnd"]) != LINUX["initcwnd"]:
        attributes["initcwnd"] = str(values["initcwnd"])
    if values.get("acks") == "each":
        attributes["quickack"] = "1"
    return attributes


def check_kernel(values: Mapping[str, int | str], release: str) -> None:
    """Raises TuneError for RACK=off on kernels where the sysctl has no effect any more. Without SACK no kernel uses
    RACK.
    """
    match = re.match(r"(\d+)\.(\d+)", release)
    version = (int(match[1]), int(match[2])) if match else (0, 0)
    if values.get("rack") == "off" and values.get("sack") == "on" and version >= RFC6675_REMOVED:
        raise TuneError(
            f"RACK=off: Linux {release} finds the losses of SACK connections only by RACK, whatever "
            "net.ipv4.tcp_recovery says (since 6.17); use SACK=off too, or an older kernel (CLOCK=virtual has one)"
        )


def parse(text: str) -> tuple[str, int | str]:
    """NAME=VALUE, for argparse."""
    name, _, value = text.partition("=")
    if name not in OPTIONS:
        raise argparse.ArgumentTypeError(f"'{text}': give NAME=VALUE with one of {', '.join(OPTIONS)}")
    values = OPTIONS[name].values
    if isinstance(values, range):
        if re.fullmatch(r"\d{1,10}", value) and int(value) in values:
            return name, int(value)
        raise argparse.ArgumentTypeError(f"'{text}': give a whole number from {values[0]} to {values[-1]}")
    if value not in values:
        raise argparse.ArgumentTypeError(f"'{text}': give {' or '.join(values)}")
    return name, value
