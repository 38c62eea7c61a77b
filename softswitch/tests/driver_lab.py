# SPDX-License-Identifier: MIT
"""Runs inside the virtual-time kernel: hosts around the switch driver, real traffic, and the results as JSON.

experiments() runs all experiments; test_driver.py judges the results. Times are ns; sockets' stamps are CLOCK_REALTIME.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import random
import socket
import struct
import subprocess
import time
import traceback
from pathlib import Path
from typing import Any

from controlplane.policy import TailDrop
from controlplane.soft import SoftSwitch
from controlplane.switch import Collector, SwitchError
from hosts.tune import bursts, offloads, tune
from lib.tests.namespace import inside
from p4src.tests.packet_ports import run
from virtual import RUN_DIRECTORY
from wire.wire import POSTCARD

from .core_driver import BUILD
from .differential.frames import internet_checksum
from .ring_lab import mac

DEVICE = "/dev/bufferscope-switch"
HOSTS = {1: "sender", 2: "receiver", 3: "collector"}
SO_TIMESTAMPNS, SO_TIMESTAMPING, SOL_PACKET, SOL_IP_RECVERR = 35, 37, 263, 0x2000
TX_SOFTWARE, SOFTWARE, TSONLY = 1 << 1, 1 << 4, 1 << 11
TIMESPECS = struct.Struct("qq")

# Requests for both executors, process and driver: valid and invalid settings and queries.
REQUESTS: tuple[bytes, ...] = (
    b"program", b"program now", b"table list", b"table set forward 0x02bf00000002 = send_to 2", b"table dump forward",
    b"table set forward 2 = send_to", b"table set queue_policy 2 = tail_drop 5 0", b"table dump queue_policy",
    b"table delete queue_policy 2", b"table delete queue_policy 2", b"table set absent 1 = nothing", b"table",
    b"counter read arrivals", b"counter read arrivals 2", b"counter reset arrivals", b"counter read absent",
    b"register read absent 0", b"random seed 5", b"random seed", b"mirror set 1 3 truncate 256", b"mirror set 1 9",
    b"mirror show 1", b"mirror show 2", b"mirror show 1 1", b"mirror delete 1", b"mirror delete 1",
    b"port set 2 rate 1000000000 delay 5", b"port set 2 rate 1", b"port show 2",
    b"port set 2 rate 0 delay 0", b"port show 4", b"flow set 10.0.0.1 10.0.0.2 tcp 1 2 delay 7",
    b"flow set fd00::1 fd00::2 udp 1 2 access 1000", b"flow set 10.0.0.1 10.0.0.300 tcp 1 2",
    b"flow set " + b" ; ".join(b"10.0.0.1 10.0.0.2 tcp %d 2 delay 7" % port for port in range(60)),
    b"flow set " + b" ; ".join(b"10.0.0.1 10.0.0.2 tcp %d 2 delay 7" % port for port in range(120)),
    b"flow set 10.0.0.1 10.0.0.2 tcp 1 2 ; 1 ;", b"flow clear", b"schedule steps 2 0 1000 5 0 1000000 2000",
    b"schedule steps 2 1000001 0 1000002 2000", b"schedule start 2 4000000000000000000", b"port show 2",
    b"schedule clear", b"loss 2 seed 1 good 5", b"loss 2", b"jitter 2 1 0 5", b"jitter 2 1", b"port show 2", b"stats",
    b"stats now", b"lateness 1", b"lateness 4", b"lateness", b"lateness reset", b"lateness 1 2", b"nonsense", b" ",
    b"stats\0", b"\xff\xfe", b"x" * 4096, b"x" * 4097, b"x" * 100_000,
)  # fmt: skip


def addr(port: int) -> str:
    return f"10.77.0.{port}"


def link(port: int) -> dict[str, Any]:
    return json.loads(run("ip", "-n", HOSTS[port], "-s", "-d", "-j", "link", "show", "eth0"))[0]


def set_up_hosts() -> dict[str, Any]:
    """Sets the hosts up as the lab does; the tuner's own functions set offloads and bursts."""
    answers = {}
    for port, host in HOSTS.items():
        run("ip", "netns", "add", host)
        run("ip", "link", "set", f"bsw{port}", "netns", host, "name", "eth0", "mtu", 9000)
        run("ip", "-n", host, "link", "set", "eth0", "addrgenmode", "none")  # IPv6 sends nothing by itself then
        run("ip", "-n", host, "address", "add", f"{addr(port)}/24", "dev", "eth0")
        run("ip", "-n", host, "link", "set", "eth0", "up")
        for other in HOSTS:
            if other != port:
                run("ip", "-n", host, "neighbour", "add", addr(other), "lladdr", mac(other), "dev", "eth0")

        def tune_interface() -> list[str]:
            options = argparse.Namespace(interface=["eth0"], offloads="off")
            for _, wanted in tune.plan_offloads(options, {}).values():
                offloads.switch("eth0", wanted)
            bursts.write("eth0", 1)
            return [name for name, offload in offloads.read("eth0").items() if offload.on]

        on = inside(host, tune_interface)
        driver = run("ip", "netns", "exec", host, "ethtool", "-i", "eth0").splitlines()
        time.sleep(1.1)  # old kernels (6.1) report a new link state only once per second
        answers[host] = {"on": on, "driver": driver, "link": link(port)}
    return answers


