# SPDX-License-Identifier: MIT
"""One file, one figure. `prepare` picks and thins the data of an analysis, `draw` makes the picture from that alone, so
pictures can be drawn by processes that know nothing else. NAMES is their order in the report.
"""

from __future__ import annotations

from typing import Any

NAMES = ("queue_and_windows", "queue_depth_distribution", "window_distribution", "utilization", "zoom_on_loss")
OF_WINDOWS = ("window_distribution",)


def names(spec: dict[str, Any]) -> tuple[str, ...]:
    """The figures of a run: open-loop traffic has no windows."""
    return tuple(name for name in NAMES if spec.get("traffic") != "open-loop" or name not in OF_WINDOWS)
