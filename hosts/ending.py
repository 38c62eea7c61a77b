# SPDX-License-Identifier: MIT
"""Waits for the end of a child with a time limit, without polling. Popen.wait with a timeout polls 20 times per second.
In virtual time a minute of waiting takes no real time, but each poll costs processor time.
"""

from __future__ import annotations

import os
import select
import subprocess
from typing import Any


def ended_within(process: subprocess.Popen[Any], seconds: float) -> bool:
    """Waits `seconds` at most. Returns whether the child has ended; then its `returncode` is set."""
    if process.poll() is not None:
        return True
    descriptor = os.pidfd_open(process.pid)
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        if not poller.poll(max(0.0, seconds) * 1000):
            return False
    finally:
        os.close(descriptor)
    process.wait()
    return True
