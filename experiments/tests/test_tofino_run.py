# SPDX-License-Identifier: MIT
"""A whole run with TARGET=tofino without hosts and chip: the runner, the tofino backend on tables in memory, and the
analysis. In place of Ansible's playbooks, the test copies the files of a recorded run of the soft switch, converted to
files of a Tofino.
"""

import json
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from analysis.replay.derive import derive
from analysis.tests import as_tofino
from analysis.tests.recordings import RECORDED
from controlplane import sde_tables
from controlplane.bfrt import TableEntry
from controlplane.policy import TailDrop, Unit
from controlplane.switch import Collector, FrontPanel, Queue
from controlplane.tests.bfrt_memory import Device, MemoryTables
from controlplane.tofino import TofinoSwitch
from experiments.lab import testbed
from experiments.lab.machines import Machine, machine
from experiments.machine.host import Host
from experiments.run import runner
from experiments.spec.resolve import resolve
from lib.errors import RunError
from runs import results
from runs.names import PAGE, SUMMARY

COLLECTOR = Collector(3, "02:bf:00:00:01:03", "02:bf:00:00:00:03", "10.78.0.1", "10.78.0.2", 5577, 5577)
SPEC = {"target": "tofino", "rate": "3mbit", "rtt": "100ms", "flows": "2", "buf": "12p", "cc": "cubic", "seed": "3",
        "warmup": "1s", "duration": "2s"}  # fmt: skip
OF_RUN = ("postcards.bsp", "tcp.bst", "traffic.json", "idle_rtt.json", "collector.json", "tracer.json")
CHIP = "tofino2"
FACTS = {"lost_frames": {"eth0": 0}, "tcp_memory_pressures": 0, "clock": {}, "settings": {}}
NO_FRAMES = {"received": 0, "sent": 0}


class Chip:
    """A device in memory that carried packets before the run. `count` gives it the counters of the recorded run."""

    def __init__(self, directory: Path) -> None:
        self.device = Device("tf2")
        self.switch = TofinoSwitch("memory", MemoryTables(self.device))
        self.recorded = as_tofino.convert(RECORDED / "real/rep-1", directory, CHIP)
        for port in (as_tofino.PORT, as_tofino.COLLECTOR_PORT):
            self.switch.set_front_panel(port, FrontPanel(10 * 10**9))
        self.switch.set_collector(COLLECTOR)
        self.switch.set_queue(as_tofino.PORT, Queue(rate_bps=3_000_000))
        self.count("before")

    def count(self, when: str) -> None:
        """Sets the recorded run's counters: if `when` is "before", those from before the run, else those after it."""
        document = json.loads((self.recorded / "switch.json").read_text())
        state = document["before"] if when == "before" else document
        for name, ports in state["counters"].items():
            rows = self.device.entries.setdefault((self.device.schema.counter(name).name, None), {})
            for port, count in ports.items():
                packets = {"$COUNTER_SPEC_PKTS": count["packets"], "$COUNTER_SPEC_BYTES": 0}
                rows[("$COUNTER_INDEX", int(port)),] = TableEntry(packets)
        for port in (as_tofino.PORT, as_tofino.COLLECTOR_PORT):
            place = self.switch._queues.place(port)
            table = sde_tables.on_chip(sde_tables.TM_QUEUE_COUNTERS, self.device.chip)
            rows = self.device.entries[table, place.pipe]
            key = tuple(sorted(place.key.items()))
            drops = state["stats"][f"port.{port}.queue_drops"]
            rows[key] = TableEntry({**rows[key].fields, "drop_count_packets": drops})  # type: ignore[index]


def hosts(tmp_path: Path) -> testbed.Testbed:
    """A switch and two hosts, `one` and `two`. The sender's host is also the collector's."""
    places = {"switch": "tofino", "sender": "one", "receiver": "two", "collector": "one"}
    variables = {
        "switch": {"switch_address": "memory", "bottleneck_port": "1/1"},
        "sender": {"bufferscope_interface": "eth0", "bufferscope_address": "198.51.100.2"},
        "receiver": {"bufferscope_interface": "eth0", "bufferscope_address": "198.51.100.1"},
        "collector": {"bufferscope_interface": "eth1"},
    }
    inventory = tmp_path / "hosts.yml"
    machines = {
        part: machine(place, {"ansible_host": place} | variables[part], inventory) for part, place in places.items()
    }
    return testbed.Testbed(inventory, machines, variables)


