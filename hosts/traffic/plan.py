# SPDX-License-Identifier: MIT
"""The plan of long_flows.

An iperf3 process has at most 128 streams and serves one client at a time. So a larger group is split: part k uses
server port `server_port + k` and client ports from `first_client_port + 128 k`. Our own generator, epoll, has one
process for all TCP flows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from hosts.traffic import flow_settings, transfers
from hosts.traffic.flow_settings import NO_SETTINGS, FlowSettings
from hosts.traffic.open_loop import DatagramGroup
from hosts.traffic.plan_reader import PlanError, a_list, an_object, record
from hosts.traffic.transfers import TransferGroup

STREAMS_PER_PROCESS = 128  # MAX_STREAMS of iperf3 3.12, src/iperf.h
CC_NAME = re.compile(r"[a-z0-9_]{1,15}")  # TCP_CA_NAME_MAX is 16, with the final NUL


@dataclass(frozen=True)
class Process:
    """One iperf3 client, or one group of epoll. Its flow i is `first_client_port + i` -> `server_port`."""

    cc: str
    flows: int
    server_port: int
    first_client_port: int
    group: int = 0
    settings: FlowSettings = NO_SETTINGS

    def document(self) -> dict[str, Any]:
        """For traffic.json."""
        names = ("group", "cc", "flows", "server_port", "first_client_port")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class LongFlowsPlan:
    """Times are CLOCK_MONOTONIC ns of the sending host; `start_mono_ns` 0 means as soon as possible.

    iperf3 only: `seconds`. iperf3 takes no `ecn`: net.ipv4.tcp_ecn decides.
    epoll only: `duration_ns` is the time from the start of the last flow, apart from groups with a start of their own,
    to the end. Each flow starts within `start_spread_ns`, at a time drawn with `seed`. `connect_interval_ns` is the
    time between two SYNs, `drain_ns` from the end to the RSTs. `transfers` are the groups of finite flows. `datagrams`
    are the groups of open-loop traffic, which is sent from the common start to the end, or at the group's own times. A
    plan with `transfers` or `datagrams` needs no long flows. Each group of TCP flows has its settings
    (flow_settings.py), by default those of the plan.
    Both generators: `kernel_names` maps congestion controls to their names in the kernel, where the plan's names
    differ.
    """

    server: str
    processes: tuple[Process, ...]
    transfers: tuple[TransferGroup, ...]
    datagrams: tuple[DatagramGroup, ...]
    setup_seconds: int
    generator: str = "iperf3"
    start_mono_ns: int = 0
    seconds: int = 0
    duration_ns: int = 0
    start_spread_ns: int = 0
    seed: int = 0
    connect_interval_ns: int = 100_000
    drain_ns: int = 0
    kernel_names: dict[str, str] = field(default_factory=dict)

    def kernel_name(self, cc: str) -> str:
        """The kernel's name of a congestion control: by default the plan's name."""
        return self.kernel_names.get(cc, cc)


def split(group: Process, most_flows: int) -> list[Process]:
    """The processes of one group, none with more than `most_flows`."""
    return [
        replace(
            group,
            flows=min(most_flows, group.flows - first),
            server_port=group.server_port + first // most_flows,
            first_client_port=group.first_client_port + first,
        )
        for first in range(0, group.flows, most_flows)
    ]


def server_ports(plan: LongFlowsPlan) -> list[int]:
    """The server ports of long flows, without those of finite flows and datagrams."""
    return [process.server_port for process in plan.processes]


def parse(content: Any) -> LongFlowsPlan:
    """The plan in an object read from JSON. Raises PlanError."""
    values = an_object(content)
    default = flow_settings.take(values, "the plan")
    groups, finite, datagrams = (a_list(values.pop(key, None), key) for key in ("groups", "transfers", "datagrams"))
    processes = tuple(_group(group, number, default) for number, group in enumerate(groups))
    # iperf3 connects its streams one after the other (esnet/iperf#254): 1/8 s per stream is far above a round trip
    values.setdefault("setup_seconds", 15 + max((process.flows for process in processes), default=0) // 8)
    plan = record(
        LongFlowsPlan, values,
        processes=processes,
        transfers=tuple(transfers.parse(group, f"transfers[{at}]", default) for at, group in enumerate(finite)),
        datagrams=tuple(record(DatagramGroup, group, f"datagrams[{at}]") for at, group in enumerate(datagrams)),
    )  # fmt: skip
    if not {"iperf3": plan.seconds, "epoll": plan.duration_ns}.get(plan.generator):
        raise PlanError(f"generator: {plan.generator} is unknown or has no time to send")
    names = [*(group.cc for group in processes), *(group.cc for group in plan.transfers), *plan.kernel_names.values()]
    for cc in names:
        if not CC_NAME.fullmatch(cc):  # a file's name and a flow's line have it
            raise PlanError(f"cc: {cc!r} is not the name of a congestion control")
    if plan.generator == "iperf3":
        return replace(plan, processes=tuple(part for group in processes for part in split(group, STREAMS_PER_PROCESS)))
    return plan


def _group(content: Any, number: int, default: FlowSettings) -> Process:
    where = f"groups[{number}]"
    values = an_object(content, where)
    settings = flow_settings.take(values, where, default)
    return record(Process, values, where, group=number, settings=settings)
