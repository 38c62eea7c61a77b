# SPDX-License-Identifier: MIT
"""Switches for the tests: the compiled program in the core, simple_switch, and a Tofino in memory."""

from collections.abc import Iterator

import pytest

from controlplane import lock
from controlplane.program import Switch
from controlplane.tests.bfrt_memory import Device, MemoryTables
from controlplane.tests.local import CONNECTIONS, LocalSwitch, connect
from controlplane.tofino import TofinoSwitch
from p4src.tests.bmv2_target import Bmv2, why_not
from p4src.tests.under_test import CoreControl
from softswitch.tests.core_driver import Core


@pytest.fixture(scope="session", autouse=True)
def own_locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Puts the tests' lock files into a temporary directory."""
    original = lock.DIRECTORIES
    lock.DIRECTORIES = (tmp_path_factory.mktemp("locks"),)
    yield
    lock.DIRECTORIES = original


@pytest.fixture
def core() -> Core:
    return Core("p4")


@pytest.fixture
def soft(core: Core) -> CoreControl:
    return CoreControl(core)


@pytest.fixture(scope="module")
def running_bmv2() -> Iterator[Bmv2]:
    if reason := why_not():
        pytest.skip(f"bmv2: {reason}")
    with Bmv2() as running:
        yield running


@pytest.fixture
def bmv2(running_bmv2: Bmv2) -> Switch:
    return running_bmv2.control


@pytest.fixture
def local() -> Iterator[LocalSwitch]:
    yield connect("test")
    CONNECTIONS.clear()


@pytest.fixture
def tofino1() -> TofinoSwitch:
    return TofinoSwitch("memory", MemoryTables(Device("tf1")))


@pytest.fixture
def tofino2() -> TofinoSwitch:
    return TofinoSwitch("memory", MemoryTables(Device("tf2")))


EVERY_SWITCH = ["soft", "tofino1", "tofino2", pytest.param("bmv2", marks=pytest.mark.software)]


@pytest.fixture(params=EVERY_SWITCH)
def switch(request: pytest.FixtureRequest) -> Switch:
    """Each target in turn, running our program with ports 1, 2 and 3."""
    return request.getfixturevalue(request.param)
