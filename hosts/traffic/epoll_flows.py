# SPDX-License-Identifier: MIT
"""Long and finite flows by our own generator: writes the list of flows for build/tcp_flows and reads its report."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hosts.traffic import child, transfers
from hosts.traffic.outcome import planned_start, read_report, refuse_to_overwrite, seconds_until
from hosts.traffic.plan import LongFlowsPlan

REPORT = "tcp_flows.json"
RECORDS = "flows.bsf"


def offsets_ns(plan: LongFlowsPlan) -> list[int]:
    """Delay of each long flow after the start, drawn uniformly from 0..start_spread_ns with the plan's seed."""
    draw = random.Random(f"starts {plan.seed}")
    count = sum(process.flows for process in plan.processes)
    return [draw.randint(0, plan.start_spread_ns) if plan.start_spread_ns else 0 for _ in range(count)]


def flow_lines(plan: LongFlowsPlan) -> Iterator[str]:
    """Standard input of tcp_flows: CC CLIENT_PORT SERVER_PORT OFFSET_NS BYTES USER [ADDRESS]."""
    offsets = iter(offsets_ns(plan))
    for process in plan.processes:
        for number in range(process.flows):
            yield f"{process.cc} {process.first_client_port + number} {process.server_port} {next(offsets)} 0 0\n"
    users_before = 0
    for number, group in enumerate(plan.transfers):
        for index, transfer in enumerate(transfers.draw(group, number, finite_ns(plan), plan.seed)):
            client_port, server_port = transfers.ports(index, group)
            user = users_before + transfer.user if transfer.user else 0
            source = f" {group.sources[transfer.source]}" if group.sources else ""
            yield f"{group.cc} {client_port} {server_port} {transfer.offset_ns} {transfer.size_bytes} {user}{source}\n"
        users_before += group.users


def finite_ns(plan: LongFlowsPlan) -> int:
    """The time in which finite flows begin: from the common start to the end."""
    return max(offsets_ns(plan), default=0) + plan.duration_ns


def arguments(plan: LongFlowsPlan, server: str, start_mono_ns: int, directory: Path) -> list[str]:
    """Options of tcp_flows; `server` is a numeric address."""
    words = ["--server", server, "--report", str(directory / REPORT)]
    words += ["--records", str(directory / RECORDS)] if plan.transfers else []
    words += ["--start-mono-ns", str(start_mono_ns), "--duration-ns", str(plan.duration_ns)]
    words += ["--connect-interval-ns", str(plan.connect_interval_ns), "--drain-ns", str(plan.drain_ns)]
    words += ["--setup-ns", str(plan.setup_seconds * 1_000_000_000)]
    words += ["--mss", str(plan.mss_bytes)] if plan.mss_bytes is not None else []
    words += ["--window", str(plan.window_segments)] if plan.window_segments else []
    return words + (["--ecn"] if plan.ecn else []) + (["--pacing"] if plan.pacing else [])


def longest_seconds(plan: LongFlowsPlan, start_mono_ns: int) -> float:
    """Upper bound on the duration of a successful run."""
    flows = sum(process.flows for process in plan.processes)
    spent_ns = plan.start_spread_ns + plan.duration_ns + plan.drain_ns + flows * plan.connect_interval_ns
    return seconds_until(start_mono_ns) + spent_ns / 1e9 + plan.setup_seconds


def run(plan: LongFlowsPlan, directory: Path, addresses: tuple[str, str]) -> dict[str, Any]:
    """Runs the plan; returns the contents of traffic.json. Raises TrafficError, ProgramMissingError."""
    start_ns = planned_start(plan.start_mono_ns) if plan.start_mono_ns else 0
    for name in (REPORT, RECORDS):
        refuse_to_overwrite(directory / name)
    words = arguments(plan, addresses[1], start_ns, directory)
    status, errors = child.carry_out("tcp_flows", words, flow_lines(plan), longest_seconds(plan, start_ns))
    return describe(plan, addresses, status, read_report(directory / REPORT, errors), errors)


def describe(
    plan: LongFlowsPlan, addresses: tuple[str, str], status: int, report: dict[str, Any], errors: list[str]
) -> dict[str, Any]:
    """The contents of traffic.json. Every long flow of the plan was sending from `start_mono_ns` to `end_mono_ns`."""
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
    content = {
        "generator": plan.generator,
        "planned_start_mono_ns": plan.start_mono_ns,
        "start_mono_ns": start_ns and start_ns + max(offsets_ns(plan), default=0),
        "end_mono_ns": min(report.get("end_mono_ns", 0), report.get("ended_mono_ns", 0)),
        "first_started_mono_ns": start_ns,
        "last_ended_mono_ns": report.get("ended_mono_ns", 0),
        "duration_ns": plan.duration_ns,
        "flows": flows,
        "groups": groups,
        "errors": errors,
    }
    return content | _of_transfers(plan, status, report)


def _of_transfers(plan: LongFlowsPlan, status: int, report: dict[str, Any]) -> dict[str, Any]:
    """What traffic.json says of finite flows; each has a record in RECORDS."""
    if not plan.transfers:
        return {}
    groups = [
        {
            "kind": group.kind, "cc": group.cc, "users": group.users, "first_server_port": group.first_server_port,
            "mean_size_bytes": group.sizes.mean, "mean_think_ns": group.think.mean if group.think else None,
            "exit_status": status,
        }
        for group in plan.transfers
    ]  # fmt: skip
    return {"transfers": {"groups": groups, "records": RECORDS, "counts": report.get("finite", {})}}
