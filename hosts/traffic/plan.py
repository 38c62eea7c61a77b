# SPDX-License-Identifier: MIT
"""The plan of long_flows, checked as a whole: reports all errors at once (an unknown generator alone), each
with its key.

An iperf3 process has at most 128 streams and serves one client at a time. So a larger group is split: part k uses
server port `server_port + k` and client ports from `first_client_port + 128 k`. Our own generator, epoll, has one
process for all TCP flows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from hosts.traffic import flow_settings, open_loop, transfers
from hosts.traffic.flow_settings import NO_SETTINGS, FlowSettings
from hosts.traffic.open_loop import DatagramGroup
from hosts.traffic.plan_reader import CC_NAME, MOST_NS, SERVER, PlanError, Reader
from hosts.traffic.transfers import TransferGroup

STREAMS_PER_PROCESS = 128  # MAX_STREAMS of iperf3 3.12, src/iperf.h
GENERATORS = ("iperf3", "epoll")
MOST_PORT = 65535


@dataclass(frozen=True)
class Process:
    """One iperf3 client, or one group of epoll. Its flow i is `first_client_port + i` -> `server_port`."""

    group: int
    cc: str
    flows: int
    server_port: int
    first_client_port: int
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
    datagrams: tuple[DatagramGroup, ...]
    mss_bytes: int | None
    setup_seconds: int
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


def _overlaps(processes: list[Process], read: Reader) -> None:
    """Reports ports above 65535, and ports that two groups share, once per pair of groups. A port that could not be
    read is reported already.
    """
    client_ports: dict[int, int] = {}
    servers: dict[int, int] = {}
    problems: dict[str, str] = {}
    for process in processes:
        name = f"groups[{process.group}]"
        ports = range(process.first_client_port, process.first_client_port + process.flows)
        has_server = not read.refused(f"{name}.server_port")
        has_clients = not read.refused(f"{name}.first_client_port") and not read.refused(f"{name}.flows")
        if has_server and (other := servers.setdefault(process.server_port, process.group)) != process.group:
            problems.setdefault(f"{name}.server_port/{other}", f"{process.server_port} also belongs to groups[{other}]")
        if has_clients:
            clash = next((port for port in ports if client_ports.get(port, process.group) != process.group), None)
            if clash is not None:
                other = client_ports[clash]
                problems.setdefault(
                    f"{name}.first_client_port/{other}", f"port {clash} also belongs to groups[{other}]"
                )
            client_ports |= dict.fromkeys(ports, process.group)
        if (has_clients and ports[-1] > MOST_PORT) or process.server_port > MOST_PORT:
            problems.setdefault(name, f"its ports go beyond {MOST_PORT}; begin lower")
    read.errors += [f"{place.partition('/')[0]}: {problem}" for place, problem in problems.items()]


_GROUP_KEYS = ("cc", "flows", "server_port", "first_client_port")


def _groups(values: Any, generator: str, may_be_empty: bool, default: FlowSettings, read: Reader) -> list[Process]:
    if not isinstance(values, list) or not (values or may_be_empty):
        read.errors.append("groups: give a list with at least one group")
        return []
    processes: list[Process] = []
    for index, group in enumerate(values):
        path = f"groups[{index}]."
        if not isinstance(group, dict):
            read.errors.append(f"groups[{index}]: give an object with cc, flows, server_port, first_client_port")
            continue
        setting_keys = flow_settings.KEYS if generator == "epoll" else ()
        read.unknown(group, {*_GROUP_KEYS, *setting_keys}, path)
        cc = read.text(group, "cc", CC_NAME, "the name of a congestion control ([a-z0-9_]+)", path)
        flows = read.number(group, "flows", 1, 10000, path)
        server_port = read.number(group, "server_port", 1, 65535, path)
        first_client_port = read.number(group, "first_client_port", 1, 65535, path)
        settings = flow_settings.parse(group, read, path, default) if setting_keys else default
        whole = Process(index, cc, flows, server_port, first_client_port, settings)
        processes += split(whole, STREAMS_PER_PROCESS) if generator == "iperf3" else [whole]
    return processes


def parse(values: Any) -> LongFlowsPlan:
    """The plan in an object read from JSON. Raises PlanError with all errors."""
    if not isinstance(values, dict):
        raise PlanError(["the plan is not an object"])
    read = Reader()
    generator = read.choice(values, "generator", GENERATORS)
    if read.errors:
        raise PlanError(read.errors)  # the generator decides which keys are allowed
    generator_keys = (
        {"seconds"} if generator == "iperf3" else {"transfers", "datagrams", *flow_settings.KEYS, *_EPOLL_NUMBERS}
    )
    common_keys = {"generator", "start_mono_ns", "server", "groups", "mss_bytes", "setup_seconds"}
    common_keys |= {"pacing", "kernel_names"}
    read.unknown(values, common_keys | generator_keys)
    of_epoll = values if generator == "epoll" else {}
    settings = flow_settings.parse(of_epoll or {"pacing": values.get("pacing", False)}, read)
    finite = _transfers(of_epoll.get("transfers", []), settings, read)
    datagrams = _datagrams(of_epoll.get("datagrams", []), read)
    others = bool(of_epoll.get("transfers") or of_epoll.get("datagrams"))
    processes = _groups(values.get("groups"), generator, others, settings, read)
    _overlaps(processes, read)
    _overlaps_of_transfers(finite, processes, read.errors)
    _overlaps_of_datagrams(datagrams, read.errors)
    most_flows = max((process.flows for process in processes), default=0)
    plan = LongFlowsPlan(
        generator=generator,
        start_mono_ns=read.number(values, "start_mono_ns", 0, 2**62, default=0),
        seconds=read.number(values, "seconds", 1, 86400) if generator == "iperf3" else 0,
        **_epoll_numbers(of_epoll, read),
        server=read.text(values, "server", SERVER, "an address or host name"),
        processes=tuple(processes),
        transfers=finite,
        datagrams=datagrams,
        mss_bytes=read.number(values, "mss_bytes", 88, 9216) if values.get("mss_bytes") is not None else None,
        # iperf3 connects its streams one after the other (esnet/iperf#254): 1/8 s per stream is far above a round trip
        setup_seconds=read.number(values, "setup_seconds", 1, 3600, default=15 + most_flows // 8),
        kernel_names=_kernel_names(values.get("kernel_names", {}), read),
    )
    if read.errors:
        raise PlanError(read.errors)
    return plan


def _kernel_names(values: Any, read: Reader) -> dict[str, str]:
    if not isinstance(values, dict):
        read.errors.append("kernel_names: give an object of names")
        return {}
    return {
        name: read.text(values, name, CC_NAME, "the name of a congestion control", "kernel_names.") for name in values
    }


def _transfers(values: Any, default: FlowSettings, read: Reader) -> tuple[TransferGroup, ...]:
    if not isinstance(values, list):
        read.errors.append("transfers: give a list of groups")
        return ()
    groups = [transfers.parse(group, f"transfers[{index}]", read, default) for index, group in enumerate(values)]
    return tuple(group for group in groups if group)


def _overlaps_of_transfers(groups: tuple[TransferGroup, ...], processes: list[Process], errors: list[str]) -> None:
    """Compares first server ports. A group's number of server ports is known only from its draws (epoll_flows.py)."""
    owners = {process.server_port: f"groups[{process.group}]" for process in processes}
    for index, group in enumerate(groups):
        port, name = group.first_server_port, f"transfers[{index}]"
        if port in owners:
            errors.append(f"{name}.first_server_port: {port} also belongs to {owners[port]}")
        owners[port] = name


