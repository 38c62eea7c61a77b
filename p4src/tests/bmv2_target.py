# SPDX-License-Identifier: MIT
"""BMv2's simple_switch with a compiled program. Its ports are veths in a network namespace of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from controlplane import bmv2_client
from controlplane.bmv2 import Bmv2Switch
from controlplane.switch import SwitchError
from lib import syscalls
from lib.tests.namespace import inside
from p4src.tests.packet_ports import Links, PacketPorts

ROOT = Path(__file__).resolve().parents[2]
JSON = ROOT / "p4src/build/bufferscope.json"
PORTS = (1, 2, 3, 4)
ADDRESS = "127.0.0.1:9090"
MTU_BYTES = 9600
START_S = 60.0


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

    def __init__(self, program: Path = JSON, *options: str) -> None:
        """`options`: of simple_switch itself."""
        self._program, self._options = program, options
        self._directory = tempfile.TemporaryDirectory()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Bmv2:
        self._links = Links(PORTS, MTU_BYTES)
        self.ports = self._links.ports
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._links.close()
        self._directory.cleanup()

    def start(self) -> None:
        """Runs simple_switch and waits until it answers."""
        interfaces = [word for port in PORTS for word in ("-i", f"{port}@port{port}")]
        command = self._links.command("simple_switch", *interfaces)
        command += ["--thrift-port", ADDRESS.rpartition(":")[2]]
        # The default in /tmp is shared by all switches of the machine.
        command += ["--notifications-addr", f"ipc://{self._directory.name}/notifications.ipc", str(self._program)]
        command += ["--", *self._options] if self._options else []
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

    @property
    def thrift(self) -> Any:
        """The calls that only simple_switch has."""
        return self.control._client.simple_switch

    def client(self) -> Bmv2Switch:
        return inside(self._links.namespace, lambda: Bmv2Switch(ADDRESS, program=self._program))
