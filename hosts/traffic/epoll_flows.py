# SPDX-License-Identifier: MIT
"""Long flows by our own generator: writes the list of flows for build/tcp_flows and reads its report."""

from __future__ import annotations

import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hosts.traffic import child
from hosts.traffic.outcome import planned_start, read_report, refuse_to_overwrite, seconds_until
from hosts.traffic.plan import LongFlowsPlan

REPORT = "tcp_flows.json"


def offsets_ns(plan: LongFlowsPlan) -> list[int]:
    """Delay of each flow after the start, drawn uniformly from 0..start_spread_ns with the plan's seed."""
    draw = random.Random(f"starts {plan.seed}")
    count = sum(process.flows for process in plan.processes)
    return [draw.randint(0, plan.start_spread_ns) if plan.start_spread_ns else 0 for _ in range(count)]


def flow_lines(plan: LongFlowsPlan) -> list[str]:
    """Standard input of tcp_flows: CC CLIENT_PORT SERVER_PORT OFFSET_NS."""
    offsets = iter(offsets_ns(plan))
    return [
        f"{process.cc} {process.first_client_port + number} {process.server_port} {next(offsets)}\n"
        for process in plan.processes
        for number in range(process.flows)
    ]


def arguments(plan: LongFlowsPlan, server: str, start_mono_ns: int, report: Path) -> list[str]:
    """Options of tcp_flows; `server` is a numeric address."""
    words = ["--server", server, "--report", str(report)]
    words += ["--start-mono-ns", str(start_mono_ns), "--duration-ns", str(plan.duration_ns)]
    words += ["--connect-interval-ns", str(plan.connect_interval_ns), "--drain-ns", str(plan.drain_ns)]
    words += ["--setup-ns", str(plan.setup_seconds * 1_000_000_000)]
    words += ["--mss", str(plan.mss_bytes)] if plan.mss_bytes is not None else []
    return words + (["--ecn"] if plan.ecn else [])


def longest_seconds(plan: LongFlowsPlan, start_mono_ns: int) -> float:
    """Upper bound on the duration of a successful run."""
    flows = sum(process.flows for process in plan.processes)
    spent_ns = plan.start_spread_ns + plan.duration_ns + plan.drain_ns + flows * plan.connect_interval_ns
    return seconds_until(start_mono_ns) + spent_ns / 1e9 + plan.setup_seconds


def run(plan: LongFlowsPlan, directory: Path, addresses: tuple[str, str]) -> dict[str, Any]:
    """Runs the plan; returns the contents of traffic.json. Raises TrafficError, ProgramMissingError."""
    start_ns = planned_start(plan.start_mono_ns) if plan.start_mono_ns else 0
    refuse_to_overwrite(directory / REPORT)
    words = arguments(plan, addresses[1], start_ns, directory / REPORT)
    status, errors = child.carry_out("tcp_flows", words, "".join(flow_lines(plan)), longest_seconds(plan, start_ns))
    return describe(plan, addresses, status, read_report(directory / REPORT, errors), errors)


def describe(
    plan: LongFlowsPlan, addresses: tuple[str, str], status: int, report: dict[str, Any], errors: list[str]
) -> dict[str, Any]:
    """The contents of traffic.json. Every flow of the plan was sending from `start_mono_ns` to `end_mono_ns`."""
    by_port = {entry["client_port"]: entry for entry in report.get("flows", [])}
    flows: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    for process in plan.processes:
        ports = range(process.first_client_port, process.first_client_port + process.flows)
        entries = [by_port[port] for port in ports if port in by_port]
        groups.append(
            {
                **asdict(process),
                "exit_status": status,
                "report": REPORT,
                "started_mono_ns": min((entry["started_mono_ns"] for entry in entries), default=0),
                "connected_mono_ns": max((entry["connected_mono_ns"] for entry in entries), default=0),
                "ended_mono_ns": report.get("ended_mono_ns", 0),
                "bytes_acked": sum(entry["bytes_acked"] for entry in entries),
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
