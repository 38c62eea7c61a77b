# SPDX-License-Identifier: MIT
"""The plan of long_flows, checked as a whole: reports all errors at once, each with its key.

An iperf3 process has at most 128 streams and serves one client at a time. So a larger group is split: part k uses
server port `server_port + k` and client ports from `first_client_port + 128 k`. Our own generator, epoll, has one
process for all flows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hosts.traffic import transfers
from hosts.traffic.plan_reader import CC_NAME, MOST_NS, SERVER, PlanError, Reader
from hosts.traffic.transfers import TransferGroup

STREAMS_PER_PROCESS = 128  # MAX_STREAMS of iperf3 3.12, src/iperf.h
GENERATORS = ("iperf3", "epoll")
MOST_WINDOW_SEGMENTS = 1_000_000


@dataclass(frozen=True)
class Process:
    """One iperf3 client, or one group of epoll. Its flow i is `first_client_port + i` -> `server_port`."""

    group: int
    cc: str
    flows: int
    server_port: int
    first_client_port: int


@dataclass(frozen=True)
class LongFlowsPlan:
    """Times are CLOCK_MONOTONIC ns of the sending host; `start_mono_ns` 0 means as soon as possible.

    iperf3 only: `seconds`. epoll only: `duration_ns` from the last flow's start to the end; `start_spread_ns`, in
    which every flow starts at a time drawn with `seed`; `connect_interval_ns` between two SYNs; `drain_ns` from the
    end to the RSTs; `transfers`, the groups of finite flows, which may be all that there is; `pacing`; and
    `window_segments`, most segments of a flow in flight (0: no bound), which needs the virtual-time kernel.
    """

    generator: str
    start_mono_ns: int
    seconds: int
    duration_ns: int
    start_spread_ns: int
    seed: int
    connect_interval_ns: int
    drain_ns: int
    server: str
    processes: tuple[Process, ...]
    transfers: tuple[TransferGroup, ...]
    mss_bytes: int | None
    ecn: bool
    setup_seconds: int
    pacing: bool = False
    window_segments: int = 0


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
    """The ports on which servers must listen."""
    return [process.server_port for process in plan.processes]


def _overlaps(processes: list[Process], errors: list[str]) -> None:
    client_ports: dict[int, Process] = {}
    servers: dict[int, Process] = {}
    for process in processes:
        name = f"groups[{process.group}]"
        if process.server_port in servers:
            other = servers[process.server_port].group
            errors.append(f"{name}.server_port: {process.server_port} is also of groups[{other}]")
        servers[process.server_port] = process
        last = process.first_client_port + process.flows - 1
        if last > 65535 or process.server_port > 65535:
            errors.append(f"{name}: its ports go beyond 65535; begin lower")
        clash = next((p for p in range(process.first_client_port, last + 1) if p in client_ports), None)
        if clash is not None:
            errors.append(f"{name}.first_client_port: port {clash} is also of groups[{client_ports[clash].group}]")
        client_ports.update(dict.fromkeys(range(process.first_client_port, last + 1), process))


def _groups(values: Any, generator: str, may_be_empty: bool, read: Reader) -> list[Process]:
    if not isinstance(values, list) or not (values or may_be_empty):
        read.errors.append("groups: give a list with at least one group")
        return []
    processes: list[Process] = []
    for index, group in enumerate(values):
        path = f"groups[{index}]."
        if not isinstance(group, dict):
            read.errors.append(f"groups[{index}]: give an object with cc, flows, server_port, first_client_port")
            continue
        read.unknown(group, {"cc", "flows", "server_port", "first_client_port"}, path)
        cc = read.text(group, "cc", CC_NAME, "the name of a congestion control ([a-z0-9_]+)", path)
        flows = read.number(group, "flows", 1, 10000, path)
        server_port = read.number(group, "server_port", 1, 65535, path)
        first_client_port = read.number(group, "first_client_port", 1, 65535, path)
        whole = Process(index, cc, flows, server_port, first_client_port)
        processes += split(whole, STREAMS_PER_PROCESS) if generator == "iperf3" else [whole]
    _overlaps(processes, read.errors)
    return processes


def parse(values: Any) -> LongFlowsPlan:
    """The plan in an object read from JSON. Raises PlanError with all errors."""
    if not isinstance(values, dict):
        raise PlanError(["the plan is not an object"])
    read = Reader()
    generator = read.choice(values, "generator", GENERATORS)
    generator_keys = (
        {"seconds"} if generator == "iperf3" else {"transfers", "pacing", *(name for name, *_ in _EPOLL_NUMBERS)}
    )
    common_keys = {"generator", "start_mono_ns", "server", "groups", "mss_bytes", "ecn", "setup_seconds"}
    read.unknown(values, common_keys | generator_keys)
    finite = _transfers(values.get("transfers", []) if generator == "epoll" else [], read)
    processes = _groups(values.get("groups"), generator, bool(finite), read)
    most_flows = max((process.flows for process in processes), default=0)
    plan = LongFlowsPlan(
        generator=generator,
        start_mono_ns=read.number(values, "start_mono_ns", 0, 2**62, default=0),
        seconds=read.number(values, "seconds", 1, 86400) if generator == "iperf3" else 0,
        **_epoll_numbers(values if generator == "epoll" else {}, read),
        server=read.text(values, "server", SERVER, "an address or host name"),
        processes=tuple(processes),
        transfers=finite,
        mss_bytes=read.number(values, "mss_bytes", 88, 9216) if values.get("mss_bytes") is not None else None,
        ecn=values.get("ecn", False),
        # iperf3 connects its streams one after the other (esnet/iperf#254): 1/8 s per stream is far above a round trip
        setup_seconds=read.number(values, "setup_seconds", 1, 3600, default=15 + most_flows // 8),
        pacing=values.get("pacing", False),
    )
    for key in ("ecn", "pacing"):
        if not isinstance(getattr(plan, key), bool):
            read.errors.append(f"{key}: {values[key]!r} is not true or false")
    if read.errors:
        raise PlanError(read.errors)
    return plan


def _transfers(values: Any, read: Reader) -> tuple[TransferGroup, ...]:
    if not isinstance(values, list):
        read.errors.append("transfers: give a list of groups")
        return ()
    groups = [transfers.parse(group, f"transfers[{index}]", read) for index, group in enumerate(values)]
    return tuple(group for group in groups if group)


# Key, least, most, default (None: must be given).
_EPOLL_NUMBERS = (
    ("duration_ns", 1, MOST_NS, None),
    ("start_spread_ns", 0, MOST_NS, 0),
    ("seed", 0, 2**64 - 1, 0),
    ("connect_interval_ns", 1, 10**9, 100_000),
    ("drain_ns", 0, MOST_NS, 0),
    ("window_segments", 0, MOST_WINDOW_SEGMENTS, 0),
)


def _epoll_numbers(values: dict[str, Any], read: Reader) -> dict[str, int]:
    """The numbers for epoll in `values`; all 0 if `values` is empty, because the plan is for iperf3."""
    return {
        key: read.number(values, key, low, high, default=default) if values else 0
        for key, low, high, default in _EPOLL_NUMBERS
    }
