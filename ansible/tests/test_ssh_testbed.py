# SPDX-License-Identifier: MIT
"""Whole experiments on separate hosts (ssh_hosts.py), reached through a real sshd. One host runs the soft switch or
BMv2. The clocks of the switch and of the collector are hours ahead of the sender's.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from analysis.read.load import load
from analysis.read.raw import read_postcards
from experiments.tests.conftest import wait_for
from wire import wire

CHECKOUT = Path(__file__).resolve().parents[2]
TOOLS = ("/usr/sbin/sshd", "ssh", "ssh-keygen", "ssh-keyscan", "sudo")
SHIFT_S = {"switch": 7200, "collector": 30_000}
LONG = ("TARGET=soft", "CC=cubic", "FLOWS=4", "RATE=20mbit", "RTT=20ms", "WARMUP=500ms", "DURATION=60s")
WORDS = (*LONG[:-1], "DURATION=2s")
AT_INGRESS = wire.POSTCARD.const["POSTCARD_AT_INGRESS"]
BUSY = ("frames left port", "quieter machine")  # words of the reasons that a busy machine causes
BUSY_WITH_BMV2 = (*BUSY, "report a depth", "rate was off", "link: ")  # BMv2's threads are late, too
TIMEOUT_S = 300

pytestmark = [
    pytest.mark.long,  # .ci/run installs sshd for the long ring
    pytest.mark.software,
]


@dataclass
class Machines:
    """`pid`: a process in the namespaces from which the hosts can be reached. `hosts`: each host's first process."""

    directory: Path
    pid: int
    hosts: dict[str, int]

    @property
    def inventory(self) -> Path:
        return self.directory / "inventory.yml"

    def command(self, *words: str | Path) -> list[str]:
        inside = ["nsenter", f"--target={self.pid}", "--mount", "--net", "--pid", f"--wd={CHECKOUT}", "--"]
        return [*inside, *map(str, words)]

    def bufferscope(self, *words: str, inventory: Path | None = None) -> list[str]:
        return self.command(sys.executable, "-m", "bufferscope", *words, f"INVENTORY={inventory or self.inventory}")

    def run(self, *words: str, inventory: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.bufferscope(*words, inventory=inventory), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=TIMEOUT_S, check=False,
        )  # fmt: skip

    def on(self, host: str, *words: str) -> str:
        """The output of a command on a host, as root."""
        inside = ["nsenter", f"--target={self.hosts[host]}", "--mount", "--net", "--pid", "--ipc", "--uts", "--wd=/"]
        return subprocess.run([*inside, "--", *words], capture_output=True, text=True, check=True).stdout

    def left(self) -> dict[str, str]:
        """The programs, files, settings and neighbours that a run left on the hosts; not those of the deployment."""
        found = {}
        for host in self.hosts:
            programs = self.on(host, "ps", "-A", "-ww", "-o", "args=").splitlines()
            ours = [line for line in programs if "/opt/bufferscope" in line or " -m hosts." in line]
            runs = self.on(host, "sh", "-c", "ls -A /opt/bufferscope/runs 2>/dev/null || true").split()
            state = self.on(host, "sh", "-c", "ls -A /var/lib/bufferscope").split()
            neighbours = self.on(host, "ip", "neigh", "show", "nud", "permanent").splitlines()
            settings = [name for name in state if name != "lease.lock"]
            qdiscs = self.on(host, "tc", "qdisc", "show").splitlines()
            silenced = [line for line in qdiscs if "blackhole" in line]
            if problems := ours + runs + settings + neighbours + silenced:
                found[host] = "; ".join(problems)
        return found


def missing() -> str:
    """Why these tests cannot run here; empty if they can."""
    if absent := [name for name in TOOLS if not shutil.which(name)]:
        return f"missing: {' '.join(absent)} (Debian packages openssh-server, openssh-client, sudo)"
    return "" if (CHECKOUT / "build/deployed").exists() else "this checkout is not built: make build/deployed"


