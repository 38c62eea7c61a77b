# SPDX-License-Identifier: MIT
"""Calls into network namespaces, for tests."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from lib import syscalls

T = TypeVar("T")


def inside(name: str, function: Callable[[], T]) -> T:
    """Calls `function` in a thread that enters the namespace `name`. Sockets of `function` stay in that namespace."""

    def enter() -> T:
        with syscalls.in_network_namespace(Path("/run/netns", name)):
            return function()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(enter).result()
