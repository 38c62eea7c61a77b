# SPDX-License-Identifier: MIT
"""For all tests: a test that takes long is in the long ring; a test is skipped without what its markers need; and
SIGINT and SIGHUP are restored, so that these signals can end the programs that tests start. A shell's background job
ignores SIGINT, a job under nohup(1) ignores SIGHUP, and child processes inherit ignored signals.
"""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

LONG_S = 2
CHECKOUT = Path(__file__).parent
DURATIONS = CHECKOUT / ".ci/durations.json"  # of tests, by STORE=1 (.ci/test)
NEEDS = {  # marker -> whether this machine has what the tests need
    "software": (os.geteuid() == 0 and shutil.which("ip"), "needs root and iproute2, to make network namespaces"),
    "virtual": ((CHECKOUT / "build/virtual/linux").exists(), "build/virtual/linux is missing: make kernel"),
}


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
        for marker, (is_there, reason) in NEEDS.items():
            if item.get_closest_marker(marker) and not is_there:
                item.add_marker(pytest.mark.skip(reason=reason))


def long_s() -> dict[str, float]:
    """The stored durations of the tests that take long, in s."""
    return {name: seconds for name, seconds in json.loads(DURATIONS.read_text()).items() if seconds > LONG_S}
