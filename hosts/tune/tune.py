# SPDX-License-Identifier: MIT
"""Prepares a host for measuring, and restores it: `python -m hosts.tune.tune apply|undo|show`.

Changes only the network namespace in which it runs. `apply` first saves the former values in the state file, then
changes the settings; if one setting fails, `apply` restores those before it. `apply` is idempotent: a second call
with the same options changes nothing. No later `apply` replaces saved values.
Standard library only (Python 3.9 or later).
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hosts.tune import (
    bursts,
    coalescing,
    congestion,
    inventory,
    offloads,
    port_routes,
    qdiscs,
    routes,
    settings,
    state,
    sysctls,
    tcp_options,
)
from hosts.tune.commands import TuneError

SUMMARY = (__doc__ or "").split("\n", 1)[0]


Changes = dict[str, tuple[Any, Any]]  # name -> (present, wanted value) of the settings that must change


def plan_sysctls(options: argparse.Namespace, saved: dict[str, str]) -> Changes:
    """{name: (present, wanted)} of the sysctls that must change. `saved` has the former values of sysctls that an
    earlier call changed: sysctls that this call does not name are restored to these values.
    """
    wanted = {
        **saved,
        **settings.wanted_sysctls(
            options.interface,
            options.ecn == "on",
            options.window_bytes,
            options.reserve_ports,
            options.buffer_bytes,
            options.unsent_bytes,
        ),
        **tcp_options.sysctls(options.tcp),
        **({name: str(options.pacing_percent) for name in settings.PACING_SYSCTLS} if options.pacing_percent else {}),
        **({settings.DEFAULT_CC: options.default_cc} if options.default_cc else {}),
    }
    changes = {}
    for name, value in wanted.items():
        present = sysctls.read(name)
        if present is None:
            if name.startswith("net.ipv6."):
                continue  # a kernel without IPv6 has nothing to switch off
            raise TuneError(f"{name}: this kernel ({platform.release()}) has no such setting: it is too old")
        value = sysctls.completed(name, value, present, may_shrink=options.buffer_bytes is not None)
        if present != value:
            changes[name] = (present, value)
    return changes


def _plan_interfaces(
    options: argparse.Namespace, saved: dict[str, Any], asked: Any, read: Callable[[str], Any],
    refuse: Callable[[str], None],
) -> Changes:  # fmt: skip
    """The changes of a setting of interfaces. Nothing `asked`: the former values (`saved`) come back. `refuse` raises
    TuneError for an interface for which `read` gives None.
    """
    changes = {}
    for interface in options.interface:
        wanted = saved.get(interface) if asked is None else asked
        if wanted is None:
            continue
        present = read(interface)
        if present is None:
            refuse(interface)
        if present != wanted:
            changes[interface] = (present, wanted)
    return changes


def plan_offloads(options: argparse.Namespace, saved: dict[str, dict[str, str]]) -> Changes:
    """{interface: (states of single features, features to switch and their states)}. If offloads are on, features that
    an earlier call switched off are restored to their former states (`saved`). Raises TuneError if the driver cannot
    switch off a segmentation offload, GRO or LRO.
    """
    changes = {}
    for interface in options.interface:
        features = offloads.read(interface)
        states = offloads.single_states(features)
        if options.offloads == "on":
            former = saved.get(interface, {})
            wanted = {name: state for name, state in former.items() if states.get(name, state) != state}
        else:
            wrong = [name for name in settings.OFFLOADS_OFF if name in features and features[name].on]
            for name in wrong:
                if features[name].fixed and name not in settings.OFFLOADS_MAY_STAY:
                    raise TuneError(
                        f"switching {name} of {interface} off: its driver has it fixed on: use another interface"
                    )
            wanted = {name: "off" for name in wrong if not features[name].fixed}
        if wanted:
            changes[interface] = (states, wanted)
    return changes


def plan_bursts(options: argparse.Namespace, saved: dict[str, int]) -> Changes:
    wanted = settings.GSO_MAX_SEGS if options.offloads == "off" else None
    return _plan_interfaces(options, saved, wanted, bursts.read, qdiscs.refuse)


def plan_coalescing(options: argparse.Namespace, saved: dict[str, int]) -> Changes:
    def refuse(interface: str) -> None:
        raise TuneError(f"{interface} has no rx-usecs (ethtool -c): its device cannot wait for more frames")

    return _plan_interfaces(options, saved, options.rx_usecs, coalescing.read, refuse)


def plan_qdiscs(options: argparse.Namespace, saved: dict[str, str]) -> Changes:
    def read(interface: str) -> str | None:
        present = qdiscs.read(interface)
        may_discard = present is not None and qdiscs.may_discard(interface, saved.get(interface, present))
        if options.qdisc == qdiscs.BLACKHOLE and not may_discard:
            return qdiscs.BLACKHOLE  # the interface stays as it is
        return present

    return _plan_interfaces(options, saved, options.qdisc, read, qdiscs.refuse)


def plan_routes(options: argparse.Namespace, saved: dict[str, dict[str, str]]) -> Changes:
    """{route: (present, wanted attributes)} of the routes that must change. If no option in `options.tcp`
    is an attribute of routes, the routes get their former attributes (`saved`) back.
    """
    wanted = tcp_options.route_attributes(options.tcp)
    named = any(not tcp_options.OPTIONS[name].sysctl for name in options.tcp)
    changes = {}
    for interface in options.interface:
        present = routes.read(interface) if options.tcp or saved else {}
        if wanted and not present:
            raise TuneError(f"{interface} has no route to carry {routes.shown(wanted)}: give it an address")
        for route, attributes in present.items():
            target = wanted if named else saved.get(route, attributes)
            if attributes != target:
                changes[route] = (attributes, target)
    return changes


def plan_port_routes(options: argparse.Namespace, saved: dict[str, Any]) -> Changes:
    """{selector: (present, wanted routes)} of the ports whose routes must change; None: no routes of their own. Ports
    of an earlier call that this call does not name lose their routes.
    """
    named = dict(options.port_tcp or [])
    if not named and not saved:
        return {}
    present = port_routes.read_all()
    wanted = dict.fromkeys(present.keys() & saved.keys()) | {
        selector: port_routes.wanted(options.interface, values) for selector, values in named.items()
    }
    return {
        selector: (present.get(selector), lines) for selector, lines in wanted.items() if present.get(selector) != lines
    }


class SettingKind(NamedTuple):
    """A kind of settings. `plan` takes the options and the values that an earlier call saved. `read` gives None, and
    `undo` leaves the setting, if this host no longer has it or if the user has replaced the qdisc. Reports have a
    setting's name with `word`, and its value as `shown`.
    """

    plan: Callable[[argparse.Namespace, dict[str, Any]], Changes]
    read: Callable[[str], Any]
    write: Callable[[str, Any], None]
    word: str = ""
    shown: Callable[[Any], Any] = str

    def restore(self, name: str, former: Any) -> bool:
        """Restores one setting. Returns whether the setting had to change."""
        if self.write is offloads.switch:
            return offloads.restore(name, former)
        changed = self.read(name) not in (former, None)
        if changed:
            self.write(name, former)
        return changed

    def entries(self, values: dict[str, Any]) -> dict[str, Any]:
        return {f"{name}{self.word}": self.shown(value) for name, value in values.items()}


KINDS = {  # in the order in which they are restored
    "sysctls": SettingKind(plan_sysctls, sysctls.read, sysctls.write),
    "offloads": SettingKind(plan_offloads, offloads.read, offloads.switch, " offloads", dict),
    "gso_max_segs": SettingKind(plan_bursts, bursts.read, bursts.write, " gso_max_segs"),
    "rx_usecs": SettingKind(plan_coalescing, coalescing.read, coalescing.write, " rx-usecs"),
    "qdiscs": SettingKind(plan_qdiscs, qdiscs.read, qdiscs.write, " qdisc"),
    "routes": SettingKind(plan_routes, routes.attributes_of, routes.write, shown=routes.shown),
    "port_routes": SettingKind(plan_port_routes, port_routes.read, port_routes.write, shown=port_routes.shown),
}


def put_back(saved: dict[str, Any]) -> tuple[bool, dict[str, Any], list[str]]:
    """Restores the saved values. Returns (whether any changed, values that could not be restored, errors)."""
    changed, errors = False, []
    left: dict[str, Any] = {kind: {} for kind in KINDS}
    for kind, of in KINDS.items():
        for name, former in saved.get(kind, {}).items():
            try:
                changed = of.restore(name, former) or changed
            except TuneError as error:
                left[kind][name] = former
                errors.append(str(error))
    return changed, left, errors


def apply(options: argparse.Namespace) -> dict[str, Any]:
    """Returns {"changed", "before", "after"} for this call."""
    options.tcp = dict(options.tcp or [])
    tcp_options.check_kernel(options.tcp, platform.release())
    saved = state.load(options.state)
    planned = {kind: of.plan(options, saved.get(kind, {})) for kind, of in KINDS.items()}
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for kind, changes in planned.items():
        if kind == "offloads":
            switched = {f"{name} {each}": to for name, (_, wanted) in changes.items() for each, to in wanted.items()}
            before.update({feature: "off" if to == "on" else "on" for feature, to in switched.items()})
            after.update(switched)
        else:
            before.update(KINDS[kind].entries({name: present for name, (present, _) in changes.items()}))
            after.update(KINDS[kind].entries({name: wanted for name, (_, wanted) in changes.items()}))
    if not before:
        return {"changed": False, "before": before, "after": after}

    before_call = {kind: {name: former for name, (former, _) in changes.items()} for kind, changes in planned.items()}
    # values that an earlier call saved take precedence, because they are the original ones
    state.save(options.state, {kind: {**before_call[kind], **saved.get(kind, {})} for kind in before_call})
    try:
        for kind in sorted(planned, key=lambda kind: kind == "sysctls"):  # sysctls last
            for name, (_, wanted) in planned[kind].items():
                KINDS[kind].write(name, wanted)
    except TuneError as error:
        _, _, errors = put_back(before_call)
        if not errors and saved:
            state.save(options.state, saved)
        elif not errors:
            options.state.unlink()
        outcome = "; not restored: " + "; ".join(errors) if errors else "; earlier changes of this call are undone"
        raise TuneError(f"{error}{outcome}") from error
    return {"changed": True, "before": before, "after": after}


def undo(options: argparse.Namespace) -> dict[str, Any]:
    """Restores the values in the state file, and removes the file. Values that cannot be restored stay in the file.
    A file of another boot is removed, and a file of another namespace stays.
    """
    saved = state.load(options.state)
    changed, left, errors = put_back(saved)
    if errors:
        state.save(options.state, left)
        raise TuneError(f"not restored, and still in {options.state}: {'; '.join(errors)}")
    state.forget(options.state)
    after: dict[str, Any] = {}
    for kind, of in KINDS.items():
        after.update(of.entries(saved.get(kind, {})))
    return {"changed": changed, "before": {}, "after": after}


def parse_ports(text: str) -> str:
    match = re.fullmatch(r"(\d{1,5})-(\d{1,5})", text)
    if not match or not 0 < int(match[1]) <= int(match[2]) < 65536:
        raise argparse.ArgumentTypeError(f"'{text}': give FIRST-LAST with ports from 1 to 65535")
    return f"{int(match[1])}-{int(match[2])}"


def parse_whole(unit: str, least: int, most: int, text: str) -> int:
    if not re.fullmatch(r"\d{1,10}", text) or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"'{text}': give a whole number of {unit} from {least} to {most}")
    return int(text)


parse_bytes = partial(parse_whole, "bytes", 1, 256 << 20)
parse_usecs = partial(parse_whole, "us", 0, 99999)
parse_percent = partial(parse_whole, "percent", 1, 1000)


def parse_cc(text: str) -> str:
    if not congestion.NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"'{text}': give the name of a congestion control, such as cubic")
    return text


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m hosts.tune.tune", description=SUMMARY)
    commands = parser.add_subparsers(dest="command", required=True)
    change = commands.add_parser("apply", help="set sysctls, offloads, gso_max_segs, rx-usecs, qdisc and routes")
    change.add_argument("--state", type=Path, required=True, help="file for the former values")
    change.add_argument(
        "--interface", type=state.parse_interface, action="append", required=True, help="may be repeated"
    )
    change.add_argument("--ecn", choices=("off", "on"), default="off", help="whether connections request ECN")
    change.add_argument(
        "--window-bytes", type=parse_bytes, default=4 << 20, help="BDP and buffer together (default 4 MiB)"
    )
    change.add_argument("--buffer-bytes", type=parse_bytes, help="largest socket buffer (default: from --window-bytes)")
    change.add_argument("--unsent-bytes", type=parse_bytes, help="unsent bytes at which a socket takes no more data")
    change.add_argument("--reserve-ports", type=parse_ports, help="FIRST-LAST: client ports of the experiment")
    change.add_argument(
        "--tcp", type=tcp_options.parse, action="append", metavar="NAME=VALUE", help="a TCP option; may be repeated"
    )
    change.add_argument(
        "--port-tcp",
        type=port_routes.parse,
        action="append",
        metavar="dport|sport:FIRST-LAST:NAME=VALUE,...",
        help="initcwnd and acks of the packets to or from some ports; may be repeated",
    )
    change.add_argument("--offloads", choices=("off", "on"), default="off", help="on: as before the first apply")
    change.add_argument("--rx-usecs", type=parse_usecs, help="us that a received frame waits for others")
    change.add_argument(
        "--qdisc",
        choices=tuple(qdiscs.WORDS),
        help="root qdisc: fq paces every TCP flow, blackhole discards all frames",
    )
    change.add_argument(
        "--pacing-percent", type=parse_percent, help="rate of paced flows, in percent of a window per RTT"
    )
    change.add_argument("--default-cc", type=parse_cc, help="congestion control of sockets that choose none")
    back = commands.add_parser("undo", help="restore the settings that apply changed")
    back.add_argument("--state", type=Path, required=True, help="the file that apply wrote")
    commands.add_parser("show", help="settings, offloads and queues of this host as JSON")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    try:
        if options.command == "show":
            result = inventory.show()
        else:
            result = apply(options) if options.command == "apply" else undo(options)
    except (TuneError, OSError) as error:
        print(f"tune: {error}", file=sys.stderr)
        return 1
    print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