def same_requests() -> list[list[str]]:
    """For each of REQUESTS: request, reply of the process, reply of the driver. Must come first in a fresh driver."""
    run("ip", "netns", "add", "process")
    for port in HOSTS:
        names = "name", f"port{port}", "type", "veth", "peer", "name", f"peer{port}"
        run("ip", "-n", "process", "link", "add", *names)
        for name in names[1], names[-1]:
            run("ip", "-n", "process", "link", "set", name, "addrgenmode", "none")
            run("ip", "netns", "exec", "process", "ethtool", "-K", name, "tso", "off", "gso", "off", "gro", "off")
    sizes = "packets", "frame_bytes", "rate_entries"
    size = [word for name in sizes for word in (f"--{name.replace('_', '-')}", booted(name))]
    ports = [word for port in HOSTS for word in ("--port", f"{port}=port{port}")]
    command = ["ip", "netns", "exec", "process", str(BUILD / "softswitch"), "--no-watch", "--no-boost", *size]
    process = subprocess.Popen([*command, "--control", "/run/switch.sock", *ports], stdout=subprocess.PIPE)
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    replies = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as first, Device() as other:
        first.connect("/run/switch.sock")
        for request in REQUESTS:
            first.send(request)
            reply = first.recv(1 << 20).decode()
            replies.append([request.decode(errors="replace"), reply, other.exchange(request).decode()])
    process.terminate()
    assert process.wait(5) == 0
    return replies


def booted(name: str) -> str:
    return Path(f"/sys/module/bufferscope_switch/parameters/{name}").read_text().strip()


class Device:
    """The control device as bytes."""

    def __init__(self) -> None:
        self.file = os.open(DEVICE, os.O_RDWR)

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.file)

    def exchange(self, request: bytes) -> bytes:
        assert os.write(self.file, request) == len(request)
        return os.read(self.file, 1 << 20)


def device_habits() -> dict[str, Any]:
    """Short reads, replies left unread, two clients, garbage."""
    rng = random.Random(4)
    with Device() as first, Device() as other:
        result: dict[str, Any] = {"before": os.read(first.file, 100).decode(), "empty": os.write(first.file, b"")}
        whole = first.exchange(b"port show 1")
        os.write(first.file, b"port show 1")
        pieces = b""
        while piece := os.read(first.file, 7):
            pieces += piece
        result["pieces"] = pieces == whole
        os.write(first.file, b"stats")
        result["unread"] = first.exchange(b"port show 1") == whole
        os.write(first.file, b"program")
        same_reply = other.exchange(b"port show 1") == whole
        result["other"] = same_reply and os.read(first.file, 1 << 20).startswith(b"ok\nname")
        garbage = (rng.randbytes(rng.randrange(1, 200)) for _ in range(500))
        result["garbage"] = sum(other.exchange(request).startswith(b"error ") for request in garbage)
    return result


