# SPDX-License-Identifier: MIT
"""The soft switch's speed on the lab's veths, with postcards stored. TCP at MTU 1500 stands beside the kernel's bridge.

No rate is set, except 10 Gb/s at MTU 9000. So the machine is the bottleneck: sender, receiver, switch and collector
share its cores.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import processes
from bench.part import Part
from bench.report import BenchRow
from controlplane.policy import TailDrop
from controlplane.program import Switch
from controlplane.soft import SoftSwitch
from controlplane.switch import Collector
from experiments.machine import cell
from experiments.spec import topology
from wire.wire import POSTCARD

SECONDS, RUNS = 8, 3
PORTS = [word for host in topology.HOSTS for word in ("--port", f"{host.port}={host.switch_interface}")]
FAR_AWAY_PACKETS = 1_000_000  # a threshold that no queue reaches
UDP_FRAME_BYTES, FCS_BYTES = 64, 4
JUMBO_RATE_BPS, JUMBO_RTT_NS, JUMBO_BUFFER_PACKETS = 10_000_000_000, 1_000_000, 138


def measure(short: bool) -> list[BenchRow]:
    seconds, runs = (2, 1) if short else (SECONDS, RUNS)
    rows = cell.run(lambda: _at_mtu_1500(seconds, runs))
    rows += cell.run(lambda: _at_mtu_9000(seconds, runs))
    return [BenchRow(**row) for row in rows]


PART = Part(measure, needs_root=True, goals=("bench-programs",))


def _at_mtu_1500(seconds: int, runs: int) -> list[dict]:
    network(1500)
    rows = []
    for bursts in (False, True):
        let_tcp_burst(bursts)
        # Only hosts as in a run have `must` bounds: with bursts the bridge handles large GSO packets, not segments.
        bounds = ({"aim": 2.5}, {"aim": 0.4}) if bursts else ({"must": 1.8, "aim": 2.5}, {"must": 0.4, "aim": 0.6})
        hosts = "hosts that send bursts" if bursts else "hosts as in a run"
        rows += _tcp_beside_the_bridge(seconds, runs, hosts, *bounds)
    udp, tapped, lost = [], [], 0
    for _ in range(runs):
        with soft_switch() as (control, _):
            udp.append(_udp_forwarded_per_s(control, seconds) / 1e3)
        with tempfile.TemporaryDirectory(dir="build") as disk:
            ends = (topology.SENDER, topology.RECEIVER)
            taps = [word for host in ends for word in ("--tap", f"{host.port}={disk}/{host.name}.pcap")]
            with soft_switch(*taps) as (control, _):
                tapped.append(_udp_forwarded_per_s(control, seconds) / 1e3)
                lost += control.stats()["taps_lost"]
    ratios = [with_taps / without for with_taps, without in zip(tapped, udp, strict=True)]
    return [
        *rows,
        _row("64-byte UDP forwarded with postcards", udp, "k/s", must=200, aim=300),
        _row("the same with TAPS=1, as a share", ratios, "x", note=f"frames missing in the captures: {lost}", aim=0.8),
    ]


def let_tcp_burst(bursts: bool) -> None:
    """Allows hosts to send super-segments, or forbids it. In a run hosts send single segments (hosts/tune/bursts.py).
    Single segments cost the hosts more than the switch.
    """
    for host in (topology.SENDER, topology.RECEIVER):
        segments = "65535" if bursts else "1"
        processes.run(host.name, "ip", "link", "set", "dev", topology.INTERFACE, "gso_max_segs", segments)


def _tcp_beside_the_bridge(seconds: int, runs: int, hosts: str, rate_bounds: dict, ratio_bounds: dict) -> list[dict]:
    bridge, switch, missing = [], [], 0
    for _ in range(runs):
        with _kernel_bridge():
            bridge.append(processes.iperf3_bps(seconds) / 1e9)
        with soft_switch() as (_, counts):
            switch.append(processes.iperf3_bps(seconds) / 1e9)
        missing += counts["missing"]
    ratios = [soft_bps / bridge_bps for soft_bps, bridge_bps in zip(switch, bridge, strict=True)]
    peer = f"kernel bridge {statistics.median(bridge):.2f} Gb/s on the same veths"
    note = f"postcards missing: {missing}"
    return [
        _row(f"TCP, MTU 1500, {hosts}", switch, "Gb/s", peer=peer, note=note, **rate_bounds),
        _row(f"the same over the kernel bridge, {hosts}", ratios, "x", **ratio_bounds),
    ]


def _at_mtu_9000(seconds: int, runs: int) -> list[dict]:
    network(9000)
    rates = []
    for _ in range(runs):
        with soft_switch() as (control, _):
            for port in (topology.SENDER.port, topology.RECEIVER.port):
                control.set_port(port, delay=JUMBO_RTT_NS // 2)
            control.set_port(topology.RECEIVER.port, rate=JUMBO_RATE_BPS)
            control.set_policy(topology.RECEIVER.port, TailDrop(JUMBO_BUFFER_PACKETS))
            rates.append(processes.iperf3_bps(seconds, "--parallel", "4") / 1e9)
    return [_row("TCP, MTU 9000, 10 Gb/s, 1 ms, 1 BDP", rates, "Gb/s", must=5, aim=6)]


def _row(name: str, values: list[float], unit: str, **more) -> dict:
    return dict(name=f"switch: {name}", value=statistics.median(values), samples=values, unit=unit, **more)


def network(mtu_bytes: int) -> None:
    topology.build(topology.Network(mtu_bytes))
    interfaces: dict[str, tuple[str, ...]] = {host.name: (topology.INTERFACE,) for host in topology.HOSTS}
    interfaces[topology.SWITCH] = tuple(host.switch_interface for host in topology.HOSTS)
    for name, names in interfaces.items():
        where = [word for interface in names for word in ("--interface", interface)]
        state = cell.RUNTIME / f"tune-{name}"
        processes.run(name, sys.executable, "-m", "hosts.tune.tune", "apply", "--state", state, *where)


@contextmanager
def _kernel_bridge() -> Iterator[None]:
    processes.run(topology.SWITCH, "ip", "link", "add", "br0", "up", "type", "bridge")
    try:
        for host in (topology.SENDER, topology.RECEIVER):
            processes.run(topology.SWITCH, "ip", "link", "set", host.switch_interface, "master", "br0")
        yield
    finally:
        processes.run(topology.SWITCH, "ip", "link", "delete", "br0")


@contextmanager
def soft_switch(*options: str) -> Iterator[tuple[SoftSwitch, dict]]:
    """Runs the switch and a collector that stores. At the end the dictionary has the collector's counts."""
    socket = cell.RUNTIME / "switch.sock"
    words: tuple[str | Path, ...] = ("--control", socket, "--frame-bytes", "9216", *PORTS, *options)
    with (
        collected() as counts,
        processes.daemon(topology.SWITCH, "build/softswitch", *words),
        SoftSwitch(socket) as control,
    ):
        configure(control)
        yield control, counts


