# SPDX-License-Identifier: MIT
"""The lab on a testbed: the machines of an inventory, reached over ssh, and a switch that also runs between
experiments. The bottleneck gets the experiment's policy, and gets its former policy back afterwards. linux_testbed.py
is for switches that a run starts and stops.
"""

from __future__ import annotations

import hashlib
import ipaddress
import platform
import tempfile
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from controlplane.policy import Ecn, Policy, Unwatched
from controlplane.program import Switch
from controlplane.switch import Collector, SwitchError
from controlplane.targets import connect
from controlplane.threshold import Conversion, convert
from experiments.lab import repetition
from experiments.lab.interface import Lab
from experiments.lab.machines import Machine, at_places, fetch, leased, machine
from experiments.lab.progress import RunProgress
from experiments.plan.configure import SWITCH_ID
from experiments.plan.repetition_plan import RunPlan
from experiments.plan.run_plan import LINES, plan_run
from experiments.plan.switches import packets_waiting, plain
from experiments.setup import environment, missing, playbooks
from experiments.setup.deploy import read_inventory
from experiments.spec import disk
from experiments.spec.topology import INTERFACE, LINE
from hosts.lease import RUNTIME, Neighbour
from lib import files
from lib.errors import RunError
from lib.units import Quantity, parse
from model.experiment import Experiment
from runs import results
from runs.names import REPETITION

EXPECTED_OVERHEAD_S = 30.0
DRAIN_S = 2.0
IDLE_SAMPLES = 20
QUIET = ("stop", "silence")  # playbooks before the last drain: no frame may come after the counters are read
TC_AT = "receiver-egress"  # as in ansible/playbooks/group_vars/all.yml
MOST_SHARE = 2  # limit of the bytes of a run's files, as a multiple of their estimate
SMALL_FILES_BYTES = 64 << 20  # for logs and documents, in addition
ON_LINUX = ("soft", "bmv2")  # targets whose switch is a program that a run starts and stops


@dataclass(frozen=True)
class Testbed:
    """The part of an inventory that the runner needs. The keys of `machines` and `variables` are parts of a run
    (PARTS).
    """

    inventory: Path
    machines: Mapping[str, Machine]
    variables: Mapping[str, Mapping[str, Any]]  # Ansible's, by part

    def variable(self, part: str, name: str) -> str:
        return str(self.variables[part][name])

    @property
    def places(self) -> dict[str, str]:
        """The machine that has each part."""
        return {part: machine.place for part, machine in self.machines.items()}


# Parts of a run: the group in the inventory, and the variables that its host needs, with examples. {target} stands for
# the name of the target.
PARTS = {
    "switch": ("{target}", {}),
    "sender": ("senders", {"bufferscope_interface": "enp1s0", "bufferscope_address": "198.51.100.2"}),
    "receiver": ("receivers", {"bufferscope_interface": "enp1s0", "bufferscope_address": "198.51.100.1"}),
    "collector": ("collectors", {"bufferscope_interface": "enp1s0"}),
    LINE: (LINES, {"switch_ports": "[1=enp1s0, 2=enp2s0]"}),
}
HOSTS = ("sender", "receiver", "collector")  # parts whose machines run our programs on every testbed
PROGRAM_ON_LINUX = {
    "switch": {"switch_ports": "[1=enp1s0, 2=enp2s0, 3=enp3s0]"},
    "collector": {"collector_address": "203.0.113.2", "collector_source": "203.0.113.1"},
}
NEEDED = {
    "tofino": {"switch": {"switch_address": "192.0.2.10:50052", "bottleneck_port": "2/0"}},
    "soft": PROGRAM_ON_LINUX,
    "bmv2": PROGRAM_ON_LINUX,
}


ADDRESSES = ("bufferscope_address", "collector_address", "collector_source")


