# SPDX-License-Identifier: MIT
"""Long and finite flows by our own generator: writes the list of flows for build/tcp_flows and reads its report.

Each group of datagrams in the plan has a process of build/open_loop, from the common start to the end of the traffic.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hosts.traffic import child, flow_settings, open_loop, transfers
from hosts.traffic.flow_settings import FlowSettings
from hosts.traffic.open_loop import DatagramGroup
from hosts.traffic.outcome import planned_start, read_report, refuse_to_overwrite, seconds_until
from hosts.traffic.plan import LongFlowsPlan

REPORT = "tcp_flows.json"
RECORDS = "flows.bsf"


def drawn_offsets_ns(seed: int, spread_ns: int, flows: int) -> list[int]:
    """Delay of each long flow after the start, drawn uniformly from 0..spread_ns."""
    draw = random.Random(f"starts {seed}")
    return [draw.randint(0, spread_ns) if spread_ns else 0 for _ in range(flows)]


def offsets_ns(plan: LongFlowsPlan) -> list[int]:
    return drawn_offsets_ns(plan.seed, plan.start_spread_ns, sum(process.flows for process in plan.processes))


def flow_lines(plan: LongFlowsPlan) -> Iterator[str]:
    """Standard input of tcp_flows: CC CLIENT_PORT SERVER_PORT OFFSET_NS BYTES USER [WORD...]."""
    starts = offsets_ns(plan)
    offsets, spread_ns = iter(starts), max(starts, default=0)
    for process in plan.processes:
        cc, settings = plan.kernel_name(process.cc), process.settings
        begin_ns, end_ns = span_ns(plan, settings, spread_ns)
        words = settings.words() + " late" * bool(settings.start_ns) + f" stop={end_ns}" * bool(settings.stop_ns)
        for number in range(process.flows):
            ports = f"{process.first_client_port + number} {process.server_port}"
            yield f"{cc} {ports} {begin_ns + next(offsets)} 0 0{words}\n"
    users_before = 0
    for number, group in enumerate(plan.transfers):
        cc, span = plan.kernel_name(group.cc), span_ns(plan, group.settings, spread_ns)
        more = group.settings.words() + f" stop={span[1]}" * bool(group.settings.stop_ns)
        for index, transfer in enumerate(transfers.draw(group, number, span, plan.seed)):
            client_port, server_port = transfers.ports(index, group)
            user = users_before + transfer.user if transfer.user else 0
            words = (f" from={group.sources[transfer.source]}" if group.sources else "") + more
            yield f"{cc} {client_port} {server_port} {transfer.offset_ns} {transfer.size_bytes} {user}{words}\n"
        users_before += group.users


def spread_ns_of(plan: LongFlowsPlan) -> int:
    """The time from the common start to the start of the last long flow, apart from START of a group."""
    return max(offsets_ns(plan), default=0)


def span_ns(plan: LongFlowsPlan, group: FlowSettings | DatagramGroup, spread_ns: int) -> tuple[int, int]:
    """From when to when flows of a group begin, in ns from the common start."""
    return flow_settings.span_ns(group.start_ns, group.stop_ns, spread_ns, plan.duration_ns)


def arguments(plan: LongFlowsPlan, server: str, start_mono_ns: int, directory: Path) -> list[str]:
    """Options of tcp_flows; `server` is a numeric address."""
    words = ["--server", server, "--report", str(directory / REPORT)]
    words += ["--records", str(directory / RECORDS)] if plan.transfers else []
    words += ["--start-mono-ns", str(start_mono_ns), "--duration-ns", str(spread_ns_of(plan) + plan.duration_ns)]
    words += ["--connect-interval-ns", str(plan.connect_interval_ns), "--drain-ns", str(plan.drain_ns)]
    return [*words, "--setup-ns", str(plan.setup_seconds * 1_000_000_000)]


def longest_seconds(plan: LongFlowsPlan, start_mono_ns: int) -> float:
    """Upper bound on the duration of a successful run."""
    flows = sum(process.flows for process in plan.processes)
    spent_ns = plan.start_spread_ns + plan.duration_ns + plan.drain_ns + flows * plan.connect_interval_ns
    return seconds_until(start_mono_ns) + spent_ns / 1e9 + plan.setup_seconds


def run(plan: LongFlowsPlan, directory: Path, addresses: tuple[str, str]) -> dict[str, Any]:
    """Runs the plan; returns the contents of traffic.json. Raises TrafficError, ProgramMissingError."""
    start_ns = planned_start(plan.start_mono_ns) if plan.start_mono_ns or plan.datagrams else 0
    reports = [f"open_loop-{number}.json" for number in range(1, len(plan.datagrams) + 1)]
    for name in (REPORT, RECORDS, *reports):
        refuse_to_overwrite(directory / name)
    tasks = [_tcp_task(plan, addresses[1], start_ns, directory)] if plan.processes or plan.transfers else []
    for group, name in zip(plan.datagrams, reports):
        begin_ns, end_ns = span_ns(plan, group, spread_ns_of(plan))
        words = open_loop.arguments(group, addresses[1], start_ns + begin_ns, end_ns - begin_ns, directory / name)
        tasks.append(child.Task("open_loop", words, (), seconds_until(start_ns) + end_ns / 1e9))
    outcomes = child.carry_out_all(tasks)
    errors = [error for _, of_task in outcomes for error in of_task]
    of_tcp = len(tasks) - len(reports)
    report = read_report(directory / REPORT, errors) if of_tcp else {}
    sent = []
    for (status, _), name in zip(outcomes[of_tcp:], reports):
        sent.append(Sent(status, name, read_report(directory / name, errors)))
        errors += open_loop.unsent(sent[-1].report)
    if not of_tcp:
        report = _times_of(plan, sent[0].report)
    return describe(plan, addresses, outcomes[0][0], report, sent, errors)


class Sent(NamedTuple):
    """The report of a process of build/open_loop about its datagrams. `file` is the name of the report."""

    status: int
    file: str
    report: dict[str, Any]


def _tcp_task(plan: LongFlowsPlan, server: str, start_ns: int, directory: Path) -> child.Task:
    words = arguments(plan, server, start_ns, directory)
    return child.Task("tcp_flows", words, flow_lines(plan), longest_seconds(plan, start_ns))


def _times_of(plan: LongFlowsPlan, report: dict[str, Any]) -> dict[str, Any]:
    """The times of the traffic, of the report of build/open_loop about the plan's first datagrams."""
    group = plan.datagrams[0]
    times = {name: report.get(name, 0) for name in ("start_mono_ns", "end_mono_ns", "ended_mono_ns")}
    if not report or not (group.start_ns or group.stop_ns):
        return times
    start_ns = times["start_mono_ns"] - span_ns(plan, group, 0)[0]
    end_ns = start_ns + plan.duration_ns
    return {"start_mono_ns": start_ns, "end_mono_ns": end_ns, "ended_mono_ns": end_ns}