@contextmanager
def collected() -> Iterator[dict]:
    """Runs a collector that stores. At the end the dictionary has its counts."""
    counts: dict = {}
    with tempfile.TemporaryDirectory(dir="build") as disk:
        arguments = ["--output", f"{disk}/postcards.bsp", "--summary", f"{disk}/collector.json"]
        listen = f":{POSTCARD.const['POSTCARD_UDP_PORT']}"
        with processes.daemon(topology.COLLECTOR.name, "build/collector", "--listen", listen, *arguments):
            yield counts
        counts.update(json.loads((Path(disk) / "collector.json").read_text()))


def configure(control: Switch) -> None:
    port = POSTCARD.const["POSTCARD_UDP_PORT"]
    collector = topology.COLLECTOR
    for host in (topology.SENDER, topology.RECEIVER):
        control.set_forwarding(host.mac, host.port)
    addresses = (collector.switch_mac, collector.mac, topology.POSTCARD_SOURCE, collector.ipv4)
    control.set_collector(Collector(collector.port, *addresses, port, port))
    control.set_policy(topology.RECEIVER.port, TailDrop(FAR_AWAY_PACKETS))
    control.set_postcards(topology.RECEIVER.port, 1)


def _udp_forwarded_per_s(control: SoftSwitch, seconds: int) -> float:
    """Frames per second forwarded together with their postcards, while a generator sends at full speed."""
    before = control.stats()
    sender, receiver = topology.SENDER, topology.RECEIVER
    macs = ("--source-mac", sender.mac, "--destination-mac", receiver.mac)
    load = ("--seconds", str(seconds), "--frame-bytes", str(UDP_FRAME_BYTES - FCS_BYTES))
    processes.run(sender.name, "build/udp_flood", "--interface", topology.INTERFACE, *macs, *load)
    after = control.stats()
    names = [f"port.{host.port}.tx_frames" for host in (receiver, topology.COLLECTOR)]
    return min(after[name] - before[name] for name in names) / seconds
