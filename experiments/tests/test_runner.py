# SPDX-License-Identifier: MIT
"""Runs that a signal ends, also if the signal arrives where Python discards exceptions."""

import os
import signal
import time

import pytest

from experiments.machine.interruption import AGAIN_S
from experiments.run.runner import Ending
from lib.errors import Interrupted


class SignalInDestructor:
    """Python discards an exception that is raised in a destructor."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


def test_ending__by_a_signal_that_python_discards_is_raised_at_the_next_check_or_soon() -> None:
    with Ending() as ending:
        ending.check()
        SignalInDestructor()
        with pytest.raises(Interrupted, match="SIGTERM"):
            ending.check()
    with Ending():
        SignalInDestructor()
        with pytest.raises(Interrupted, match="SIGTERM"):
            time.sleep(10)


def test_ending__forgets_a_discarded_signal_when_it_is_left() -> None:
    with Ending():
        SignalInDestructor()
    time.sleep(3 * AGAIN_S)


def test_ending__restores_what_was_there() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted), Ending():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
