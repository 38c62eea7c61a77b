# SPDX-License-Identifier: MIT
"""The soft switch beside BMv2: TCP through the same compiled program on the same veths, one after the other, with a
postcard for every packet. No rate is set: the bottleneck is the machine, shared by switch, hosts and collector.

A pair of runs gives a ratio; the row's value is the median of the ratios.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench import processes
from bench.part import Part
from bench.report import BenchRow
from bench.switch import PORTS, RUNS, SECONDS, collected, configure, let_tcp_burst, network, soft_switch
from controlplane.switch import Queue
from controlplane.targets import TARGETS, connect
from experiments.machine import cell, host
from experiments.setup import environment, missing
from experiments.spec import topology
from lib import syscalls

SEGMENT_BYTES = 1448  # of payload, at MTU 1500
LIMIT_PACKETS = 100_000  # the limit of BMv2's queues: the default of 64 packets would cause uncounted drops
# The key says whether hosts send bursts. Hosts that send single segments, as in a run, limit the soft switch but not
# BMv2, so this ratio has no bound that fails the row, only an aim.
BOUNDS: dict[bool, dict] = {False: {"aim": 11}, True: {"must": 11, "aim": 20}}
JSON = host.CHECKOUT / "p4src/build/bufferscope.json"


def measure(short: bool) -> list[BenchRow]:
    seconds, runs = (2, 1) if short else (SECONDS, RUNS)
    return [BenchRow(**row) for row in cell.run(lambda: _side_by_side(seconds, runs))]


PART = Part(measure, needs_root=True, goals=("bench-programs",), absent=lambda: "; ".join(missing.programs("bmv2")))


def _side_by_side(seconds: int, runs: int) -> list[dict]:
    network(1500)
    version = environment.target_programs("bmv2")["simple_switch"]
    rows = []
    for bursts in (False, True):
        let_tcp_burst(bursts)
        hosts = "hosts that send bursts" if bursts else "hosts as in a run"
        soft, bmv2, lost = [], [], 0
        for _ in range(runs):
            with bmv2_switch() as counts:
                bmv2.append(processes.iperf3_bps(seconds) / 1e6)
            lost += counts["missing"]
            with soft_switch() as (_, counts):
                soft.append(processes.iperf3_bps(seconds) / 1e6)
            lost += counts["missing"]
        ratios = [soft_bps / bmv2_bps for soft_bps, bmv2_bps in zip(soft, bmv2, strict=True)]
        rows.append(
            {
                "name": f"targets: soft switch over BMv2, TCP, MTU 1500, one postcard per packet, {hosts}",
                "value": statistics.median(ratios),
                "samples": ratios,
                "unit": "x",
                **BOUNDS[bursts],
                "peer": f"simple_switch {version}: {_median(bmv2)} Mb/s, soft switch: {_median(soft)} Mb/s",
                "note": f"postcards missing: {lost}",
            }
        )
    return rows


def bmv2_packets_per_s(short: bool) -> str:
    """Full TCP segments that BMv2 forwards, each with its postcard, in words; '' without BMv2 or root."""
    if os.geteuid() or missing.programs("bmv2"):
        return ""

    def measured() -> float:
        network(1500)
        let_tcp_burst(False)
        with bmv2_switch():
            return processes.iperf3_bps(2 if short else SECONDS) / 8 / SEGMENT_BYTES

    return f"simple_switch on veths, TCP: {cell.run(measured) / 1e3:.1f} k/s"


def _median(values: list[float]) -> str:
    return f"{statistics.median(values):.0f}"


@contextmanager
def bmv2_switch() -> Iterator[dict]:
    """Runs simple_switch and a collector that stores. At the end the dictionary has the collector's counts."""
    address = TARGETS["bmv2"].address
    port = address.rpartition(":")[2]
    arguments = ["--json", JSON, "--thrift-port", port, "--runtime-dir", cell.RUNTIME, "--no-boost", *PORTS]
    with (
        collected() as counts,
        processes.daemon(topology.SWITCH, sys.executable, "-m", "hosts.bmv2", *arguments),
    ):
        with syscalls.in_network_namespace(topology.netns(topology.SWITCH)):
            control = connect("bmv2", address)
        with control:
            for lab_host in topology.HOSTS:
                control.set_queue(lab_host.port, Queue(limit_packets=LIMIT_PACKETS))
            configure(control)
            yield counts
