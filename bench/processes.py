# SPDX-License-Identifier: MIT
"""Programs of the bench: starts them in a namespace of a cell, waits until they are ready, always ends them."""

from __future__ import annotations

import json
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.machine.host import CHECKOUT
from experiments.spec import topology

READY_TIMEOUT_S = 10
END_TIMEOUT_S = 20


@contextmanager
def daemon(namespace: str, *command: str | Path) -> Iterator[subprocess.Popen]:
    """A program that prints `ready` and ends on SIGTERM. Raises RuntimeError if it does not get ready."""
    argv = topology.inside(namespace, *map(str, command))
    # Pipes hold the program's output, a line or two, until the caller reads it.
    process = subprocess.Popen(argv, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        assert process.stderr
        readable, _, _ = select.select([process.stdout], [], [], READY_TIMEOUT_S)
        if not readable or process.stdout.readline().strip() != "ready":
            process.kill()
            raise RuntimeError(f"{command[0]} did not get ready: {process.stderr.read().strip()}")
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run(namespace: str, *command: str | Path, timeout_s: float = 300) -> str:
    """Runs a program to its end; returns its stdout. Raises RuntimeError with its stderr on failure, and
    subprocess.TimeoutExpired after `timeout_s`.
    """
    argv = topology.inside(namespace, *map(str, command))
    result = subprocess.run(argv, cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=timeout_s)
    if result.returncode:
        raise RuntimeError(f"{command[0]} failed in {namespace}: {result.stderr.strip()}")
    return result.stdout


def iperf3_bps(seconds: int, *options: str) -> float:
    """Goodput of TCP from sender to receiver in bits per second, as the receiver counts it."""
    argv = topology.inside(topology.RECEIVER.name, "iperf3", "--server", "--one-off", "--json")
    server = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    try:
        _wait_for_listener(5201)
        client = [
            "iperf3",
            "--client",
            topology.RECEIVER.ipv4,
            "--time",
            str(seconds),
            "--omit",
            "1",
            "--json",
            *options,
        ]
        report = json.loads(run(topology.SENDER.name, *client, timeout_s=seconds + 30))
    finally:
        server.terminate()
        server.wait()
    return float(report["end"]["sum_received"]["bits_per_second"])


def _wait_for_listener(port: int) -> None:
    for _ in range(200):
        if f":{port} " in run(topology.RECEIVER.name, "ss", "--listening", "--tcp", "--numeric"):
            return
    raise RuntimeError(f"nothing listens on port {port} of the receiver")
