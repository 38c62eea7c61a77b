# SPDX-License-Identifier: MIT
"""Targets other than the soft switch: what they need, their deployment, and runs on BMv2."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from analysis.matching import headers, recorded
from analysis.matching.match import Limits, Matcher
from analysis.read.columns import Columns, joined
from bufferscope.__main__ import main
from experiments.machine import host
from experiments.machine.host import CHECKOUT, Host
from experiments.plan.configure import SwitchSettings
from experiments.plan.run_plan import plan_run
from experiments.setup import deploy, missing
from experiments.spec.resolve import resolve
from experiments.tests.conftest import faults
from hosts.tests.test_recorder import frames
from model.experiment import Experiment
from runs.names import CAPTURES
from softswitch.tests.core_driver import Core

BMV2 = {"target": "bmv2", "rate": "50mbit", "rtt": "20ms", "flows": "4"}
PROGRAM = CHECKOUT / "p4src/build/bufferscope.json"


def bmv2(**more: str) -> Experiment:
    return resolve(BMV2 | more, Host(("cubic", "reno"), netem=True))


def test_preflight__names_a_program_that_is_missing_here_or_in_a_virtual_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(host, "tool", lambda name: None if name == "simple_switch" else f"/bin/{name}")
    (line,) = [line for line in missing.of(bmv2()) if "simple_switch" in line]
    assert "make deploy TARGET=bmv2" in line
    assert not [line for line in missing.of(resolve({}, Host(("cubic",), netem=True))) if "simple_switch" in line]
    program = tmp_path / "simple_switch"
    program.touch(mode=0o755)
    monkeypatch.setattr(host, "tool", lambda name: str(program) if name == "simple_switch" else f"/bin/{name}")
    monkeypatch.setattr(missing, "PATH", "/usr/share")
    said = f"simple_switch is {program}; in virtual time it is sought in /usr/share: install it there"
    assert said in missing.of(bmv2(clock="virtual"))
    assert said not in missing.of(bmv2())


def test_deploy__refuses_bad_input_in_one_line_and_has_nothing_to_do_for_the_soft_switch(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words, said in (
        (("TARGET=abacus",), "TARGET=abacus"),
        (("TRAGET=bmv2",), "TRAGET"),
        (("TARGET=bmv2", "CHECK=yes"), "CHECK=yes"),
        (("TARGET=bmv2", "INVENTORY=/nowhere"), "/nowhere"),
    ):
        assert main(["deploy", *words]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line
    assert main(["deploy", "TARGET=soft", "FLOWS=3", "YES=1", "RESULTS=there", "SPEC=here.yaml"]) == 0
    assert capsys.readouterr().err == ""


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


@pytest.mark.software
@pytest.mark.skipif(not host.tool("simple_switch"), reason="no simple_switch on the PATH (docs/target-bmv2.md)")
def test_run__on_bmv2_accounts_for_every_frame(tmp_path: Path) -> None:
    words = [f"{key.upper()}={value}" for key, value in BMV2.items()]
    done = subprocess.run(
        [sys.executable, "-m", "bufferscope", "experiment", *words, "DURATION=1.5s", "WARMUP=0.5s", "NAME=t",
         "--results", str(tmp_path)],
        cwd=CHECKOUT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
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
    assert summary["fidelity"]["lateness_us"]["p99"] > 0
    assert summary["fidelity"]["line"]["lateness_us"]["p99"] > 0
    world = json.loads((own / "environment.json").read_text())
    assert world["program"]["digest"] == (CHECKOUT / "p4src/build/bufferscope.sha256").read_text().split()[0]
    assert world["target_programs"]["simple_switch"]
    assert world["hosts"].keys() == {"bmv2_switch", "line", "sender", "receiver", "collector"}
    assert json.loads((own / "switch.json").read_text())["clock"]["uncertainty_ns"] < 5_000_000
    assert (own / "report.html").exists()


def run_on_bmv2(results: Path, **words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bufferscope", "experiment", "DURATION=1s", "WARMUP=0.5s", "--results", str(results),
         *(f"{key.upper()}={value}" for key, value in (BMV2 | words).items())],
        cwd=CHECKOUT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.serial
@pytest.mark.virtual
@pytest.mark.skipif(not host.tool("simple_switch"), reason="no simple_switch on the PATH (docs/target-bmv2.md)")
def test_run__on_bmv2_in_virtual_time_is_exact(tmp_path: Path) -> None:
    run_on_bmv2(tmp_path, clock="virtual")
    summary = json.loads((tmp_path / "latest/rep-1/summary.json").read_text())
    assert (summary["valid"], summary["clock"], summary["lab"]["target"]) == (True, "virtual", "bmv2")
    assert summary["fidelity"]["depth_mismatches"] == 0 < summary["fidelity"]["depths"]
    assert summary["fidelity"]["clock_uncertainty_ns"] < 1000


@pytest.mark.serial
@pytest.mark.virtual
@pytest.mark.skipif(not host.tool("simple_switch"), reason="no simple_switch on the PATH (docs/target-bmv2.md)")
def test_run__of_a_whole_program_on_bmv2_drops_the_packets_that_the_soft_switch_drops(tmp_path: Path) -> None:
    """Our program stands for a user's. Its own postcards are off, and its policy drops at 20 packets."""
    tables = tmp_path / "commands.txt"
    tables.write_text(
        "table_add forward send_to 02:bf:00:00:00:01 => 7\ntable_add forward send_to 02:bf:00:00:00:02 => 5\n"
        "table_add queue_policy tail_drop 5 => 20 0\n"
    )
    own = {"clock": "virtual", "p4": str(PROGRAM), "tables": str(tables), "ports": "7,5", "buf": "100p"}
    run_on_bmv2(tmp_path, **own)
    repetition = tmp_path / "latest/rep-1"
    summary = json.loads((repetition / "summary.json").read_text())
    ledger, depth = summary["ledger"], summary["queue_depth_packets"]["max"]
    assert ledger["frames_recorded_into"] == ledger["postcards_rows"] > ledger["frames_recorded_out_of"] > 1000
    assert (summary["drops"] > 0, ledger["frames_only_behind"], depth) == (True, 0, 20)
    assert summary["fidelity"]["absent"].keys() >= {"policy", "threshold", "queue_id"}
    of_bmv2 = verdicts(repetition, recorded.frames(repetition / CAPTURES[1]))
    of_core = verdicts(repetition, frames_behind_core(repetition, plan_run(bmv2(**own), 1).settings))
    assert of_bmv2.any()
    assert of_bmv2.tolist() == of_core.tolist()


