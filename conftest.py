# SPDX-License-Identifier: MIT
"""For all tests: restores SIGINT and SIGHUP, so that these signals can end the programs that tests start. A shell's
background job ignores SIGINT, a job under nohup(1) ignores SIGHUP, and child processes inherit ignored signals.
"""

import signal


def pytest_configure() -> None:
    for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, default)
