# SPDX-License-Identifier: MIT
"""How often TCP ran short of memory. Under memory pressure TCP shrinks socket buffers. Then these buffers, and not the
queue, limit the flows.
"""

from __future__ import annotations

COUNTER = "TCPMemoryPressures"


def memory_pressures(text: str) -> int:
    """COUNTER of a netstat file: a line of names, then a line of values, for each protocol."""
    lines = [line.split() for line in text.splitlines()]
    for row in range(0, len(lines) - 1, 2):
        names, values = lines[row], lines[row + 1]
        if COUNTER in names:
            return int(values[names.index(COUNTER)])
    return 0
