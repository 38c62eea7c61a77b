# SPDX-License-Identifier: MIT
"""The class of memory that can hold a buffer. The default sizes are those of Appenzeller et al.; SRAM= and PACKAGE= set
others.
"""

from __future__ import annotations

import math
from typing import NamedTuple

# Appenzeller et al., abstract: "only 10Mbits of buffering, which can easily be implemented using fast, on-chip SRAM".
SRAM_BYTES = 10_000_000 // 8
# Appenzeller et al., 1.3: "commercial packet processor ASICs have been built with 256Mbits of embedded DRAM".
PACKAGE_BYTES = 256 * 2**20 // 8
SOURCE = (
    "on-chip SRAM up to 10 Mbit (Appenzeller et al., abstract), the switch's package up to 256 Mbit (1.3: embedded "
    "DRAM of packet processors), off-chip DRAM or HBM beyond; the sizes are of 2004, SRAM= and PACKAGE= set others"
)


class MemoryLimits(NamedTuple):
    """Largest buffers in bytes of the first two classes."""

    sram_bytes: float = SRAM_BYTES
    package_bytes: float = PACKAGE_BYTES


def memory_class(size_bytes: float, limits: MemoryLimits = MemoryLimits()) -> str:  # noqa: B008 (immutable)
    """on-chip SRAM, package, or off-chip; 'none' for an infinite buffer."""
    if math.isinf(size_bytes):
        return "none"
    if size_bytes <= limits.sram_bytes:
        return "on-chip SRAM"
    return "package" if size_bytes <= limits.package_bytes else "off-chip"


def ram_bits(size_bytes: float) -> int:
    """The smallest power of two of bits that holds the buffer, since RAM has such sizes (Appenzeller et al., Figure
    15).
    """
    return 1 << max(math.ceil(size_bytes * 8) - 1, 0).bit_length()
