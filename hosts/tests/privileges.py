# SPDX-License-Identifier: MIT
"""What a running program may do."""

from pathlib import Path


def privileges_of(pid: int) -> tuple[set[int], int]:
    """(real, effective, saved and file system user IDs; the union of all capabilities of all threads)."""
    users, capabilities = set(), 0
    for status in Path("/proc", str(pid), "task").glob("*/status"):
        fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        users |= set(map(int, fields["Uid"].split()))
        for name in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
            capabilities |= int(fields[name], 16)
    return users, capabilities
