# SPDX-License-Identifier: MIT
"""Whole runs in virtual time: exact, reproducible to the byte, for any user, and without leftovers however they end."""

import compileall
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
import pytest

from analysis.read.raw import load_postcards
from bufferscope.__main__ import main
from bufferscope.tests.typed.clone import make_clone
from controlplane.policy import TailDrop
from controlplane.program import ProgramEntry
from experiments.commands import repeat
from experiments.machine.host import CHECKOUT
from experiments.setup import missing
from experiments.tests.conftest import wait_for
from p4src.compile import policy
from p4src.tests.frames import tcp
from p4src.tests.under_test import RECEIVER_PORT, SENDER_PORT, SoftCore, composed
from runs.results import record
from softswitch.tests.fifo_model import fifo, stepped
from wire.formats import POSTCARD

pytestmark = [
    pytest.mark.long,
    pytest.mark.virtual,
]
SHORT = (
    "CLOCK=virtual",
    "CC=cubic:2,reno:2",
    "RATE=50mbit",
    "RTT=4ms",
    "RTT_SPREAD=2ms",
    "DURATION=0.4s",
    "WARMUP=0.2s",
)
WITHOUT_RATE = tuple(word for word in SHORT if not word.startswith("RATE="))
LONG = ("CLOCK=virtual", "CC=reno", "FLOWS=2", "RATE=1gbit", "DURATION=200s", "YES=1")
NOBODY = 65534
CODEL_SEES = ("enqueue_mono_ns", "card_seq", "packet_bytes", "flags")
DROPPED = POSTCARD.const["POSTCARD_DROPPED"]


def command(results: Path, *words: str, drawn: bool = True) -> list[str]:
    module = "bufferscope" if drawn else "experiments.tests.undrawn"
    return [sys.executable, "-m", module, "experiment", *words, "--results", str(results)]


def run(
    results: Path,
    *words: str,
    user: int | None = None,
    checkout: Path = CHECKOUT,
    environment: Mapping[str, str] = MappingProxyType({}),
    drawn: bool = False,
) -> dict[str, object]:
    """Makes a run, which must succeed, and returns its summary. Only if `drawn`, the run has figures and a report."""
    done = subprocess.run(
        command(results, *words, drawn=drawn),
        cwd=checkout,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        user=user,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    summary: dict[str, object] = json.loads((results / "latest/rep-1/summary.json").read_text())
    return summary


def raw(repetition: Path) -> list[str]:
    """Digests of five of the files that a repetition recorded."""
    names = ("postcards.bsp", "tcp.bst", "traffic.json", "switch.json", "idle_rtt.json")
    files = [repetition / name for name in names]
    assert all(file.stat().st_size > 0 for file in files)
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]


def machines(directory: Path) -> list[int]:
    """Processes that were started for a run in `directory`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):  # the process has just ended
            if path.readlink() == directory:
                found.append(int(path.parent.name))
    return found


def consoles(results: Path) -> list[Path]:
    return list(results.glob("2*/rep-1/logs/console.log"))


def shared_memory() -> set[str]:
    return {entry.name for entry in os.scandir("/dev/shm")}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("first")
    run(results, *SHORT, "NOTE=a  quiet <machine>", drawn=True)
    return results


def test_run__is_exact_and_complete(first: Path) -> None:
    summary = json.loads((first / "latest/rep-1/summary.json").read_text())
    assert summary["valid"], summary["reasons"]
    fidelity, ledger = summary["fidelity"], summary["ledger"]
    assert fidelity["lateness_us"]["max"] == 0
    assert fidelity["gap_error_max_ns"] <= 1
    assert abs(fidelity["rate_error_fraction"]) < 1e-6
    assert ledger["switch_packets"] == ledger["postcards_rows"] > 1000
    assert ledger["tcp_events_lost"] == 0 < ledger["tcp_events_rows"]
    environment = json.loads((first / "latest/rep-1/environment.json").read_text())
    assert environment["virtual_machine"]["kernel"]["config_digest"]
    assert (first / "latest/NOTE").read_text() == "a quiet <machine>\n"
    assert "Note: a quiet &lt;machine&gt;" in (first / "latest/rep-1/report.html").read_text()


def test_run__is_repeated_from_its_directory(first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What else its numbers depend on is compared; nothing of it can be changed."""
    name = (first / "latest").readlink()
    assert (
        f"<code>bufferscope experiment SPEC=results/{name}/rep-1</code>"
        in (first / "latest/rep-1/report.html").read_text()
    )
    run(tmp_path / "again", f"SPEC={first}/latest/rep-1/spec.yaml")
    assert raw(tmp_path / "again/latest/rep-1") == raw(first / "latest/rep-1")
    assert main(["show", f"SPEC={first}/latest", "FLOWS=3"]) == 1
    assert "FLOWS=3 cannot change" in capsys.readouterr().err
    copy = Path(shutil.copytree(first / "latest", tmp_path / "copy"))
    world = json.loads((copy / "rep-1/environment.json").read_text())
    world["git"] = {"commit": "0" * 40, "dirty": False}
    world["virtual_machine"]["kernel"]["binary_digest"] = "1" * 64
    (copy / "rep-1/digests.json").unlink()
    record(copy / "rep-1", world)
    same, different = repeat.compared(copy, repeat.read(copy, {}, [])[0])
    assert [line.split()[0] for line in same] == ["P4"]
    assert [line.partition(":")[0] for line in different] == ["commit", "kernel"]
    (copy / "rep-1/spec.yaml").write_text((copy / "rep-1/spec.yaml").read_text().replace("seed: 1", "seed: 2"))
    assert main(["show", f"SPEC={copy}"]) == 1
    assert "spec.yaml: damaged, or of another run" in capsys.readouterr().err


