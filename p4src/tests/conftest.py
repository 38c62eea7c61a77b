# SPDX-License-Identifier: MIT
"""One suite for every target: each test with the fixture `switch` runs on the soft switch's core, on BMv2, and on a
Tofino or its model. If a target is missing, its tests are skipped, with the reason. `@needs(...)` lists the abilities
that a test needs (abilities.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from p4src.tests import bmv2_target, tofino_target
from p4src.tests.abilities import lacking
from p4src.tests.soft_target import SoftCore
from p4src.tests.under_test import SwitchUnderTest

TARGETS = [
    "soft",
    pytest.param("bmv2", marks=pytest.mark.software),
    pytest.param("tofino", marks=pytest.mark.hardware),
]


@pytest.fixture(scope="session", params=TARGETS)
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A function that returns a configured switch of one target. BMv2 and a connection to a Tofino last a session."""
    match request.param:
        case "soft":
            yield _soft
        case "bmv2":
            if reason := bmv2_target.why_not():
                pytest.skip(f"bmv2: {reason}")
            bmv2 = bmv2_target.Bmv2(tmp_path_factory.mktemp("bmv2") / "simple_switch.log")
            yield bmv2.restart
            bmv2.close()
        case "tofino":
            if reason := tofino_target.why_not():
                pytest.skip(f"tofino: {reason}")
            tofino = tofino_target.Tofino()
            yield tofino.restart
            tofino.close()


def _soft() -> SwitchUnderTest:
    core = SoftCore()
    core.configure()
    return core


@pytest.fixture
def switch(request: pytest.FixtureRequest, target: Any) -> SwitchUnderTest:
    """A switch with the program and the lab's configuration, without any state of the previous test."""
    switch: SwitchUnderTest = target()
    for mark in request.node.iter_markers("needs"):
        if reasons := lacking(mark.args, switch.control.capabilities, switch.own_abilities):
            pytest.skip(f"{switch.control.target}: {'; '.join(reasons)}")
    return switch
