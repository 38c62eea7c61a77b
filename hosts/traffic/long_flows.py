# SPDX-License-Identifier: MIT
"""Starts long TCP flows at a planned time and says when they ran: `python -m hosts.traffic.long_flows`.

Runs on the sending host, standard library only (Python 3.9 or later). The plan names the generator: iperf3 is here,
our own is in epoll_flows.py. Writes traffic.json, all flows with their ports and when all of them were up, and beside
it what the generator itself wrote: iperf3-<cc>-<k>.json for every iperf3 process.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
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
from hosts.traffic.plan import Plan, Process, parse

RESULT_SECONDS = 15.0  # after the traffic: results are exchanged over the path that was just full
POLL_SECONDS = 0.005
CONNECT_TIMEOUT_MS = 10_000

SUMMARY = (__doc__ or "").split("\n", 1)[0]


@dataclass
class Running:
    """One iperf3 client and what is known of it. `connected_mono_ns`: when the last of its streams was seen up."""

    process: Process
    child: subprocess.Popen[bytes]
    result: Path
    started_mono_ns: int
    connected_mono_ns: int | None = None
    ended_mono_ns: int | None = None


def client_arguments(plan: Plan, process: Process) -> list[str]:
    """Stream i is bound to client port `first_client_port + i`; the control connection takes an ephemeral port."""
    arguments = ["--client", plan.server, "--port", str(process.server_port)]
    arguments += ["--cport", str(process.first_client_port), "--parallel", str(process.flows)]
    arguments += ["--congestion", process.cc, "--time", str(plan.seconds), "--json"]
    arguments += ["--connect-timeout", str(CONNECT_TIMEOUT_MS)]
    if plan.mss_bytes is not None:
        arguments += ["--set-mss", str(plan.mss_bytes)]
    return arguments


def wait_for_start(plan: Plan) -> int:
    """Sleeps until the planned time and returns it."""
    start_ns = planned_start(plan.start_mono_ns)
    while (left_ns := start_ns - time.monotonic_ns()) > 0:
        time.sleep(left_ns / 1e9)
    return start_ns


def start_clients(plan: Plan, directory: Path, files: ExitStack) -> list[Running]:
    running: list[Running] = []
    for index, process in enumerate(plan.processes):
        path = directory / f"iperf3-{process.cc}-{index}.json"
        output = files.enter_context(path.open("xb"))
        client = iperf.start(client_arguments(plan, process), output)
        files.callback(child.end_all, [client])
        running.append(Running(process, client, path, time.monotonic_ns()))
    return running


def note_connected(running: list[Running]) -> None:
    """Fills in `connected_mono_ns` of clients whose streams are all up."""
    up = sockets.established()
    now_ns = time.monotonic_ns()
    for one in running:
        ports = range(one.process.first_client_port, one.process.first_client_port + one.process.flows)
        if one.connected_mono_ns is None and all((port, one.process.server_port) in up for port in ports):
            one.connected_mono_ns = now_ns


def failure_of(one: Running) -> str | None:
    """Why an ended client was not a success, in iperf3's words."""
    _, error = iperf.read_result(one.result)
    if error is None and one.child.returncode:
        error = f"exit status {one.child.returncode}"
    return None if error is None else f"{one.result.name}: iperf3 to port {one.process.server_port}: {error}"


def wait_for_end(plan: Plan, running: list[Running]) -> list[str]:
    """Until all clients ended, or the first of them failed, or time is up. Returns what went wrong."""
    deadline = time.monotonic() + plan.setup_seconds + plan.seconds + RESULT_SECONDS
    while True:
        before = time.monotonic()
        if any(one.connected_mono_ns is None for one in running):
            note_connected(running)
        for one in running:
            if one.ended_mono_ns is None and one.child.poll() is not None:
                one.ended_mono_ns = time.monotonic_ns()
                error = failure_of(one)
                if error is not None:
                    return [error]
        left = [one for one in running if one.ended_mono_ns is None]
        if not left:
            return []
        if time.monotonic() > deadline:
            ports = ", ".join(str(one.process.server_port) for one in left)
            limit = plan.setup_seconds + plan.seconds + RESULT_SECONDS
            return [f"iperf3 to port {ports} has not ended after {limit:.0f} s: it was killed; is the path up?"]
        # looking at thousands of sockets takes time: never more than a fifth of it
        time.sleep(max(POLL_SECONDS, 4 * (time.monotonic() - before)))


