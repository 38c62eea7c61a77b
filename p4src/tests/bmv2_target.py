# SPDX-License-Identifier: MIT
"""BMv2's simple_switch with a compiled program. Its ports are veths in a network namespace of its own."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from controlplane import bmv2_client
from controlplane.bmv2 import Bmv2Switch
from controlplane.switch import SwitchError
from lib import syscalls
from lib.tests.namespace import inside
from p4src.tests.packet_ports import PacketPorts

ROOT = Path(__file__).resolve().parents[2]
JSON = ROOT / "p4src/build/bufferscope.json"
PORTS = (1, 2, 3, 4)
ADDRESS = "127.0.0.1:9090"
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


class Bmv2:
    """A running simple_switch; use it in a with statement. The switch's port N is portN; `ports` are the other ends."""

    ports: PacketPorts
    control: Bmv2Switch

    def __init__(self, program: Path = JSON) -> None:
        self._program = program
        self._directory = tempfile.TemporaryDirectory()
        self._namespace = f"suite{os.getpid()}n{next(_numbers)}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Bmv2:
        try:
            self._make_ports()
            self.ports = inside(self._namespace, lambda: PacketPorts({port: f"host{port}" for port in PORTS}))
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        subprocess.run(["ip", "netns", "delete", self._namespace], capture_output=True)
        self._directory.cleanup()

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

    def start(self) -> None:
        """Runs simple_switch and waits until it answers."""
        interfaces = [word for port in PORTS for word in ("-i", f"{port}@port{port}")]
        command = ["ip", "netns", "exec", self._namespace, "simple_switch", *interfaces]
        command += ["--thrift-port", ADDRESS.rpartition(":")[2]]
        # The default in /tmp is shared by all switches of the machine.
        command += ["--notifications-addr", f"ipc://{self._directory.name}/notifications.ipc", str(self._program)]
        log_path = Path(self._directory.name, "log")
        with log_path.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=self._directory.name, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                preexec_fn=syscalls.die_with_parent,
            )  # fmt: skip
        end = time.monotonic() + START_S
        while True:
            assert self._process.poll() is None, f"simple_switch ended: {log_path.read_text(errors='replace')}"
            try:
                self.control = self.client()
                return
            except SwitchError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None

    def client(self) -> Bmv2Switch:
        return inside(self._namespace, lambda: Bmv2Switch(ADDRESS))


def _run(*words: object) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
