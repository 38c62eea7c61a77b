# SPDX-License-Identifier: MIT
"""Whole runs through the real command line: a short run up to its report, and runs that fail in various ways."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from bufferscope.__main__ import main
from experiments.commands import experiment as command
from experiments.lab import virtual
from experiments.lab.choice import choose
from experiments.machine import host
from experiments.machine import reservation as machine
from experiments.machine.host import CHECKOUT, Host
from experiments.plan.configure import POSTCARD_PORT
from experiments.plan.switches import Switches
from experiments.run import runner
from experiments.setup import missing
from experiments.spec import topology
from experiments.spec.resolve import resolve
from experiments.spec.traffic import FIRST_SERVER_PORT
from experiments.tests import test_taps
from experiments.tests.conftest import faults, wait_for
from hosts.tests.processes import state
from lib import syscalls
from lib.errors import RunError
from runs import results
from runs.names import TAPS
from wire import wire

unbuilt = [name for name in missing.BINARIES if not (host.BUILD / name).exists()]
software = [
    pytest.mark.software,
    pytest.mark.skipif(bool(unbuilt), reason=f"not built: {', '.join(unbuilt)} (make build)"),
    pytest.mark.usefixtures("free_machine", "unchanged_world"),
]
SHORT = ("CC=cubic:2,reno:2", "RATE=50mbit", "RTT=4ms", "RTT_SPREAD=2ms", "DURATION=0.7s", "WARMUP=0.3s", "NAME=short")
# Stops an analysis (SIGSTOP) when it opens the postcards.
HOLDS_ITSELF = """
import os, signal, sys
def hold(event, values):
    if event == "open" and str(values[0]).endswith("postcards.bsp"):
        os.kill(os.getpid(), signal.SIGSTOP)
if "replay" in sys.orig_argv:
    sys.addaudithook(hold)
"""
LONG = ("CC=reno", "FLOWS=2", "RATE=50mbit", "DURATION=60s")


@pytest.fixture(autouse=True)
def own_name(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Runs within this process measure nothing, so they use a lock with another name and never wait for the machine."""
    if "free_machine" not in request.fixturenames:
        monkeypatch.setattr(machine, "NAME", f"\0bufferscope-test-{os.getpid()}")


def started(directory: Path, *words: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bufferscope", "experiment", *words, "--results", str(directory)], cwd=CHECKOUT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | (environment or {}),
    )  # fmt: skip


def ended(run: subprocess.Popen[str]) -> tuple[int, str, list[str]]:
    """Status, standard output, and lines of standard error."""
    output, errors = run.communicate(timeout=240)
    return run.returncode, output, errors.splitlines()


def wait_until(run: subprocess.Popen[str], text: str) -> None:
    assert run.stdout
    for line in run.stdout:
        if text in line:
            return
    raise AssertionError(f"the run ended before {text!r}: {ended(run)}")


def the_repetition(directory: Path, name: str) -> Path:
    (found,) = directory.glob(f"*-{name}/rep-1")
    return found


def wait_until_flowing(run: subprocess.Popen[str], directory: Path, name: str) -> None:
    """Waits until more than 100 kB of postcards are on disk."""

    def flowing() -> bool:
        return any(path.stat().st_size > 100_000 for path in directory.glob(f"*-{name}/rep-1/postcards.bsp"))

    assert wait_for(lambda: flowing() or run.poll() is not None, seconds=120)
    assert run.poll() is None, ended(run)


def stopped_child(run: subprocess.Popen[str]) -> int:
    """The pid of a stopped child of the run; 0: none."""
    children = map(int, Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split())
    return next((pid for pid in children if state(pid) == "T"), 0)


