# SPDX-License-Identifier: MIT
"""A whole run with TARGET=tofino without hosts and chip: the runner, the tofino backend on tables in memory, and the
analysis. In place of Ansible's playbooks, the test copies the files of a recorded run of the soft switch, converted to
files of a Tofino.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.analyse import analyse
from analysis.derive import derive
from analysis.postcards import admitted
from analysis.tests import as_tofino
from analysis.tests.recordings import RECORDED
from bufferscope.__main__ import main
from controlplane import sde_tables
from controlplane.bfrt import TableEntry
from controlplane.policy import TailDrop, Unit
from controlplane.switch import Collector, FrontPanel, Queue
from controlplane.tests.bfrt_memory import Device, MemoryTables
from controlplane.tofino import TofinoSwitch
from experiments import runner
from experiments.host import Host
from experiments.lab import testbed
from experiments.lab import virtual as virtual_lab
from experiments.lab.machines import machine
from experiments.resolve import resolve
from experiments.tests.no_machines import without_machines
from runs import results
from runs.names import PAGE, SUMMARY

COLLECTOR = Collector(3, "02:bf:00:00:01:03", "02:bf:00:00:00:03", "10.78.0.1", "10.78.0.2", 5577, 5577)
SPEC = {"target": "tofino", "rate": "3mbit", "rtt": "100ms", "flows": "2", "buf": "12p", "cc": "cubic", "seed": "3",
        "warmup": "1s", "duration": "2s"}  # fmt: skip
virtual = pytest.mark.skipif(not virtual_lab.KERNEL.exists(), reason="build/virtual/linux missing: make kernel")
OF_RUN = ("postcards.bsp", "tcp.bst", "traffic.json", "idle_rtt.json", "collector.json", "tracer.json")
CHIPS = {"tf1": "tofino", "tf2": "tofino2"}


class Chip:
    """A device in memory that carried packets before the run. `count` gives it the counters of the recorded run."""

    def __init__(self, name: str, directory: Path) -> None:
        self.device = Device(name)
        self.switch = TofinoSwitch("memory", MemoryTables(self.device))
        self.recorded = as_tofino.convert(RECORDED / "real/rep-1", directory, CHIPS[name])
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


def run(chip: Chip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, list[Any]]:
    """Records one repetition. Returns its directory, and the policies in force while traffic ran and afterwards."""
    policies: list[Any] = []

    def play(names: tuple[str, ...], variables: dict[str, Any], *_: object) -> None:
        if "traffic" not in names:
            return
        policies.append(chip.switch.policy(as_tofino.PORT))
        for name in OF_RUN:
            shutil.copy(chip.recorded / name, tmp_path / "results/rep-1" / name)
        shutil.copy(chip.recorded / "idle_rtt.json", tmp_path / "results/rep-1/idle_rtt_after.json")
        chip.count("after")

    monkeypatch.setattr(testbed.playbooks, "run", play)
    monkeypatch.setattr(testbed, "connect", lambda target, address: chip.switch)
    asked = resolve(SPEC, Host(("cubic",), netem=False))
    without_machines(monkeypatch)
    lab = testbed.TestbedLab(asked, hosts(tmp_path))
    (tmp_path / "results").mkdir()
    runner.record(lab, 1, results.create_repetition(tmp_path / "results", 1))
    policies.append(chip.switch.policy(as_tofino.PORT))
    return tmp_path / "results/rep-1", policies


@pytest.mark.parametrize("name", CHIPS)
def test_run__ends_with_a_valid_summary_and_a_report(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chip = Chip(name, tmp_path / "recorded")
    directory, (during, after) = run(chip, tmp_path, monkeypatch)
    cells = -(-1536 // as_tofino.CELL_BYTES[CHIPS[name]])
    assert during == TailDrop(12 * cells, Unit.CELLS)
    assert after != during
    summary, damage = derive(directory)
    assert damage == []
    assert summary["reasons"] == []
    truth = json.loads((RECORDED / "real" / SUMMARY).read_text())
    for key in ("queue_depth_packets", "drops", "arrivals", "queue_nonempty_fraction"):
        assert summary[key] == pytest.approx(truth[key], rel=1e-3), key
    assert summary["ledger"]["refused_packets"] == summary["ledger"]["refused_packets_rows"] > 0
    page = (directory / PAGE).read_text()
    assert "the switch's clock: uncertainty / drift" in page


def test_run__that_lost_a_mirrored_copy_is_not_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chip = Chip("tf2", tmp_path / "recorded")
    shutil.rmtree(chip.recorded)
    as_tofino.convert(RECORDED / "real/rep-1", chip.recorded, "tofino2", lose=300)
    directory, _ = run(chip, tmp_path, monkeypatch)
    summary, _ = derive(directory)
    assert not summary["valid"]
    assert any("1 packet without postcards" in reason for reason in summary["reasons"])


@pytest.mark.long
@virtual
def test_sixteen_cubic_flows_at_ten_gigabits__have_the_runs_own_depths_and_times(tmp_path: Path) -> None:
    words = ("CC=cubic", "FLOWS=16", "CLOCK=virtual", "RATE=10gbit", "RTT=1ms", "MTU=9000", "WARMUP=100ms",
             "DURATION=500ms", "SEED=1", f"RESULTS={tmp_path / 'results'}")  # fmt: skip
    assert main(["experiment", *words]) == 0
    source = tmp_path / "results/latest/rep-1"
    (tmp_path / "tofino").mkdir()
    told_run = analyse(as_tofino.convert(source, tmp_path / "tofino/rep-1"))
    truth, told = as_tofino.by_number(analyse(source)), as_tofino.by_number(told_run)
    for name in ("depth_packets", "depth_bytes"):
        assert np.array_equal(told[name], truth[name]), name
    assert told_run.reasons == []
    assert told_run.run.clock is not None
    assert told_run.run.clock.uncertainty_ns is not None
    during = (truth["enqueue_mono_ns"] >= told_run.window.traffic_start_ns) & admitted(truth)
    off = np.abs(told["enqueue_mono_ns"] - truth["enqueue_mono_ns"])[during]
    assert off.max() <= told_run.run.clock.uncertainty_ns + 1 < 2000
