# SPDX-License-Identifier: MIT
"""Lets tests run a testbed's code without hosts: no machine is reserved or queried, and no file is fetched."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from experiments.lab import testbed
from experiments.lab.machines import Machine

FACTS = {"lost_frames": {"eth0": 0}, "tcp_memory_pressures": 0, "clock": {}, "settings": {}}
NO_FRAMES = {"received": 0, "sent": 0}


def without_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testbed, "leased", lambda *_: nullcontext())
    monkeypatch.setattr(testbed, "fetch", lambda *_: None)
    monkeypatch.setattr(Machine, "mac", lambda _: "02:00:00:00:00:01")
    monkeypatch.setattr(
        Machine, "facts", lambda machine: FACTS | {"passed_frames": dict.fromkeys(machine.interfaces, NO_FRAMES)}
    )
