# SPDX-License-Identifier: MIT
"""Draws a figure for a notebook: in the reports' style, with a picture that IPython shows without pyplot."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from analysis.figures.common import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def drawn(draw: Callable[[Any], Figure], data: Any) -> Figure:
    """`draw(data)`."""
    from matplotlib import rc_context

    from analysis.figures.drawing import PNG_DPI, STYLE

    with rc_context(cast(Any, STYLE)):  # the notebook's own figures keep their style
        figure = draw(plain(data))

    def png() -> bytes:
        image = io.BytesIO()
        with rc_context(cast(Any, STYLE)):
            figure.savefig(image, format="png", dpi=PNG_DPI)
        return image.getvalue()

    figure._repr_png_ = png  # type: ignore[attr-defined]  # IPython shows a Figure without pyplot as text otherwise
    return figure
