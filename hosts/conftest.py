# SPDX-License-Identifier: MIT
"""Two namespaces with a veth between them, always removed."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
_number = itertools.count()


class HostPair:
    """Sides "a" (10.77.0.1, fd77::1) and "b" (10.77.0.2, fd77::2), each with eth0 and its loopback up."""

    def __init__(self) -> None:
        prefix = f"hosts-{os.getpid()}-{next(_number)}"
        self.names = {"a": f"{prefix}a", "b": f"{prefix}b"}
        self.started: list[subprocess.Popen] = []

    def make(self) -> None:
        for name in self.names.values():
            _ip("netns", "add", name)
        peer = ["type", "veth", "peer", "name", "eth0", "netns", self.names["b"]]
        _ip("link", "add", "eth0", "netns", self.names["a"], *peer)
        for number, (side, name) in enumerate(self.names.items(), start=1):
            self.run(side, "sysctl", "-qw", "net.ipv6.conf.eth0.accept_dad=0", "net.ipv4.tcp_no_metrics_save=1")
            _ip("-n", name, "address", "add", f"10.77.0.{number}/24", "dev", "eth0")
            _ip("-n", name, "address", "add", f"fd77::{number}/64", "dev", "eth0", "nodad")
            for device in ("lo", "eth0"):
                _ip("-n", name, "link", "set", device, "up")

    def path(self, side: str) -> str:
        return f"/run/netns/{self.names[side]}"

    def words(self, side: str, *words: object) -> list[str]:
        return ["ip", "netns", "exec", self.names[side], *map(str, words)]

    def run(self, side: str, *words: object, **options) -> subprocess.CompletedProcess:
        options = {"check": True, "capture_output": True, "text": True, "timeout": 120, "cwd": ROOT, **options}
        return subprocess.run(self.words(side, *words), **options)

    def python(self, side: str, module: str, *words: object, **options) -> subprocess.CompletedProcess:
        return self.run(side, sys.executable, "-m", module, *words, **options)

    def start(self, side: str, *words: object, **options) -> subprocess.Popen:
        """Starts a program. The end of the fixture kills it if it still runs."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT, **options}
        child = subprocess.Popen(self.words(side, *words), **options)
        self.started.append(child)
        return child

    def close(self) -> None:
        for child in self.started:
            if child.poll() is None:
                child.kill()
            child.communicate()
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@pytest.fixture
def pair():
    namespaces = HostPair()
    try:
        namespaces.make()
        yield namespaces
    finally:
        namespaces.close()
