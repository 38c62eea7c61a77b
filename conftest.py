# SPDX-License-Identifier: MIT
"""For all tests: the programs that they start take SIGINT and SIGHUP. A background job of a shell inherits SIGINT as
ignored, a job under nohup(1) SIGHUP, and both would pass that on.
"""

import signal


def pytest_configure() -> None:
    for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, default)