@pytest.fixture
def chip(tmp_path: Path) -> Chip:
    return Chip(tmp_path / "recorded")


class Played:
    """Replaces the playbooks. Copies the recorded files, and keeps the policy that is in force at each playbook."""

    def __init__(self, chip: Chip, repetition: Path, fails: bool) -> None:
        self.chip, self.repetition, self.fails = chip, repetition, fails
        self.policies: dict[tuple[str, ...], Any] = {}

    def __call__(self, names: tuple[str, ...], variables: dict[str, Any], *_: object) -> None:
        self.policies[names] = self.chip.switch.policy(as_tofino.PORT)
        if "traffic" not in names:
            return
        assert variables["traffic_plan"]["server"] == "198.51.100.1"
        assert variables["run_groups"] == "tofino:collectors:senders:receivers"
        if self.fails:
            raise RunError("FAILED   sender: no")
        for name in OF_RUN:
            shutil.copy(self.chip.recorded / name, self.repetition / name)
        shutil.copy(self.chip.recorded / "idle_rtt.json", self.repetition / "idle_rtt_after.json")
        self.chip.count("after")


def without_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the testbed's code run without hosts: no machine is reserved or queried, and no file is fetched."""
    monkeypatch.setattr(testbed, "leased", lambda *_: nullcontext())
    monkeypatch.setattr(testbed, "fetch", lambda *_: None)
    monkeypatch.setattr(Machine, "mac", lambda _: "02:00:00:00:00:01")
    monkeypatch.setattr(
        Machine, "facts", lambda machine: FACTS | {"passed_frames": dict.fromkeys(machine.interfaces, NO_FRAMES)}
    )


def run(chip: Chip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, fails: bool = False) -> Played:
    """Records one repetition."""
    played = Played(chip, tmp_path / "results/rep-1", fails)
    monkeypatch.setattr(testbed.playbooks, "run", played)
    monkeypatch.setattr(testbed, "connect", lambda target, address: chip.switch)
    without_machines(monkeypatch)
    (tmp_path / "results").mkdir()
    lab = testbed.TestbedLab(resolve(SPEC, Host(("cubic",), netem=False)), hosts(tmp_path))
    with pytest.raises(RunError, match="FAILED   sender: no") if fails else nullcontext():
        runner.record(lab, 1, results.create_repetition(tmp_path / "results", 1))
    return played


def test_run__ends_with_a_valid_summary_and_puts_the_policy_back(
    chip: Chip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = chip.switch.policy(as_tofino.PORT)
    played = run(chip, tmp_path, monkeypatch)
    assert list(played.policies) == [("prepare", "start"), ("traffic",), ("stop", "silence"), ("stop",)]
    assert played.policies["traffic",] == TailDrop(12 * -(-1536 // as_tofino.CELL_BYTES[CHIP]), Unit.CELLS)
    assert chip.switch.policy(as_tofino.PORT) == before
    assert chip.switch.postcards(as_tofino.PORT) is None
    summary, damage = derive(played.repetition)
    assert damage == []
    assert summary["reasons"] == []
    truth = json.loads((RECORDED / "real" / SUMMARY).read_text())
    for key in ("queue_depth_packets", "drops", "arrivals", "queue_nonempty_fraction"):
        assert summary[key] == pytest.approx(truth[key], rel=1e-3), key
    assert summary["ledger"]["refused_packets"] == summary["ledger"]["refused_packets_rows"] > 0
    assert (played.repetition / PAGE).exists()


def test_run__that_fails_stops_the_programs_and_puts_the_policy_back(
    chip: Chip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = chip.switch.policy(as_tofino.PORT)
    played = run(chip, tmp_path, monkeypatch, fails=True)
    assert list(played.policies) == [("prepare", "start"), ("traffic",), ("stop",)]
    assert chip.switch.policy(as_tofino.PORT) == before