def verdicts(repetition: Path, behind: Iterable[Columns]) -> np.ndarray:
    """Whether each frame that came to simple_switch is not among those `behind` a switch."""
    pairs = Matcher(recorded.frames(repetition / CAPTURES[0]), behind, Limits(10**9))
    return joined(*(packets for packets, _ in pairs if packets))["dropped"]


def frames_behind_core(repetition: Path, settings: SwitchSettings) -> Iterator[Columns]:
    """The frames that the soft switch's core sends to the receiver, if the same frames come at the same times, with
    simple_switch's queue.
    """
    core, (sender, receiver, _) = Core("p4", tuple(settings.ports), packets=8192, frame_bytes=2048), settings.ports
    queue = settings.queues[receiver]
    limits = f"rate {queue.rate_pps} limit_packets {queue.limit_packets}"
    core.set(f"queue scheduler {receiver} bmv2 queues 1", f"queue set {receiver} all {limits}")
    assert settings.program
    core.set(*(request.text for request in settings.program.requests))
    sent = []
    for arrival_ns, length, kept in frames(repetition / CAPTURES[0]):
        assert core.receive(arrival_ns, sender, kept.ljust(length, b"\0")) == 0
        sent += core.run(arrival_ns)
    sent = [out for out in [*sent, *core.run()] if out.port == receiver]
    rows = np.frombuffer(b"".join(out.frame[:160].ljust(160, b"\0") for out in sent), dtype=np.uint8).reshape(-1, 160)
    departure_ns, lengths = np.array([(out.departure_ns, len(out.frame)) for out in sent]).T
    yield headers.columns(departure_ns, lengths, rows)
