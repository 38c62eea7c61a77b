# SPDX-License-Identifier: MIT
"""How congestion controls are written and drawn: one name, colour and marker each, in every figure and page."""

from __future__ import annotations

from analysis.figures.common import BLUE, GREEN, GREY, PURPLE, RED, SKY

NAMES = {"reno": "Reno", "cubic": "Cubic", "bbr": "BBR", "bbr2": "BBRv2", "scalable": "Scalable"}
COLORS = {"reno": BLUE, "cubic": RED, "bbr": GREEN, "bbr2": SKY, "scalable": PURPLE}
MARKERS = {"reno": "o", "cubic": "s", "bbr": "^", "bbr2": "v", "scalable": "D"}


def name(cc: str) -> str:
    """The name that people write; of an algorithm that is not listed here, the kernel's."""
    return NAMES.get(cc, cc)


def color(cc: str) -> str:
    """The algorithm's colour; grey if it is not listed here."""
    return COLORS.get(cc, GREY)


def marker(cc: str) -> str:
    """The algorithm's marker; a circle if it is not listed here."""
    return MARKERS.get(cc, "o")
