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
from typing import Any

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


def plan_sysctls(options: argparse.Namespace, saved: dict[str, str]) -> dict[str, tuple[str, str]]:
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


def plan_offloads(
    interface: str, kept: bool = False, saved: dict[str, str] | None = None
) -> tuple[dict[str, str], dict[str, str]]:
    """(states of single features, features to switch and their states). If offloads are `kept`, features that an
    earlier call switched off are restored to their former states (`saved`). Raises TuneError if the driver cannot
    switch off a segmentation offload, GRO or LRO.
    """
    features = offloads.read(interface)
    if kept:
        states = offloads.single_states(features)
        return states, {name: state for name, state in (saved or {}).items() if states.get(name, state) != state}
    wrong = [name for name in settings.OFFLOADS_OFF if name in features and features[name].on]
    for name in wrong:
        if features[name].fixed and name not in settings.OFFLOADS_MAY_STAY:
            raise TuneError(f"switching {name} of {interface} off: its driver has it fixed on: use another interface")
    return offloads.single_states(features), {name: "off" for name in wrong if not features[name].fixed}


def plan_bursts(options: argparse.Namespace, saved: dict[str, int]) -> dict[str, tuple[int, int]]:
    """{interface: (present, wanted gso_max_segs)} of the interfaces whose gso_max_segs must change."""
    changes = {}
    for interface in options.interface:
        present = bursts.read(interface)
        wanted = settings.GSO_MAX_SEGS if options.offloads == "off" else saved.get(interface, present)
        if present != wanted:
            changes[interface] = (present, wanted)
    return changes


def plan_qdiscs(options: argparse.Namespace, saved: dict[str, str]) -> dict[str, tuple[str, str]]:
    """{interface: (present, wanted qdisc)} of the interfaces whose root qdisc must change."""
    changes = {}
    for interface in options.interface:
        wanted = saved.get(interface) if options.qdisc is None else options.qdisc
        if wanted is None:
            continue
        present = qdiscs.read(interface)
        discards = wanted == qdiscs.BLACKHOLE
        if discards and (present is None or not qdiscs.may_discard(interface, saved.get(interface, present))):
            continue
        if present is None:
            qdiscs.refuse(interface)
        if present != wanted:
            changes[interface] = (present, wanted)
    return changes


def plan_coalescing(options: argparse.Namespace, saved: dict[str, int]) -> dict[str, tuple[int, int]]:
    """{interface: (present, wanted rx-usecs)} of the interfaces whose rx-usecs must change."""
    changes = {}
    for interface in options.interface:
        wanted = saved.get(interface) if options.rx_usecs is None else options.rx_usecs
        if wanted is None:
            continue
        present = coalescing.read(interface)
        if present is None:
            raise TuneError(f"{interface} has no rx-usecs (ethtool -c): its device cannot wait for more frames")
        if present != wanted:
            changes[interface] = (present, wanted)
    return changes


def plan_routes(options: argparse.Namespace, saved: dict[str, dict[str, str]]) -> dict[str, tuple[Any, Any]]:
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