def realtime_ns(ancillary: list[tuple[int, int, bytes]]) -> int:
    """The kernel's stamp in a message's ancillary data: the time of its receipt or transmission."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind in (SO_TIMESTAMPNS, SO_TIMESTAMPING):
            seconds, ns = TIMESPECS.unpack_from(data)
            return seconds * 10**9 + ns
    raise AssertionError(ancillary)


def ping(payloads: tuple[int, ...]) -> list[int]:
    """The RTT (ns) of one ICMP echo for each (even) payload length, from the transmit stamp to the receive stamp."""

    def open_socket() -> socket.socket:
        opened = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        opened.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        opened.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, TX_SOFTWARE | SOFTWARE | TSONLY)
        opened.settimeout(5)
        return opened

    rtts = []
    with inside(HOSTS[1], open_socket) as opened:
        for number, payload in enumerate(payloads):
            head, rest = struct.pack(">BBHHH", 8, 0, 0, 1, number), bytes(payload)
            packet = head[:2] + struct.pack(">H", internet_checksum(head + rest)) + head[4:] + rest
            opened.sendto(packet, (addr(2), 0))
            sent_ns = realtime_ns(opened.recvmsg(1, 512, SOL_IP_RECVERR)[1])
            reply, ancillary, _, _ = opened.recvmsg(65536, 512)
            assert reply[20] == 0, reply
            rtts.append(realtime_ns(ancillary) - sent_ns)
    return rtts


def udp_socket(port: int, bound: int) -> socket.socket:
    def open_socket() -> socket.socket:
        opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        opened.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        opened.setsockopt(socket.SOL_SOCKET, 33, 32 << 20)  # SO_RCVBUFFORCE
        opened.bind((addr(port), bound))
        opened.settimeout(0.2)
        return opened

    return inside(HOSTS[port], open_socket)


def drain(opened: socket.socket) -> list[tuple[bytes, int]]:
    """(payload, receive stamp) of everything that arrives, until nothing arrives for 0.2 s."""
    result: list[tuple[bytes, int]] = []
    while True:
        try:
            payload, ancillary, _, _ = opened.recvmsg(65536, 512)
        except TimeoutError:
            return result
        result.append((payload, realtime_ns(ancillary)))


def links(switch: SoftSwitch, rate_bps: int, delay_ns: int) -> None:
    """The bottleneck is port 2; the way back has half its delay."""
    for port in HOSTS:
        switch.set_forwarding(mac(port), port)
    switch.set_port(1, rate=10_000_000_000, delay=delay_ns // 2)
    switch.set_port(2, rate=rate_bps, delay=delay_ns)
    switch.set_collector(Collector(3, "02:bf:00:00:01:03", mac(3), "10.78.0.1", addr(3), 5577, 5577))
    switch.set_postcards(2, 7)


def burst(switch: SoftSwitch) -> dict[str, Any]:
    """30 datagrams at once to a queue of 10 packets: the frames at receiver and collector, with times."""
    links(switch, 100_000_000, 1_000_000)
    switch.set_policy(2, TailDrop(10))
    with udp_socket(1, 9) as sender, udp_socket(2, 9) as receiver, udp_socket(3, 5577) as collector:
        for number in range(30):
            sender.sendto(bytes([number]) + bytes(957), (addr(2), 9))
        received, cards = drain(receiver), drain(collector)
    return {
        "received": [(payload[0], ns) for payload, ns in received],
        "cards": [POSTCARD.decode(payload) | {"rx_ns": ns} for payload, ns in cards],
    }


def overload(switch: SoftSwitch) -> dict[str, Any]:
    """More frames at once than the pool holds, none of them dropped by the queue."""
    switch.set_postcards(2, None)
    switch.set_policy(2, TailDrop(1_000_000))
    switch.set_port(2, rate=10_000_000)
    before, sent = switch.stats()["pool_exhausted"], link(1)["stats64"]["tx"]
    with udp_socket(1, 9) as sender:
        for _ in range(1000):
            sender.sendto(bytes(958), (addr(2), 9))
    time.sleep(2)
    tx = link(1)["stats64"]["tx"]
    return {
        "refused": switch.stats()["pool_exhausted"] - before,
        "sent": tx["packets"] - sent["packets"], "dropped": tx["dropped"] - sent["dropped"],
    }  # fmt: skip


def down(switch: SoftSwitch) -> dict[str, int]:
    """A frame to a host whose device is down."""
    run("ip", "-n", HOSTS[3], "link", "set", "eth0", "down")
    with udp_socket(1, 9) as sender:
        sender.sendto(b"x", (addr(3), 9))
    time.sleep(0.1)
    run("ip", "-n", HOSTS[3], "link", "set", "eth0", "up")
    stats = switch.stats()
    return {name: stats[f"port.3.{name}"] for name in ("departed", "tx_frames", "tx_errors", "tx_last_errno")}


def experiments() -> dict[str, Any]:
    result: dict[str, Any] = {"same_requests": same_requests(), "hosts": set_up_hosts(), "device": device_habits()}
    with SoftSwitch(DEVICE) as switch:
        result["program"] = switch.about()
        links(switch, 1_000_000_000, 2_000_000)
        result["ping"] = ping((56, 8000, 56, 1000))
        result["burst"] = burst(switch)
        result["overload"] = overload(switch)
        result["down"] = down(switch)
        result["stats"] = switch.stats()
        result["lateness"] = {port: switch.lateness(port) for port in HOSTS}
        result["links"] = {port: link(port)["stats64"] for port in HOSTS}
    return result


def without_switch() -> dict[str, Any]:
    try:
        SoftSwitch(DEVICE).close()
    except SwitchError as error:
        cause = error.__cause__
        assert isinstance(cause, OSError)
        return {"errno": errno.errorcode[cause.errno or 0], "says": str(error), "links": run("ip", "link")}
    return {}


def main() -> None:
    time.sleep(0.1)  # until its first tick a kernel's timers are as coarse as its ticks
    try:
        result = experiments() if Path("/sys/class/net/bsw1").exists() else without_switch()
    except BaseException:
        result = {"failed": traceback.format_exc()}
    (RUN_DIRECTORY / "output").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
