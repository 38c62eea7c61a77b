# SPDX-License-Identifier: MIT
"""The collector at a steady rate, near what one processor receives, to disk; then as fast as the kernel receives
frames, beside other receivers of the same frames: a collector that discards, tcpdump, a minimal AF_XDP receiver.

The frames come in at the interface as if its NIC had received them (postcard_generator --interface). Nothing is spent
on sending: the generator's processor time is that of the kernel's receive path.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench import processes
from bench.part import Part
from bench.report import BenchRow
from experiments.machine import cell
from experiments.spec import topology
from wire.wire import POSTCARD, STORED_POSTCARD

RATE_PER_S, SECONDS = 400_000, 60
FRAMES, RUNS = 4_000_000, 3
PORT = POSTCARD.const["POSTCARD_UDP_PORT"]
COLLECTOR, TARGET = topology.COLLECTOR, f"{topology.COLLECTOR.ipv4}:{PORT}"
LISTEN = ("build/collector", "--listen", TARGET)
TCPDUMP_STARTS_S = 1


def measure(short: bool) -> list[BenchRow]:
    seconds, frames, runs = (3, 500_000, 1) if short else (SECONDS, FRAMES, RUNS)
    return [BenchRow(**row) for row in cell.run(lambda: _in_cell(seconds, frames, runs))]


PART = Part(measure, needs_root=True, goals=("bench-programs",))


@dataclass(frozen=True)
class Received:
    """What a receiver did with the frames of one load."""

    sent: int
    received: int
    seconds: float
    receiver_s: float  # processor time of the receiver since it was ready
    sender_s: float  # and of the generators

    @property
    def per_s(self) -> float:
        return self.received / self.seconds

    @property
    def receiver_s_per_million(self) -> float:
        return self.receiver_s / max(self.received, 1) * 1e6

    @property
    def all_s_per_million(self) -> float:
        return (self.receiver_s + self.sender_s) / max(self.received, 1) * 1e6


def _in_cell(seconds: int, frames: int, runs: int) -> list[dict]:
    topology.build(topology.Network(1500))
    # The generator takes the switch's place, at the other end of the collector's veth.
    processes.run(
        topology.SWITCH, "ip", "address", "add", f"{topology.POSTCARD_SOURCE}/24", "dev", COLLECTOR.switch_interface
    )
    steady = _store(RATE_PER_S * seconds, rate=RATE_PER_S)
    kinds = {
        "collector": lambda: _store(frames),
        "discarding": lambda: _receive([*LISTEN, "--discard"], frames),
        "AF_XDP": lambda: _receive(["build/xdp_sink", "--interface", topology.INTERFACE, "--port", PORT], frames),
        **({"tcpdump": lambda: _tcpdump(frames)} if shutil.which("tcpdump") else {}),
        "two": lambda: _store(frames // 2, "--receivers", "2", senders=2),
    }
    rounds = [{kind: run() for kind, run in kinds.items()} for _ in range(runs)]
    peers = [kind for kind in kinds if kind not in ("collector", "two")]

    def row(name: str, of: Callable[[Received], float], unit: str, **more) -> dict:
        beside = (f"{peer} {statistics.median(of(each[peer]) for each in rounds):.2f}" for peer in peers)
        return _row(name, [of(each["collector"]) for each in rounds], unit, **more, peer=", ".join(beside))

    def ratios(over: str, under: str) -> list[float]:
        return [each[over].per_s / each[under].per_s for each in rounds]

    lost = max(each[kind].sent - each[kind].received for each in rounds for kind in ("collector", "two"))
    return [
        _row(f"stored at {RATE_PER_S / 1e3:.0f} k/s for {seconds} s, missing", [steady.sent - steady.received],
             "postcards", must=0, better="lower",
             note=f"{steady.received} stored, {steady.received * STORED_POSTCARD.itemsize / 1e9:.1f} GB"),
        _row("stored per second in that run", [steady.per_s / 1e3], "k/s", must=0.99 * RATE_PER_S / 1e3),
        row("stored per second, sender unbounded", lambda of: of.per_s / 1e6, "M/s", aim=1.5,
            note=f"at most {lost} lost in a run"),
        row("processor time to store a million postcards", lambda of: of.receiver_s_per_million, "s", aim=1 / 3,
            better="lower", note="aim: 3 M/s on one core"),
        row("and with the kernel's receive path", lambda of: of.all_s_per_million, "s", better="lower"),
        _row("stored over discarded", ratios("collector", "discarding"), "x"),
        _row("two receivers, two senders, over one", ratios("two", "collector"), "x", aim=1),
    ]  # fmt: skip


def _row(name: str, values: list[float], unit: str, **more) -> dict:
    return dict(name=f"collector: {name}", value=statistics.median(values), samples=values, unit=unit, **more)


def _generate(count: int, rate: int | None, sender: int) -> dict:
    """Frames come in at the collector's interface, as fast as the kernel receives them or at a rate."""
    words = ["--to", TARGET, "--count", str(count), "--switch-id", str(sender)]
    words += ["--rate", str(rate)] if rate else []
    into = ["--interface", topology.INTERFACE, "--from", topology.POSTCARD_SOURCE]
    return json.loads(processes.run(COLLECTOR.name, "build/postcard_generator", *words, *into, timeout_s=1200))


def _receive(
    argv: list, count: int, *, rate: int | None = None, senders: int = 1,
    received: Callable[[subprocess.Popen], int] | None = None,
) -> Received:  # fmt: skip
    """Runs a receiver under a load. `received` reads the number of postcards from its ended process; by default from
    the JSON that it prints.
    """
    with processes.daemon(COLLECTOR.name, *argv) as receiver:
        if received:
            time.sleep(TCPDUMP_STARTS_S)
        before, start_s = _children_s(), _processor_s(receiver.pid)
        with ThreadPoolExecutor(senders) as pool:
            sent = list(pool.map(lambda sender: _generate(count, rate, sender + 1), range(senders)))
        sender_s = _children_s() - before
        time.sleep(0.1)  # the receiver's longest nap is 8 ms
        receiver_s = _processor_s(receiver.pid) - start_s
    assert receiver.stdout
    found = received(receiver) if received else json.loads(receiver.stdout.read())["received"]
    return Received(
        sum(each["sent"] for each in sent), found, max(each["seconds"] for each in sent), receiver_s, sender_s
    )


def _store(count: int, *options: str, rate: int | None = None, senders: int = 1) -> Received:
    with tempfile.TemporaryDirectory(dir="build") as disk:
        summary = Path(disk) / "collector.json"
        files = ["--output", f"{disk}/postcards.bsp", "--summary", summary]
        return _receive(
            [*LISTEN, *files, *options], count, rate=rate, senders=senders,
            received=lambda _: json.loads(summary.read_text())["stored"],
        )  # fmt: skip


def _tcpdump(count: int) -> Received:
    """tcpdump that writes to a file. It prints nothing when it is ready, and counts on stderr."""

    def captured(process: subprocess.Popen) -> int:
        assert process.stderr
        found = re.search(r"(\d+) packets captured", process.stderr.read())
        return int(found[1]) if found else 0

    with tempfile.TemporaryDirectory(dir="build") as disk:
        words = f"-i {topology.INTERFACE} -B 131072 -Z root -w {disk}/postcards.pcap udp port {PORT}"
        return _receive(["sh", "-c", f"echo ready; exec tcpdump {words}"], count, received=captured)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _processor_s(pid: int) -> float:
    """Processor time of a running process, all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
