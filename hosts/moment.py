# SPDX-License-Identifier: MIT
"""Beginning something at a whole moment of CLOCK_MONOTONIC, which does not tell how long it took to get there.

In virtual time the interpreter's way to a program's start takes some microseconds, more or less with every file that it
looks for in vain. What then begins at a whole moment begins in the same ns in every run. In real time it costs some ms.
"""

from __future__ import annotations

import ctypes
import errno
import time

STEP_NS = 10_000_000

_CLOCK_MONOTONIC, _TIMER_ABSTIME = 1, 1  # include/uapi/linux/time.h
_LIBC = ctypes.CDLL(None, use_errno=True)


class _Timespec(ctypes.Structure):
    _fields_ = (("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long))


def sleep_until(mono_ns: int) -> None:
    """Returns at that ns of CLOCK_MONOTONIC; time.sleep knows no moments, and rounds lengths."""
    moment = _Timespec(*divmod(mono_ns, 10**9))
    while _LIBC.clock_nanosleep(_CLOCK_MONOTONIC, _TIMER_ABSTIME, ctypes.byref(moment), None) == errno.EINTR:
        pass  # the handler of a signal has run


def wait_for_whole(step_ns: int = STEP_NS) -> None:
    """Returns at the next whole multiple of `step_ns`."""
    sleep_until((time.monotonic_ns() // step_ns + 1) * step_ns)
