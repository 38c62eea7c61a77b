# SPDX-License-Identifier: MIT
"""Long flows of our own: build/tcp_flows carries them out, here its list of flows is made and its report is read."""

from __future__ import annotations

import json
import random
import subprocess
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hosts.traffic import child
from hosts.traffic.outcome import START_DELAY_NS, StoppedError, planned_start, refuse_to_overwrite
from hosts.traffic.plan import Plan

REPORT = "tcp_flows.json"
RESULT_SECONDS = 15.0  # beyond what the plan takes: for the report


def offsets_ns(plan: Plan) -> list[int]:
    """When each flow begins, after the start: drawn evenly from 0..start_spread_ns with the plan's seed."""
    draw = random.Random(f"starts {plan.seed}")
    count = sum(process.flows for process in plan.processes)
    return [draw.randint(0, plan.start_spread_ns) if plan.start_spread_ns else 0 for _ in range(count)]


def flow_lines(plan: Plan) -> list[str]:
    """Standard input of tcp_flows: CC CLIENT_PORT SERVER_PORT OFFSET_NS."""
    offsets = iter(offsets_ns(plan))
    return [
        f"{process.cc} {process.first_client_port + number} {process.server_port} {next(offsets)}\n"
        for process in plan.processes
        for number in range(process.flows)
    ]


def arguments(plan: Plan, server: str, start_mono_ns: int, report: Path) -> list[str]:
    """Options of tcp_flows; `server` in numbers."""
    words = [child.built("tcp_flows"), "--server", server, "--report", str(report)]
    words += ["--start-mono-ns", str(start_mono_ns), "--duration-ns", str(plan.duration_ns)]
    words += ["--connect-interval-ns", str(plan.connect_interval_ns), "--drain-ns", str(plan.drain_ns)]
    words += ["--setup-ns", str(plan.setup_seconds * 1_000_000_000)]
    words += ["--mss", str(plan.mss_bytes)] if plan.mss_bytes is not None else []
    return words + (["--ecn"] if plan.ecn else [])


def longest_seconds(plan: Plan) -> float:
    """No plan that goes well takes longer than this from its start."""
    flows = sum(process.flows for process in plan.processes)
    spent_ns = plan.start_spread_ns + plan.duration_ns + plan.drain_ns + flows * plan.connect_interval_ns
    return spent_ns / 1e9 + plan.setup_seconds + RESULT_SECONDS


def run(plan: Plan, directory: Path, addresses: tuple[str, str]) -> dict[str, Any]:
    """Carries the plan out; returns what traffic.json is to say. Raises TrafficError, ProgramMissingError."""
    start_ns = planned_start(plan.start_mono_ns) if plan.start_mono_ns else 0
    refuse_to_overwrite(directory / REPORT)
    words = arguments(plan, addresses[1], start_ns, directory / REPORT)
    # A file, not a pipe: whoever is ended by a signal in between has nothing to read or to write.
    with tempfile.TemporaryFile() as flows, tempfile.TemporaryFile() as said:
        flows.write("".join(flow_lines(plan)).encode())
        flows.seek(0)
        program = child.start(words, flows, said)
        errors = _wait(program, longest_seconds(plan) + START_DELAY_NS / 1e9 + _ahead_seconds(start_ns))
        child.end_all([program])
        said.seek(0)
        lines = [line.removeprefix("tcp_flows: ") for line in said.read().decode(errors="replace").splitlines()]
    errors += [line for line in lines if line not in errors]
    report = _report(directory / REPORT, errors)
    if program.returncode and not errors:
        errors.append(f"tcp_flows ended with status {program.returncode} and said nothing")
    return describe(plan, addresses, program.returncode, report, errors)


def _ahead_seconds(start_ns: int) -> float:
    return max(0.0, (start_ns - time.monotonic_ns()) / 1e9) if start_ns else 0.0


def _wait(program: subprocess.Popen[bytes], seconds: float) -> list[str]:
    """Until it ended. Returns what went wrong; then it may still run."""
    try:
        program.wait(seconds)
    except StoppedError as stopped:
        return [f"ended by {stopped} before its time"]
    except subprocess.TimeoutExpired:
        return [f"tcp_flows has not ended after {seconds:.0f} s: it was killed"]
    return []


def _report(path: Path, errors: list[str]) -> dict[str, Any]:
    """What tcp_flows wrote; {} and an error if it came to nothing."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        if not errors:
            errors.append(f"{path.name}: {error}")
        return {}


def describe(
    plan: Plan, addresses: tuple[str, str], status: int | None, report: dict[str, Any], errors: list[str]
) -> dict[str, Any]:
    """traffic.json: from `start_mono_ns` to `end_mono_ns` every flow of the plan was sending."""
    by_port = {entry["client_port"]: entry for entry in report.get("flows", [])}
    flows: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    for process in plan.processes:
        ports = range(process.first_client_port, process.first_client_port + process.flows)
        found = [by_port[port] for port in ports if port in by_port]
        groups.append(
            {
                **asdict(process),
                "exit_status": status,
                "report": REPORT,
                "started_mono_ns": min((entry["started_mono_ns"] for entry in found), default=0),
                "connected_mono_ns": max((entry["connected_mono_ns"] for entry in found), default=0),
                "ended_mono_ns": report.get("ended_mono_ns", 0),
                "bytes_acked": sum(entry["bytes_acked"] for entry in found),
            }
        )
        for port in ports:
            flow = {"id": len(flows), "cc": process.cc, "protocol": "tcp"}
            flow |= {"src_addr": addresses[0], "dst_addr": addresses[1]}
            flow |= {"src_port": port, "dst_port": process.server_port}
            numbers = {name: by_port.get(port, {}).get(name) for name in ("started_mono_ns", "bytes_acked")}
            flows.append({**flow, **numbers})
    start_ns = report.get("start_mono_ns", 0)
    return {
        "generator": plan.generator,
        "planned_start_mono_ns": plan.start_mono_ns,
        "start_mono_ns": start_ns and start_ns + max(offsets_ns(plan)),
        "end_mono_ns": min(report.get("end_mono_ns", 0), report.get("ended_mono_ns", 0)),
        "first_started_mono_ns": start_ns,
        "last_ended_mono_ns": report.get("ended_mono_ns", 0),
        "duration_ns": plan.duration_ns,
        "flows": flows,
        "groups": groups,
        "errors": errors,
    }
