# SPDX-License-Identifier: MIT
"""Translates a switch.yaml into one switch's port numbers and units. Reports the impossible settings of all ports at
once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from controlplane.apply import Desired, DesiredPort
from controlplane.policy import Ecn, EgressThreshold, Policy, TailDrop, Unit, Unwatched
from controlplane.program import Switch
from controlplane.spec import PolicySpec, PortSpec, SpecFileError, SwitchSpec
from controlplane.switch import Capabilities, Collector, FrontPanel, Queue, SwitchError
from controlplane.threshold import Conversion, convert, convert_rate
from lib.units import Quantity, integer


def desired(spec: SwitchSpec, switch: Switch, origin: str) -> Desired:
    """Raises SpecFileError with a line for each impossible setting that was found."""
    return _Reading(spec, switch, origin).read()


class _Reading:
    """One pass over a spec. Collects the errors, to raise all of them at the end."""

    def __init__(self, spec: SwitchSpec, switch: Switch, origin: str) -> None:
        self._spec, self._switch, self._origin = spec, switch, origin
        self._ports = switch.ports()
        self._capabilities: Capabilities = switch.capabilities
        self._errors: list[str] = []
        self._result = Desired()
        self._rtt_ns = None if spec.rtt is None else self._try("rtt", lambda: integer(spec.rtt), 1)

    def read(self) -> Desired:
        for name, port in self._spec.ports.items():
            number = self._port(f"ports.{name}", name)
            if number is not None:
                self._result.ports[number] = self._one_port(f"ports.{name}", number, name, port)
        if self._spec.forwarding is not None:
            ports = {mac: self._port(f"forwarding.{mac}", name) for mac, name in self._spec.forwarding.items()}
            self._result.forwarding = {mac: number for mac, number in ports.items() if number is not None}
        if self._spec.collector is not None:
            settings = self._spec.collector.model_dump()
            number = self._port("collector.port", settings.pop("port"))
            self._result.collector = None if number is None else Collector(number, **settings)
            if number in self._result.ports and self._result.ports[number].switch_id is not None:
                self._wrong(
                    "collector.port",
                    f"the queue of port {self._spec.collector.port} has postcards itself, so postcards to the "
                    "collector would wait in the queue that they report; allowed: a port without postcards",
                )
        self._deflect()
        if self._spec.collector is None and any(port.switch_id is not None for port in self._result.ports.values()):
            self._wrong("collector", "is missing: some port sends postcards, which need a receiver")
        if self._errors:
            raise SpecFileError(*self._errors)
        return self._result

    def _deflect(self) -> None:
        if self._capabilities.tail_drop_seen_by_program:
            if self._spec.deflect:
                self._wrong(
                    "deflect",
                    f"on target {self._capabilities.name} the P4 program itself drops, so no packet needs deflection: "
                    "leave `deflect` out",
                )
            return
        for name in self._spec.deflect:
            internal = name not in self._ports and name.isascii() and name.isdigit() and len(name) <= 9
            number = int(name) if internal else self._port(f"deflect.{name}", name)
            if number is not None:
                self._result.deflect.append(number)
        if not self._spec.deflect and any(port.switch_id is not None for port in self._result.ports.values()):
            deflection = self._switch.deflection()
            for pipe, number in deflection.items():
                self._note(
                    "deflect",
                    f"is not given: in pipe {pipe}, packets that the traffic manager refuses go to device port "
                    f"{number}",
                )
            if not deflection:
                self._note("deflect", "is not given, and deflection is off: refused packets get no postcard")

    def _one_port(self, where: str, number: int, name: str, port: PortSpec) -> DesiredPort:
        result = DesiredPort(name, switch_id=port.postcards)
        rate_bps = None if port.rate is None else self._try(f"{where}.rate", lambda: integer(port.rate), 1)
        speed_bps = None if port.speed is None else self._try(f"{where}.speed", lambda: integer(port.speed), 1)
        conversion = Conversion(self._spec.mtu, speed_bps if rate_bps is None else rate_bps, self._rtt_ns)
        if port.rate is not None or port.limit is not None:
            result.queue = self._queue(where, rate_bps, port.limit, conversion)
        if speed_bps is not None:
            result.front_panel = self._front_panel(where, port, speed_bps)
        if port.policy is not None:
            result.policy = self._policy(f"{where}.policy", port.policy, conversion)
        self._check(where, number, result)
        by_limit = not self._capabilities.tail_drop_seen_by_program and isinstance(result.policy, TailDrop | Ecn)
        if by_limit and port.limit is not None:
            self._wrong(f"{where}.limit", "the policy sets the queue's limit here: leave `limit` out")
        if result.switch_id is not None and isinstance(result.policy, Unwatched):
            self._wrong(f"{where}.postcards", "asks for postcards of a queue that no policy watches: give it a policy")
        return result

    def _check(self, where: str, number: int, result: DesiredPort) -> None:
        """Checks widths and bounds, which only the switch knows."""
        queue = result.queue

        def silent_drops() -> None:
            if problem := self._switch.silent_drops(result.policy, queue or self._switch.queue(number)):
                self._wrong(f"{where}.limit", problem)

        allowed = self._allowed(where, lambda: self._switch.check_policy(number, result.policy))
        if queue is not None:
            allowed = self._allowed(where, lambda: self._switch.check_queue(number, queue)) and allowed
        if allowed:
            self._allowed(where, silent_drops)

    def _allowed(self, where: str, check: Callable[[], None]) -> bool:
        try:
            check()
        except SwitchError as error:
            self._wrong(where, str(error))
            return False
        return True

    def _queue(self, where: str, rate_bps: int | None, limit: Quantity | None, conversion: Conversion) -> Queue:
        settings: dict[str, int] = {}
        if rate_bps is not None:
            rate = self._try(f"{where}.rate", lambda: convert_rate(rate_bps, self._capabilities, conversion), None)
            if rate is not None:
                settings[f"rate_{rate.unit}"] = rate.value
                self._note(f"{where}.rate", rate.note)
        if limit is not None:
            allowed = self._capabilities.limit_units
            if limit.dimension not in allowed:
                self._wrong(
                    f"{where}.limit",
                    f"{limit.text}: {self._capabilities.name} limits a queue in {' or '.join(allowed)}",
                )
            else:
                settings[f"limit_{limit.dimension}"] = self._try(f"{where}.limit", lambda: integer(limit), 1)
        return Queue(**settings)

    def _front_panel(self, where: str, port: PortSpec, speed_bps: int) -> FrontPanel | None:
        if not self._capabilities.front_panel:
            self._wrong(f"{where}.speed", f"{self._capabilities.name} has no cables: leave speed, fec, ... out")
            return None
        return FrontPanel(speed_bps, port.fec or "none", port.auto_negotiation or "default")

    def _policy(self, where: str, policy: PolicySpec, conversion: Conversion) -> Policy:
        if policy.mode == "unwatched":
            return Unwatched()
        threshold = self._depth(f"{where}.threshold", policy.threshold, conversion)
        if policy.mode == "tail-drop":
            return TailDrop(*threshold)
        if policy.mode == "egress-threshold":
            return EgressThreshold(threshold[0], policy.mark, threshold[1])
        hard_limit = self._depth(f"{where}.hard_limit", policy.hard_limit, conversion)
        if hard_limit[1] is not threshold[1]:
            self._wrong(
                f"{where}.hard_limit", f"is in {hard_limit[1]}, the threshold in {threshold[1]}: give both in one unit"
            )
        elif hard_limit[0] < threshold[0]:
            self._wrong(f"{where}.hard_limit", f"{hard_limit[0]} is below the threshold, {threshold[0]} {threshold[1]}")
        return Ecn(threshold[0], hard_limit[0], threshold[1])

    def _depth(self, where: str, quantity: Quantity, conversion: Conversion) -> tuple[int, Unit]:
        converted = self._try(where, lambda: convert(quantity, self._capabilities, conversion), None)
        if converted is None:
            return 1, self._capabilities.depth_units[0]
        self._note(where, converted.note)
        return converted.value, Unit(converted.unit)

    def _port(self, where: str, name: str) -> int | None:
        if name not in self._ports:
            self._wrong(where, f"the switch has no port {name!r}; it has {_listed(self._ports)}")
        return self._ports.get(name)

    def _try(self, where: str, compute: Callable[[], Any], fallback: Any) -> Any:
        try:
            return compute()
        except ValueError as error:
            self._wrong(where, str(error))
            return fallback

    def _wrong(self, where: str, problem: str) -> None:
        self._errors.append(f"{self._origin}: {where}: {problem}")

    def _note(self, where: str, note: str) -> None:
        if note:
            self._result.notes.append(f"{where}: {note}")


def _listed(names: dict[str, int]) -> str:
    shown = list(names)
    return ", ".join(shown[:40]) + (f", ... ({len(shown)} in all)" if len(shown) > 40 else "") or "none"
