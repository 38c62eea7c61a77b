# SPDX-License-Identifier: MIT
"""Offloads of an interface through ethtool. Single features are saved, not the groups they come in: putting a group
back on would also switch on what had been off in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hosts.tune.commands import CommandError, TuneError, run

# ethtool -k prints the long name of what -K takes by the short one
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
GROUPS = ("tx-checksumming", "scatter-gather", "tcp-segmentation-offload")  # they have features of their own below
_LINE = re.compile(r"^(\t?)([\w-]+): (on|off)( \[.*\])?$")


@dataclass(frozen=True)
class Feature:
    """One line of ethtool -k; `name` is what -K takes. A group is on when any of its features is."""

    name: str
    on: bool
    fixed: bool
    group: bool


def parse(text: str) -> dict[str, Feature]:
    """The output of ethtool -k, by name. Lines of another shape are passed over."""
    found = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match:
            _, long_name, value, note = match.groups()
            name = SHORT.get(long_name, long_name)
            fixed = note is not None and "fixed" in note
            found[name] = Feature(name, value == "on", fixed, long_name in GROUPS)
    return found


def read(interface: str) -> dict[str, Feature]:
    return parse(run("ethtool", "-k", interface))


def single_states(features: dict[str, Feature]) -> dict[str, str]:
    """on or off of every feature that can be changed, groups left out."""
    return {name: _word(one.on) for name, one in features.items() if not one.fixed and not one.group}


def switch(interface: str, wanted: dict[str, str]) -> None:
    """One ethtool call; raises TuneError that names what did not change."""
    if not wanted:
        return
    words = [word for pair in sorted(wanted.items()) for word in pair]
    try:
        run("ethtool", "-K", interface, *words)
    except CommandError as error:
        # it fails as a whole when one of several cannot change: what counts is what is then
        reason = error.reason
    else:
        reason = "the device keeps it"
    present = read(interface)
    for name, value in wanted.items():
        if name not in present or _word(present[name].on) != value:
            raise TuneError(f"switching {name} of {interface} {value}: {reason}")


def restore(interface: str, states: dict[str, str]) -> bool:
    """Puts single features back; returns whether anything had to change. Features depend on each other, so what the
    kernel would not do in the first call may be possible in the second."""
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
