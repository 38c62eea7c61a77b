# SPDX-License-Identifier: MIT
"""Namespaces and veths around a real switch process, for the tests that need root."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

from controlplane.soft import SoftSwitch
from hosts.tests.patience import SECONDS
from lib.tests.namespace import inside

from .core_driver import BUILD, make

MTU_BYTES = 9000
SWITCH = "switch"
HOSTS = {1: "sender", 2: "receiver", 3: "collector"}
OFFLOADS = ("tso", "gso", "gro", "tx", "rx")
ETH_P_ALL = 3
SOL_PACKET, PACKET_IGNORE_OUTGOING, PACKET_AUXDATA = 263, 23, 8


def mac(port: int) -> str:
    return f"02:bf:00:00:00:{port:02x}"


def run(*words: object) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


class Lab:
    """Hosts 1, 2 and 3, each a namespace with one veth. The veth's other end is portN in the switch's namespace."""

    def __init__(self) -> None:
        self.names = {name: f"softswitch{os.getpid()}{name}" for name in (SWITCH, *HOSTS.values())}
        try:
            for name in self.names.values():
                run("ip", "netns", "add", name)
            for port, host in HOSTS.items():
                self._connect(port, self.names[host])
        except BaseException:
            self.close()
            raise

    def _connect(self, port: int, host: str) -> None:
        switch = self.names[SWITCH]
        peer = ("peer", "name", "eth0", "netns", host, "mtu", MTU_BYTES, "address", mac(port))
        run("ip", "-n", switch, "link", "add", f"port{port}", "mtu", MTU_BYTES, "type", "veth", *peer)
        for namespace, interface in ((switch, f"port{port}"), (host, "eth0")):
            run("ip", "netns", "exec", namespace, "sysctl", "-qw", f"net.ipv6.conf.{interface}.disable_ipv6=1")
            offloads = [word for name in OFFLOADS for word in (name, "off")]
            run("ip", "netns", "exec", namespace, "ethtool", "-K", interface, *offloads)
            run("ip", "-n", namespace, "link", "set", interface, "up")

    def close(self) -> None:
        for name in self.names.values():
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)

    def packet_socket(self, port: int) -> socket.socket:
        def open_socket() -> socket.socket:
            opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            opened.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            opened.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
            opened.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
            opened.bind(("eth0", ETH_P_ALL))
            opened.settimeout(SECONDS)
            return opened

        return inside(self.names[HOSTS[port]], open_socket)

    def received_frames(self, port: int) -> int:
        """The number of frames that the host's interface has received."""
        link = json.loads(run("ip", "-n", self.names[HOSTS[port]], "-s", "-j", "link", "show", "eth0"))
        return link[0]["stats64"]["rx"]["packets"]

    def promiscuity(self, port: int) -> int:
        link = json.loads(run("ip", "-n", self.names[SWITCH], "-d", "-j", "link", "show", f"port{port}"))
        return link[0]["promiscuity"]

    def set_offload(self, port: int, name: str, on: bool) -> None:
        run("ip", "netns", "exec", self.names[SWITCH], "ethtool", "-K", f"port{port}", name, "on" if on else "off")


class Switch:
    """A running build/softswitch; use it in a with statement."""

    def __init__(self, lab: Lab, *options: str, directory: Path | None = None) -> None:
        self._own = tempfile.TemporaryDirectory()
        self.control_path = Path(directory or self._own.name) / "switch.sock"
        self.process = subprocess.Popen(
            [*command(lab), "--control", self.control_path, *ports(), *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def wait_ready(self) -> Switch:
        output = self.process.stdout
        assert output
        readable, _, _ = select.select([output], [], [], SECONDS)
        assert readable, "switch is silent"
        line = output.readline()
        assert line == "ready\n", self.process.communicate(timeout=SECONDS)
        return self

    def __enter__(self) -> Switch:
        return self.wait_ready()

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self._own.cleanup()

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Exit status and stderr after a signal."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, errors

    def client(self) -> SoftSwitch:
        return SoftSwitch(self.control_path)


def command(lab: Lab) -> list[str]:
    return ["ip", "netns", "exec", lab.names[SWITCH], str(BUILD / "softswitch")]


def ports() -> list[str]:
    return [word for port in HOSTS for word in ("--port", f"{port}=port{port}")]


def build() -> None:
    make("all")
