# SPDX-License-Identifier: MIT
"""The lab on a testbed: the machines of an inventory, reached by Ansible, and a switch that also runs between
experiments. The bottleneck gets the experiment's policy, and gets its former policy back afterwards.

Sender and collector are one machine: postcards' receive stamps and the TCP trace share its CLOCK_MONOTONIC.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from controlplane.policy import Ecn, Policy, Unwatched
from controlplane.switch import Collector, Switch, SwitchError
from controlplane.targets import connect
from controlplane.threshold import Conversion, convert
from experiments import environment, playbooks
from experiments.configure import SWITCH_ID
from experiments.deploy import read_inventory
from experiments.lab import repetition
from experiments.lab.interface import Lab
from experiments.progress import RunProgress
from experiments.repetition_plan import RunPlan
from experiments.resolved import Resolved
from experiments.run_plan import plan_run
from experiments.switches import packets_waiting, plain
from lib.errors import RunError
from lib.units import Quantity, parse
from runs import results

EXPECTED_OVERHEAD_S = 30.0
DRAIN_S = 2.0
IDLE_SAMPLES = 20


@dataclass(frozen=True)
class Testbed:
    """The part of an inventory that the runner needs."""

    inventory: Path
    address: str  # of the switch's control plane
    bottleneck: str  # front-panel name of the port towards the receiver
    receiver_address: str  # in the experiment's network


def load(inventory: Path, target: str) -> Testbed:
    """Raises RunError with everything that is missing, a line each."""
    content = read_inventory(inventory)
    hostvars = content.get("_meta", {}).get("hostvars", {})
    machines: dict[str, tuple[str, dict[str, Any]]] = {}
    lines = []
    for group in (target, "senders", "receivers", "collectors"):
        names = content.get(group, {}).get("hosts", [])
        if len(names) != 1:
            lines.append(f"{inventory}: the group {group} has {len(names)} hosts; allowed: 1")
        else:
            machines[group] = (names[0], hostvars.get(names[0], {}))

    def variable(group: str, name: str, example: str) -> str:
        host, its_variables = machines.get(group, ("", {}))
        if group in machines and name not in its_variables:
            lines.append(f"{inventory}: host {host} has no {name}, as in {name}: {example}")
        return str(its_variables.get(name, ""))

    address = variable(target, "switch_address", "192.0.2.10:50052")
    bottleneck = variable(target, "bottleneck_port", "2/0")
    receiver = variable("receivers", "bufferscope_address", "198.51.100.1")
    places = {variable(group, "ansible_host", "192.0.2.12") for group in ("senders", "collectors")}
    if {"senders", "collectors"} <= machines.keys() and len(places) > 1:
        lines.append(
            f"{inventory}: sender and collector are two machines ({', '.join(sorted(places))}), whose clocks nothing "
            "joins; allowed: one machine under both names"
        )
    if lines:
        raise RunError(*lines)
    return Testbed(inventory, address, bottleneck, receiver)


class TestbedLab(Lab):
    """The lab of the machines of an inventory."""

    def __init__(self, spec: Resolved, testbed: Testbed) -> None:
        super().__init__(spec)
        self.testbed = testbed

    def record(self, number: int, directory: Path, processor: int | None) -> None:
        plan, testbed = plan_run(self.spec, number), self.testbed
        repetition.write_spec(plan, directory)
        conversion = Conversion(self.spec.mtu_bytes, self.spec.rate_bps, self.spec.rtt_ns)
        try:
            with (
                RunProgress(plan.title, plan.durations.traffic_ns / 1e9 + EXPECTED_OVERHEAD_S) as progress,
                connect(plan.target, testbed.address) as switch,
                _played(plan, directory, testbed, _collector(switch)) as play,
                switch.writing(),
                _configured(switch, converted(plan.settings.policy, switch, conversion), testbed) as (port, before),
            ):
                world = {"program": asdict(switch.program()), "testbed": {"inventory": str(testbed.inventory)}}
                progress.phase("measuring the idle path, carrying the traffic")
                play("traffic")
                _drain(switch)
                results.write_json(directory / "switch.json", _state(switch, port) | {"before": before})
        except SwitchError as error:
            raise RunError(str(error)) from None
        results.record(directory, environment.machine() | world)


@contextmanager
def _played(plan: RunPlan, directory: Path, testbed: Testbed, collector: Collector) -> Iterator[Callable[..., None]]:
    """Prepares hosts and starts programs; in the end always stops the programs and fetches their files."""
    with tempfile.TemporaryDirectory(prefix="bufferscope-") as scratch:
        variables = plan.variables(directory) | {
            "collector_address": collector.collector_addr,
            "collector_source": collector.switch_addr,
            "receiver_address": testbed.receiver_address,
            "idle_samples": IDLE_SAMPLES,
            "traffic_plan": {**plan.traffic.options, "server": testbed.receiver_address},
            "traffic_program": plan.traffic.program,
        }

        def play(*names: str) -> None:
            more_s = (plan.durations.traffic_ns + plan.durations.connect_ns) / 1e9 if "traffic" in names else 0.0
            log = directory / "logs/ansible.log"
            playbooks.run(names, variables, log, Path(scratch), testbed.inventory, more_s)

        try:
            play(*playbooks.SETUP)
            yield play
        finally:
            play("stop")


def _collector(switch: Switch) -> Collector:
    """The destination and the source address of the switch's postcards: the collector refuses other sources."""
    collector = switch.collector()
    if collector is None:
        raise RunError(f"{switch} sends postcards nowhere: give its switch.yaml a collector, and deploy again")
    return collector


