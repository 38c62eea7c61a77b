# SPDX-License-Identifier: MIT
"""How congestion controls are written, in every figure, page and terminal."""

from __future__ import annotations

NAMES = {
    "reno": "Reno", "cubic": "Cubic", "bbr": "BBR", "bbr2": "BBRv2", "bbr3": "BBRv3", "scalable": "Scalable",
    "scalable_50": "Scalable (Linux 5.5)",
}  # fmt: skip


def name(cc: str) -> str:
    """The usual name; the kernel's name if the algorithm is not listed here."""
    return NAMES.get(cc, cc)
