# SPDX-License-Identifier: MIT
"""For all tests: they send SIGINT to what they start, which a shell's background job passes on as ignored."""

import signal


def pytest_configure() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