@contextmanager
def _configured(switch: Switch, policy: Policy, testbed: Testbed) -> Iterator[tuple[int, dict[str, Any]]]:
    """Sets policy and postcards of the bottleneck; gives its port number, and the switch's counts from before the first
    postcard. Restores the former settings afterwards.
    """
    ports = switch.ports()
    if testbed.bottleneck not in ports:
        shown = ", ".join(sorted(ports)) or "none: make deploy TARGET=tofino sets them up"
        raise RunError(f"{switch} has no port {testbed.bottleneck!r} (bottleneck_port); allowed: {shown}")
    port = ports[testbed.bottleneck]
    former, cards = switch.policy(port), switch.postcards(port)
    before = {"stats": switch.target_counters(), "counters": plain(switch.counters())}
    try:
        switch.set_policy(port, policy)
        switch.set_postcards(port, SWITCH_ID)
        yield port, before
    finally:
        switch.set_policy(port, former)
        switch.set_postcards(port, cards)


def converted(policy: Policy, switch: Switch, conversion: Conversion) -> Policy:
    """The policy in a unit that the switch compares: packets become cells where it has only cells."""
    units = switch.capabilities.depth_units
    if isinstance(policy, Unwatched) or policy.unit in units:
        return policy

    def depth(packets: int) -> int:
        quantity: Quantity = parse(f"{packets}p", ("packets",))
        return convert(quantity, switch.capabilities, conversion).value

    if isinstance(policy, Ecn):
        return replace(policy, threshold=depth(policy.threshold), hard_limit=depth(policy.hard_limit), unit=units[0])
    return replace(policy, threshold=depth(policy.threshold), unit=units[0])


def _drain(switch: Switch) -> None:
    """Waits until every packet has its postcard, DRAIN_S at most: the ledger counts missing postcards."""
    deadline = time.monotonic() + DRAIN_S
    while packets_waiting(switch.counters()) and time.monotonic() < deadline:
        time.sleep(0.05)


def _front_panel(switch: Switch, port: int) -> dict[str, Any] | None:
    panel = switch.front_panel(port) if switch.capabilities.front_panel else None
    return None if panel is None else asdict(panel)


def _state(switch: Switch, port: int) -> dict[str, Any]:
    return {
        "target": switch.target,
        "capabilities": asdict(switch.capabilities),
        "program": asdict(switch.program()),
        "bottleneck_port": port,
        "runs_between_experiments": True,
        "front_panel": _front_panel(switch, port),
        "settings": {str(port): asdict(switch.queue(port)) | {"policy": asdict(switch.policy(port))}},
        "stats": switch.target_counters(),
        "counters": plain(switch.counters()),
        "histogram": switch.histogram(port),
    }
