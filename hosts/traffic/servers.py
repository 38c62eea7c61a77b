# SPDX-License-Identifier: MIT
"""Keeps one iperf3 server running on each port until SIGTERM or SIGINT: `python -m hosts.traffic.servers`.

Runs on the receiving host, standard library only. Each server serves one test and is then restarted. So a broken test
cannot block its port, and each test has its own JSON file: iperf3-server-<port>.json, then iperf3-server-<port>-1.json
and so on. The files have the receiving application's goodput. They stay on this host, because iperf3's
--get-server-output would send them back through the bottleneck. Prints `ready` when every port listens.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hosts.traffic import child, iperf, sockets
from hosts.traffic.outcome import EXIT_REFUSED, StoppedError, signals_raise

POLL_SECONDS = 0.1
LISTEN_SECONDS = 5.0
MOST_RESULTS = 10000  # of one port in one directory

SUMMARY = (__doc__ or "").split("\n", 1)[0]


class ServerError(RuntimeError):
    """A server that cannot serve; the text is for the user."""


@dataclass
class Server:
    """The server of one port. Its output `partial` is renamed to a result after a test."""

    port: int
    child: subprocess.Popen[bytes]
    partial: Path
    output: IO[bytes]


def start(port: int, directory: Path, interval_s: float) -> Server:
    partial = directory / f"iperf3-server-{port}.json.partial"
    output = partial.open("wb")
    arguments = ["--server", "--one-off", "--json", "--port", str(port), "--interval", f"{interval_s:g}"]
    return Server(port, iperf.start(arguments, output), partial, output)


def free_name(server: Server) -> Path:
    """The first unused name for a result: nothing is overwritten."""
    base = server.partial.with_name(f"iperf3-server-{server.port}")
    for number in range(MOST_RESULTS):
        path = base.with_name(f"{base.name}{f'-{number}' if number else ''}.json")
        if not path.exists():
            return path
    raise ServerError(f"{base}-*.json: all {MOST_RESULTS} names are in use: give another directory (--results)")


def keep_result(server: Server) -> str | None:
    """Keeps the output of an ended server if it had a client, else removes it. Returns iperf3's error, if any."""
    server.output.close()
    result, error = iperf.read_result(server.partial)
    if result.get("start", {}).get("connected"):
        server.partial.rename(free_name(server))
    else:
        server.partial.unlink()
    return error


def wait_until_listening(servers: list[Server]) -> None:
    """Raises ServerError if a server ends, or does not listen in time."""
    deadline = time.monotonic() + LISTEN_SECONDS
    while True:
        for server in servers:
            if server.child.poll() is not None:
                _, error = iperf.read_result(server.partial)
                raise ServerError(f"port {server.port}: iperf3: {error}: free the port or choose another with --ports")
        missing = {server.port for server in servers} - sockets.listening_ports()
        if not missing:
            return
        if time.monotonic() > deadline:
            raise ServerError(f"port {min(missing)}: iperf3 does not listen after {LISTEN_SECONDS:.0f} s")
        time.sleep(0.01)


def serve(ports: list[int], directory: Path, interval_s: float) -> None:
    """Serves until a signal. In every case ends all servers and keeps their results."""
    busy = sorted(set(ports) & sockets.listening_ports())
    if busy:
        raise ServerError(f"port {busy[0]} is busy: something listens there: free it or choose another with --ports")
    servers: list[Server] = []
    try:
        for port in ports:
            servers.append(start(port, directory, interval_s))
        wait_until_listening(servers)
        print("ready", flush=True)
        while True:
            for index, server in enumerate(servers):
                if server.child.poll() is not None:
                    error = keep_result(server)
                    if error:
                        print(f"servers: port {server.port}: iperf3: {error}", file=sys.stderr, flush=True)
                    servers[index] = start(server.port, directory, interval_s)
            time.sleep(POLL_SECONDS)
    finally:
        child.end_all([server.child for server in servers])
        for server in servers:
            if server.partial.exists():
                keep_result(server)


def parse_ports(text: str) -> list[int]:
    try:
        ports = [int(word) for word in text.split(",")]
    except ValueError:
        ports = [0]
    if not all(0 < port < 65536 for port in ports) or len(set(ports)) < len(ports):
        raise argparse.ArgumentTypeError(f"'{text}': give different ports from 1 to 65535 with commas between")
    return ports


def parse_interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 60:
        raise argparse.ArgumentTypeError(f"'{text}': give seconds from 0.1 to 60 (iperf3's limits)")
    return seconds


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m hosts.traffic.servers", description=SUMMARY)
    parser.add_argument("--ports", type=parse_ports, required=True, help="5201,5202,...")
    parser.add_argument("--results", type=Path, required=True, help="directory for iperf3-server-<port>.json")
    parser.add_argument("--interval", type=parse_interval, default=0.1, help="seconds per goodput value (default 0.1)")
    options = parser.parse_args(arguments)
    with signals_raise():
        return status_of(options)


def status_of(options: argparse.Namespace) -> int:
    """Serves; returns the exit status."""
    try:
        options.results.mkdir(parents=True, exist_ok=True)
        serve(options.ports, options.results, options.interval)
    except StoppedError:
        return 0
    except (ServerError, child.ProgramMissingError, OSError) as error:
        print(f"servers: {error}", file=sys.stderr)
        return EXIT_REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main())
