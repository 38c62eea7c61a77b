# SPDX-License-Identifier: MIT
"""A part of the bench: what it measures, and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.report import BenchRow


@dataclass(frozen=True)
class Part:
    """`measure(short)` returns the rows, and raises RunError, RuntimeError or CalledProcessError. `needs_root`: for
    namespaces, packet rings or BPF. `goals`: goals of make, which build what the part runs. `absent()` says what this
    machine lacks; '' if nothing.
    """

    measure: Callable[[bool], list[BenchRow]]
    needs_root: bool = False
    goals: tuple[str, ...] = ()
    absent: Callable[[], str] = str
