# SPDX-License-Identifier: MIT
"""A real switch process and its links, for the tests that need root."""

from __future__ import annotations

import json
import select
import signal
import subprocess
import tempfile
from pathlib import Path

from controlplane.soft import SoftSwitch
from hosts.tests.patience import SECONDS
from p4src.tests.packet_ports import Links

from .core_driver import BUILD

MTU_BYTES = 9000
HOSTS = (1, 2, 3)
PORTS = [word for port in HOSTS for word in ("--port", f"{port}=port{port}")]


def mac(port: int) -> str:
    return f"02:bf:00:00:00:{port:02x}"


class Lab(Links):
    def __init__(self) -> None:
        super().__init__(HOSTS, MTU_BYTES)

    def received_frames(self, port: int) -> int:
        """The number of frames that the host's interface has received."""
        link = json.loads(self.run("ip", "-s", "-j", "link", "show", f"host{port}"))
        return link[0]["stats64"]["rx"]["packets"]

    def promiscuity(self, port: int) -> int:
        return json.loads(self.run("ip", "-d", "-j", "link", "show", f"port{port}"))[0]["promiscuity"]

    def set_offload(self, port: int, name: str, on: bool) -> None:
        self.run("ethtool", "-K", f"port{port}", name, "on" if on else "off")


class Switch:
    """A running build/softswitch; use it in a with statement."""

    def __init__(self, lab: Lab, *options: str, directory: Path | None = None) -> None:
        self._own = tempfile.TemporaryDirectory()
        self.control_path = Path(directory or self._own.name) / "switch.sock"
        self.process = subprocess.Popen(
            [*command(lab), "--control", self.control_path, *PORTS, *options],
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
    return lab.command(BUILD / "softswitch")
