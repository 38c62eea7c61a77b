# SPDX-License-Identifier: MIT
"""For all tests: a test that takes long is in the long ring; and SIGINT and SIGHUP are restored, so that these signals
can end the programs that tests start. A shell's background job ignores SIGINT, a job under nohup(1) ignores SIGHUP, and
child processes inherit ignored signals.
"""

import json
import signal
from pathlib import Path

import pytest

LONG_S = 2
DURATIONS = Path(__file__).parent / ".ci/durations.json"  # of tests, by STORE=1 (.ci/test)


def pytest_configure() -> None:
    for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, default)


@pytest.hookimpl(tryfirst=True)  # before pytest selects tests by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    stored = long_s()
    for item in items:
        if item.nodeid in stored:
            item.add_marker("long")


def long_s() -> dict[str, float]:
    """The stored durations of the tests that take long, in s."""
    return {name: seconds for name, seconds in json.loads(DURATIONS.read_text()).items() if seconds > LONG_S}
