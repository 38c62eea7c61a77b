# SPDX-License-Identifier: MIT
"""Every colour of a figure can be seen on white paper and in a dark page, and so can the text of a page: WCAG 2.1 AA,
contrast 3 for lines and 4.5 for text. A dark page filters figures; the filter is computed as the Filter Effects
specification defines it.
"""

from __future__ import annotations

import re

import numpy as np

from analysis import page
from analysis.figures import algorithms
from analysis.figures.common import BLACK, GREY, LABEL_RED, LINES, SHADE, TEXTS

LINE, TEXT = 3.0, 4.5
STYLE = (page.HERE / "style.css").read_text()


def rgb(color: str) -> np.ndarray:
    digits = color[1:] if len(color) == 7 else "".join(digit * 2 for digit in color[1:])
    return np.array([int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)])


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    def luminance(color: np.ndarray) -> float:
        linear = np.where(color <= 0.03928, color / 12.92, ((color + 0.055) / 1.055) ** 2.4)
        return float(linear @ (0.2126, 0.7152, 0.0722))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def in_the_dark(color: np.ndarray) -> np.ndarray:
    """The colour after the dark page's filter, read from style.css."""
    found = re.search(r"filter: invert\((.*?)\) hue-rotate\(180deg\) brightness\((.*?)\)", STYLE)
    assert found
    inverted = color * (1 - float(found[1])) + (1 - color) * float(found[1])
    grey = np.array([0.213, 0.715, 0.072])
    half_turn = 2 * np.outer(np.ones(3), grey) - np.eye(3)  # hue-rotate(180deg): twice the luminance minus the colour
    return np.clip(np.clip(half_turn @ inverted, 0, 1) * float(found[2]), 0, 1)


def test_colors__have_contrast() -> None:
    weak = []
    for seen in (np.asarray, in_the_dark):
        paper = seen(rgb("#ffffff"))
        weak += [color for color in (*LINES, *algorithms.COLORS.values()) if contrast(seen(rgb(color)), paper) < LINE]
        weak += [color for color in TEXTS if contrast(seen(rgb(color)), paper) < TEXT]
        on_shade = (BLACK, GREY, LABEL_RED)
        weak += [color for color in on_shade if contrast(seen(rgb(color)), seen(rgb(SHADE))) < TEXT]
    assert weak == []


def test_pages__have_contrast() -> None:
    """Text and links have contrast with the page's paper and cards, in light and in the dark."""
    pairs = [(ink, paper) for ink in ("ink", "soft", "link") for paper in ("paper", "card")]
    pairs += [("ink", card) for card in ("good-card", "bad-card", "some-card")] + [("bad", "bad-card")]
    for block in re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)[:2]:
        colors = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6});", block))
        assert [pair for pair in pairs if contrast(rgb(colors[pair[0]]), rgb(colors[pair[1]])) < TEXT] == []