def describe(
    plan: LongFlowsPlan, addresses: tuple[str, str], status: int, report: dict[str, Any], sent: list[Sent],
    errors: list[str],
) -> dict[str, Any]:  # fmt: skip
    """The contents of traffic.json. Every long flow of the plan without a time of its own was sending from
    `start_mono_ns` to `end_mono_ns`.
    """
    by_port = {entry["client_port"]: entry for entry in report.get("flows", [])}
    flows: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    for process in plan.processes:
        ports = range(process.first_client_port, process.first_client_port + process.flows)
        entries = [by_port[port] for port in ports if port in by_port]
        groups.append(
            {
                **process.document(),
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
            numbers |= {name: by_port[port][name] for name in ("stopped_mono_ns",) if name in by_port.get(port, {})}
            flows.append({**flow, **numbers})
    for of_datagrams, done in zip(plan.datagrams, sent):
        groups.append(open_loop.described_group(of_datagrams, done.status, done.file))
        flows += open_loop.described_flows(of_datagrams, addresses, done.report, len(flows))
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
    drawn = zip(plan.datagrams, sent)
    datagrams = [open_loop.described_draws(of_datagrams, done.report) for of_datagrams, done in drawn]
    content |= {"datagrams": datagrams} if datagrams else {}
    return content | _of_transfers(plan, status, report)


def _of_transfers(plan: LongFlowsPlan, status: int, report: dict[str, Any]) -> dict[str, Any]:
    """The entry of traffic.json for finite flows; each flow also has a record in RECORDS."""
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
