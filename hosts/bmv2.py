# SPDX-License-Identifier: MIT
"""Runs BMv2's simple_switch as a program of a run: `python -m hosts.bmv2 --json FILE --thrift-port N --port 1=eth0`.

simple_switch does not report when its control plane is reachable, and has no handler for SIGTERM. This program prints
`ready` when the Thrift port answers; on SIGTERM it ends simple_switch and exits with 0. If simple_switch ends by
itself, this program reports the status and exits with 1. A queue is only as punctual as simple_switch's threads. So
simple_switch gets timers without slack, a high priority and a short time slice, as our soft switch does. Standard
library only, for remote hosts.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import platform
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

PR_SET_PDEATHSIG, PR_SET_TIMERSLACK = 1, 29  # include/uapi/linux/prctl.h
SYS_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
SCHED_ATTR = struct.Struct(
    "=IIQiIQQQ"
)  # size, policy, flags, nice, priority, runtime, deadline, period: sched_setattr(2)
NICE, SLICE_NS = -15, 100_000  # lower priority than the delay line (nice -20), which needs less CPU and must not wait
POLL_S = 0.05
READY_S = 8.0
END_S = 5.0  # from SIGTERM to SIGKILL
PORT = re.compile(r"([0-9]{1,3})=([^/\s@]{1,15})")  # interface names: dev_valid_name of the kernel

SUMMARY = (__doc__ or "").split("\n", 1)[0]


class Stopped(Exception):
    """SIGTERM or SIGINT arrived."""


def command(program: str, json: Path, thrift_port: int, ports: list[str], runtime_dir: Path) -> list[str]:
    """The arguments of simple_switch. A build with notifications gets a notification socket in `runtime_dir`, because
    the default is one socket in /tmp for the whole machine.
    """
    interfaces = [word for port in ports for word in ("--interface", port.replace("=", "@"))]
    usage = subprocess.run([program, "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    option = "--notifications-addr"
    notifications = [option, f"ipc://{runtime_dir}/simple_switch-notifications.ipc"] if option in usage.stdout else []
    return [program, *interfaces, "--thrift-port", str(thrift_port), *notifications, str(json)]


def problem(program: str, json: Path, ports: list[str]) -> str | None:
    """The reason why simple_switch cannot start, if simple_switch itself would report it badly; else None."""
    if shutil.which(program) is None:
        return f"{program} is not on the PATH: make deploy TARGET=bmv2 installs it or says how to get it"
    if not os.access(json, os.R_OK):
        return f"{json}: the compiled program cannot be read: deploy first (make deploy TARGET=bmv2)"
    for port in ports:
        match = PORT.fullmatch(port)
        if not match or int(match[1]) > 510:
            return f"--port {port}: allowed is NUMBER=INTERFACE with a number of 0 to 510, as in 1=eth0"
        if match[2] not in {name for _, name in socket.if_nameindex()}:
            return f"--port {port}: there is no interface {match[2]} here"
    return None


def answers(port: int) -> bool:
    """Whether something listens on `port` of this host."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def run(argv: list[str], thrift_port: int, boost: bool = True) -> str | None:
    """Runs simple_switch until SIGTERM or SIGINT. Returns an error message, or None."""
    if answers(thrift_port):
        return f"TCP port {thrift_port} is taken already: does another simple_switch run here?"
    # Standard output is reserved for the line `ready`, so simple_switch prints to standard error.
    switch = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=sys.stderr, preexec_fn=_boosted if boost else _end_with_parent
    )
    try:
        deadline = time.monotonic() + READY_S
        while switch.poll() is None and not answers(thrift_port):
            if time.monotonic() > deadline:
                return f"simple_switch did not answer on TCP port {thrift_port} within {READY_S:g} s"
            time.sleep(POLL_S)
        if switch.poll() is None:
            print("ready", flush=True)
        return f"simple_switch ended by itself ({_how(switch.wait())})"
    except Stopped:
        return None
    finally:
        _end(switch)


def _end(switch: subprocess.Popen[bytes]) -> None:
    if switch.poll() is not None:
        return
    switch.terminate()
    try:
        switch.wait(END_S)
    except subprocess.TimeoutExpired:
        switch.kill()
        switch.wait()


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _boosted() -> None:
    """Best effort: without CAP_SYS_NICE, or on another architecture, only the timer slack changes."""
    _end_with_parent()
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    number = SYS_SCHED_SETATTR.get(platform.machine())
    if number:
        libc.syscall(number, 0, SCHED_ATTR.pack(SCHED_ATTR.size, 0, 0, NICE, 0, SLICE_NS, 0, 0), 0)


def _how(status: int) -> str:
    return f"status {status}" if status >= 0 else f"killed by {signal.Signals(-status).name}"


def _stop(number: int, frame: FrameType | None) -> None:
    raise Stopped


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m hosts.bmv2", description=SUMMARY)
    parser.add_argument("--program", default="simple_switch")
    parser.add_argument("--json", type=Path, required=True, help="the compiled P4 program")
    parser.add_argument("--thrift-port", type=int, required=True)
    parser.add_argument("--runtime-dir", type=Path, required=True, help="directory for the notification socket")
    parser.add_argument("--port", action="append", default=[], metavar="NUMBER=INTERFACE")
    parser.add_argument("--no-boost", action="store_true", help="leave priority, slice and timer slack as they are")
    options = parser.parse_args(arguments)
    error = problem(options.program, options.json, options.port)
    if error is None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _stop)
        argv = command(options.program, options.json, options.thrift_port, options.port, options.runtime_dir)
        error = run(argv, options.thrift_port, not options.no_boost)
    if error:
        print(f"bmv2: {error}", file=sys.stderr, flush=True)
    return 1 if error else 0


if __name__ == "__main__":
    sys.exit(main())
