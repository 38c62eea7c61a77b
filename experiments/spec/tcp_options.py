# SPDX-License-Identifier: MIT
"""The keys of an experiment for its hosts' TCP: PROFILE, and a key for each option that overrides the profile.

An experiment with Linux's own values has no `tcp` in its spec, and no option is set for a whole host. In any other
experiment `tcp` has every option. hosts/tune/tcp_options.py defines the options and sets them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.spec.transfers import PROGRAM, TCP
from hosts.tune.port_routes import OPTIONS as OF_PORTS
from hosts.tune.tcp_options import LINUX, MOST_SLACK, OPTIONS, PROFILES
from lib.keys import BOTH, RUN, Keys, field
from lib.quantities import Time
from lib.values import whole_number


def _of_tcp(meaning: str, name: str, scope: str = RUN) -> Any:
    """A key of TCP. The values are those of the option `name` (hosts/tune/tcp_options.py)."""
    values = OPTIONS[name].values
    if isinstance(values, range):
        return field(meaning, whole_number(values[0], values[-1]), scope=scope, kinds=(*TCP, PROGRAM))
    return field(meaning, values=values, scope=scope, kinds=(*TCP, PROGRAM))


class TcpKeys(Keys):
    """The keys as given; None: the value of the profile."""

    # fmt: off
    profile: str = field(
        "TCP of the hosts: linux (its defaults), or paper (INITCWND=2 ACKS=each, SACK, RACK, TLP and FRTO off, "
        "COMP_SACK_NR=0); the next keys override it one by one",
        default="linux", values=tuple(PROFILES), kinds=(*TCP, PROGRAM))
    initcwnd: int | None = _of_tcp("first window of a flow in segments (default 10)", "initcwnd", BOTH)
    acks: str | None = _of_tcp(
        "what receivers acknowledge: delayed (every second segment, the default), or each", "acks", BOTH)
    sack: str | None = _of_tcp("selective acknowledgements: on (default), off (NewReno)", "sack")
    rack: str | None = _of_tcp(
        "loss detection by time: on (default), off (by counting, RFC 6675; since Linux 6.17 only without SACK)", "rack")
    tlp: str | None = _of_tcp("tail loss probes: on (default), off (a lost last segment waits for the RTO)", "tlp")
    frto: str | None = _of_tcp("detection of spurious timeouts: on (default), off", "frto")
    comp_sack_slack: Time | None = field(
        "slack of the timer that sends a compressed ACK: ns, us (default 100us)",
        Time.within("0ns", MOST_SLACK), kinds=(*TCP, PROGRAM))
    comp_sack_nr: int | None = _of_tcp(
        "most ACKs with SACK blocks that receivers compress into one: 0 (none) to 255 (default 44)", "comp_sack_nr")
    # fmt: on


KEYS = tuple(TcpKeys.model_fields)
# Options that have no effect in Linux without SACK.
NEED_SACK = ("rack", "tlp", "comp_sack_slack", "comp_sack_nr")
# Options that ns-3's TCP lacks, with the value that means "absent"; None: no value means that.
LINUX_ONLY: dict[str, int | str | None] = {
    "rack": "off", "tlp": "off", "frto": "off", "comp_sack_slack": None, "comp_sack_nr": 0,
}  # fmt: skip


def given(keys: TcpKeys) -> dict[str, Any]:
    """The keys that override the profile."""
    return {key: value for key in KEYS[1:] if (value := getattr(keys, key)) is not None}


def resolve(keys: TcpKeys, switch: str | None) -> dict[str, int | str] | None:
    """Every option's value; None if all are Linux's own."""
    named = {option(key): value.ns if key == "comp_sack_slack" else value for key, value in given(keys).items()}
    values = dict(PROFILES[keys.profile]) | named
    if values["sack"] == "off":
        values |= {"rack": "off", "tlp": "off"}
    if values == LINUX:
        return None
    lacking = LINUX_ONLY if switch == "ns3" else {}
    return values | {option(key): value for key, value in lacking.items() if value is not None}


def of_group(keys: TcpKeys, of_run: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options that a group of flows has in place of the run's, by name. All others belong to the whole host."""
    own = {key: getattr(keys, key) for key in OF_PORTS}
    return {key: value for key, value in own.items() if value not in (None, (of_run or LINUX)[key])}


def words_of_ports(ports: range, of_group: Mapping[str, Any], of_run: Mapping[str, Any] | None) -> str:
    """The options of a group whose servers have `ports`, in the form of --port-tcp (hosts/tune) without the direction;
    "" if the group has no option of its own.
    """
    if all(of_group[key] is None for key in OF_PORTS):
        return ""
    values = {key: (of_run or LINUX)[key] if of_group[key] is None else of_group[key] for key in OF_PORTS}
    return f"{ports.start}-{ports[-1]}:" + ",".join(f"{key}={value}" for key, value in values.items())


def option(key: str) -> str:
    return "comp_sack_slack_ns" if key == "comp_sack_slack" else key
