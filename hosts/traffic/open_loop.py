# SPDX-License-Identifier: MIT
"""Sends open-loop UDP traffic at random times: `python -m hosts.traffic.open_loop PLAN.json RESULT_DIR`.

Runs on the sending host, standard library only (Python 3.9 or later). build/open_loop draws the datagrams (schedule.h)
and sends them. Writes traffic.json as long_flows does, and open_loop.json, the report of build/open_loop.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from hosts.traffic import child
from hosts.traffic.command import send
from hosts.traffic.outcome import (
    local_address,
    planned_start,
    read_report,
    refuse_to_overwrite,
    seconds_until,
    write_json,
)
from hosts.traffic.plan_reader import an_object, record

REPORT = "open_loop.json"
ARRIVALS = ("poisson", "cbr", "periodic", "jittered")
RECORDED, DEPARTURES = "recorded", "departures.bin"  # instead: the datagrams are in this file, beside the results
ARRIVALS_FORM = "periodic:64p:2.5"  # 64 packets of a flow in a round, 2.5 packet times apart (schedule.h)
MOST_ROUND_PACKETS = 1_000_000  # of schedule.h
SIZES = ("fixed", "exponential", "bimodal")
BURSTS_FORM = "bursts:14p"  # the slow-start bursts of flows of 14 packets, or of another number (schedule.h)
MOST_FLOW_PACKETS = 1000  # of schedule.h


def flow_packets(sizes: str) -> int | None:
    """Packets of the flows whose slow-start bursts are sent: 14 for bursts:14p; None for other sizes."""
    match = re.fullmatch("bursts:([1-9][0-9]{0,3})p", sizes)
    return int(match[1]) if match and int(match[1]) <= MOST_FLOW_PACKETS else None


def is_sizes(value: object) -> bool:
    """Whether the value is one of SIZES, or has the form of BURSTS_FORM."""
    return isinstance(value, str) and (value in SIZES or flow_packets(value) is not None)


class Arrivals(NamedTuple):
    """The parts of a plan's `arrivals`. None: not given."""

    name: str
    round_packets: int | None = None
    spacing_ppm: int | None = None  # millionths of the time of a packet on the link


def read_arrivals(value: object) -> Arrivals | None:
    """Parses one of ARRIVALS, or a value of the form ARRIVALS_FORM. None for any other value."""
    if not isinstance(value, str):
        return None
    if value in ARRIVALS:
        return Arrivals(value)
    match = re.fullmatch(r"(periodic|jittered):([1-9][0-9]{0,6})p(?::([0-9]{1,6}(?:\.[0-9]{1,6})?))?", value)
    if not match or int(match[2]) > MOST_ROUND_PACKETS:
        return None
    spacing_ppm = round(Fraction(match[3]) * 10**6) if match[3] else None
    return None if spacing_ppm == 0 else Arrivals(match[1], int(match[2]), spacing_ppm)


def is_periodic(arrivals: str) -> bool:
    """Whether each flow sends its packets in rounds."""
    parts = read_arrivals(arrivals)
    return parts is not None and parts.name in ("periodic", "jittered")


SUMMARY = (__doc__ or "").split("\n", 1)[0]


@dataclass(frozen=True)
class DatagramGroup:
    """The datagrams of one process of build/open_loop. `start_ns` and `stop_ns` as in FlowSettings; alone, they have
    neither.
    """

    server_port: int
    first_client_port: int
    flows: int
    rate_bps: int
    load_ppm: int
    mtu_bytes: int = 1500
    seed: int = 1
    arrivals: str = ARRIVALS[0]
    sizes: str = SIZES[0]
    start_ns: int = 0
    stop_ns: int = 0


@dataclass(frozen=True)
class OpenLoopPlan:
    """Times are CLOCK_MONOTONIC ns of the sending host; `start_mono_ns` 0 means as soon as possible."""

    duration_ns: int
    server: str
    group: DatagramGroup
    start_mono_ns: int = 0


def parse(content: Any) -> OpenLoopPlan:
    """The plan in an object read from JSON: that of its group, with three more keys. Raises PlanError."""
    values = an_object(content)
    own = {name: values.pop(name) for name in ("start_mono_ns", "duration_ns", "server") if name in values}
    return record(OpenLoopPlan, own, group=record(DatagramGroup, values))