def load(inventory: Path, target: str, with_line: bool = False) -> Testbed:
    """`with_line`: a delay line stands behind the switch. Raises RunError with everything that is missing, one line
    each.
    """
    content = read_inventory(inventory)
    hostvars = content.get("_meta", {}).get("hostvars", {})
    machines, variables, lines = {}, {}, []
    for part, (group, always) in PARTS.items():
        if part == LINE and not with_line:
            if target in ON_LINUX and target != "soft" and content.get(group, {}).get("hosts"):
                lines.append(f"{inventory}: the group {group} stands between switch and receiver: give DELAY=switch")
            continue
        group = group.format(target=target)
        names = content.get(group, {}).get("hosts", [])
        if len(names) != 1:
            lines.append(f"{inventory}: the group {group} has {len(names)} hosts; allowed: 1")
            continue
        of_host = variables[part] = hostvars.get(names[0], {})
        needed = always | NEEDED[target].get(part, {})
        lines += [
            f"{inventory}: host {names[0]} has no {name}, as in {name}: {example}"
            for name, example in needed.items()
            if name not in of_host
        ]
        lines += [
            f"{inventory}: host {names[0]}: {name} is {of_host[name]!a}; allowed: an IP address, as in {needed[name]}"
            for name in ADDRESSES
            if name in of_host and name in needed and not _is_address(of_host[name])
        ]
        machines[part] = machine(names[0], of_host, inventory)
    if lines:
        raise RunError(*lines)
    return Testbed(inventory, machines, variables)


def _is_address(text: Any) -> bool:
    try:
        ipaddress.ip_address(str(text))
    except ValueError:
        return False
    return True


class InventoryLab(Lab):
    """The lab of the machines of an inventory."""

    def __init__(self, spec: Experiment, testbed: Testbed) -> None:
        super().__init__(spec)
        self.testbed = testbed

    def missing(self) -> list[str]:
        return missing.of(self.spec, in_the_lab=False)

    @contextmanager
    def processors(self, wait: bool = True) -> Iterator[list[int]]:
        """Yields no processor: the run needs none of this machine, and leases reserve the other machines."""
        yield []

    def record(self, number: int, directory: Path, processor: int | None) -> None:
        plan = plan_run(self.spec, number)
        write_spec(plan, self.testbed, directory, self.spec.delay == "tc")
        expected_s = plan.durations.traffic_ns / 1e9 + EXPECTED_OVERHEAD_S
        try:
            with RunProgress(plan.title, expected_s) as progress:
                world = self.measure(plan, directory, progress)
        except SwitchError as error:
            raise RunError(str(error)) from None
        results.record(directory, environment.machine() | world)

    @abstractmethod
    def measure(self, plan: RunPlan, directory: Path, progress: RunProgress) -> dict[str, Any]:
        """Leaves the raw files of the plan in `directory`, which has spec.yaml already. Returns a part of
        environment.json. Raises RunError, SwitchError.
        """


class TestbedLab(InventoryLab):
    """A lab whose switch also runs between experiments."""

    def measure(self, plan: RunPlan, directory: Path, progress: RunProgress) -> dict[str, Any]:
        testbed = self.testbed
        conversion = Conversion(self.spec.mtu_bytes, self.spec.rate_bps, self.spec.rtt_ns)
        with (
            connect(plan.target, testbed.variable("switch", "switch_address")) as switch,
            played(self.spec, plan, directory, testbed, _addresses(_collector(switch))) as play,
            switch.writing(),
            _configured(switch, converted(plan.settings.policy, switch, conversion), testbed) as (port, before),
        ):
            hosts = Hosts(testbed, HOSTS)
            progress.phase("measuring the idle path, carrying the traffic")
            play("traffic")
            play(*QUIET, run_groups="receivers")  # before counting: connections that close still send packets
            _wait_for_postcards(switch)
            files.write_json(directory / "switch.json", _state(switch, port) | {"before": before})
            return {"program": asdict(switch.program()), **hosts.describe()}


