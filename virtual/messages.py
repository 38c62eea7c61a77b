# SPDX-License-Identifier: MIT
"""Messages from the lab inside to the runner outside: lines of JSON in the kernel log, on the console.

The kernel writes its log to the console before the system call returns. So a message needs no extra channel, takes no
virtual time, and is in order with the kernel's own lines in the run's console log.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

KMSG = "/dev/kmsg"
# The kernel refuses a longer record from user space: at most 1024 bytes in Linux 6.12 (kernel/printk/internal.h,
# PRINTKRB_RECORD_MAX), fewer in older kernels.
MAX_BYTES = 900
MARK = "bufferscope: "
_LINE = re.compile(rf"^(?:\[ *(\d+\.\d+)\] ?)?{MARK}(\{{.*\}})\s*$")


class Speaker:
    """The sender, inside."""

    def __init__(self, path: str = KMSG) -> None:
        self.file = Path(path).open("wb", buffering=0)  # noqa: SIM115 - open as long as the lab runs

    def say(self, **content: Any) -> None:
        """Sends one message. ValueError: the message is too long for a record of the kernel log."""
        line = f"{MARK}{json.dumps(content, separators=(',', ':'))}\n".encode()
        if len(line) > MAX_BYTES:
            raise ValueError(f"a message of {len(line)} bytes, at most {MAX_BYTES} fit: {line[:80]!r}")
        self.file.write(line)


def parse_message(line: str) -> dict[str, Any] | None:
    """The message in a line of the console; None if the line is not a message."""
    match = _LINE.match(line)
    if not match:
        return None
    try:
        content = json.loads(match[2])
    except ValueError:
        return None
    return content if isinstance(content, dict) else None
