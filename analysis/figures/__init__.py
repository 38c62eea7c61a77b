# SPDX-License-Identifier: MIT
"""One file, one figure. `prepare` picks and thins the data of an analysis, `draw` makes the picture from that alone, so
pictures can be drawn by processes that know nothing else. NAMES is their order in the report.
"""

NAMES = ("queue_and_windows", "queue_depth_distribution", "window_distribution", "utilization", "zoom_on_loss")