class TestRun:
    pytestmark = software

    @pytest.mark.parametrize(
        ("container", "lacking"),
        [
            (("setpriv", "--bounding-set=-sys_admin"), "CAP_SYS_ADMIN"),
            (("setpriv", "--bounding-set=-net_admin"), "CAP_NET_ADMIN"),
            (("unshare", "--user", "--map-root-user"), "user namespace"),
        ],
    )
    def test_preflight__of_a_container_without_privileges_offers_virtual_time(
        self, tmp_path: Path, container: tuple[str, ...], lacking: str
    ) -> None:
        words = ["experiment", "CLOCK=real", "CC=cubic", f"RESULTS={tmp_path / 'results'}"]
        done = subprocess.run(
            [*container, sys.executable, "-m", "bufferscope", *words],
            cwd=CHECKOUT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert lacking in done.stderr
        assert "CLOCK=virtual" in done.stderr
        assert not (tmp_path / "results").exists()

    def test_run__leaves_a_complete_result(self, tmp_path: Path) -> None:
        with socket.socket() as iperf3, socket.socket(type=socket.SOCK_DGRAM) as collector:
            for busy, port in ((iperf3, FIRST_SERVER_PORT), (collector, POSTCARD_PORT)):
                busy.bind(("0.0.0.0", port))  # a busy port of the host is not busy in the lab
            status, output, errors = ended(started(tmp_path, *SHORT))
        assert status in (0, runner.EXIT_NOT_VALID), errors
        own = the_repetition(tmp_path, "short")
        assert (tmp_path / "latest").resolve() == own.parent
        assert str(own / "report.html") in output
        assert "2 cubic + 2 reno at 50mbit, 4ms: BDP 16 packets, buffer 16 (1bdp), tail-drop" in output

        spec = yaml.safe_load((own / "spec.yaml").read_text())
        assert sorted(spec["extra_delays_ns"]) == [0, 666_666, 1_333_333, 2_000_000]
        summary = json.loads((own / "summary.json").read_text())
        assert summary["valid"] == (status == 0)
        assert faults(summary) == []
        ledger = summary["ledger"]
        counts = {ledger[key] for key in ("switch_packets", "postcards_sent", "postcards_received", "postcards_stored")}
        assert len(counts) == 1
        assert counts.pop() > 3000
        assert ledger["tcp_events_lost"] == ledger["ring_drops"] == 0
        # A stalled machine sends nothing, so a run that is not valid has a smaller lower bound.
        assert (0.8 if summary["valid"] else 0.2) < summary["utilization"]["mean"] <= 1.0
        assert 0 < summary["queue_depth_packets"]["max"] <= 16
        assert len(summary["flows"]) == 4

        switch = json.loads((own / "switch.json").read_text())
        assert (switch["settings"]["2"]["rate"], switch["settings"]["2"]["delay"]) == (50_000_000, 2_000_000)
        idle = json.loads((own / "idle_rtt.json").read_text())
        assert 4_000_000 <= idle["min_ns"] < 8_000_000  # the fastest of many samples is not late on any machine
        world = json.loads((own / "environment.json").read_text())
        assert world["program"]["digest"] == switch["program"]["digest"]
        assert world["hosts"].keys() == {"switch", "sender", "receiver", "collector"}
        assert world["hosts"]["sender"]["interfaces"]["eth0"]["offloads"]["tx-tcp-segmentation"] == "off"
        assert {file.name for file in own.glob("iperf3-*.json")} >= {"iperf3-cubic-0.json", "iperf3-reno-1.json"}
        assert not (own / "ABORTED").exists()

    def test_run__of_our_own_traffic_loses_nothing_and_lasts_as_long_as_asked(self, tmp_path: Path) -> None:
        words = ("CLOCK=real", "TRAFFIC=long,open-loop", "CC=cubic:2,reno:1", "MODE=ecn", "START_SPREAD=5rtt",
                 "SIZES=bimodal", "LOAD=0.3", "RATE=50mbit", "RTT=4ms", "DURATION=1.7s", "WARMUP=0.3s",
                 "TAPS=1")  # fmt: skip
        status, _, errors = ended(started(tmp_path, *words, "NAME=own"))
        assert status in (0, runner.EXIT_NOT_VALID), errors
        own = the_repetition(tmp_path, "own")
        summary = json.loads((own / "summary.json").read_text())
        assert faults(summary) == []
        traffic = json.loads((own / "traffic.json").read_text())
        assert traffic["errors"] == []
        assert traffic["end_mono_ns"] - traffic["start_mono_ns"] == 2_000_000_000
        assert traffic["last_ended_mono_ns"] - traffic["end_mono_ns"] < 5_000_000_000
        ledger = summary["ledger"]
        assert ledger["goodput_records"] == ledger["goodput_rows"] > 100
        assert ledger["datagrams_sent"] == ledger["datagrams_queued"] > 100
        assert ledger["datagrams_departed"] == ledger["datagrams_received"]
        assert len(summary["flows"]) == 4
        assert summary["marks"] > 0
        assert ledger["tap_recorded"] == ledger["tap_passed"] > 2 * ledger["datagrams_departed"]
        cards, _ = test_taps.found(own / TAPS[0], own / TAPS[1], tmp_path / "imported")
        true = test_taps.columns_of(own)
        true["enqueue_mono_ns"] = true["enqueue_mono_ns"] + (cards["enqueue_mono_ns"][0] - true["enqueue_mono_ns"][0])
        assert test_taps.differences(true, cards).keys() == {"rx_mono_ns"}

    @pytest.mark.usefixtures("undrawn")
    def test_run__that_was_late_counts_every_frame_and_ends_with_its_command_for_virtual_time(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A host also sends after the counters were read: on a busy machine a connection may send its FIN again at any
        time.
        """
        read = Switches.state

        def state(switches: Switches, parameters: Iterable[str]) -> dict[str, Any]:
            counted = read(switches, parameters)
            namespace = syscalls.in_network_namespace(topology.netns(topology.SENDER.name))
            with namespace, socket.socket(type=socket.SOCK_DGRAM) as late:
                late.sendto(b"late", (topology.RECEIVER.ipv4, 9))
            time.sleep(0.2)
            return counted

        monkeypatch.setattr(Switches, "state", state)
        words = ["CC=reno", "FLOWS=1", "GENERATOR=epoll", "RATE=20mbit", "RTT=100us"]  # 5 us late is too late
        words += ["DURATION=0.5s", "WARMUP=0s", "NAME=late", f"RESULTS={tmp_path}"]
        assert main(["experiment", "CLOCK=real", *words]) == runner.EXIT_NOT_VALID
        summary = json.loads((the_repetition(tmp_path, "late") / "summary.json").read_text())
        assert faults(summary) == []
        assert summary["ledger"]["switch_packets"] == summary["ledger"]["postcards_stored"] > 100
        offered = shlex.split(capsys.readouterr().err.splitlines()[-1].partition(": ")[2])
        assert offered == ["make", "experiment", "CLOCK=virtual", *words]

    def test_sigkill__is_marked_by_the_next_command__and_ctrl_c_keeps_what_was_recorded(self, tmp_path: Path) -> None:
        killed = started(tmp_path, *LONG, "NAME=long")
        wait_until_flowing(killed, tmp_path, "long")
        killed.kill()
        ended(killed)
        own = the_repetition(tmp_path, "long")
        assert not (own / "ABORTED").exists()
        run = started(tmp_path, *LONG, "NAME=next")
        wait_until_flowing(run, tmp_path, "next")
        assert (own / "ABORTED").read_text() == "killed\nthe runner was killed before the end\n"
        run.send_signal(signal.SIGINT)
        status, _, errors = ended(run)
        assert status == 128 + signal.SIGINT
        assert len(errors) == 1
        assert errors[0].startswith("error: ended by SIGINT; what was recorded is in ")
        own = the_repetition(tmp_path, "next")
        assert (own / "ABORTED").read_text() == "stopped\nended by SIGINT\n"
        stored = json.loads((own / "collector.json").read_text())["stored"]
        blocks = list(wire.read_blocks((own / "postcards.bsp").read_bytes(), wire.BLOCK.const["BLOCK_POSTCARDS"]))
        assert sum(block.header["record_count"] for block in blocks) == stored > 0
        assert not (tmp_path / "latest").exists()

    def test_full_disk__ends_with_one_line_and_readable_files(self, tmp_path: Path) -> None:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m", "bufferscope-test", str(tmp_path)], check=True)
        try:
            run = started(tmp_path, "CC=reno", "FLOWS=2", "RATE=10mbit", "DURATION=20s", "NAME=full")
            wait_until(run, "measuring the idle path")
            with (tmp_path / "filler").open("wb") as filler:
                os.posix_fallocate(filler.fileno(), 0, 200 << 20)
            status, _, errors = ended(run)
            assert status == 1
            assert len(errors) == 1
            assert "the disk is full" in errors[0]
            own = the_repetition(tmp_path, "full")
            assert "the disk is full" in (own / "ABORTED").read_text()
            assert json.loads((own / "collector.json").read_text())["write_errors"] == 0
        finally:
            subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.virtual
def test_sigkill_during_the_analysis__leaves_no_process_and_a_run_to_replay(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HOLDS_ITSELF)
    words = ("CLOCK=virtual", "CC=reno", "FLOWS=1", "RATE=10mbit", "DURATION=0.5s", "WARMUP=0s", "NAME=kill")
    run = started(tmp_path, *words, environment={"PYTHONPATH": str(tmp_path)})
    assert wait_for(lambda: run.poll() is not None or bool(stopped_child(run)), seconds=120)
    assert run.poll() is None, ended(run)
    analysis = stopped_child(run)
    run.kill()
    ended(run)
    assert wait_for(lambda: state(analysis) == "Z")
    own = the_repetition(tmp_path, "kill")
    assert (own / "environment.json").exists()
    assert not (own / "summary.json").exists()
    with results.locked(tmp_path):
        assert not (own / "ABORTED").exists()


def test_bad_input__touches_nothing(tmp_path: Path) -> None:
    status, output, errors = ended(started(tmp_path / "results", "BUF=0p"))
    assert (status, output, len(errors)) == (1, "", 1)
    assert errors[0].startswith("error: BUF=0p ")
    assert not (tmp_path / "results").exists()


SPEC = resolve({}, Host(("cubic",), netem=False))


def test_preflight__names_everything_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (tmp_path / "filesystems").write_text("nodev\tsysfs\n\text4\n")
    monkeypatch.setattr(missing, "BTF", tmp_path / "vmlinux")
    monkeypatch.setattr(missing, "FILE_SYSTEMS", tmp_path / "filesystems")
    monkeypatch.setattr(host, "BUILD", tmp_path)
    monkeypatch.setattr(host, "tool", lambda name: None)
    with pytest.raises(RunError) as failure:
        runner.run(SPEC, tmp_path / "results")
    text = "\n".join(failure.value.lines)
    for said in ("not root", "CONFIG_DEBUG_INFO_BTF", "iperf3 is missing; install it: apt-get install iperf3",
                 "ansible-playbook is missing", "build/tcp_flows, build/open_loop"):  # fmt: skip
        assert said in text
    assert not (tmp_path / "results").exists()
    (tmp_path / "filesystems").write_text("nodev\tsysfs\nnodev\ttracefs\n\text4\n")
    assert not [line for line in missing.of(SPEC) if "BTF" in line]  # the kernel can be traced from tracefs


def test_preflight__looks_at_the_disk_and_at_latest_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missing, "of", lambda _: [])
    large = resolve({"rate": "100gbit", "rtt": "1ms", "duration": "80000s"}, Host(("cubic",), netem=False))
    with pytest.raises(RunError, match=r"has [\d,]+ MiB free; this experiment may write [\d,]+ MiB: make room"):
        runner.run(large, tmp_path)
    assert not list(tmp_path.iterdir())
    (tmp_path / "latest").symlink_to("removed")
    runner.preflight(choose(SPEC), tmp_path)
    (tmp_path / "latest").unlink()
    (tmp_path / "latest").touch()
    with pytest.raises(RunError, match="latest is not a link, so it stays as it is; move it away"):
        runner.run(SPEC, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["latest"]


def test_run__names_an_earlier_run_that_was_not_analysed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(missing, "of", lambda _: [])
    monkeypatch.setattr(runner, "repeat_all", lambda *_: [])
    left = tmp_path / "20260101T120000Z-x/rep-1"
    left.mkdir(parents=True)
    (left / "environment.json").write_text("{}")
    for _ in range(2):
        assert runner.run(SPEC, tmp_path) == 0
        assert capsys.readouterr().err == f"note: {left} was recorded but not analysed: make replay RUN={left}\n"
        assert not (left / "ABORTED").exists()
    (left / "summary.json").write_text("{}")
    runner.run(SPEC, tmp_path)
    assert capsys.readouterr().err == ""


def test_in_virtual_time__offers_only_what_virtual_time_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual, "probe", lambda: Host(("cubic",), netem=True, clock="virtual"))
    monkeypatch.setattr(missing, "of", lambda _: [])
    for typed, offered in (
        ({"cc": "cubic", "results": "a b"}, "make experiment CC=cubic 'RESULTS=a b' CLOCK=virtual"),
        ({"clock": "real", "generator": "iperf3"}, "make experiment CLOCK=virtual GENERATOR=epoll"),
        ({"cc": "nosuch"}, None),
    ):
        assert command.in_virtual_time(typed) == offered
    monkeypatch.setattr(missing, "of", lambda _: ["simple_switch is missing", "and more"])
    offered = command.in_virtual_time({"target": "bmv2"})
    assert offered == "make experiment TARGET=bmv2 CLOCK=virtual; first: simple_switch is missing"
