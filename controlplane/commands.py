# SPDX-License-Identifier: MIT
"""The commands of `python -m controlplane`, except the live table (watch.py). Each returns the exit status."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from controlplane import apply
from controlplane.desired import desired
from controlplane.policy import Ecn, EgressThreshold, Policy, TailDrop, Unit, Unwatched, mode_of
from controlplane.program import ProgramEntry, Switch
from controlplane.spec import MTU_BYTES, SwitchSpec, load, quantity
from controlplane.switch import SwitchError
from controlplane.targets import connect
from controlplane.threshold import DIMENSIONS, Conversion, convert
from lib import units
from lib.terminal import printable
from lib.values import whole_number
from p4src.compile import policy as own_policy

DIFFERENT = 2


class Opened(NamedTuple):
    """A connected switch, and the file that named it."""

    switch: Switch
    spec: SwitchSpec | None


@contextmanager
def opened(options: argparse.Namespace) -> Iterator[Opened]:
    """Connects to the switch that --file names. --target and --address override the file."""
    spec = None if options.file is None else load(options.file)
    target = options.target or (spec.target if spec else None)
    address = options.address or (spec.address if spec else None)
    if target is None or address is None:
        raise SwitchError("which switch? give --file, or --target and --address")
    with connect(target, address, getattr(options, "program", None)) as switch:
        yield Opened(switch, spec)


def port_number(switch: Switch, name: str) -> int:
    known = switch.ports()
    if name not in known:
        raise SwitchError(f"{switch}: no port {name!r}; it has {', '.join(known) or 'none'}")
    return known[name]


def apply_file(options: argparse.Namespace) -> int:
    with opened(options) as (switch, spec):
        wanted = desired(_needed(spec), switch, str(options.file))
        _say(f"note: {note}" for note in wanted.notes)
        done = apply.apply(switch, wanted)
        _say(f"changed  {change}" for change in done.changes)
        _say(f"note: {line}" for line in done.in_force)
        print(f"{len(done.changes)} changes on {switch}" if done.changes else f"nothing to change on {switch}")
    return 0


def diff(options: argparse.Namespace) -> int:
    with opened(options) as (switch, spec):
        wanted = desired(_needed(spec), switch, str(options.file))
        _say(f"note: {note}" for note in wanted.notes)
        changes = apply.plan(switch, wanted)
        _say(f"would change  {change}" for change in changes)
        if not changes:
            print(f"no difference on {switch}")
    return DIFFERENT if changes else 0


def ports(options: argparse.Namespace) -> int:
    table = Table("port", "number", "queue", "policy", "postcards")
    with opened(options) as (switch, _):
        for name, number in switch.ports().items():
            described = apply.queue_words(switch.queue(number)), apply.words(switch.policy(number))
            table.add_row(name, str(number), *described, apply.postcard_words(switch.postcards(number)))
    Console().print(table)
    return 0


def threshold(options: argparse.Namespace) -> int:
    with opened(options) as (switch, spec):
        number = port_number(switch, options.port)
        if options.operation == "get":
            if options.value is not None:
                raise SwitchError(f"threshold get: {options.value} is for `threshold set`; leave it out")
            print(apply.words(switch.policy(number)))
            return 0
        if options.value is None:
            raise SwitchError("threshold set: give a value, as in `threshold set 2 163p`")
        with switch.writing():
            policy = switch.policy(number)
            if isinstance(policy, Unwatched):
                raise SwitchError(f"port {options.port}: no policy watches its queue; `mode` sets one")
            value, unit = _depth("threshold", options.value, switch, number, _conversion(options, spec, switch, number))
            if isinstance(policy, Ecn) and unit is not policy.unit:
                raise SwitchError(
                    f"port {options.port}: the threshold is in {unit}, the hard limit in {policy.unit}: set both in "
                    "one unit with `mode`"
                )
            _set_policy(switch, options.port, number, replace(policy, threshold=value, unit=unit))
    return 0


def parameters(options: argparse.Namespace) -> int:
    """The parameters of a user's policy in force; changes those that are given, from the next packet on."""
    try:
        program = json.loads(options.program.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SwitchError(f"--program {options.program}: cannot be read ({error}); give p4c's JSON") from None
    known = own_policy.parameters(program)
    given = dict(word.partition("=")[::2] for word in options.values)
    with opened(options) as (switch, _):
        now: dict[str, int] = {}
        for table, _ in own_policy.default_actions(program, dict.fromkeys(known, 0)):
            now |= switch.default_entry(table).arguments
        wanted, problems = own_policy.values(known, given, now)
        if problems:
            raise SwitchError(f"parameters: {problems[0]}")
        if wanted != now:
            with switch.writing():
                for (table, action), arguments in own_policy.default_actions(program, wanted).items():
                    switch.write_default(table, ProgramEntry(action, arguments))
        _say(f"{name} {value}" for name, value in wanted.items())
    return 0


def mode(options: argparse.Namespace) -> int:
    with opened(options) as (switch, spec):
        number = port_number(switch, options.port)
        _refuse_ignored_options(options)
        if options.mode is None:
            print(mode_of(switch.policy(number)))
            return 0
        with switch.writing():
            conversion = _conversion(options, spec, switch, number)
            policy = _policy(options, switch, number, conversion)
            _set_policy(switch, options.port, number, policy)
    return 0


def postcards(options: argparse.Namespace) -> int:
    with opened(options) as (switch, _):
        number = port_number(switch, options.port)
        with switch.writing():
            if options.state == "on" and isinstance(switch.policy(number), Unwatched):
                raise SwitchError(
                    f"port {options.port}: no policy watches its queue, so it has no postcards; `mode` sets one"
                )
            if options.state == "on" and switch.collector() is None:
                raise SwitchError(f"{switch}: has no collector to receive postcards: apply a file with one")
            switch.set_postcards(number, options.switch_id if options.state == "on" else None)
        print(f"port {options.port} postcards: {apply.postcard_words(switch.postcards(number))}")
    return 0


def counters(options: argparse.Namespace) -> int:
    with opened(options) as (switch, _):
        names = {number: name for name, number in switch.ports().items()}
        table = Table("counter", "port", "packets", "bytes", title=str(switch))
        for counter, cells in switch.counters().items():
            for cell, count in sorted(cells.items()):
                table.add_row(counter, names.get(cell, str(cell)), f"{count.packets:,}", f"{count.bytes:,}")
        target_table = Table("the target's own counter", "value")
        for name, value in switch.target_counters().items():
            if value:
                target_table.add_row(name, f"{value:,}")
    Console().print(table, target_table)
    return 0


def histogram(options: argparse.Namespace) -> int:
    with opened(options) as (switch, _):
        buckets = switch.histogram(port_number(switch, options.port))
        unit = switch.capabilities.depth_units[0]
    total = sum(packets for _, packets in buckets)
    table = Table(f"depth from ({unit})", "packets", "share", title=f"port {options.port}: {total:,} packets")
    for depth, packets in buckets:
        if packets:
            table.add_row(str(depth), f"{packets:,}", f"{packets / total:.2%}")
    Console().print(table)
    return 0


def _refuse_ignored_options(options: argparse.Namespace) -> None:
    takes = {"--threshold": ("tail-drop", "ecn", "egress-threshold"), "--hard-limit": ("ecn",),
             "--mark": ("egress-threshold",)}  # fmt: skip
    values = {"--threshold": options.threshold, "--hard-limit": options.hard_limit, "--mark": options.mark or None}
    for name, value in values.items():
        if value is not None and options.mode not in takes[name]:
            subject = f"mode {options.mode}" if options.mode else "mode without a policy only shows the policy, and"
            raise SwitchError(f"{subject} takes no {name}; allowed: with {', '.join(takes[name])}")


def _policy(options: argparse.Namespace, switch: Switch, number: int, conversion: Conversion) -> Policy:
    """The policy that the arguments of `mode` describe. Without --threshold, the threshold in force stays."""
    if options.mode == "unwatched":
        return Unwatched()
    current = switch.policy(number)
    if options.threshold is not None:
        value, unit = _depth("--threshold", options.threshold, switch, number, conversion)
    elif not isinstance(current, Unwatched):
        value, unit = current.threshold, current.unit
    else:
        raise SwitchError(f"port {options.port}: has no threshold yet; give --threshold")
    if options.mode == "tail-drop":
        return TailDrop(value, unit)
    if options.mode == "egress-threshold":
        return EgressThreshold(value, options.mark, unit)
    if options.hard_limit is None:
        raise SwitchError(f"port {options.port}: ecn needs --hard-limit, where ECN-capable packets are dropped as well")
    limit, limit_unit = _depth("--hard-limit", options.hard_limit, switch, number, conversion)
    if limit_unit is not unit:
        raise SwitchError(
            f"port {options.port}: --hard-limit is in {limit_unit}, the threshold in {unit}: give both in one unit"
        )
    if limit < value:
        raise SwitchError(f"port {options.port}: --hard-limit, {limit}, is below the threshold, {value} {unit}")
    return Ecn(value, limit, unit)


def _set_policy(switch: Switch, name: str, number: int, policy: Policy) -> None:
    if isinstance(policy, Ecn) and policy.hard_limit < policy.threshold:
        raise SwitchError(
            f"port {name}: the threshold, {policy.threshold}, is above the hard limit, {policy.hard_limit} "
            f"{policy.unit}: set both with `mode`"
        )
    if problem := switch.silent_drops(policy, switch.queue(number)):
        raise SwitchError(f"port {name}: {problem}, with `apply`")
    before = switch.policy(number)
    switch.set_policy(number, policy)
    print(f"port {name} policy: {apply.words(before)} -> {apply.words(switch.policy(number))}")


def _depth(option: str, text: str, switch: Switch, number: int, conversion: Conversion) -> tuple[int, Unit]:
    try:
        converted = convert(quantity(*DIMENSIONS)(text), switch.capabilities, conversion)
    except ValueError as error:
        raise SwitchError(f"{option} {text} {error}") from None
    if converted.note:
        print(f"note: {converted.note}")
    return converted.value, Unit(converted.unit)


def _conversion(options: argparse.Namespace, spec: SwitchSpec | None, switch: Switch, number: int) -> Conversion:
    """Rate, RTT and MTU: from the command line, else from the file. If neither has a rate: the rate in force."""
    port = spec.ports.get(options.port) if spec else None
    rate = _option("--rate", options.rate, quantity("rate")) or ((port.rate or port.speed) if port else None)
    rtt = _option("--rtt", options.rtt, quantity("time")) or (spec.rtt if spec else None)
    mtu = _option("--mtu", options.mtu, whole_number(*MTU_BYTES)) or (spec.mtu if spec else None)
    try:
        given = Conversion(
            mtu, None if rate is None else units.integer(rate), None if rtt is None else units.integer(rtt)
        )
        return given if rate is not None else replace(given, rate_bps=_rate_in_force(switch, number, given))
    except ValueError as error:
        raise SwitchError(f"rate or rtt {error}") from None


def _option(name: str, text: str | None, read: Callable[[object], Any]) -> Any:
    """The value of a command-line option, None if absent."""
    if text is None:
        return None
    try:
        return read(text)
    except ValueError as error:
        raise SwitchError(f"{name} {text} {error}") from None


def _rate_in_force(switch: Switch, number: int, conversion: Conversion) -> int | None:
    """The queue's rate, else the cable's speed. None if neither is known: a rate in packets/s needs the MTU."""
    queue, cable = switch.queue(number), switch.front_panel(number)
    if queue.rate_pps is not None and conversion.mtu_bytes is not None:
        return queue.rate_pps * conversion.wire_bits
    return queue.rate_bps if queue.rate_bps is not None or cable is None else cable.speed_bps


def _needed(spec: SwitchSpec | None) -> SwitchSpec:
    if spec is None:
        raise SwitchError("no settings given; give --file, as controlplane/switch.example.yaml")
    return spec


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        print(printable(line))
