# SPDX-License-Identifier: MIT
"""What the lab inside says to the runner outside: lines of JSON in the kernel log, which is the console.

The kernel writes its log to the console before the system call returns. So a message needs no channel of its own, takes
no virtual time, and stands in the run's console log between what the kernel itself had to say.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

KMSG = "/dev/kmsg"
MOST_BYTES = 900  # the kernel cuts a record from user space at 976 (kernel/printk/printk.c, PRINTKRECORD_MAX)
MARK = "bufferscope: "
_LINE = re.compile(rf"^(?:\[ *(\d+\.\d+)\] ?)?{MARK}(\{{.*\}})\s*$")


class Speaker:
    """The inside's end."""

    def __init__(self, path: str = KMSG) -> None:
        self.file = Path(path).open("wb", buffering=0)  # noqa: SIM115 - open as long as the lab runs

    def say(self, **content: Any) -> None:
        """Sends one message. One that is too long for the kernel log is an error of ours: ValueError."""
        line = f"{MARK}{json.dumps(content, separators=(',', ':'))}\n".encode()
        if len(line) > MOST_BYTES:
            raise ValueError(f"a message of {len(line)} bytes, at most {MOST_BYTES} fit: {line[:80]!r}")
        self.file.write(line)


def heard(line: str) -> dict[str, Any] | None:
    """The message in a line of the console; None if it holds none."""
    match = _LINE.match(line)
    if not match:
        return None
    try:
        content = json.loads(match[2])
    except ValueError:
        return None
    return content if isinstance(content, dict) else None
