# SPDX-License-Identifier: MIT
"""Draws figures and saves them as PNG and SVG. matplotlib is slow to load and to draw, so separate processes draw
during the analysis.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from analysis.figures import NAMES, canvas, common, names, printed

PNG_DPI = 150
STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 9,
    "axes.labelsize": 9,
    "axes.linewidth": 0.7,
    "lines.linewidth": 0.9,
    "lines.solid_joinstyle": "round",
    "path.simplify_threshold": 0.5,
    "svg.fonttype": "none",  # text stays text: small and searchable
    "svg.hashsalt": "bufferscope",  # reproducible files
}


def warm_up() -> None:
    """Loads matplotlib and all figures."""
    import matplotlib
    import matplotlib.backends.backend_agg
    import matplotlib.backends.backend_svg

    matplotlib.rcParams.update(STYLE)  # type: ignore[arg-type]
    for name in NAMES:
        importlib.import_module(f"analysis.figures.{name}")


def draw(name: str, data: dict[str, Any], directory: str) -> None:
    """Writes the files of a figure into `directory`. Raises OSError, for example if the disk is full."""
    warm_up()
    save_both(importlib.import_module(f"analysis.figures.{name}").draw, common.plain(data), Path(directory), name)


def save_both(draws: Callable[[Any], common.Figure], data: dict[str, Any], directory: Path, name: str) -> None:
    """Writes <directory>/<name>.png and .svg, <name>-phone.svg, and what `printed` says. Raises OSError."""
    save(draws(data), directory, name)
    save_svg(canvas.fit_phone(draws(canvas.for_phone(data))), directory, name + canvas.PHONE)
    if width := printed.width_in():
        figure = draws(printed.for_print(data, width))
        printed.save(canvas.fit_phone(figure) if canvas.is_phone(figure) else figure, directory, name)


def save(figure: common.Figure, directory: Path, name: str, dpi: int = PNG_DPI) -> None:
    """Writes <directory>/<name>.png and .svg. Raises OSError."""
    figure.savefig(directory / f"{name}.png", dpi=dpi, metadata={"Software": "bufferscope"})
    figure.set_layout_engine("none")  # the layout is fixed now, so the second file need not compute it again
    save_svg(figure, directory, name, dpi)


def save_svg(figure: common.Figure, directory: Path, name: str, dpi: int = PNG_DPI) -> None:
    """Writes <directory>/<name>.svg. Raises OSError."""
    figure.savefig(directory / f"{name}.svg", dpi=dpi, metadata={"Date": None, "Creator": "bufferscope"})


def draw_all(a: common.Analysis, directory: Path, pool: Executor | None) -> list[Future[None]]:
    """Draws all figures of a run in `pool`, or in this process if `pool` is None. A future's result() raises the error
    of its drawing.
    """
    jobs = []
    for name in names(a.run.experiment):
        data = importlib.import_module(f"analysis.figures.{name}").prepare(a)
        if pool is None:
            draw(name, data, str(directory))
        else:
            jobs.append(pool.submit(draw, name, data, str(directory)))
    return jobs