def plan_port_routes(options: argparse.Namespace, saved: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
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


def restore(read: Callable[[str], Any], write: Callable[[str, Any], None], name: str, former: Any) -> bool:
    """Restores one setting. Returns whether the setting had to change. `read` gives None, and the setting stays, if
    this host no longer has the setting or if the user has replaced the qdisc.
    """
    changed = read(name) not in (former, None)
    if changed:
        write(name, former)
    return changed


# How each kind of saved value is restored, in this order.
RESTORE: dict[str, Callable[[str, Any], bool]] = {
    "sysctls": partial(restore, sysctls.read, sysctls.write),
    "offloads": offloads.restore,
    "gso_max_segs": partial(restore, bursts.read, bursts.write),
    "rx_usecs": partial(restore, coalescing.read, coalescing.write),
    "qdiscs": partial(restore, qdiscs.read, qdiscs.write),
    "routes": partial(restore, routes.attributes_of, routes.write),
    "port_routes": partial(restore, port_routes.read, port_routes.write),
}


def put_back(saved: dict[str, Any]) -> tuple[bool, dict[str, Any], list[str]]:
    """Restores the saved values. Returns (whether any changed, values that could not be restored, errors)."""
    changed, errors = False, []
    left: dict[str, Any] = {kind: {} for kind in RESTORE}
    for kind, restore_one in RESTORE.items():
        for name, former in saved.get(kind, {}).items():
            try:
                changed = restore_one(name, former) or changed
            except TuneError as error:
                left[kind][name] = former
                errors.append(str(error))
    return changed, left, errors


def apply(options: argparse.Namespace) -> dict[str, Any]:
    """Returns {"changed", "before", "after"} for this call."""
    options.tcp = dict(options.tcp or [])
    tcp_options.check_kernel(options.tcp, platform.release())
    saved = state.load(options.state)
    wrong_sysctls = plan_sysctls(options, saved.get("sysctls", {}))
    wrong_routes = plan_routes(options, saved.get("routes", {}))
    wrong_port_routes = plan_port_routes(options, saved.get("port_routes", {}))
    kept, former = options.offloads == "on", saved.get("offloads", {})
    wrong_offloads = {each: plan_offloads(each, kept, former.get(each)) for each in options.interface}
    wrong_offloads = {interface: plan for interface, plan in wrong_offloads.items() if plan[1]}
    wrong_bursts = plan_bursts(options, saved.get("gso_max_segs", {}))
    wrong_coalescing = plan_coalescing(options, saved.get("rx_usecs", {}))
    wrong_qdiscs = plan_qdiscs(options, saved.get("qdiscs", {}))
    before = {name: present for name, (present, _) in wrong_sysctls.items()}
    after = {name: value for name, (_, value) in wrong_sysctls.items()}
    for interface, (_, wanted) in wrong_offloads.items():
        before.update({f"{interface} {name}": "off" if value == "on" else "on" for name, value in wanted.items()})
        after.update({f"{interface} {name}": value for name, value in wanted.items()})
    for word, changes in (("gso_max_segs", wrong_bursts), ("rx-usecs", wrong_coalescing), ("qdisc", wrong_qdiscs)):
        before.update({f"{interface} {word}": str(present) for interface, (present, _) in changes.items()})
        after.update({f"{interface} {word}": str(wanted) for interface, (_, wanted) in changes.items()})
    before.update({route: routes.shown(present) for route, (present, _) in wrong_routes.items()})
    after.update({route: routes.shown(wanted) for route, (_, wanted) in wrong_routes.items()})
    before.update({selector: port_routes.shown(present) for selector, (present, _) in wrong_port_routes.items()})
    after.update({selector: port_routes.shown(lines) for selector, (_, lines) in wrong_port_routes.items()})
    result: dict[str, Any] = {"changed": bool(before), "before": before, "after": after}
    if not result["changed"]:
        return result

    before_call: dict[str, dict[str, Any]] = {
        "sysctls": {name: present for name, (present, _) in wrong_sysctls.items()},
        "offloads": {interface: states for interface, (states, _) in wrong_offloads.items()},
        "gso_max_segs": {interface: present for interface, (present, _) in wrong_bursts.items()},
        "rx_usecs": {interface: present for interface, (present, _) in wrong_coalescing.items()},
        "qdiscs": {interface: present for interface, (present, _) in wrong_qdiscs.items()},
        "routes": {route: present for route, (present, _) in wrong_routes.items()},
        "port_routes": {selector: present for selector, (present, _) in wrong_port_routes.items()},
    }
    # values that an earlier call saved take precedence, because they are the original ones
    merged = {kind: {**before_call[kind], **saved.get(kind, {})} for kind in before_call}
    state.save(options.state, merged)
    try:
        for interface, (_, wanted) in wrong_offloads.items():
            offloads.switch(interface, wanted)
        for interface, (_, segments) in wrong_bursts.items():
            bursts.write(interface, segments)
        for interface, (_, usecs) in wrong_coalescing.items():
            coalescing.write(interface, usecs)
        for interface, (_, kind) in wrong_qdiscs.items():
            qdiscs.write(interface, kind)
        for route, (_, attributes) in wrong_routes.items():
            routes.write(route, attributes)
        for selector, (_, lines) in wrong_port_routes.items():
            port_routes.write(selector, lines)
        for name, (_, value) in wrong_sysctls.items():
            sysctls.write(name, value)
    except TuneError as error:
        _, _, errors = put_back(before_call)
        if not errors and saved:
            state.save(options.state, saved)
        elif not errors:
            options.state.unlink()
        outcome = "; not restored: " + "; ".join(errors) if errors else "; earlier changes of this call are undone"
        raise TuneError(f"{error}{outcome}") from error
    return result


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
    after = {**saved.get("sysctls", {}), **{f"{i} offloads": s for i, s in saved.get("offloads", {}).items()}}
    after.update({f"{i} gso_max_segs": str(segments) for i, segments in saved.get("gso_max_segs", {}).items()})
    after.update({f"{i} rx-usecs": str(usecs) for i, usecs in saved.get("rx_usecs", {}).items()})
    after.update({f"{i} qdisc": kind for i, kind in saved.get("qdiscs", {}).items()})
    after.update({route: routes.shown(attributes) for route, attributes in saved.get("routes", {}).items()})
    after.update({selector: port_routes.shown(lines) for selector, lines in saved.get("port_routes", {}).items()})
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
