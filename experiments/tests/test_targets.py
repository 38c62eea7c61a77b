# SPDX-License-Identifier: MIT
"""Targets other than the soft switch: their network, queues and deployment, and runs on BMv2."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.switch import Queue
from controlplane.targets import RUN_TARGETS, TARGETS
from experiments import deploy, host, missing, topology
from experiments.host import CHECKOUT, Host
from experiments.lab import virtual
from experiments.resolve import resolve
from experiments.resolved import Resolved
from experiments.run_plan import inventory_groups, network, queue
from experiments.switches import BOTTLENECK
from experiments.tests.conftest import faults
from lib.errors import RunError, SpecError

HOST = Host(("cubic", "reno"), netem=True)
BMV2 = {"target": "bmv2", "rate": "50mbit", "rtt": "20ms", "flows": "4"}


def bmv2(**more: str) -> Resolved:
    return resolve(BMV2 | more, HOST)


def test_rate__is_rounded_to_full_packets_a_second() -> None:
    assert bmv2().rate_pps == 4064  # 50e6 / (8 * 1538) = 4063.7
    assert bmv2(mtu="9000").rate_pps == 692
    assert resolve({}, HOST).rate_pps is None


def test_queue__of_the_switch_is_deeper_than_any_threshold() -> None:
    for buffer in ("1bdp", "5000p", "3000kB"):
        spec = bmv2(buf=buffer)
        own = queue(spec, BOTTLENECK)
        assert own == Queue(rate_pps=4064, limit_packets=spec.pool_packets)
        assert spec.pool_packets > 4 * spec.buffer_packets
    assert queue(bmv2(), topology.SENDER.port).rate_pps is None


def test_layout__has_a_delay_line_behind_a_switch_without_links() -> None:
    assert network(resolve({}, HOST)) == topology.Network(1500)
    assert network(bmv2()).namespaces == ("bmv2_switch", "line", "sender", "receiver", "collector")
    assert inventory_groups(bmv2()) == ["bmv2", "lines", "collectors", "senders", "receivers"]
    assert inventory_groups(resolve({}, HOST)) == ["soft", "collectors", "senders", "receivers"]


def test_targets__of_runs_are_all_of_the_control_plane_except_fake() -> None:
    assert set(RUN_TARGETS) == set(TARGETS) - {"fake"}


def test_virtual_time__needs_a_switch_that_is_a_program() -> None:
    with pytest.raises(SpecError) as failure:
        resolve({"target": "tofino", "clock": "virtual"}, HOST)
    assert "CLOCK=virtual needs a switch that is a program of this machine" in "".join(failure.value.lines())
    with pytest.raises(SpecError, match="SWITCH=driver is for the soft switch") as failure:
        bmv2(clock="virtual", switch="driver")
    assert len(failure.value.lines()) == 1
    with pytest.raises(SpecError, match="DELAY=tc can replace the sender's queue"):
        bmv2(clock="virtual", delay="tc")


def test_virtual_time__spaces_the_frames_that_a_switch_reads_from_a_ring() -> None:
    spec = bmv2(clock="virtual")
    assert (spec.switch, spec.generator) == ("process", "epoll")
    assert network(spec).sender_bps == 10**11
    assert network(bmv2()).sender_bps is None
    assert network(resolve({"clock": "virtual"}, HOST)).sender_bps is None


def test_preflight__names_the_program_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "tool", lambda name: None if name == "simple_switch" else f"/bin/{name}")
    assert [line for line in missing.of(bmv2()) if "simple_switch" in line] == [
        "simple_switch is missing, which TARGET=bmv2 runs: make deploy TARGET=bmv2 installs it or says how to get it"
    ]
    assert not [line for line in missing.of(resolve({}, HOST)) if "simple_switch" in line]


def said_by_deploy(*words: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-m", "bufferscope", "deploy", *words], cwd=CHECKOUT, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr.splitlines()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("TARGET=abacus",), "error: TARGET=abacus is not known; allowed: soft, bmv2"),
        (("TRAGET=bmv2",), "error: TRAGET is not a parameter; did you mean TARGET?"),
        (("TARGET=bmv2", "CHECK=yes"), "error: CHECK=yes is not known; allowed: 0, 1"),
        (("TARGET=bmv2", "INVENTORY=/nowhere"), "/nowhere does not exist: name one with INVENTORY="),
    ],
)
def test_deploy__bad_input_is_one_line(words: tuple[str, ...], said: str) -> None:
    status, lines = said_by_deploy(*words)
    assert (status, len(lines)) == (1, 1)
    assert said in lines[0]


def test_deploy__of_the_soft_switch_does_nothing_beyond_make() -> None:
    assert said_by_deploy("TARGET=soft", "FLOWS=3", "YES=1", "RESULTS=there", "SPEC=here.yaml") == (0, [])


def test_deploy__repeats_after_the_targets_program_changed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A simple_switch that was replaced after a deployment may be too old."""
    program = tmp_path / "simple_switch"
    played = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        played.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(deploy, "STAMPS", tmp_path)
    monkeypatch.setattr(deploy, "inventory_of", lambda target, given: deploy.LAB)
    monkeypatch.setattr(deploy.host, "tool", lambda name: str(program) if name == "simple_switch" else name)
    monkeypatch.setattr(deploy.subprocess, "run", run)
    for text, plays in (("1.15.5", 1), ("1.15.5", 1), ("1.13", 2), ("1.13", 2)):
        if not program.exists() or program.read_text() != text:
            program.write_text(text)
        assert deploy.deploy({"target": "bmv2"}, []) == 0
        assert len(played) == plays
    assert deploy.deploy({"target": "bmv2", "check": "1"}, []) == 0
    assert ["--check" in command for command in played] == [False, False, True]


