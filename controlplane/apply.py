# SPDX-License-Identifier: MIT
"""Configures a switch as a switch.yaml asks: reads all settings back and writes only the differences.

Apply is therefore idempotent. After a lost connection, another apply makes the remaining changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import partial
from typing import NamedTuple

from controlplane.policy import Ecn, EgressThreshold, Policy, Unwatched, mode_of
from controlplane.program import Switch
from controlplane.switch import Collector, FrontPanel, Queue, SwitchError
from lib.units import show


@dataclass
class DesiredPort:
    """None for `queue` or `front_panel` leaves that setting unchanged."""

    name: str
    policy: Policy = field(default_factory=Unwatched)
    switch_id: int | None = None
    queue: Queue | None = None
    front_panel: FrontPanel | None = None


@dataclass
class Desired:
    """Ports by number. `notes`: every note of a conversion (threshold.py); and, if the traffic manager drops and the
    file switches on postcards without `deflect`, the deflection in force. One line each.
    """

    ports: dict[int, DesiredPort] = field(default_factory=dict)
    forwarding: dict[str, int] | None = None
    collector: Collector | None = None
    deflect: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Change(NamedTuple):
    """One difference: the current and the requested setting in words, and the call that makes the change."""

    setting: str
    before: str
    after: str
    do: Callable[[], None]

    def __str__(self) -> str:
        return f"{self.setting}: {self.before} -> {self.after}"


@dataclass(frozen=True)
class Applied:
    """The result of an apply. `in_force`: the queue settings that the switch rounded, one line each."""

    changes: list[Change]
    in_force: list[str]


class ApplyError(SwitchError):
    """An apply stopped halfway. `lines`: the error, a summary, then every change: applied, not certain, not applied."""

    def __init__(self, error: SwitchError, done: list[Change], failed: Change, left: list[Change]) -> None:
        self.lines = [
            f"{error}",
            f"applied {len(done)} of {len(done) + 1 + len(left)} changes; applying again does the rest",
            *(f"applied      {change}" for change in done),
            f"not certain  {failed}",
            *(f"not applied  {change}" for change in left),
        ]
        super().__init__(self.lines[0])


def plan(switch: Switch, desired: Desired) -> list[Change]:
    """The changes that `apply` makes, in order. New forwarding comes last: a new host's first frame meets a configured
    switch.
    """
    return [
        *_front_panels(switch, desired.ports),
        *_closed_forwarding(switch, desired),
        *_policies(switch, desired.ports),
        *_queues(switch, desired.ports),
        *_deflection(switch, desired.deflect),
        *_collector(switch, desired.collector),
        *_postcards(switch, desired.ports),
        *_opened_forwarding(switch, desired),
    ]


def apply(switch: Switch, desired: Desired) -> Applied:
    """Makes the changes as the only writer. Raises ApplyError if a change fails: the switch refuses it, or is gone.
    Raises SwitchError if the switch has another writer, or reads back other settings afterwards.
    """
    with switch.writing():
        changes = plan(switch, desired)
        for at, change in enumerate(changes):
            try:
                change.do()
            except SwitchError as error:
                raise ApplyError(error, changes[:at], change, changes[at + 1 :]) from error
        left = plan(switch, desired)
        if left:
            raise SwitchError(f"{switch}: took all changes, but reads back other settings: {'; '.join(map(str, left))}")
        return Applied(changes, list(_rounded(switch, desired.ports)))


def _front_panels(switch: Switch, ports: dict[int, DesiredPort]) -> Iterator[Change]:
    for number, port in ports.items():
        wanted = port.front_panel
        if wanted is not None and (current := switch.front_panel(number)) != wanted:
            setting = f"port {port.name} front panel"
            yield Change(setting, _cable(current), _cable(wanted), partial(switch.set_front_panel, number, wanted))


def _queues(switch: Switch, ports: dict[int, DesiredPort]) -> Iterator[Change]:
    for number, port in ports.items():
        wanted = port.queue
        if wanted is not None and not switch.holds(wanted, current := switch.queue(number)):
            setting = f"port {port.name} queue"
            yield Change(setting, queue_words(current), queue_words(wanted), partial(switch.set_queue, number, wanted))


def _policies(switch: Switch, ports: dict[int, DesiredPort]) -> Iterator[Change]:
    for name, number in switch.ports().items():
        wanted = ports[number].policy if number in ports else Unwatched()
        if (current := switch.policy(number)) != wanted:
            setting = f"port {name} policy"
            yield Change(setting, words(current), words(wanted), partial(switch.set_policy, number, wanted))


def _postcards(switch: Switch, ports: dict[int, DesiredPort]) -> Iterator[Change]:
    for name, number in switch.ports().items():
        wanted = ports[number].switch_id if number in ports else None
        if (current := switch.postcards(number)) != wanted:
            setting = f"port {name} postcards"
            yield Change(
                setting, postcard_words(current), postcard_words(wanted), partial(switch.set_postcards, number, wanted)
            )


def _deflection(switch: Switch, ports: list[int]) -> Iterator[Change]:
    current = switch.deflection() if ports else {}
    for port in ports:
        if port not in current.values():
            before = ", ".join(f"pipe {pipe} to port {to}" for pipe, to in current.items()) or "off"
            yield Change("deflection", before, f"to port {port} in its pipe", partial(switch.set_deflection, port))


def _collector(switch: Switch, wanted: Collector | None) -> Iterator[Change]:
    if wanted is not None and (current := switch.collector()) != wanted:
        yield Change("collector", _target(current), _target(wanted), partial(switch.set_collector, wanted))


def _closed_forwarding(switch: Switch, desired: Desired) -> Iterator[Change]:
    if desired.forwarding is None:
        return
    for mac, port in sorted(switch.forwarding().items()):
        if mac not in desired.forwarding:
            yield Change(f"forwarding {mac}", f"port {port}", "none", partial(switch.delete_forwarding, mac))


def _opened_forwarding(switch: Switch, desired: Desired) -> Iterator[Change]:
    current = switch.forwarding()
    for mac, port in (desired.forwarding or {}).items():
        if current.get(mac) != port:
            before = f"port {current[mac]}" if mac in current else "none"
            yield Change(f"forwarding {mac}", before, f"port {port}", partial(switch.set_forwarding, mac, port))


def _rounded(switch: Switch, ports: dict[int, DesiredPort]) -> Iterator[str]:
    for number, port in ports.items():
        if port.queue is not None and (current := switch.queue(number)) != port.queue:
            yield f"port {port.name} queue: {queue_words(port.queue)} is {queue_words(current)} in this switch"


def words(policy: Policy) -> str:
    """A policy in words, for people."""
    match policy:
        case Unwatched():
            return "unwatched"
        case Ecn(threshold, hard_limit, unit):
            return f"ecn marks from {threshold}, drops from {hard_limit} {unit}"
        case EgressThreshold(threshold, True, unit):
            return f"egress-threshold marks from {threshold} {unit}"
    return f"{mode_of(policy)} from {policy.threshold} {policy.unit}"


def queue_words(queue: Queue) -> str:
    phrases = []
    for each in fields(queue):
        value = getattr(queue, each.name)
        if value is not None and each.name == "rate_bps":
            phrases.append(show(value, "rate"))
        elif value is not None:
            kind, _, unit = each.name.partition("_")
            phrases.append(f"{value} packets/s" if kind == "rate" else f"at most {value} {unit}")
    return ", ".join(phrases) or "no bound"


def _cable(settings: FrontPanel | None) -> str:
    if settings is None:
        return "not set up"
    enabled = "" if settings.enabled else ", disabled"
    return f"{show(settings.speed_bps, 'rate')}, fec {settings.fec}, autoneg {settings.auto_negotiation}{enabled}"


def postcard_words(switch_id: int | None) -> str:
    return "off" if switch_id is None else f"on, switch id {switch_id}"


def _target(collector: Collector | None) -> str:
    if collector is None:
        return "none"
    return (
        f"port {collector.port}, {collector.switch_mac} {collector.switch_addr}:{collector.src_port} to "
        f"{collector.collector_mac} {collector.collector_addr}:{collector.dst_port}"
    )
