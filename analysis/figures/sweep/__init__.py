# SPDX-License-Identifier: MIT
"""Figures that every sweep has, whatever it varies. One file a figure: `prepare(sweep)` gives plain data, or None where
there is nothing to show; `draw(data)` the picture; CAPTION says what is in it. NAMES is their order.
"""

NAMES = ("least_buffer", "utilization", "queue_depth", "fairness")
