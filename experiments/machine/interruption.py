# SPDX-License-Identifier: MIT
"""An Interrupted that Python cannot drop.

A signal handler runs between any two instructions, so its exception may arise in a finalizer or in a callback of a weak
reference, and every import has such a callback. Python prints such an exception (sys.unraisablehook) and goes on: a run
that got SIGTERM at such a moment would measure to its end. So a timer raises the exception again.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import NoReturn

from lib.errors import Interrupted

AGAIN_S = 0.01


def interrupt(number: int) -> NoReturn:
    """Raises Interrupted(number) in the main thread, once more for each time that Python drops it. Uses SIGALRM."""
    interrupted = Interrupted(number)
    other = sys.unraisablehook

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_value is interrupted:
            signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
        else:
            other(unraisable)

    def again(_: int, frame: FrameType | None) -> None:
        raise interrupted

    sys.unraisablehook = hook
    signal.signal(signal.SIGALRM, again)
    raise interrupted


def forget() -> None:
    """Stops raising a dropped Interrupted again: the caller has learned of the signal in another way."""
    signal.setitimer(signal.ITIMER_REAL, 0)