def arguments(group: DatagramGroup, server: str, start_mono_ns: int, duration_ns: int, report: Path) -> list[str]:
    """Options of build/open_loop; `server` is a numeric address."""
    options = {
        "server": server, "server-port": group.server_port, "first-client-port": group.first_client_port,
        "flows": group.flows, "rate-bps": group.rate_bps, "load-ppm": group.load_ppm,
        "arrivals": group.arrivals.partition(":")[0],
        "sizes": group.sizes.partition(":")[0], "mtu": group.mtu_bytes, "seed": group.seed,
        "start-mono-ns": start_mono_ns, "duration-ns": duration_ns, "report": report,
    }  # fmt: skip
    if (packets := flow_packets(group.sizes)) is not None:
        options["flow-packets"] = packets
    if group.arrivals == RECORDED:
        options["departures"] = report.parent / DEPARTURES
    if parts := read_arrivals(group.arrivals):
        if parts.round_packets is not None:
            options["round-packets"] = parts.round_packets
        if parts.spacing_ppm is not None:
            options["spacing-ppm"] = parts.spacing_ppm
    return [word for name, value in options.items() for word in (f"--{name}", str(value))]


def run(plan: OpenLoopPlan, directory: Path) -> list[str]:
    """Runs the plan and writes its files to `directory`. Returns errors."""
    addresses = local_address(plan.server)
    for name in ("traffic.json", REPORT):
        refuse_to_overwrite(directory / name)
    start_ns = planned_start(plan.start_mono_ns) if plan.start_mono_ns else 0
    words = arguments(plan.group, addresses[1], start_ns, plan.duration_ns, directory / REPORT)
    status, errors = child.carry_out("open_loop", words, (), seconds_until(start_ns) + plan.duration_ns / 1e9)
    report = read_report(directory / REPORT, errors)
    errors += unsent(report)
    write_json(directory / "traffic.json", describe(plan, addresses, status, report, errors))
    return errors


def unsent(report: dict[str, Any]) -> list[str]:
    """An error if the host had no buffer for some datagrams."""
    count = report.get("unsent")
    return [f"{count} datagrams were not sent: this host had no room for them; lower the load"] if count else []


def describe(
    plan: OpenLoopPlan, addresses: tuple[str, str], status: int, report: dict[str, Any], errors: list[str]
) -> dict[str, Any]:
    """The contents of traffic.json."""
    return {
        "generator": "open-loop",
        "planned_start_mono_ns": plan.start_mono_ns,
        "start_mono_ns": report.get("start_mono_ns", 0),
        "end_mono_ns": min(report.get("end_mono_ns", 0), report.get("ended_mono_ns", 0)),
        "first_started_mono_ns": report.get("start_mono_ns", 0),
        "last_ended_mono_ns": report.get("ended_mono_ns", 0),
        "duration_ns": plan.duration_ns,
        "flows": described_flows(plan.group, addresses, report),
        "groups": [described_group(plan.group, status, REPORT)],
        "open_loop": described_draws(plan.group, report),
        "errors": errors,
    }


def described_flows(
    group: DatagramGroup, addresses: tuple[str, str], report: dict[str, Any], first_id: int = 0
) -> list[dict[str, Any]]:
    """The group's flows for traffic.json."""
    sent = {entry["client_port"]: entry for entry in report.get("flows", [])}
    flows = []
    for index in range(group.flows):
        port = group.first_client_port + index
        flow: dict[str, Any] = {"id": first_id + index, "cc": None, "protocol": "udp"}
        flow |= {"src_addr": addresses[0], "dst_addr": addresses[1], "src_port": port, "dst_port": group.server_port}
        flows.append({**flow, **{name: sent.get(port, {}).get(name) for name in ("datagrams", "ip_bytes")}})
    return flows


def described_group(group: DatagramGroup, status: int, report: str) -> dict[str, Any]:
    """The process that sent the group, for traffic.json."""
    described: dict[str, Any] = {"cc": None, "flows": group.flows, "server_port": group.server_port}
    return described | {"first_client_port": group.first_client_port, "exit_status": status, "report": report}


def described_draws(group: DatagramGroup, report: dict[str, Any]) -> dict[str, Any]:
    """The group's drawn and sent datagrams, for traffic.json."""
    drawn = {name: getattr(group, name) for name in ("arrivals", "sizes", "rate_bps", "load_ppm", "mtu_bytes", "seed")}
    counted = ("mean_gap_ns", "datagrams", "ip_bytes", "unsent", "lateness_max_ns", "lateness_ns")
    return {**drawn, **{name: report.get(name) for name in counted}}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m hosts.traffic.open_loop", description=SUMMARY)
    parser.add_argument("plan", type=Path, help="JSON: duration_ns, server, flows, rate_bps, ... (hosts/README.md)")
    parser.add_argument("results", type=Path, help="directory for traffic.json and open_loop.json")
    return send(parser, parse, run, arguments)


if __name__ == "__main__":
    sys.exit(main())