def write_spec(plan: RunPlan, testbed: Testbed, directory: Path, by_netem: bool) -> None:
    """Writes spec.yaml with the machines, and with netem's position if netem makes the delay: the analysis needs the
    delay of each link to join the clocks of different machines.
    """
    at = testbed.variables["sender"].get("bufferscope_tc_at", TC_AT)
    stored = {**plan.stored_spec, "machines": testbed.places}
    stored |= {"tc_at": str(at)} if by_netem else {}
    repetition.write_spec(replace(plan, stored_spec=stored), directory)


@contextmanager
def played(
    spec: Experiment, plan: RunPlan, directory: Path, testbed: Testbed, addresses: Mapping[str, str]
) -> Iterator[Callable[..., None]]:
    """Reserves and prepares the machines, and starts programs. At the end, even after a failure, stops the programs,
    fetches their files and restores the machines. `addresses` are the destination and the source of postcards.
    """
    run = run_of(directory)
    machines = list(testbed.machines.values())
    if plan.target not in ON_LINUX:
        machines = [testbed.machines[part] for part in HOSTS]
    remote = {machine.directory for machine in machines}
    if len(remote) > 1:
        raise RunError(f"{testbed.inventory}: bufferscope_dir differs between hosts; allowed: one path for all of them")
    there = machines[0].run_directory(run)
    groups = {PARTS[part][0].format(target=plan.target) for part in testbed.machines}
    with (
        tempfile.TemporaryDirectory(prefix=".fetched-", dir=directory.parent) as scratch,
        leased(machines, run, _neighbours(testbed)),
    ):
        variables = plan.variables(directory) | {
            "run_groups": ":".join(group for group in plan.setup["run_groups"].split(":") if group in groups),
            "bufferscope_run_dir": f"{there}/{REPETITION}",
            "bufferscope_logs_dir": f"{there}/{REPETITION}/logs",
            "bufferscope_runtime_dir": f"{there}/{RUNTIME}",
            **addresses,
            "receiver_address": testbed.variable("receiver", "bufferscope_address"),
            "idle_samples": IDLE_SAMPLES,
            "traffic_plan": {
                **plan.traffic.options, "server": testbed.variable("receiver", "bufferscope_address")
            },
            "traffic_program": plan.traffic.program,
        }  # fmt: skip

        def play(*names: str, **more: str) -> None:
            more_s = (plan.durations.traffic_ns + plan.durations.connect_ns) / 1e9 if "traffic" in names else 0.0
            log = directory / "logs/ansible.log"
            playbooks.run(names, variables | more, log, Path(scratch), testbed.inventory, more_s)

        def end() -> None:
            play("stop")
            most_bytes = MOST_SHARE * disk.estimate_bytes(spec) + SMALL_FILES_BYTES
            fetch(machines, run, directory, Path(scratch), most_bytes)

        try:
            play(*playbooks.SETUP)
            yield play
        except BaseException as cause:
            more = _lines_of(end)
            if isinstance(cause, RunError):
                raise type(cause)(*dict.fromkeys((*cause.lines, *more))) from None
            raise
        end()


def _lines_of(end: Callable[[], None]) -> list[str]:
    """Runs `end` after a run has failed. Returns the lines of `end`'s failure, if any."""
    try:
        end()
    except RunError as error:
        return list(error.lines)
    return []


def _neighbours(testbed: Testbed) -> dict[str, Neighbour]:
    """The neighbours by place: the receiver is the neighbour of the sender's machine, and vice versa."""
    sender, receiver = testbed.machines["sender"], testbed.machines["receiver"]
    address = "bufferscope_address"
    return {
        sender.place: Neighbour(sender.interfaces[0], testbed.variable("receiver", address), receiver.mac()),
        receiver.place: Neighbour(receiver.interfaces[0], testbed.variable("sender", address), sender.mac()),
    }


