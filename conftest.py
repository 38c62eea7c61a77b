# SPDX-License-Identifier: MIT
"""For all tests: restores SIGINT and SIGHUP, so that the programs that tests start can be ended with them. A shell's
background job inherits SIGINT as ignored, and a job under nohup(1) SIGHUP; their child processes would inherit that.
"""

import signal


def pytest_configure() -> None:
    for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, default)