def _datagrams(values: Any, read: Reader) -> tuple[DatagramGroup, ...]:
    if not isinstance(values, list):
        read.errors.append("datagrams: give a list of groups")
        return ()
    groups = [open_loop.parse_group(group, f"datagrams[{index}]", read) for index, group in enumerate(values)]
    return tuple(group for group in groups if group)


def _overlaps_of_datagrams(groups: tuple[DatagramGroup, ...], errors: list[str]) -> None:
    """Each group's process binds its client ports, so two groups cannot share one, whatever their server ports."""
    for index, group in enumerate(groups):
        for earlier, other in enumerate(groups[:index]):
            first = max(group.first_client_port, other.first_client_port)
            if first < min(group.first_client_port + group.flows, other.first_client_port + other.flows):
                errors.append(
                    f"datagrams[{index}].first_client_port: port {first} also belongs to datagrams[{earlier}]"
                )


# Key -> least, most, default (None: must be given).
_EPOLL_NUMBERS: dict[str, tuple[int, int, int | None]] = {
    "duration_ns": (1, MOST_NS, None),
    "start_spread_ns": (0, MOST_NS, 0),
    "seed": (0, 2**64 - 1, 0),
    "connect_interval_ns": (1, 10**9, 100_000),
    "drain_ns": (0, MOST_NS, 0),
}


def _epoll_numbers(values: dict[str, Any], read: Reader) -> dict[str, int]:
    """The numbers for epoll in `values`; all 0 if `values` is empty, because the plan is for iperf3."""
    return {
        key: read.number(values, key, low, high, default=default) if values else 0
        for key, (low, high, default) in _EPOLL_NUMBERS.items()
    }