class Hosts:
    """The hosts' reports about themselves, from before and after the traffic."""

    def __init__(self, testbed: Testbed, parts: Iterable[str]) -> None:
        self._testbed = testbed
        self._machines = at_places(testbed.machines[part] for part in parts)
        self._before = self._ask()
        self._passed(self._before)  # fails here, before the traffic, if an old deployment lacks these counts

    def _ask(self) -> dict[str, dict[str, Any]]:
        with ThreadPoolExecutor(len(self._machines)) as pool:
            return dict(zip((machine.name for machine in self._machines),
                            pool.map(lambda machine: machine.facts(), self._machines), strict=True))  # fmt: skip

    def describe(self) -> dict[str, Any]:
        """For environment.json: counters as differences. Raises RunError."""
        after, before = self._ask(), self._before
        lost = {
            f"{name}/{interface}": count - before[name]["lost_frames"][interface]
            for name, facts in after.items()
            for interface, count in facts["lost_frames"].items()
        }
        pressures = {name: facts["tcp_memory_pressures"] - before[name]["tcp_memory_pressures"]
                     for name, facts in after.items()}  # fmt: skip
        return {
            "hosts": {name: facts["settings"] for name, facts in after.items()},
            "clocks": {name: facts["clock"] for name, facts in after.items()},
            "frames_lost_in_backlog": lost,
            "frames_passed": {"before": self._passed(before), "after": self._passed(after)},
            "tcp_memory_pressures": pressures,
        }

    def _passed(self, facts: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Frames that each host received and sent in the experiment's network. The keys are those of the lab:
        sender/INTERFACE.
        """
        names = {machine.place: machine.name for machine in self._machines}
        hosts = {part: self._testbed.machines[part] for part in HOSTS}
        try:
            return {
                f"{part}/{INTERFACE}": facts[names[host.place]]["passed_frames"][host.interfaces[0]]
                for part, host in hosts.items()
            }
        except KeyError:
            raise RunError("the machines have programs of another version: deploy first") from None


def run_of(directory: Path) -> str:
    """The name of a repetition's directory on the machines."""
    return hashlib.sha256(f"{platform.node()} {directory}".encode()).hexdigest()[:16]


def socket_of(machine: Machine, directory: Path) -> str:
    """The control socket of a soft switch on `machine`, of the repetition in `directory`."""
    return f"{machine.run_directory(run_of(directory))}/{RUNTIME}/switch.sock"


def _addresses(collector: Collector) -> dict[str, str]:
    return {"collector_address": collector.collector_addr, "collector_source": collector.switch_addr}


def _collector(switch: Switch) -> Collector:
    """The destination and the source address of the switch's postcards: the collector refuses other sources."""
    collector = switch.collector()
    if collector is None:
        raise RunError(f"{switch} sends postcards nowhere: give its switch.yaml a collector, and deploy again")
    return collector


@contextmanager
def _configured(switch: Switch, policy: Policy, testbed: Testbed) -> Iterator[tuple[int, dict[str, Any]]]:
    """Sets policy and postcards of the bottleneck. Yields the bottleneck's port number, and the switch's counters from
    before the first postcard. Restores the former settings afterwards.
    """
    ports, bottleneck = switch.ports(), testbed.variable("switch", "bottleneck_port")
    if bottleneck not in ports:
        shown = ", ".join(sorted(ports)) or "none: make deploy TARGET=tofino sets them up"
        raise RunError(f"{switch} has no port {bottleneck!r} (bottleneck_port); allowed: {shown}")
    port = ports[bottleneck]
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
    """The policy in a unit that the switch can compare: packets become cells if the switch compares cells only."""
    units = switch.capabilities.depth_units
    if isinstance(policy, Unwatched) or policy.unit in units:
        return policy

    def depth(packets: int) -> int:
        quantity: Quantity = parse(f"{packets}p", ("packets",))
        return convert(quantity, switch.capabilities, conversion).value

    if isinstance(policy, Ecn):
        return replace(policy, threshold=depth(policy.threshold), hard_limit=depth(policy.hard_limit), unit=units[0])
    return replace(policy, threshold=depth(policy.threshold), unit=units[0])


def _wait_for_postcards(switch: Switch) -> None:
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
