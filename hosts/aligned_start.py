# SPDX-License-Identifier: MIT
"""Aligns a start to a multiple of 10 ms of CLOCK_MONOTONIC, so that virtual-time runs start in the same ns.

In virtual time the interpreter needs some microseconds before it starts a program, and every failed file lookup changes
this delay. The alignment hides the difference. In real time the alignment costs up to 10 ms.
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
    """Sleeps until a time of CLOCK_MONOTONIC. time.sleep takes durations only, and rounds them."""
    moment = _Timespec(*divmod(mono_ns, 10**9))
    while _LIBC.clock_nanosleep(_CLOCK_MONOTONIC, _TIMER_ABSTIME, ctypes.byref(moment), None) == errno.EINTR:
        pass  # a signal handler interrupted the sleep


def wait_for_whole(step_ns: int = STEP_NS) -> None:
    """Sleeps until the next multiple of `step_ns`."""
    sleep_until((time.monotonic_ns() // step_ns + 1) * step_ns)
