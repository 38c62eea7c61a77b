# SPDX-License-Identifier: MIT
"""The lab on a testbed whose switch is a program on a Linux machine of its own: the soft switch, or BMv2. The switch is
started for each repetition. BMv2 has no links: netem, or a soft switch on another machine (a delay line), adds the
delay.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from controlplane.bmv2_client import DEFAULT_PORT as THRIFT_PORT
from controlplane.soft import ControlTuple, FlowKey
from controlplane.switch import Collector
from controlplane.targets import TARGETS
from experiments.lab import machines, repetition
from experiments.lab.progress import RunProgress
from experiments.lab.testbed import QUIET, Hosts, InventoryLab, Testbed, played, socket_of
from experiments.plan.configure import IN_THE_LAB, POSTCARD_PORT, Attached, SwitchSettings, configure
from experiments.plan.repetition_plan import RunPlan
from experiments.plan.switches import Switches
from experiments.spec.topology import COLLECTOR, LINE, RECEIVER, SENDER
from lib import files


class LinuxTestbedLab(InventoryLab):
    """Three or more machines, one of which is the switch."""

    def measure(self, plan: RunPlan, directory: Path, progress: RunProgress) -> dict[str, Any]:
        testbed = self.testbed
        addresses = {name: testbed.variable("collector", name) for name in ("collector_address", "collector_source")}
        with (
            played(self.spec, plan, directory, testbed, addresses) as play,
            _switches(plan.target, testbed, directory) as switches,
        ):
            configure(switches, _at_addresses(plan.settings, testbed), _attached(testbed))
            programs = _programs(plan.target, testbed)  # before the traffic: a failure here costs no run
            hosts = Hosts(testbed, testbed.machines)
            before = switches.before()
            switches.reset_lateness()
            progress.phase("measuring the idle path, carrying the traffic")
            play("traffic")
            repetition.wait_until_idle(switches, plan.durations.round_trip_ns)
            play(*QUIET, run_groups="receivers")  # before counting: connections that close still send packets
            repetition.wait_until_idle(switches, plan.durations.round_trip_ns)
            state = switches.state(plan.settings.parameter_tables)
            files.write_json(directory / "switch.json", state | {"before": before})
            return {"program": switches.about(), **programs, **hosts.describe()}


@contextmanager
def _switches(target: str, testbed: Testbed, directory: Path) -> Iterator[Switches]:
    soft = testbed.machines.get("switch" if target == "soft" else LINE)
    with ExitStack() as connections:
        links = None
        if soft is not None:
            links = connections.enter_context(machines.soft_switch(soft, socket_of(soft, directory)))
        if target == "soft" and links is not None:
            yield Switches(links, links)
        else:
            there = testbed.machines["switch"]
            yield Switches(connections.enter_context(machines.bmv2_switch(there, THRIFT_PORT)), links)


def _programs(target: str, testbed: Testbed) -> dict[str, Any]:
    """The versions of the target's own programs, as in the lab."""
    versions = {name: testbed.machines["switch"].ask(name, "--version") for name in TARGETS[target].programs}
    return {"target_programs": versions} if versions else {}


def _attached(testbed: Testbed) -> Attached:
    macs = {
        SENDER.port: testbed.machines["sender"].mac(),
        RECEIVER.port: testbed.machines["receiver"].mac(),
        COLLECTOR.port: testbed.machines["collector"].mac(),
    }
    collector = Collector(
        COLLECTOR.port,
        switch_mac=IN_THE_LAB.collector.switch_mac,
        collector_mac=macs[COLLECTOR.port],
        switch_addr=testbed.variable("collector", "collector_source"),
        collector_addr=testbed.variable("collector", "collector_address"),
        src_port=POSTCARD_PORT,
        dst_port=POSTCARD_PORT,
    )
    return Attached(macs, collector)


def _at_addresses(settings: SwitchSettings, testbed: Testbed) -> SwitchSettings:
    """The settings, with the machines' addresses in place of the lab's."""
    of = {
        SENDER.ipv4: testbed.variable("sender", "bufferscope_address"),
        RECEIVER.ipv4: testbed.variable("receiver", "bufferscope_address"),
    }

    def there(flow: FlowKey) -> FlowKey:
        if isinstance(flow, ControlTuple):
            return replace(flow, src_addr=of[flow.src_addr], dst_addr=of[flow.dst_addr])
        return replace(flow, src_addr=of[flow.src_addr])

    return replace(settings, flow_settings=tuple((there(flow), values) for flow, values in settings.flow_settings))
