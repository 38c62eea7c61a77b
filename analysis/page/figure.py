# SPDX-License-Identifier: MIT
"""A figure for a page: an image in a data URI, and its size, which the view box of the drawing that shows it needs.

It is embedded as an image, not as elements of the page: names inside of two figures cannot clash, nor can one run a
script.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import NamedTuple

from lib import regular
from lib.errors import InputError

MAX_BYTES = 1_000_000  # of a drawing: where its picture in pixels is smaller, that is taken instead
_VIEW_BOX = re.compile(rb"<svg\b[^>]*?\bviewBox=\"0 0 ([0-9.]+) ([0-9.]+)\"", re.DOTALL)
_PNG = b"\x89PNG\r\n\x1a\n"


class Figure(NamedTuple):
    """`name` without suffix, the data URI, and the size of the picture in units of its own."""

    name: str
    uri: str
    width: float
    height: float


def embed(path: Path) -> Figure:
    """The figure of <name>.svg, or of the <name>.png beside it if the former is big and the latter smaller.

    Raises OSError if it cannot be read, InputError if it is no SVG as matplotlib writes them.
    """
    data, kind = _read(path), "svg+xml"
    found = _VIEW_BOX.search(data)
    if found is None:
        raise InputError(f"{path}: is no SVG with a view box that begins at 0 0")
    width, height = float(found[1]), float(found[2])
    pixels = path.with_suffix(".png")
    if len(data) > MAX_BYTES and pixels.exists() and pixels.stat().st_size < len(data):
        data, kind = _read(pixels), "png"
        if not data.startswith(_PNG):
            raise InputError(f"{pixels}: is no PNG")
        width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    if width <= 0 or height <= 0:
        raise InputError(f"{path}: is empty, {width:g} x {height:g}")
    return Figure(path.stem, f"data:image/{kind};base64,{base64.b64encode(data).decode()}", width, height)


def _read(path: Path) -> bytes:
    with regular.opened(path) as file:
        return file.read()
