# SPDX-License-Identifier: MIT
"""The testbed's runs: at a tenth of its rate, users and buffers, and at full scale."""

from __future__ import annotations

from analysis.figures.common import BLUE, GREEN, ORANGE

STEM, FULL_STEM = "testbed", "full-scale"
SCALE = 10  # rates, users and buffers of the testbed / those of most of our runs
FULL_BPS = 1_000_000_000
PRINTED_USERS = {100: 1000, 120: 1200, 300: 3000}
COLORS = {100: GREEN, 120: ORANGE, 300: BLUE}
PACKET_BYTES = 1500
BESIDE_NS3 = (3, 50, 2656)  # buffers (packets, a tenth of the scale) of ns-3's runs


def name(users: int) -> str:
    """The paper's name of a run; `users` is a tenth of the paper's number."""
    return f"U{PRINTED_USERS.get(users, users * SCALE)}"


def buffer_kb(packets: float) -> float:
    """A buffer at a tenth of the scale in the paper's unit: KB of 1,024 bytes, at the testbed's scale."""
    return packets * SCALE * PACKET_BYTES / 1024


def size_text(kb: float) -> str:
    return f"{kb:.3g} KB" if kb < 1024 else f"{kb / 1024:.3g} MB"
