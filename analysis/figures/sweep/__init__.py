# SPDX-License-Identifier: MIT
"""Figures that every sweep has, whatever its parameters. One file per figure: `prepare(sweep)` returns plain data, or
None without any; `draw(data)` returns the picture; CAPTION explains it. NAMES is the order on the page.
"""

NAMES = ("least_buffer", "utilization", "queue_depth", "fairness")
