# SPDX-License-Identifier: MIT
"""The plan of long_flows, checked as a whole: reports all errors at once, each with its key.

An iperf3 process has at most 128 streams and serves one client at a time. So a larger group is split: part k uses
server port `server_port + k` and client ports from `first_client_port + 128 k`. Our own generator, epoll, has one
process for all flows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

AnyPlan = TypeVar("AnyPlan")

STREAMS_PER_PROCESS = 128  # MAX_STREAMS of iperf3 3.12, src/iperf.h
GENERATORS = ("iperf3", "epoll")
MOST_NS = 10**15  # of any duration: 11 days
SERVER = re.compile(r"[0-9A-Za-z:][0-9A-Za-z.:%_-]{0,254}")
CC_NAME = re.compile(r"[a-z0-9_]{1,15}")  # TCP_CA_NAME_MAX is 16 with the zero


class PlanError(ValueError):
    """All errors of a plan, one line each."""

    def __init__(self, errors: list[str]):
        super().__init__("\n".join(errors))
        self.errors = errors


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
    end to the RSTs.
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
    mss_bytes: int | None
    ecn: bool
    setup_seconds: int


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


class Reader:
    """Reads values of an object and collects their errors."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def number(self, values: dict[str, Any], key: str, low: int, high: int, path: str = "", default: Any = None) -> int:
        value = values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.errors.append(f"{path}{key}: {value!r} is not a whole number from {low} to {high}")
            return low
        return value

    def text(self, values: dict[str, Any], key: str, pattern: re.Pattern[str], what: str, path: str = "") -> str:
        value = values.get(key)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            self.errors.append(f"{path}{key}: {value!r} is not {what}")
            return ""
        return value

    def choice(self, values: dict[str, Any], key: str, choices: tuple[str, ...]) -> str:
        """One of `choices`; the first if the key is missing."""
        value = values.get(key, choices[0])
        if value not in choices:
            self.errors.append(f"{key}: {value!r} is not one of {', '.join(choices)}")
            return choices[0]
        return str(value)

    def unknown(self, values: dict[str, Any], known: set[str], path: str = "") -> None:
        for key in sorted(values.keys() - known):
            self.errors.append(f"{path}{key}: no such key; known are {', '.join(sorted(known))}")


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


def _groups(values: Any, generator: str, read: Reader) -> list[Process]:
    if not isinstance(values, list) or not values:
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
    generator_keys = {"seconds"} if generator == "iperf3" else {name for name, *_ in _EPOLL_NUMBERS}
    common_keys = {"generator", "start_mono_ns", "server", "groups", "mss_bytes", "ecn", "setup_seconds"}
    read.unknown(values, common_keys | generator_keys)
    processes = _groups(values.get("groups"), generator, read)
    most_flows = max((process.flows for process in processes), default=0)
    plan = LongFlowsPlan(
        generator=generator,
        start_mono_ns=read.number(values, "start_mono_ns", 0, 2**62, default=0),
        seconds=read.number(values, "seconds", 1, 86400) if generator == "iperf3" else 0,
        **_epoll_numbers(values if generator == "epoll" else {}, read),
        server=read.text(values, "server", SERVER, "an address or host name"),
        processes=tuple(processes),
        mss_bytes=read.number(values, "mss_bytes", 88, 9216) if values.get("mss_bytes") is not None else None,
        ecn=values.get("ecn", False),
        # iperf3 connects its streams one after the other (esnet/iperf#254): 1/8 s per stream is far above a round trip
        setup_seconds=read.number(values, "setup_seconds", 1, 3600, default=15 + most_flows // 8),
    )
    if not isinstance(plan.ecn, bool):
        read.errors.append(f"ecn: {values['ecn']!r} is not true or false")
    if read.errors:
        raise PlanError(read.errors)
    return plan


# Key, least, most, default (None: must be given).
_EPOLL_NUMBERS = (
    ("duration_ns", 1, MOST_NS, None),
    ("start_spread_ns", 0, MOST_NS, 0),
    ("seed", 0, 2**64 - 1, 0),
    ("connect_interval_ns", 1, 10**9, 100_000),
    ("drain_ns", 0, MOST_NS, 0),
)


def _epoll_numbers(values: dict[str, Any], read: Reader) -> dict[str, int]:
    """The numbers for epoll in `values`; all 0 if `values` is empty, because the plan is for iperf3."""
    return {
        key: read.number(values, key, low, high, default=default) if values else 0
        for key, low, high, default in _EPOLL_NUMBERS
    }


def read_json(path: Path, parse: Callable[[Any], AnyPlan]) -> AnyPlan:
    """Reads a plan from a JSON file with `parse`. Raises PlanError with the file's name in each line."""
    try:
        return parse(json.loads(path.read_text()))
    except OSError as error:
        raise PlanError([f"reading {path}: {error.strerror}"]) from error
    except ValueError as error:
        if isinstance(error, PlanError):
            raise PlanError([f"{path}: {line}" for line in error.errors]) from error
        raise PlanError([f"{path}: this is no JSON: {error}"]) from error