def test_inventory__without_a_machine_for_the_target_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hosts.json").write_text(json.dumps({"machines": {"hosts": {"one": {}}}}))
    with pytest.raises(RunError, match="has no machine in the group bmv2"):
        deploy.inventory_of("bmv2", str(tmp_path / "hosts.json"))
    (tmp_path / "broken.yml").write_text("a: [")
    with pytest.raises(RunError, match=r"has no machine|is not an inventory"):
        deploy.inventory_of("bmv2", str(tmp_path / "broken.yml"))


@pytest.mark.software
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network namespaces")
@pytest.mark.skipif(not host.tool("simple_switch"), reason="no simple_switch on the PATH (docs/target-bmv2.md)")
def test_run__on_bmv2_accounts_for_every_frame(tmp_path: Path) -> None:
    words = [f"{key.upper()}={value}" for key, value in BMV2.items()]
    done = subprocess.run(
        [sys.executable, "-m", "bufferscope", "experiment", *words, "DURATION=1.5s", "WARMUP=0.5s", "NAME=t",
         "--results", str(tmp_path)],
        cwd=CHECKOUT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if "another experiment is running" in done.stderr:
        pytest.skip("another experiment is running on this machine")
    assert done.returncode in (0, 2), done.stderr
    (own,) = tmp_path.glob("*-t/rep-1")
    summary = json.loads((own / "summary.json").read_text())
    assert faults(summary, "queue: ", "link: ") == []
    ledger = summary["ledger"]
    assert ledger["switch_packets"] == ledger["postcards_rows"] > 3000
    assert ledger["frames_sent"] == ledger["frames_at_switch"] > 3000
    assert ledger["frames_admitted"] == ledger["frames_at_line"] == ledger["frames_delivered"]
    assert ledger["replies_sent"] == ledger["replies_delivered"] > 500
    assert ledger["postcards_at_switch"] == ledger["postcards_on_the_wire"]
    # A stalled machine sends nothing, so a run that is not valid has a smaller lower bound.
    assert (0.5 if summary["valid"] else 0.2) < summary["utilization"]["mean"] < 1.05
    assert summary["queue_depth_packets"]["max"] <= summary["buffer_packets"]
    assert summary["rate"]["kept_pps"] == 4064
    assert summary["fidelity"]["lateness_us"]["p99"] is None
    assert summary["fidelity"]["line"]["lateness_us"]["p99"] > 0
    world = json.loads((own / "environment.json").read_text())
    assert world["program"]["digest"] == (CHECKOUT / "p4src/build/bufferscope.sha256").read_text().split()[0]
    assert world["target_programs"]["simple_switch"]
    assert world["hosts"].keys() == {"bmv2_switch", "line", "sender", "receiver", "collector"}
    assert json.loads((own / "switch.json").read_text())["clock"]["uncertainty_ns"] < 5_000_000
    assert (own / "report.html").exists()


def test_preflight__names_a_program_that_a_virtual_machine_does_not_find(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "simple_switch"
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setattr(host, "tool", lambda name: str(program) if name == "simple_switch" else f"/bin/{name}")
    monkeypatch.setattr(missing, "PATH", "/usr/share")
    said = f"simple_switch is {program}; in virtual time it is sought in /usr/share: install it there"
    assert said in missing.of(bmv2(clock="virtual"))
    assert said not in missing.of(bmv2())


@pytest.mark.serial
@pytest.mark.skipif(not virtual.KERNEL.exists(), reason="no virtual-time kernel (make kernel)")
@pytest.mark.skipif(not host.tool("simple_switch"), reason="no simple_switch on the PATH (docs/target-bmv2.md)")
def test_run__on_bmv2_in_virtual_time_is_exact_and_repeats_to_the_byte(tmp_path: Path) -> None:
    words = [f"{key.upper()}={value}" for key, value in (BMV2 | {"clock": "virtual"}).items()]
    digests = []
    for name in ("one", "two"):
        done = subprocess.run(
            [sys.executable, "-m", "bufferscope", "experiment", *words, "DURATION=1s", "WARMUP=0.5s",
             "--results", str(tmp_path / name)],
            cwd=CHECKOUT, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        own = tmp_path / name / "latest/rep-1"
        digests.append([hashlib.sha256((own / file).read_bytes()).hexdigest() for file in ("postcards.bsp", "tcp.bst")])
    summary = json.loads((own / "summary.json").read_text())
    assert (summary["valid"], summary["clock"], summary["lab"]["target"]) == (True, "virtual", "bmv2")
    assert summary["fidelity"]["depth_mismatches"] == 0 < summary["fidelity"]["depths"]
    assert summary["fidelity"]["clock_uncertainty_ns"] < 1000
    assert digests[0] == digests[1]
