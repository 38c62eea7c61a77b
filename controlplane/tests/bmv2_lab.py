# SPDX-License-Identifier: MIT
"""A real simple_switch with three veths in its own network namespace; tests send and receive frames on the veths."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from controlplane.bmv2 import Bmv2Switch
from controlplane.schema_files import BUILD
from controlplane.switch import SwitchError
from lib.tests.namespace import inside

PORTS = (1, 2, 3)
THRIFT_PORT = 9090
START_TIMEOUT_S = 60
SOL_PACKET, PACKET_IGNORE_OUTGOING, ETH_P_ALL = 263, 23, 3
_labs = itertools.count()

needs_bmv2 = [
    pytest.mark.software,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a network namespace"),
    pytest.mark.skipif(
        shutil.which("simple_switch") is None,
        reason="BMv2's simple_switch is not on the PATH (make deploy TARGET=bmv2)",
    ),
]


class Bmv2Lab:
    """The namespace and simple_switch in it; use it as a context manager. The switch's ports are to1, to2, to3."""

    def __init__(self, program: Path = BUILD / "bufferscope.json") -> None:
        self.name = f"controlplane{os.getpid()}-{next(_labs)}"
        self.address = f"127.0.0.1:{THRIFT_PORT}"
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._directory = tempfile.TemporaryDirectory()

    def __enter__(self) -> Bmv2Lab:
        try:
            _ip("netns", "add", self.name)
            self._ip("link", "set", "lo", "up")
            for port in PORTS:
                self._ip("link", "add", f"to{port}", "type", "veth", "peer", "name", f"host{port}")
                for end in (f"to{port}", f"host{port}"):
                    self._ip("link", "set", end, "addrgenmode", "none")
                    self._ip("link", "set", end, "up")
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        subprocess.run(["ip", "netns", "delete", self.name], capture_output=True)
        self._directory.cleanup()

    def start(self) -> None:
        """Runs simple_switch and waits until it answers."""
        interfaces = [word for port in PORTS for word in ("-i", f"{port}@to{port}")]
        notifications = f"ipc://{self._directory.name}/notifications.ipc"  # the default in /tmp is shared by switches
        command = ["ip", "netns", "exec", self.name, "simple_switch", *interfaces, "--thrift-port", str(THRIFT_PORT)]
        command += ["--notifications-addr", notifications]
        with Path(self._directory.name, "log").open("wb") as log:
            self._process = subprocess.Popen(
                [*command, str(self._program)], cwd=self._directory.name, stdout=log, stderr=log
            )
        end = time.monotonic() + START_TIMEOUT_S
        while True:
            assert self._process.poll() is None, Path(self._directory.name, "log").read_text()
            try:
                self.client().close()
                return
            except SwitchError:
                assert time.monotonic() < end, Path(self._directory.name, "log").read_text()
                time.sleep(0.1)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
        self._process = None

    def client(self) -> Bmv2Switch:
        return inside(self.name, lambda: Bmv2Switch(self.address))

    def packet_socket(self, port: int) -> socket.socket:
        def open_socket() -> socket.socket:
            opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            opened.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            opened.bind((f"host{port}", ETH_P_ALL))
            opened.settimeout(60)
            return opened

        return inside(self.name, open_socket)

    def _ip(self, *words: str) -> None:
        _ip("-n", self.name, *words)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
