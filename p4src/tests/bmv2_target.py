# SPDX-License-Identifier: MIT
"""BMv2's simple_switch with the committed JSON. Its ports are veths in a network namespace of its own."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import time
from pathlib import Path

from controlplane import bmv2_client, targets
from controlplane.bmv2 import Bmv2Switch
from controlplane.switch import SwitchError
from lib import syscalls
from lib.tests.namespace import inside
from p4src.tests.packet_ports import PacketPorts
from p4src.tests.realtime_target import MARKER_PORT, RealTimeSwitch
from p4src.tests.under_test import COLLECTOR_PORT, RECEIVER_PORT, SENDER_PORT

ROOT = Path(__file__).resolve().parents[2]
JSON = ROOT / "p4src/build/bufferscope.json"
PORTS = (SENDER_PORT, RECEIVER_PORT, COLLECTOR_PORT, MARKER_PORT)
THRIFT_PORT = 9090
MTU_BYTES = 9600
START_S = 60.0
_numbers = itertools.count()  # one for each switch of this process: the names of namespaces must differ


def why_not() -> str | None:
    """Why this machine cannot run BMv2. None: it can."""
    if shutil.which("simple_switch") is None:
        return "no simple_switch on the PATH (make deploy TARGET=bmv2)"
    if os.geteuid() != 0:
        return "needs root, for a network namespace"
    try:
        bmv2_client.load_packages()
    except SwitchError as error:
        return str(error)
    return None


class Bmv2(RealTimeSwitch):
    """A running simple_switch; close() ends it and removes its namespace."""

    min_frame_bytes = 14  # veths refuse shorter frames
    most_unsettled = 16  # simple_switch's capture ring of each port holds 32 frames; further frames are lost silently
    control: Bmv2Switch

    def __init__(self, log: Path) -> None:
        self._log = log
        self._namespace = f"suite{os.getpid()}n{next(_numbers)}"
        self._process: subprocess.Popen[bytes] | None = None
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            self._make_ports()
            self._start()
            self.ports = inside(self._namespace, lambda: PacketPorts({port: f"host{port}" for port in PORTS}))
            self.control = self._connect()
            undo.pop_all()

    def restart(self) -> Bmv2:
        """Clears tables, registers, counters and the mirror session, and configures the switch again."""
        self.control.reset()
        self.start()
        return self

    def preset(self, register: str, value: int, port: int = RECEIVER_PORT) -> None:
        self.control.set_register(register, port, value)

    def close(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        subprocess.run(["ip", "netns", "delete", self._namespace], capture_output=True)

    def _make_ports(self) -> None:
        _run("ip", "netns", "add", self._namespace)
        inside = ("ip", "netns", "exec", self._namespace)
        _run(*inside, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
        _run("ip", "-n", self._namespace, "link", "set", "lo", "up")
        for port in PORTS:
            names = (f"port{port}", f"host{port}")
            peer = ("type", "veth", "peer", "name", names[1], "mtu", MTU_BYTES)
            _run("ip", "-n", self._namespace, "link", "add", names[0], "mtu", MTU_BYTES, *peer)
            for name in names:
                _run("ip", "-n", self._namespace, "link", "set", name, "up")

    def _start(self) -> None:
        interfaces = [word for port in PORTS for word in ("-i", f"{port}@port{port}")]
        command = ["ip", "netns", "exec", self._namespace, "simple_switch", *interfaces]
        # The default in /tmp is shared by all switches of the machine.
        notifications = ("--notifications-addr", f"ipc://{self._log.with_name('notifications.ipc')}")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "--thrift-port", str(THRIFT_PORT), *notifications, JSON],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=syscalls.die_with_parent,
            )

    def _connect(self) -> Bmv2Switch:
        end = time.monotonic() + START_S
        while True:
            assert self._process is not None
            assert self._process.poll() is None, f"simple_switch ended: {self._log.read_text(errors='replace')}"
            try:
                switch = inside(self._namespace, lambda: targets.connect("bmv2", f"127.0.0.1:{THRIFT_PORT}"))
                assert isinstance(switch, Bmv2Switch)
                return switch
            except SwitchError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)


def _run(*words: object) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
