# SPDX-License-Identifier: MIT
"""How figures and pages with a curve for each algorithm write and draw congestion controls: one name, colour and marker
each. (Scalable has the same colour and marker with either increase.) Figures with lines or bands of flows take their
colours from common.py and bands.py.
"""

from __future__ import annotations

from analysis.figures.common import BLUE, DISTINCT, GREEN, GREY, ORANGE, PURPLE, RED, SKY
from analysis.wording.algorithm_names import name as name  # part of this module's interface

COLORS = {
    "reno": BLUE, "cubic": RED, "bbr": GREEN, "bbr2": SKY, "bbr3": ORANGE, "scalable": PURPLE, "scalable_50": PURPLE,
}  # fmt: skip
MARKERS = {"reno": "o", "cubic": "s", "bbr": "^", "bbr2": "v", "bbr3": "<", "scalable": "D", "scalable_50": "D"}


def color(cc: str) -> str:
    """The algorithm's colour; grey if it is not listed here."""
    return COLORS.get(cc, GREY)


def marker(cc: str) -> str:
    """The algorithm's marker; a circle if it is not listed here."""
    return MARKERS.get(cc, "o")


def colors(kinds: list[str]) -> dict[str, str]:
    """A colour for each algorithm: its own, or an unused one if it has none."""
    free = [color for color in DISTINCT if color not in [COLORS.get(kind) for kind in kinds]]
    return {kind: COLORS.get(kind) or free[number % len(free)] for number, kind in enumerate(kinds)}
