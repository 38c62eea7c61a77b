# SPDX-License-Identifier: MIT
"""Figures for any sweep, whatever its parameters. One file per figure: `prepare(sweep)` returns plain data, or None if
the sweep has nothing to draw; `draw(data)` returns the picture; CAPTION explains it. NAMES is the order on the page.
"""

NAMES = ("least_buffer", "utilization", "queue_depth", "queueing_delay", "fairness")