def test_run__starts_few_processes_and_wakes_them_rarely(first: Path) -> None:
    """Each process and each wake-up in the virtual machine costs round trips between processes of the host. Most
    processes are ip and ethtool. A packet wakes the sink and its ACK wakes the sender; both are kernel threads.
    """
    repetition = first / "latest/rep-1"
    load = json.loads((repetition / "environment.json").read_text())["load"]
    assert load["before"]["processes"] <= 90  # 82 at the time of writing, kernel threads included
    packets = json.loads((repetition / "summary.json").read_text())["ledger"]["switch_packets"]
    assert load["after"]["context_switches"] - load["before"]["context_switches"] < 2.5 * packets


@pytest.mark.long
def test_run__set_up_that_takes_other_steps_gives_the_same_bytes(tmp_path: Path) -> None:
    """Looking for the bytecode of a module that was never compiled takes virtual time. BBR draws random numbers, so its
    run would show a difference.
    """
    checkout = make_clone(tmp_path).path
    for built in ("build", ".venv"):
        (checkout / built).symlink_to(CHECKOUT / built)
    bbr = ("CLOCK=virtual", "CC=bbr", "FLOWS=4", "RATE=50mbit", "RTT=4ms", "DURATION=0.4s", "WARMUP=0.2s")
    run(tmp_path / "without", *bbr, checkout=checkout, environment={"PYTHONDONTWRITEBYTECODE": "1"})
    assert not list(checkout.rglob("__pycache__"))
    for package in ("experiments", "virtual", "controlplane", "wire", "hosts"):
        assert compileall.compile_dir(checkout / package, quiet=1)
    run(tmp_path / "with", *bbr, checkout=checkout)
    assert raw(tmp_path / "with/latest/rep-1") == raw(tmp_path / "without/latest/rep-1")


