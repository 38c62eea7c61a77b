# SPDX-License-Identifier: MIT
"""Runs inside the kernel that the tests boot, and records times and everything that could be random.

virtual.init runs this module as its job. It writes observed.json to the job's directory.
"""

import ctypes
import hashlib
import itertools
import json
import os
import socket
import struct
import subprocess
import time
from pathlib import Path

from virtual import RUN_DIRECTORY

CLONE_NEWNET = 0x40000000  # include/uapi/linux/sched.h
ETH_P_ALL = 3  # include/uapi/linux/if_ether.h
DELAYS_NS = (2, 3, 7, 10, 101, 1_000, 12_345, 1_000_003, 10_000_019, 1_234_567_891)

libc = ctypes.CDLL(None, use_errno=True)


class Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


class Itimerspec(ctypes.Structure):
    _fields_ = [("interval", Timespec), ("value", Timespec)]


def timer_late_ns(delay_ns: int) -> int:
    """The lateness of a timer, by the next reading of the clock."""
    timer = libc.timerfd_create(time.CLOCK_MONOTONIC, 0)
    due_ns = time.monotonic_ns() + delay_ns
    spec = Itimerspec(Timespec(0, 0), Timespec(*divmod(due_ns, 10**9)))
    assert libc.timerfd_settime(timer, 1, ctypes.byref(spec), None) == 0  # TFD_TIMER_ABSTIME
    os.read(timer, 8)
    now_ns = time.monotonic_ns()
    os.close(timer)
    return now_ns - due_ns


def times() -> dict[str, object]:
    """Readings of the clock, lateness of timers, and a sleep while another process sleeps."""
    time.sleep(0.03)  # the first tick, some ms after the boot, switches timers from jiffies to ns
    readings = [time.monotonic_ns() for _ in range(100)]
    late = [timer_late_ns(delay) for delay in DELAYS_NS]
    begin_ns = time.monotonic_ns()
    if os.fork() == 0:
        time.sleep(0.001)
        os._exit(0)
    time.sleep(0.0123456789)
    slept_ns = time.monotonic_ns() - begin_ns
    os.wait()
    return {"steps_ns": sorted({b - a for a, b in itertools.pairwise(readings)}), "late_ns": late,
            "slept_ns": slept_ns}  # fmt: skip


def memory_taken_kib(calls: int) -> int:
    """Memory still taken after many system calls of a program that never waits. RCU must free the sockets meanwhile."""

    def free_kib() -> int:
        text = Path("/proc/meminfo").read_text()
        return int(text.split("MemFree:")[1].split()[0])

    before_kib = free_kib()
    for _ in range(calls):
        socket.socket().close()
    return before_kib - free_kib()


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def traffic() -> dict[str, object]:
    """A digest of all frames of a TCP connection over a veth to another namespace, with their time stamps in ns."""
    ready, go = os.pipe(), os.pipe()
    server = os.fork()
    if server == 0:
        assert libc.unshare(CLONE_NEWNET) == 0
        os.write(ready[1], b"1")
        os.read(go[0], 1)
        for words in ("addr add 10.9.0.2/24 dev right", "link set right up"):
            run("ip", *words.split())
        with socket.create_server(("10.9.0.2", 5001)) as listening:
            os.write(ready[1], b"2")
            connection, _ = listening.accept()
            while connection.recv(65536):
                pass
        os.write(ready[1], b"3")
        os.read(go[0], 1)  # keeps the namespace, and so both ends of the link, until the tap is read
        os._exit(0)
    os.read(ready[0], 1)
    run("ip", "link", "add", "left", "type", "veth", "peer", "name", "right")
    run("ip", "link", "set", "right", "netns", str(server))
    run("ip", "addr", "add", "10.9.0.1/24", "dev", "left")
    run("ip", "link", "set", "left", "up")
    links = run("ip", "-o", "link")
    os.write(go[1], b"1")
    os.read(ready[0], 1)
    digest = hashlib.sha256()
    frames = 0
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as tap:
        tap.bind(("left", 0))
        tap.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
        tap.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
        with socket.create_connection(("10.9.0.2", 5001)) as client:
            port = client.getsockname()[1]
            client.sendall(os.urandom(1 << 20))
        os.read(ready[0], 1)
        tap.setblocking(False)
        while True:
            try:
                data, ancillary, _, _ = tap.recvmsg(1 << 16, 64)
            except BlockingIOError:
                break
            frames += 1
            digest.update(struct.pack("<I", len(data)) + data + ancillary[0][2])
        lost = struct.unpack("II", tap.getsockopt(263, 6, 8))[1]  # SOL_PACKET, PACKET_STATISTICS
    os.write(go[1], b"2")
    os.waitpid(server, 0)
    return {"links": links, "port": port, "frames": frames, "lost": lost, "sha256": digest.hexdigest()}


def main() -> None:
    observed = {
        "times": times(),
        "random": os.urandom(32).hex(),
        "addresses": Path("/proc/self/maps").read_text(),
        "hash": run("python3", "-c", "print(hash('seed'), id(object()), __import__('os').getpid())"),
        "traffic": traffic(),
        "memory_taken_kib": memory_taken_kib(30_000),
        "pid": os.getpid(),
        "end_ns": time.monotonic_ns(),
        "log": run("dmesg"),
        "release": os.uname().release,
    }
    result = subprocess.run([str(RUN_DIRECTORY / "registers")], capture_output=True, text=True)
    observed["registers"] = {"status": result.returncode, "output": result.stdout + result.stderr}
    (RUN_DIRECTORY / "observed.json").write_text(json.dumps(observed, indent=1))


if __name__ == "__main__":
    main()
