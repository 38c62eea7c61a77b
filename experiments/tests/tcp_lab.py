# SPDX-License-Identifier: MIT
"""A program for the virtual-time kernel: two hosts around the switch driver, tuned as in a run, with one set of TCP
options after the other. Writes JSON that test_tcp_options.py checks: the packets at the sender's interface, the hosts'
routes after the last set, and the frames lost in a device that goes down.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from controlplane.soft import SoftSwitch
from softswitch.tests.driver_lab import addr, inside, mac, run

HOSTS = {1: "sender", 2: "receiver"}
SO_RCVBUFFORCE, SO_TIMESTAMPNS, ETH_P_ALL, SACK_PERMITTED = 33, 35, 3, 4
DELAY_NS, RATE_BPS = 10_000_000, 10_000_000
FRAME_BYTES = 1514
LONG_BYTES = 300_000
# A burst whose last two segments meet a full queue. If only one were lost, TLP would also wait for a delayed ACK.
SHORT_SEGMENTS, SHORT_QUEUE = 6, 4
LATER_S = 0.01  # after this time the queue is empty again, and no ACK has arrived yet
LOSSY_QUEUE, FAST_BPS = 20, 10 * RATE_BPS  # gaps between packets are shorter than the timer of compressed ACKs

# The order matters: each case has to undo the settings of the case before it.
CASES: dict[str, list[str]] = {
    "paper": ["initcwnd=2", "acks=each", "sack=off", "rack=off", "tlp=off", "frto=off", "comp_sack_nr=0"],
    "linux": [],
    "initcwnd": ["initcwnd=3"],
    "acks": ["acks=each"],
    "tlp": ["tlp=off"],
    "rack": ["tlp=off", "rack=off"],
    "comp_sack": ["comp_sack_nr=0"],
    "again": [],
}


def set_up(switch: SoftSwitch) -> None:
    for port, host in HOSTS.items():
        run("ip", "netns", "add", host)
        run("ip", "link", "set", f"bsw{port}", "netns", host, "name", "eth0")
        run("ip", "-n", host, "link", "set", "eth0", "addrgenmode", "none")
        run("ip", "-n", host, "address", "add", f"{addr(port)}/24", "dev", "eth0")
        run("ip", "-n", host, "link", "set", "eth0", "up")
        for other in HOSTS.keys() - {port}:
            run("ip", "-n", host, "neighbour", "add", addr(other), "lladdr", mac(other), "dev", "eth0")
        switch.set_port(port, rate=RATE_BPS if port == 2 else 0, delay=DELAY_NS)
        switch.set_forwarding(mac(port), port)


def tune(host: str, options: list[str]) -> None:
    words = [word for option in options for word in ("--tcp", option)]
    run("ip", "netns", "exec", host, sys.executable, "-m", "hosts.tune.tune", "apply", "--state", f"/run/{host}.json",
        "--interface", "eth0", *words)  # fmt: skip


def open_capture() -> socket.socket:
    capture = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    capture.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    capture.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    capture.setblocking(False)
    return capture


def exchange(data_bytes: int, later_bytes: int = 0) -> list[dict[str, Any]]:
    """Sends `data_bytes` at once on a new connection, `later_bytes` after LATER_S. Returns the connection's packets at
    the sender's interface.
    """
    server = inside("receiver", lambda: socket.create_server((addr(2), 0)))
    client = inside("sender", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    with inside("sender", open_capture) as capture, server, client:
        client.connect(server.getsockname())
        client_port = client.getsockname()[1]
        accepted, _ = server.accept()
        time.sleep(1)
        sender = threading.Thread(target=client.sendall, args=(bytes(data_bytes),))
        sender.start()
        time.sleep(LATER_S)
        if later_bytes:
            client.sendall(bytes(later_bytes))
        received = 0
        with accepted:
            while received < data_bytes + later_bytes:
                received += len(accepted.recv(1 << 20))
            sender.join()
            time.sleep(1)
            packets = []
            while packet := next_packet(capture):
                packets.append(packet)
    return [packet for packet in packets if client_port in packet.pop("ports")]  # not those of the previous connection


def next_packet(capture: socket.socket) -> dict[str, Any] | None:
    try:
        frame, ancillary, _, (_, _, kind, _, _) = capture.recvmsg(2048, 256)
    except BlockingIOError:
        return None
    seconds, ns = struct.unpack("qq", ancillary[0][2])
    total = struct.unpack_from(">H", frame, 16)[0]
    header = 14 + (frame[14] & 15) * 4
    tcp_bytes = (frame[header + 12] >> 4) * 4
    return {
        "ns": seconds * 10**9 + ns,
        "sent": kind == socket.PACKET_OUTGOING,
        "syn": bool(frame[header + 13] & 2),
        "ports": struct.unpack_from(">HH", frame, header),
        "seq": struct.unpack_from(">I", frame, header + 4)[0],
        "data_bytes": 14 + total - header - tcp_bytes,
        "options": option_kinds(frame[header + 20 : header + tcp_bytes]),
    }


def option_kinds(options: bytes) -> list[int]:
    kinds, at = [], 0
    while at < len(options) and options[at]:
        if options[at] != 1:
            kinds.append(options[at])
        at += 1 if options[at] == 1 else options[at + 1]
    return kinds


def work() -> dict[str, Any]:
    switch = SoftSwitch("/dev/bufferscope-switch")
    set_up(switch)
    answers: dict[str, Any] = {}
    for name, options in CASES.items():
        for host in HOSTS.values():
            tune(host, options)
        switch.set_port(2, rate=RATE_BPS, limit_packets=0)
        long = exchange(LONG_BYTES)
        mss_bytes = max(packet["data_bytes"] for packet in long)
        switch.set_port(2, limit_packets=SHORT_QUEUE)
        tail = exchange(SHORT_SEGMENTS * mss_bytes)
        middle = exchange(SHORT_SEGMENTS * mss_bytes, later_bytes=mss_bytes)
        switch.set_port(2, rate=FAST_BPS, limit_packets=LOSSY_QUEUE)
        answers[name] = {"long": long, "tail": tail, "middle": middle, "lossy": exchange(LONG_BYTES)}
    routes = [run("ip", "-n", host, "route", "show").split() for host in HOSTS.values()]
    for host in HOSTS.values():
        run(
            "ip", "netns", "exec", host, sys.executable, "-m", "hosts.tune.tune", "undo", "--state", f"/run/{host}.json"
        )
    switch.set_port(2, rate=0, limit_packets=0)
    time.sleep(2)  # until the last connection has closed
    return {"cases": answers, "routes": routes, "moderation": moderation()}


def dropped() -> int:
    return int(
        json.loads(run("ip", "-n", "receiver", "-s", "-j", "link", "show", "eth0"))[0]["stats64"]["rx"]["dropped"]
    )


def moderation() -> dict[str, Any]:
    """Sends a datagram that waits for its interrupt when the receiver's device goes down, and another datagram when the
    device is up again.
    """
    sender = inside("sender", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    receiver = inside("receiver", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    with sender, receiver:
        receiver.bind((addr(2), 0))
        receiver.settimeout(1)
        run("ip", "netns", "exec", "receiver", "ethtool", "-C", "eth0", "rx-usecs", 100_000)
        before = dropped()
        sender.sendto(b"lost", receiver.getsockname())
        time.sleep(DELAY_NS / 1e9 + 0.02)
        run("ip", "-n", "receiver", "link", "set", "eth0", "down")
        run("ip", "-n", "receiver", "link", "set", "eth0", "up")
        run("ip", "-n", "receiver", "neighbour", "replace", addr(1), "lladdr", mac(1), "dev", "eth0")
        sender.sendto(b"next", receiver.getsockname())
        after = receiver.recv(100).decode()
    refused = subprocess.run(
        ["ip", "netns", "exec", "receiver", "ethtool", "-C", "eth0", "rx-usecs", "100001"], capture_output=True
    )
    return {"after": after, "dropped": dropped() - before, "refused": refused.returncode != 0}


def main(output: Path) -> None:
    try:
        found = work()
    except BaseException:
        found = {"failed": traceback.format_exc()}
    output.write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    os.sync()