@contextlib.contextmanager
def machines(directory: Path, *more: str) -> Iterator[Machines]:
    """Hosts that end with the block. `more` are options of ssh_hosts.py."""
    directory.chmod(0o755)
    shifts = [word for name, seconds in SHIFT_S.items() for word in ("--shift", f"{name}={seconds}")]
    builder = subprocess.Popen(
        [sys.executable, CHECKOUT / "ansible/tests/ssh_hosts.py", *shifts, *more, directory, "--", "cat"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert builder.stdout
        assert builder.stdout.readline() == "ready\n"
        (unshare,) = children(builder.pid)
        (inside,) = children(unshare)
        yield Machines(directory, inside, {name: of_host(inside, int(pid)) for name, pid in pids(directory)})
    finally:
        builder.kill()
        builder.communicate()


@pytest.fixture(scope="module")
def testbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    if why := missing():
        pytest.skip(why)
    with machines(tmp_path_factory.mktemp("hosts")) as bed:
        deployed = bed.run("deploy", "TARGET=soft")
        assert deployed.returncode == 0, deployed.stdout + deployed.stderr
        yield bed


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def pids(directory: Path) -> list[list[str]]:
    return [line.split() for line in (directory / "pids").read_text().splitlines()]


def of_host(inside: int, pid: int) -> int:
    """Converts `pid`, a number in the PID namespace of `inside`, to the pid of the same process in this namespace.

    sshd has a process per connection, which can end during the search. The search skips a process that has ended.
    """
    below = [inside]
    for one in below:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            below += children(one)
            status = Path(f"/proc/{one}/status").read_text()
            numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[1:]
            if len(numbers) > 1 and int(numbers[1]) == pid:
                return one
    raise LookupError(pid)


def test_experiment__over_ssh_has_all_its_packets_and_leaves_nothing(testbed: Machines, tmp_path: Path) -> None:
    done = testbed.run("experiment", *WORDS, f"RESULTS={tmp_path}")
    assert done.returncode in (0, 2), done.stdout + done.stderr
    repetition = tmp_path / "latest/rep-1"
    summary = json.loads((repetition / "summary.json").read_text())
    assert [reason for reason in summary["reasons"] if not any(word in reason for word in BUSY)] == []
    ledger = summary["ledger"]
    assert ledger["postcards_missing"] == ledger["tcp_events_lost"] == 0
    assert summary["drops"] > 0
    environment = json.loads((repetition / "environment.json").read_text())
    assert set(environment["hosts"]) == set(testbed.hosts)
    tuned = [line for line in (repetition / "logs/ansible.log").read_text().splitlines() if "are applied" in line]
    for host in ("sender", "receiver"):  # by prepare.yml, and by silence.yml
        assert sum(line.startswith(f"changed  {host}: ") for line in tuned) == 2
    assert testbed.left() == {}

    # The switch's clock: every computed time is within the stated uncertainty of the true time.
    run = load(repetition)
    assert run.clock
    assert run.clock.uncertainty_ns
    raw, _, _ = read_postcards(repetition / "postcards.bsp")
    true_ns = in_order(raw, "enqueue_switch_ns") - SHIFT_S["switch"] * 10**9
    error_ns = (in_order(run.postcards, "enqueue_mono_ns") - true_ns + (1 << 47)) % (1 << 48) - (1 << 47)
    assert np.abs(error_ns).max() <= run.clock.uncertainty_ns
    least_ns = max(
        json.loads((repetition / name).read_text())["min_ns"] for name in ("idle_rtt.json", "idle_rtt_after.json")
    )
    assert run.clock.uncertainty_ns <= (least_ns - run.experiment.rtt_ns) / 2 + 1000


def in_order(cards: dict[str, np.ndarray], name: str) -> np.ndarray:
    """A column in the order of the postcards' numbers; refused packets have a sequence of their own."""
    order = np.lexsort((cards["card_seq"], cards["flags"] & AT_INGRESS))
    return cards[name][order].astype(np.int64)


@contextlib.contextmanager
def running(bed: Machines, *words: str | Path, until: str = "-m hosts.traffic.") -> Iterator[subprocess.Popen[bytes]]:
    """A long experiment, from the time when the sender runs a program with `until` in its command line. After the
    block, nothing is left of it on any host.
    """
    with (bed.directory / "errors").open("w") as errors:
        process = subprocess.Popen(
            bed.bufferscope("experiment", *map(str, words)),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True,
        )  # fmt: skip
    try:
        assert wait_for(lambda: until in bed.left().get("sender", ""), 120)
        yield process
        process.wait(timeout=180)
        assert wait_for(lambda: bed.left() == {}, 60), bed.left()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.skipif(not shutil.which("simple_switch"), reason="no simple_switch on the PATH (docs/target-bmv2.md)")
@pytest.mark.skipif(bool(missing()), reason=missing())
def test_experiment__with_bmv2_and_a_delay_line_on_machines_of_their_own(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with machines(tmp_path_factory.mktemp("line"), "--line") as bed:
        text = bed.inventory.read_text()
        bed.inventory.write_text(text.replace("{soft: }", "{bmv2: }").replace("\nsoft:", "\nbmv2:"))
        deployed = bed.run("deploy", "TARGET=bmv2")
        assert deployed.returncode == 0, deployed.stdout + deployed.stderr
        done = bed.run("experiment", "TARGET=bmv2", "DELAY=switch", *WORDS[1:], f"RESULTS={tmp_path / 'results'}")
        assert done.returncode in (0, 2), done.stdout + done.stderr
        assert bed.left() == {}
        with running(bed, "TARGET=bmv2", "DELAY=switch", *LONG[1:], f"RESULTS={tmp_path / 'killed'}") as process:
            os.killpg(process.pid, signal.SIGKILL)
        assert "simple_switch" not in bed.on("switch", "ps", "-A", "-ww", "-o", "args=")
    summary = json.loads((tmp_path / "results/latest/rep-1/summary.json").read_text())
    assert [reason for reason in summary["reasons"] if not any(word in reason for word in BUSY_WITH_BMV2)] == []
    ledger = summary["ledger"]
    assert ledger["postcards_missing"] == ledger["tcp_events_lost"] == 0 < ledger["switch_packets"]
    assert summary["fidelity"]["clock_uncertainty_ns"] is not None


def test_experiment__on_unreachable_hosts_reports_one_line(testbed: Machines, tmp_path: Path) -> None:
    other = tmp_path / "inventory.yml"
    (testbed.directory / "keys/other").write_text("")
    for change, said in (
        (("10.9.3.2", "10.9.3.77"), "receiver (10.9.3.77): ssh: connect to host 10.9.3.77"),
        (("/known -o ControlPath=", "/other -o ControlPath=/run"), "Host key verification failed."),
        (("/opt/bufferscope", "/opt/elsewhere"), "deploy first"),
    ):
        other.write_text(testbed.inventory.read_text().replace(*change))
        done = testbed.run("experiment", *WORDS, f"RESULTS={tmp_path / 'results'}", inventory=other)
        assert done.returncode == 1
        assert said in done.stderr
        assert all(line.startswith(("error: ", "note: ")) for line in done.stderr.splitlines())
        assert testbed.left() == {}


def test_experiment__killed_while_hosts_are_prepared_leaves_nothing(testbed: Machines, tmp_path: Path) -> None:
    """Only the runner is killed. The programs that it started must end by themselves."""
    with running(testbed, *LONG, f"RESULTS={tmp_path}", until="hosts.lease") as process:
        time.sleep(1)
        (runner,) = children(process.pid)
        os.kill(runner, signal.SIGKILL)
    time.sleep(3)
    assert testbed.left() == {}


def test_experiment__whose_ssh_dies_says_so_and_leaves_nothing(testbed: Machines, tmp_path: Path) -> None:
    with running(testbed, *LONG, f"RESULTS={tmp_path}") as process:
        second = testbed.run("experiment", *WORDS, f"RESULTS={tmp_path / 'second'}")
        assert (second.returncode, "another experiment" in second.stderr) == (1, True)
        testbed.on("sender", "pkill", "-KILL", "-f", "sshd: bufferscope")
    assert process.returncode == 1
    said = (testbed.directory / "errors").read_text()
    assert "UNREACHABLE sender" in said or "sender (10.9.2.2)" in said
