# SPDX-License-Identifier: MIT
"""Sends the flows of a plan from a planned time on, and records when they ran: `python -m hosts.traffic.long_flows`.

Runs on the sending host, standard library only (Python 3.9 or later). The plan names the generator: this module runs
iperf3, epoll_flows.py runs our own. Writes traffic.json (the flows with their ports, except finite flows, and the time
in which all long flows were up) and the generator's own files, such as iperf3-<cc>-<k>.json for every iperf3 process.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hosts.traffic import child, epoll_flows, iperf, sockets
from hosts.traffic.command import send
from hosts.traffic.outcome import (
    StoppedError,
    local_address,
    planned_start,
    refuse_to_overwrite,
    write_json,
)
from hosts.traffic.plan import LongFlowsPlan, Process, parse

RESULT_SECONDS = 15.0  # after the traffic: iperf3 exchanges results over a path that was congested until then
POLL_SECONDS = 0.005
UNREACHED_BPS = 30 * 10**9  # any rate starts TCP's own pacing; this one in bytes/s fits into 32 bits
CONNECT_TIMEOUT_MS = 10_000

SUMMARY = (__doc__ or "").split("\n", 1)[0]


@dataclass
class IperfClient:
    """One iperf3 client. `connected_mono_ns`: when all of its streams were first seen up."""

    process: Process
    child: subprocess.Popen[bytes]
    result: Path
    started_mono_ns: int
    connected_mono_ns: int | None = None
    ended_mono_ns: int | None = None


def client_arguments(plan: LongFlowsPlan, process: Process) -> list[str]:
    """Stream i is bound to client port `first_client_port + i`; the control connection takes an ephemeral port."""
    arguments = ["--client", plan.server, "--port", str(process.server_port)]
    arguments += ["--cport", str(process.first_client_port), "--parallel", str(process.flows)]
    arguments += ["--congestion", plan.kernel_name(process.cc), "--time", str(plan.seconds), "--json"]
    arguments += ["--connect-timeout", str(CONNECT_TIMEOUT_MS)]
    if process.settings.pacing:
        arguments += ["--fq-rate", str(UNREACHED_BPS)]
    return arguments


def wait_for_start(plan: LongFlowsPlan) -> int:
    """Sleeps until the planned time and returns it."""
    start_ns = planned_start(plan.start_mono_ns)
    while (left_ns := start_ns - time.monotonic_ns()) > 0:
        time.sleep(left_ns / 1e9)
    return start_ns


def start_clients(plan: LongFlowsPlan, directory: Path, files: ExitStack) -> list[IperfClient]:
    clients: list[IperfClient] = []
    for index, process in enumerate(plan.processes):
        path = directory / f"iperf3-{process.cc}-{index}.json"
        output = files.enter_context(path.open("xb"))
        process_handle = iperf.start(client_arguments(plan, process), output)
        files.callback(child.end_all, [process_handle])
        clients.append(IperfClient(process, process_handle, path, time.monotonic_ns()))
    return clients


def note_connected(clients: list[IperfClient]) -> None:
    """Fills in `connected_mono_ns` of clients whose streams are all up."""
    up = sockets.established()
    now_ns = time.monotonic_ns()
    for client in clients:
        ports = range(client.process.first_client_port, client.process.first_client_port + client.process.flows)
        if client.connected_mono_ns is None and all((port, client.process.server_port) in up for port in ports):
            client.connected_mono_ns = now_ns


def failure_of(client: IperfClient) -> str | None:
    """The error message of an ended client; None after success."""
    _, error = iperf.read_result(client.result)
    if error is None and client.child.returncode:
        error = f"exit status {client.child.returncode}"
    return None if error is None else f"{client.result.name}: iperf3 to port {client.process.server_port}: {error}"


def wait_for_end(plan: LongFlowsPlan, clients: list[IperfClient]) -> list[str]:
    """Waits until all clients have ended, one has failed, or the time is up. Returns errors."""
    deadline = time.monotonic() + plan.setup_seconds + plan.seconds + RESULT_SECONDS
    while True:
        before = time.monotonic()
        if any(client.connected_mono_ns is None for client in clients):
            note_connected(clients)
        for client in clients:
            if client.ended_mono_ns is None and client.child.poll() is not None:
                client.ended_mono_ns = time.monotonic_ns()
                error = failure_of(client)
                if error is not None:
                    return [error]
        running = [client for client in clients if client.ended_mono_ns is None]
        if not running:
            return []
        if time.monotonic() > deadline:
            ports = ", ".join(str(client.process.server_port) for client in running)
            limit = plan.setup_seconds + plan.seconds + RESULT_SECONDS
            return [f"iperf3 to port {ports} has not ended after {limit:.0f} s: it was killed; is the path up?"]
        # Reading the states of thousands of sockets takes time: spend at most a fifth of the time on it.
        time.sleep(max(POLL_SECONDS, 4 * (time.monotonic() - before)))


def received_by_port(result: dict[str, Any]) -> dict[int, float]:
    """Client port -> the receiver's goodput of its stream over iperf3's whole run; {} if iperf3 reported none."""
    ports = {stream.get("socket"): stream.get("local_port") for stream in result.get("start", {}).get("connected", [])}
    receivers = [stream.get("receiver", {}) for stream in result.get("end", {}).get("streams", [])]
    return {ports[end.get("socket")]: end.get("bits_per_second") for end in receivers if end.get("socket") in ports}


def describe(
    plan: LongFlowsPlan, clients: list[IperfClient], addresses: tuple[str, str], errors: list[str]
) -> dict[str, Any]:
    """The contents of traffic.json. Every flow of the plan was running from `start_mono_ns` to `end_mono_ns`."""
    flows: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    for client in clients:
        process = client.process
        result, _ = iperf.read_result(client.result)
        received = result.get("end", {}).get("sum_received", {}).get("bits_per_second")
        by_port = received_by_port(result)
        groups.append(
            {
                **process.document(),
                "exit_status": client.child.returncode,
                "iperf3_json": client.result.name,
                "bits_per_second_received": received,
                "started_mono_ns": client.started_mono_ns,
                "connected_mono_ns": client.connected_mono_ns,
                "ended_mono_ns": client.ended_mono_ns,
            }
        )
        planned = range(process.first_client_port, process.first_client_port + process.flows)
        actual = {stream["local_port"] for stream in result.get("start", {}).get("connected", [])}
        if not errors and actual != set(planned):
            errors.append(f"{client.result.name}: iperf3 used client ports {sorted(actual)}, not those planned")
        for port in planned:
            src, dst = addresses
            ports = {"src_port": port, "dst_port": process.server_port}
            flow = {"id": len(flows), "cc": process.cc, "protocol": "tcp", "src_addr": src, "dst_addr": dst, **ports}
            flows.append({**flow, "bits_per_second_received": by_port.get(port)})
    begins = [client.connected_mono_ns or client.started_mono_ns for client in clients]
    ends = [begin + plan.seconds * 1_000_000_000 for begin in begins]
    ends += [client.ended_mono_ns for client in clients if client.ended_mono_ns is not None]
    return {
        "generator": plan.generator,
        "start_mono_ns": max(begins, default=0),
        "end_mono_ns": min(ends, default=0),
        "first_started_mono_ns": min((client.started_mono_ns for client in clients), default=0),
        "last_ended_mono_ns": max((client.ended_mono_ns or 0 for client in clients), default=0),
        "seconds": plan.seconds,
        "flows": flows,
        "groups": groups,
        "errors": errors,
    }


def run(plan: LongFlowsPlan, directory: Path) -> list[str]:
    """Runs the plan and writes its files to `directory`. Returns errors."""
    addresses = local_address(plan.server)
    refuse_to_overwrite(directory / "traffic.json")
    if plan.generator == "epoll":
        values = epoll_flows.run(plan, directory, addresses)
        write_json(directory / "traffic.json", values)
        return list(values["errors"])
    iperf.find()
    planned_start_ns = wait_for_start(plan)
    clients: list[IperfClient] = []
    errors: list[str] = []
    with ExitStack() as files:
        try:
            clients = start_clients(plan, directory, files)
            errors = wait_for_end(plan, clients)
        except StoppedError as stopped:
            errors = [f"ended by {stopped} before its time"]
        child.end_all([client.child for client in clients])
    values = {"planned_start_mono_ns": planned_start_ns, **describe(plan, clients, addresses, errors)}
    write_json(directory / "traffic.json", values)
    return errors


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m hosts.traffic.long_flows", description=SUMMARY)
    parser.add_argument("plan", type=Path, help="JSON: generator, start_mono_ns, server, groups, ... (hosts/README.md)")
    parser.add_argument("results", type=Path, help="directory for traffic.json and the generator's files")
    return send(parser, parse, run, arguments)


if __name__ == "__main__":
    sys.exit(main())
