# SPDX-License-Identifier: MIT
"""Reads and switches offloads of an interface through ethtool. Saves single features, not groups: restoring a group
would also switch on features that had been off.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from hosts.tune.commands import CommandError, TuneError, run

# ethtool -k prints the long names, ethtool -K takes the short ones
SHORT = {
    "rx-checksumming": "rx",
    "tx-checksumming": "tx",
    "scatter-gather": "sg",
    "tcp-segmentation-offload": "tso",
    "generic-segmentation-offload": "gso",
    "generic-receive-offload": "gro",
    "large-receive-offload": "lro",
    "rx-vlan-offload": "rxvlan",
    "tx-vlan-offload": "txvlan",
    "ntuple-filters": "ntuple",
    "receive-hashing": "rxhash",
}
GROUPS = ("tx-checksumming", "scatter-gather", "tcp-segmentation-offload")  # ethtool -k lists their features below them
_LINE = re.compile(r"^(\t?)([\w-]+): (on|off)( \[.*\])?$")


@dataclass(frozen=True)
class Feature:
    """One line of ethtool -k; `name` is its name in ethtool -K. A group is on if any of its features is on. A group is
    fixed if all of its features that are on are fixed.
    """

    name: str
    on: bool
    fixed: bool
    group: bool


def parse(text: str) -> dict[str, Feature]:
    """The features in the output of ethtool -k, by name. Skips lines of another form."""
    features: dict[str, Feature] = {}
    members: dict[str, list[Feature]] = {}  # for each group, its features that are on
    above = ""
    for line in text.splitlines():
        match = _LINE.match(line)
        if match:
            indent, long_name, value, note = match.groups()
            name = SHORT.get(long_name, long_name)
            fixed = note is not None and "fixed" in note
            features[name] = Feature(name, value == "on", fixed, long_name in GROUPS)
            above = above if indent else name
            if indent and value == "on":
                members.setdefault(above, []).append(features[name])
    for name, of_group in members.items():
        if all(member.fixed for member in of_group):
            features[name] = replace(features[name], fixed=True)
    return features


def read(interface: str) -> dict[str, Feature]:
    return parse(run("ethtool", "-k", interface))


def single_states(features: dict[str, Feature]) -> dict[str, str]:
    """State (on or off) of every single feature that can be changed."""
    return {name: _word(each.on) for name, each in features.items() if not each.fixed and not each.group}


def switch(interface: str, wanted: dict[str, str]) -> None:
    """Switches features with one ethtool call. Raises TuneError with the first feature that did not change."""
    if not wanted:
        return
    words = [word for pair in sorted(wanted.items()) for word in pair]
    try:
        run("ethtool", "-K", interface, *words)
    except CommandError as error:
        # ethtool fails if a single feature cannot change, so the states are read back below
        reason = error.reason
    else:
        reason = "the device keeps the former state"
    present = read(interface)
    for name, value in wanted.items():
        if name not in present or _word(present[name].on) != value:
            raise TuneError(f"switching {name} of {interface} {value}: {reason}")


def restore(interface: str, states: dict[str, str]) -> bool:
    """Restores single features; returns whether any had to change. Features depend on each other, so a second ethtool
    call may succeed where the first failed."""
    changed = False
    for _ in range(2):
        present = read(interface)
        wrong = {n: v for n, v in states.items() if n in present and _word(present[n].on) != v}
        if not wrong:
            return changed
        changed = True
        try:
            switch(interface, wrong)
        except TuneError as error:
            failure = error
    present = read(interface)
    if any(name in present and _word(present[name].on) != value for name, value in states.items()):
        raise failure
    return changed


def _word(on: bool) -> str:
    return "on" if on else "off"
