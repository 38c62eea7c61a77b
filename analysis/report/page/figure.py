# SPDX-License-Identifier: MIT
"""A figure of a page: an image as a data URI, and its size for the view box that shows it. A second image may be drawn
for a phone; the style sheet shows one of the two.

Embedding as an image, not as elements of the page, keeps names of two figures from clashing and scripts from running.
"""

from __future__ import annotations

import base64
import math
import re
from pathlib import Path
from typing import NamedTuple

from analysis.figures.canvas import PHONE
from lib import regular
from lib.errors import InputError

LEAST_TEXT_PT, LEAST_TEXT_PX = 8, 9
POINTS_PER_INCH, PNG_DPI = 72, 150
MAX_BYTES = 1_000_000  # a larger SVG is replaced by its PNG if the PNG is smaller
_VIEW_BOX = re.compile(rb"<svg\b[^>]*?\bviewBox=\"0 0 ([0-9.]+) ([0-9.]+)\"", re.DOTALL)
_PNG = b"\x89PNG\r\n\x1a\n"


class Figure(NamedTuple):
    """`name` is without suffix; `width` and `height` are in the image's own units."""

    name: str
    uri: str
    width: float
    height: float
    phone: Figure | None = None

    @property
    def embedded_bytes(self) -> int:
        return len(self.uri) + (len(self.phone.uri) if self.phone else 0)

    @property
    def readable_px(self) -> int:
        """The width on a page at which the smallest text (LEAST_TEXT_PT) is LEAST_TEXT_PX high."""
        points = self.width * POINTS_PER_INCH / PNG_DPI if self.uri.startswith("data:image/png") else self.width
        return math.ceil(points * LEAST_TEXT_PX / LEAST_TEXT_PT)


def embed(path: Path) -> Figure:
    """The figure in <name>.svg, or in <name>.png beside it if the SVG is larger than MAX_BYTES and the PNG smaller;
    with <name>-phone.svg if it exists: figures of papers and of older runs have none.

    Raises OSError if a file cannot be read, InputError if the SVG is not of matplotlib's form, if the .png file is not
    a PNG, or if the image is empty.
    """
    data, kind = _read(path), "svg+xml"
    view_box = _VIEW_BOX.search(data)
    if view_box is None:
        raise InputError(f"{path}: is not an SVG with a view box that begins at 0 0")
    width, height = float(view_box[1]), float(view_box[2])
    pixels = path.with_suffix(".png")
    if len(data) > MAX_BYTES and pixels.exists() and pixels.stat().st_size < len(data):
        data, kind = _read(pixels), "png"
        if not data.startswith(_PNG):
            raise InputError(f"{pixels}: is not a PNG")
        width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    if width <= 0 or height <= 0:
        raise InputError(f"{path}: is empty, {width:g} x {height:g}")
    of_phone = path.with_stem(path.stem + PHONE)
    phone = embed(of_phone) if of_phone.exists() else None
    return Figure(path.stem, f"data:image/{kind};base64,{base64.b64encode(data).decode()}", width, height, phone)


def _read(path: Path) -> bytes:
    with regular.opened(path) as file:
        return file.read()
