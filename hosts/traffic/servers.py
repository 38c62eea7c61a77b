# SPDX-License-Identifier: MIT
"""Keeps one iperf3 server a port until SIGTERM or SIGINT: `python -m hosts.traffic.servers`.

Runs on the receiving host, standard library only. Each server serves one test and is started anew, so that a stuck or
broken test never holds its port longer than itself, and each test's JSON is a file of its own:
iperf3-server-<port>.json, then iperf3-server-<port>-1.json and so on. The results are taken here and not with
--get-server-output, which sends them back through the bottleneck, and goodput is that of the receiving application.
Prints `ready` when every port listens.
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
from hosts.traffic.outcome import EXIT_USAGE, StoppedError, signals_raise

POLL_SECONDS = 0.1
LISTEN_SECONDS = 5.0
MOST_RESULTS = 10000  # of one port in one directory

SUMMARY = (__doc__ or "").split("\n", 1)[0]


class ServerError(RuntimeError):
    """A server that cannot serve; the text is for the user."""


@dataclass
class Server:
    """The server of one port. `partial` is renamed to a result when a test has been in it."""

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
    """The first result name that is not taken: nothing is overwritten."""
    base = server.partial.with_name(f"iperf3-server-{server.port}")
    for number in range(MOST_RESULTS):
        path = base.with_name(f"{base.name}{f'-{number}' if number else ''}.json")
        if not path.exists():
            return path
    raise ServerError(f"{base}-*.json: {MOST_RESULTS} results are enough: give another --results")


def keep_result(server: Server) -> str | None:
    """Files what an ended server wrote if it had a client. Returns its error, if any."""
    server.output.close()
    result, error = iperf.read_result(server.partial)
    if result.get("start", {}).get("connected"):
        server.partial.rename(free_name(server))
    else:
        server.partial.unlink()
    return error


def wait_until_listening(servers: list[Server]) -> None:
    """Raises ServerError when one of them ended, or is not up in time."""
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
    """Until a signal; always leaves no server behind and files what was measured."""
    taken = sorted(set(ports) & sockets.listening_ports())
    if taken:
        raise ServerError(f"port {taken[0]} is busy: something listens there: free it or choose another with --ports")
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
        raise argparse.ArgumentTypeError(f"'{text}': give seconds from 0.1 to 60 (what iperf3 takes)")
    return seconds


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m hosts.traffic.servers", description=SUMMARY)
    parser.add_argument("--ports", type=parse_ports, required=True, help="5201,5202,...")
    parser.add_argument("--results", type=Path, required=True, help="directory for iperf3-server-<port>.json")
    parser.add_argument("--interval", type=parse_interval, default=0.1, help="seconds of one goodput figure (0.1)")
    options = parser.parse_args(arguments)
    with signals_raise():
        return status_of(options)


def status_of(options: argparse.Namespace) -> int:
    """Does what was asked for; the exit status."""
    try:
        options.results.mkdir(parents=True, exist_ok=True)
        serve(options.ports, options.results, options.interval)
    except StoppedError:
        return 0
    except (ServerError, child.ProgramMissingError, OSError) as error:
        print(f"servers: {error}", file=sys.stderr)
        return EXIT_USAGE
    return 0


if __name__ == "__main__":
    sys.exit(main())
