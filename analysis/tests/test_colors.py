# SPDX-License-Identifier: MIT
"""Every colour of a figure can be seen on white paper and in a dark page, and so can the text of a page: WCAG 2.1 AA,
contrast 3 for lines and 4.5 for text. A dark page filters figures; the filter is computed as the Filter Effects
specification defines it.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from analysis import page
from analysis.figures import algorithms
from analysis.figures.common import BLACK, GREY, LABEL_RED, LINES, SHADE, TEXTS

LINE, TEXT = 3.0, 4.5
STYLE = (page.HERE / "style.css").read_text()


def rgb(color: str) -> np.ndarray:
    return np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])


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


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_colors__have_contrast(dark: bool) -> None:
    seen = in_the_dark if dark else np.asarray
    paper = seen(rgb("#ffffff"))
    weak = [color for color in (*LINES, *algorithms.COLORS.values()) if contrast(seen(rgb(color)), paper) < LINE]
    weak += [color for color in TEXTS if contrast(seen(rgb(color)), paper) < TEXT]
    on_shade = (BLACK, GREY, LABEL_RED)
    weak += [color for color in on_shade if contrast(seen(rgb(color)), seen(rgb(SHADE))) < TEXT]
    assert weak == []


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_pages__have_contrast(scheme: int) -> None:
    """Text and links have contrast with the page's paper and cards."""
    blocks = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    colors = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6});", blocks[scheme]))
    whole = {name: "#" + "".join(c * 2 for c in text[1:]) if len(text) == 4 else text for name, text in colors.items()}
    pairs = [(ink, paper) for ink in ("ink", "soft", "link") for paper in ("paper", "card")]
    pairs += [("ink", card) for card in ("good-card", "bad-card", "some-card")] + [("bad", "bad-card")]
    weak = [pair for pair in pairs if contrast(rgb(whole[pair[0]]), rgb(whole[pair[1]])) < TEXT]
    assert weak == []