def received_by_port(result: dict[str, Any]) -> dict[int, float]:
    """Client port -> goodput of its stream over iperf3's whole run, as the receiver counted it; {} if it said none."""
    ports = {stream.get("socket"): stream.get("local_port") for stream in result.get("start", {}).get("connected", [])}
    receivers = [stream.get("receiver", {}) for stream in result.get("end", {}).get("streams", [])]
    return {ports[one.get("socket")]: one.get("bits_per_second") for one in receivers if one.get("socket") in ports}


def describe(plan: Plan, running: list[Running], addresses: tuple[str, str], errors: list[str]) -> dict[str, Any]:
    """traffic.json: from `start_mono_ns` to `end_mono_ns` every flow of the plan was running."""
    flows: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    for one in running:
        process = one.process
        result, _ = iperf.read_result(one.result)
        received = result.get("end", {}).get("sum_received", {}).get("bits_per_second")
        by_port = received_by_port(result)
        groups.append(
            {
                **asdict(process),
                "exit_status": one.child.returncode,
                "iperf3_json": one.result.name,
                "bits_per_second_received": received,
                "started_mono_ns": one.started_mono_ns,
                "connected_mono_ns": one.connected_mono_ns,
                "ended_mono_ns": one.ended_mono_ns,
            }
        )
        promised = range(process.first_client_port, process.first_client_port + process.flows)
        actual = {stream["local_port"] for stream in result.get("start", {}).get("connected", [])}
        if not errors and actual != set(promised):
            errors.append(f"{one.result.name}: iperf3 used client ports {sorted(actual)}, not those planned")
        for port in promised:
            src, dst = addresses
            ports = {"src_port": port, "dst_port": process.server_port}
            flow = {"id": len(flows), "cc": process.cc, "protocol": "tcp", "src_addr": src, "dst_addr": dst, **ports}
            flows.append({**flow, "bits_per_second_received": by_port.get(port)})
    begins = [one.connected_mono_ns or one.started_mono_ns for one in running]
    ends = [begin + plan.seconds * 1_000_000_000 for begin in begins]
    ends += [one.ended_mono_ns for one in running if one.ended_mono_ns is not None]
    return {
        "generator": plan.generator,
        "start_mono_ns": max(begins, default=0),
        "end_mono_ns": min(ends, default=0),
        "first_started_mono_ns": min((one.started_mono_ns for one in running), default=0),
        "last_ended_mono_ns": max((one.ended_mono_ns or 0 for one in running), default=0),
        "seconds": plan.seconds,
        "flows": flows,
        "groups": groups,
        "errors": errors,
    }


def run(plan: Plan, directory: Path) -> list[str]:
    """Runs the plan and leaves its files in `directory`. Returns what went wrong."""
    addresses = local_address(plan.server)
    refuse_to_overwrite(directory / "traffic.json")
    if plan.generator == "epoll":
        values = epoll_flows.run(plan, directory, addresses)
        write_json(directory / "traffic.json", values)
        return list(values["errors"])
    iperf.find()
    planned_start_ns = wait_for_start(plan)
    running: list[Running] = []
    errors: list[str] = []
    with ExitStack() as files:
        try:
            running = start_clients(plan, directory, files)
            errors = wait_for_end(plan, running)
        except StoppedError as stopped:
            errors = [f"ended by {stopped} before its time"]
        child.end_all([one.child for one in running])
    values = {"planned_start_mono_ns": planned_start_ns, **describe(plan, running, addresses, errors)}
    write_json(directory / "traffic.json", values)
    return errors


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m hosts.traffic.long_flows", description=SUMMARY)
    parser.add_argument("plan", type=Path, help="JSON: generator, start_mono_ns, server, groups, ... (hosts/README.md)")
    parser.add_argument("results", type=Path, help="directory for traffic.json and what the generator writes")
    return send(parser, parse, run, arguments)


if __name__ == "__main__":
    sys.exit(main())
