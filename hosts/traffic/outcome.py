# SPDX-License-Identifier: MIT
"""Shared by all traffic programs: their errors, addresses, start times and result files."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

EXIT_REFUSED = 1  # nothing was sent
EXIT_INCOMPLETE = 2  # not all was sent as planned
START_DELAY_NS = 200_000_000  # from now to the start, if the plan has no start
MOST_LATE_NS = 1_000_000_000  # a start planned longer ago than this is a mistake in the plan


class TrafficError(RuntimeError):
    """A reason not to start the traffic; the text is for the user."""


class StoppedError(Exception):
    """SIGTERM or SIGINT."""


@contextmanager
def signals_raise() -> Iterator[None]:
    """SIGTERM and SIGINT raise StoppedError with the signal's name. Restores the former handlers at the end."""

    def stop(number: int, _frame: FrameType | None) -> None:
        raise StoppedError(signal.Signals(number).name)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def local_address(server: str) -> tuple[str, str]:
    """(source address, server address) of flows to `server`, from the routing table; `server` gets no packet."""
    try:
        family, _, _, _, address = socket.getaddrinfo(server, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)
            return probe.getsockname()[0], str(address[0])
    except OSError as error:
        raise TrafficError(
            f"server {server}: {error.strerror or error}: give an address this host has a route to"
        ) from error


def planned_start(start_mono_ns: int) -> int:
    """The start in ns of CLOCK_MONOTONIC: as planned, or soon if the plan says 0. Refuses a start long past."""
    now_ns = time.monotonic_ns()
    start_ns = start_mono_ns or now_ns + START_DELAY_NS
    if now_ns - start_ns > MOST_LATE_NS:
        late_s = (now_ns - start_ns) / 1e9
        raise TrafficError(f"start_mono_ns was {late_s:.1f} s ago: give a future time of this host's CLOCK_MONOTONIC")
    return start_ns


def seconds_until(start_mono_ns: int) -> float:
    """Seconds until a start; 0 if the start is past or 0 (as soon as possible)."""
    return max(0.0, (start_mono_ns - time.monotonic_ns()) / 1e9)


def read_report(path: Path, errors: list[str]) -> dict[str, Any]:
    """The report of one of our own programs. If it cannot be read: {}, and an error unless `errors` has one already."""
    try:
        report = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        if not errors:
            errors.append(f"{path.name}: {error}")
        return {}
    return report if isinstance(report, dict) else {}


def refuse_to_overwrite(path: Path) -> None:
    if path.exists():
        raise TrafficError(f"{path} exists: a result is never overwritten: give another directory")


def write_json(path: Path, values: dict[str, Any]) -> None:
    partial = path.with_name(path.name + ".partial")
    with partial.open("x") as file:
        json.dump(values, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)
