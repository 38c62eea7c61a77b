# SPDX-License-Identifier: MIT
"""Drives the collector: starts it, sends to it, stops it, reads its files and output."""

import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import numpy as np

from hosts.tests.patience import wait_until
from hosts.tests.processes import free_port, state
from wire.wire import BLOCK, POSTCARD, STORED_POSTCARD, read_blocks

ROOT = Path(__file__).resolve().parents[2]
KIND = BLOCK.const["BLOCK_POSTCARDS"]


def make(*arguments: str) -> None:
    subprocess.run(["nice", "make", "-C", str(ROOT / "collector"), *arguments], check=True, stdout=subprocess.DEVNULL)


def card(seq: int, **fields: int) -> bytes:
    """A postcard of switch 1, port 2."""
    defaults = {"version": POSTCARD.const["POSTCARD_VERSION"], "switch_id": 1, "egress_port": 2}
    return POSTCARD.encode(**{**defaults, "card_seq": seq % 2**32, **fields})


def blocks(path: Path) -> list:
    return list(read_blocks(path.read_bytes(), KIND))


def records(path: Path) -> np.ndarray:
    """All records of the whole blocks."""
    parts = [np.frombuffer(block.payload, STORED_POSTCARD) for block in blocks(path)]
    return np.concatenate(parts) if parts else np.empty(0, STORED_POSTCARD)


def postcards(path: Path) -> list[bytes]:
    """The stored postcards, byte for byte, without their stamps."""
    payload = b"".join(block.payload for block in blocks(path))
    size, stamp = STORED_POSTCARD.itemsize, BLOCK.const["BLOCK_STAMP_BYTES"]
    return [payload[at + stamp : at + size] for at in range(0, len(payload), size)]


def whole_bytes(path: Path) -> int:
    """Total length of the file's whole blocks."""
    return sum(BLOCK.length + len(block.payload) for block in blocks(path))


class Running:
    """A collector that listens; `output` and `summary_path` are its files, `stop()` gives its summary."""

    def __init__(
        self, binary: Path, directory: Path, *options: str, listen: str = "127.0.0.1", prefix: tuple[str, ...] = ()
    ):
        self.port = free_port()
        self.output = directory / "postcards.bsp"
        self.summary_path = directory / "collector.json"
        files = [] if "--discard" in options else ["--output", str(self.output), "--summary", str(self.summary_path)]
        self.process = subprocess.Popen(
            [
                *prefix,
                str(binary / "collector"),
                "--listen",
                f"{listen}:{self.port}",
                "--buffers",
                "4",
                *files,
                *options,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pid = self.process.pid
        self.stderr = ""
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line == "ready\n", line + self.process.communicate()[1]

    def send(self, *datagrams: bytes, to: str = "127.0.0.1", source: str = "") -> None:
        """Sends in batches that fit into the smallest buffer. Waits until a running collector has read each batch."""
        family = socket.AF_INET6 if ":" in to else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as sender:
            sender.bind((source, 0))
            for index, datagram in enumerate(datagrams):
                sender.sendto(datagram, (to, self.port))
                if index % 100 == 99 and state(self.pid) != "T":
                    self.wait_until_read()

    def wait_until_read(self) -> None:
        """Waits until the collector's socket is empty."""
        wait_until(lambda: not self._queued_bytes())

    def _queued_bytes(self) -> int:
        tables = [Path("/proc/net", name).read_text().splitlines()[1:] for name in ("udp", "udp6")]
        rows = [line.split() for table in tables for line in table]
        return sum(int(row[4].split(":")[1], 16) for row in rows if int(row[1].split(":")[1], 16) == self.port)

    def deliver(self, number: int) -> None:
        os.kill(self.pid, number)
        if number == signal.SIGSTOP:
            wait_until(lambda: state(self.pid) == "T")

    def stop(self, number: int = signal.SIGTERM, status: int = 0) -> dict:
        self.deliver(number)
        self.rest, self.stderr = self.process.communicate(timeout=60)
        assert self.process.returncode == status, self.stderr
        return json.loads(self.summary_path.read_text()) if self.summary_path.exists() else {}

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
