# SPDX-License-Identifier: MIT
"""The target `local`: our compiled program in this process. Connections to one address reach the same core."""

from pathlib import Path

from controlplane.soft import SoftSwitch
from controlplane.targets import SOFT, TARGETS, Target
from p4src.tests.under_test import Connection
from softswitch.tests.core_driver import Core

TARGETS["local"] = Target(__name__, "any name", SOFT)
CONNECTIONS: dict[str, Connection] = {}


class LocalSwitch(SoftSwitch):
    target = "local"

    @property
    def connection(self) -> Connection:
        return CONNECTIONS[self.address]


def connect(address: str, program: Path | None = None) -> LocalSwitch:
    if address not in CONNECTIONS:
        CONNECTIONS[address] = Connection(Core(str(program or "p4")))
    return LocalSwitch(address, CONNECTIONS[address], program)