def test_run__repetitions_and_experiments_at_once_are_what_they_are_alone(first: Path, tmp_path: Path) -> None:
    words = [(*SHORT, "NAME=one", "REPS=2"), (*SHORT, "SEED=2", "NAME=two")]
    runners = [
        subprocess.Popen(
            command(tmp_path, *own, drawn=False),
            cwd=CHECKOUT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for own in words
    ]
    ends = [runner.communicate(timeout=600) for runner in runners]
    assert [runner.returncode for runner in runners] == [0, 0], ends
    assert [errors for _, errors in ends] == ["", ""]
    assert not list(tmp_path.glob("*/rep-*/ABORTED"))
    alone, *others = (
        raw(next(tmp_path.glob(f"*-{name}/{repetition}")))
        for name, repetition in (("one", "rep-1"), ("one", "rep-2"), ("two", "rep-1"))
    )
    assert alone == raw(first / "latest/rep-1")
    second = next(tmp_path.glob("*-one/rep-2"))
    again = command(tmp_path / "again", f"SPEC={second}", drawn=False)
    done = subprocess.run(again, cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    assert raw(tmp_path / "again/latest/rep-2") == raw(second)
    for other in others:  # another repetition, and another seed
        assert not set(other[:2]) & set(alone)


def test_run__marks_at_departure_are_those_of_the_p4_program(tmp_path: Path) -> None:
    summary = run(tmp_path, *SHORT, "MODE=egress-ecn", "BUF=0.5bdp", drawn=True)
    assert summary["marks"]
    assert summary["drops"] == 0
    repetition = tmp_path / "latest/rep-1"
    assert main(["replay", f"RUN={repetition}", "BUF=0.5bdp"]) == 0
    assert json.loads((repetition / "whatif-1/summary.json").read_text())["same_as_the_run"] is True


@pytest.mark.parametrize("name", policy.shelf())
def test_run__of_an_aqm_of_the_shelf_keeps_the_queue_short(tmp_path: Path, name: str) -> None:
    words = (*(word for word in SHORT if not word.startswith("DURATION=")), f"MODE={name}", "BUF=20bdp", "ECN=on")
    policy_of_red = ("POLICY=min_th=30p max_th=90p",) if name == "red" else ()
    summary: Any = run(tmp_path, *words, "DURATION=2s", *policy_of_red)
    assert summary["valid"]
    assert summary["marks"] > 0
    assert summary["queue_delay_ns"]["p50"] < 25e6, "with tail drop 20 BDP are 80 ms"
    assert summary["utilization"]["mean"] > 0.9


@pytest.mark.skipif(bool(missing.programs("bmv2")), reason="no simple_switch")
def test_run__of_codel_on_bmv2_drops_the_packets_that_our_switch_drops(tmp_path: Path) -> None:
    """The arrivals at BMv2 again, at the core with simple_switch's rate. BMv2's stamps are whole us, rounded down:
    target and interval are no multiples of the 250 us that a packet takes, so no decision hangs on a us.
    """
    words = ("TARGET=bmv2", "CLOCK=virtual", "MODE=codel", "CC=cubic", "FLOWS=4", "RATE=49216kbit", "RTT=20ms")
    run(tmp_path, *words, "POLICY=target=5.1ms interval=99.9ms", "BUF=10bdp", "WARMUP=1s", "DURATION=4s")
    columns, *_ = load_postcards(tmp_path / "latest/rep-1/postcards.bsp")
    at = columns["egress_port"] == RECEIVER_PORT
    cards = sorted(zip(*(columns[name][at].tolist() for name in CODEL_SEES), strict=True))
    switch = SoftCore(program=str(composed("codel"))).configure()
    switch.policy(TailDrop(10**6))
    switch.count_by_the_program()
    program = policy.read("codel").json
    for (table, action), arguments in policy.default_actions(
        program, {"target_ns": 5_100_000, "interval_ns": 99_900_000}
    ).items():
        switch.control.write_default(table, ProgramEntry(action, arguments))
    switch.core.set("queue scheduler 2 bmv2 queues 1", "queue set 2 0 rate 4000")
    frames_of = {size: tcp(size) for size in {size for _, _, size, _ in cards}}
    for at_ns, _, size, _ in cards:
        switch.advance(at_ns - 1)
        switch.send(at_ns, SENDER_PORT, frames_of[size])
    ours = sorted((card.enqueue_switch_ns, card.card_seq, card.has("DROPPED")) for card in switch.postcards())
    theirs = sorted((at_ns, card_seq, bool(flags & DROPPED)) for at_ns, card_seq, _, flags in cards)
    first = theirs[0][1]
    assert [(at_ns, seq - first, drop) for at_ns, seq, drop in theirs] == ours
    assert sum(drop for *_, drop in ours) > 10


def test_run__of_a_users_policy_is_whole_and_has_its_value(tmp_path: Path) -> None:
    """Each postcard has the least wait that the template knew at the arrival, by the times of all postcards."""
    summary = run(tmp_path, *SHORT, "P4=template", "POLICY=target=1ms interval=5ms", "ECN=on", drawn=True)
    assert summary["valid"]
    spec: Any = summary["spec"]
    assert spec["p4"]["parameters"] == {"target_ns": 10**6, "interval_ns": 5 * 10**6}
    repetition = tmp_path / "latest/rep-1"
    assert (repetition / "figures/policy_value.svg").exists()
    (at_the_end,) = json.loads((repetition / "switch.json").read_text())["parameters"].values()
    assert at_the_end == spec["p4"]["parameters"]
    cards = pl.read_parquet(repetition / "postcards.parquet").filter(pl.col("egress_port") == 2)
    came, waited, values = (cards[name].to_list() for name in ("enqueue_mono_ns", "sojourn_ns", "policy_value"))
    arrivals = [(at_ns, 1, number) for number, at_ns in enumerate(came)]
    departures = [(came[number] + wait_ns, 0, number) for number, wait_ns in enumerate(waited) if wait_ns]
    least = end = 0
    wrong = ties = 0
    left = {at_ns for at_ns, *_ in departures}
    for at_ns, is_arrival, number in sorted(arrivals + departures):
        if is_arrival:
            ties += at_ns in left
            wrong += values[number] != least
        elif at_ns >= end:
            least, end = waited[number], at_ns + 5 * 10**6
        else:
            least = min(least, waited[number])
    assert max(values) > 10**6
    assert wrong <= ties < len(values) / 10


def test_run__the_switch_as_a_process_is_late_by_little(tmp_path: Path) -> None:
    summary = run(tmp_path, *SHORT, "SWITCH=process")
    assert summary["valid"], summary["reasons"]


def test_run__of_any_user_gives_the_same_bytes_wherever_its_files_go(first: Path, tmp_path: Path) -> None:
    results = tmp_path / "a directory of another length, with spaces"
    python = (Path(sys.executable).resolve(), CHECKOUT / ".venv")
    reached = all(parent.stat().st_mode & 0o001 for path in python for parent in path.parents)
    user = NOBODY if os.geteuid() == 0 and reached else None
    if user is not None:
        for parent in (tmp_path, *tmp_path.parents[:2]):
            parent.chmod(0o755)
        results.mkdir()
        os.chown(results, user, user)
    run(results, *SHORT, user=user)
    assert raw(results / "latest/rep-1") == raw(first / "latest/rep-1")
    if not reached:
        pytest.skip(f"other users cannot reach {python[0]} or {python[1]}; the run of this user had the same bytes")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_run__leaves_nothing_behind_when_it_is_ended(tmp_path: Path, number: int, status: int) -> None:
    before = shared_memory()
    with subprocess.Popen(
        command(tmp_path, *LONG),
        cwd=CHECKOUT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as runner:
        assert wait_for(lambda: any(b'"sample"' in file.read_bytes() for file in consoles(tmp_path)), 120)
        repetition = consoles(tmp_path)[0].parents[1]
        assert machines(repetition)
        runner.send_signal(number)
        assert runner.wait(60) == status
    assert wait_for(lambda: not machines(repetition))
    assert shared_memory() == before
    if number != signal.SIGKILL:  # after SIGKILL the next experiment marks the run
        assert (repetition / "ABORTED").read_text() == f"stopped\nended by {signal.Signals(number).name}\n"


def test_executors__give_the_same_packets(first: Path, tmp_path: Path) -> None:
    """Either the kernel sends and discards, or the programs do. The times of SYNs differ by less than 2 us, because
    the failed open() of the missing device takes time. After the first tenth of the packets, times differ by 10 ns at
    most.
    """
    program = (
        "import sys; from experiments.lab import virtual as lab; from bufferscope.__main__ import main\n"
        "job = lab.machine_job\n"
        "def without(*given):\n"
        "    made = job(*given)\n"
        "    made.parameters['bufferscope_traffic.enabled'] = '0'\n"
        "    return made\n"
        "lab.machine_job = without\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    words = ("experiment", *SHORT, f"RESULTS={tmp_path}")
    done = subprocess.run([sys.executable, "-c", program, *words], cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    tables = []
    for executor, results in (("kernel", first), ("process", tmp_path)):
        repetition = results / "latest/rep-1"
        for name in ("traffic_sink.json", "tcp_flows.json"):
            assert json.loads((repetition / name).read_text())["executor"] == executor
        tables.append(load_postcards(repetition / "postcards.bsp")[0])
    kernel, process = tables
    for name in ("depth_packets", "packet_bytes", "flow", "flags", "tcp_flags"):
        assert (kernel[name] == process[name]).all(), name
    apart_ns = abs(kernel["enqueue_mono_ns"] - process["enqueue_mono_ns"])
    assert apart_ns.max() < 2000
    assert apart_ns[len(apart_ns) // 10 :].max() <= 10


def cards(results: Path) -> tuple[dict[str, np.ndarray], int]:
    """The postcards of the bottleneck by arrival, and the start of its rate's schedule."""
    repetition = results / "latest/rep-1"
    start_ns = json.loads((repetition / "switch.json").read_text())["settings"]["2"]["schedule_start"]
    columns = load_postcards(repetition / "postcards.bsp")[0]
    return columns | {"left": columns["enqueue_mono_ns"] + columns["sojourn_ns"]}, start_ns


def test_run__a_link_that_changes_is_exact_and_every_lost_packet_is_known(tmp_path: Path) -> None:
    """Steps of the rate with an outage, loss and jitter, under long and finite flows: departures as of an independent
    model, and the run repeats from its directory.
    """
    words = (
        *WITHOUT_RATE,
        "RATE=50mbit,0.25s:20mbit,0.3s:0mbit,0.32s:40mbit",
        "BDP_OF=40mbit",
        "TRAFFIC=long,finite",
        "LOAD=0.2",
    )
    words += ("FINITE_CC=reno", "LOSS=bursts:0.002:0.3", "JITTER=normal:1ms")
    summary: Any = run(tmp_path, *words)
    assert summary["valid"], summary["reasons"]
    ledger, spec = summary["ledger"], summary["spec"]
    assert ledger["link_lost"] == ledger["link_lost_rows"] >= summary["link_lost"] > 0
    assert spec["buffer_packets"] == 13
    queue, start_ns = cards(tmp_path)
    steps = [(0, 50_000_000), *((start_ns + at_ns, bps) for at_ns, bps in spec["rate_steps"])]
    packets = list(zip(queue["enqueue_mono_ns"].tolist(), queue["packet_bytes"].tolist(), strict=True))
    fates = fifo(packets, stepped(steps), admits=lambda index, packets, _: packets < 13)
    assert [fate.departure_ns or arrival for fate, (arrival, _) in zip(fates, packets, strict=True)] == queue[
        "left"
    ].tolist()
    for at_ns in (250_000_000, 320_000_000):
        assert ((queue["enqueue_mono_ns"] < start_ns + at_ns) & (queue["left"] > start_ns + at_ns)).any()
    run(tmp_path / "again", f"SPEC={tmp_path}/latest/rep-1")
    assert raw(tmp_path / "again/latest/rep-1") == raw(tmp_path / "latest/rep-1")


def test_run__a_mahimahi_trace_sends_the_bytes_of_its_opportunities(tmp_path: Path) -> None:
    trace = tmp_path / "cell.down"
    trace.write_text("".join(f"{ms}\n" * (ms % 5) for ms in range(1, 150)))
    summary: Any = run(tmp_path, *WITHOUT_RATE, f"RATE=trace:{trace}", "BUF=100p", "START_SPREAD=0s", drawn=True)
    assert summary["valid"], summary["reasons"]
    assert 0.9 < summary["utilization"]["mean"] <= 1
    queue, start_ns = cards(tmp_path)
    traffic = (queue["enqueue_mono_ns"] > start_ns) & (queue["sojourn_ns"] > 0)
    came, left, size = (queue[name][traffic] for name in ("enqueue_mono_ns", "left", "packet_bytes"))
    assert set(((left - start_ns) % 1_000_000).tolist()) == {0}
    backlogged = 0
    for ms in range(1, 601):
        at_ns, turn = start_ns + 1_000_000 * ms, (ms - 1) % 149 + 1
        sent, waits = size[left == at_ns], (came < at_ns) & (left > at_ns)
        assert sum(sent - 14) <= 1500 * (turn % 5) + (0 if waits.any() else 1500)
        if waits.any() and (sent == 1514).all():
            backlogged += 1
            assert len(sent) == turn % 5, ms
    assert backlogged > 100
    trace.unlink()
    assert main(["replay", f"RUN={tmp_path}/latest/rep-1"]) == 0
    assert main(["replay", f"RUN={tmp_path}/latest/rep-1", f"BUF={summary['buffer_packets']}p"]) == 0
    assert json.loads((tmp_path / "latest/rep-1/whatif-1/summary.json").read_text())["same_as_the_run"] is True
