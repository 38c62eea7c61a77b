# SPDX-License-Identifier: MIT
"""One suite for both targets of v1model: each test with the fixture `switch` runs on the soft switch's core and on
BMv2. Without BMv2 its tests are skipped, with the reason. `exact_switch` is the soft switch alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from p4src.tests import bmv2_target
from p4src.tests.soft_target import SoftCore
from p4src.tests.under_test import SwitchUnderTest

TARGETS = ["soft", pytest.param("bmv2", marks=pytest.mark.software)]


@pytest.fixture(scope="session", params=TARGETS)
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A function that returns a configured switch of one target. BMv2 lasts a session."""
    if request.param == "soft":
        yield _soft
        return
    if reason := bmv2_target.why_not():
        pytest.skip(f"bmv2: {reason}")
    bmv2 = bmv2_target.Bmv2(tmp_path_factory.mktemp("bmv2") / "simple_switch.log")
    yield bmv2.restart
    bmv2.close()


def _soft() -> SwitchUnderTest:
    core = SoftCore()
    core.configure()
    return core


@pytest.fixture
def switch(target: Any) -> SwitchUnderTest:
    """A switch with the program and the lab's configuration, without any state of the previous test."""
    return target()


@pytest.fixture
def exact_switch(switch: SwitchUnderTest) -> SwitchUnderTest:
    if not switch.control.capabilities.exact_time:
        pytest.skip(f"{switch.control.target}: stamps are readings of a wall clock, and rates in packets")
    return switch
