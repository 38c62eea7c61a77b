# SPDX-License-Identifier: MIT
"""A Tofino or its model that already runs our program (bring-up: docs/target-tofino.md). This module has never run.

$BUFFERSCOPE_TOFINO: HOST:PORT of its BF Runtime server. $BUFFERSCOPE_TOFINO_PORTS: the four ports of the suite and the
interfaces of this machine that are cabled to them, as in "1/0=enp1s0f0 1/1=enp1s0f1 1/2=enp1s0f2 1/3=enp1s0f3". Both
have defaults for the model with the interfaces that the SDE's veth_setup.sh makes.
"""

from __future__ import annotations

import os
import shutil

from controlplane import targets
from controlplane.switch import Count
from p4src.tests.packet_ports import PacketPorts
from p4src.tests.realtime_target import MARKER_PORT, RealTimeSwitch
from p4src.tests.under_test import COLLECTOR_PORT, RECEIVER_PORT, SENDER_PORT

ADDRESS_VARIABLE, PORTS_VARIABLE = "BUFFERSCOPE_TOFINO", "BUFFERSCOPE_TOFINO_PORTS"
SUITE_PORTS = (SENDER_PORT, RECEIVER_PORT, COLLECTOR_PORT, MARKER_PORT)
MIRRORED_S = 0.2
MODEL_ADDRESS = "127.0.0.1:50052"
MODEL_INTERFACES = {port: f"veth{2 * port + 1}" for port in SUITE_PORTS}  # device port n is veth<2n>; this is its peer


def why_not() -> str | None:
    """Why this machine has no Tofino and no model to connect to. None: it has one."""
    if os.environ.get(ADDRESS_VARIABLE):
        return None
    if not os.environ.get("SDE_INSTALL"):
        return f"no SDE ($SDE_INSTALL) and no switch named by ${ADDRESS_VARIABLE}"
    if shutil.which("tofino-model") is None:
        return f"no tofino-model on the PATH and no switch named by ${ADDRESS_VARIABLE}"
    return None


class Tofino(RealTimeSwitch):
    """A connection to the switch. The program's counters are never reset, so counts are differences since restart()."""

    own_abilities = frozenset()
    min_frame_bytes = 60  # the MAC pads shorter frames

    def __init__(self) -> None:
        self.control = targets.connect("tofino", os.environ.get(ADDRESS_VARIABLE) or MODEL_ADDRESS)  # type: ignore
        wanted = dict(pair.split("=") for pair in os.environ.get(PORTS_VARIABLE, "").split())
        known = self.control.ports()
        if wanted:
            self._numbers = dict(zip(SUITE_PORTS, (known[name] for name in wanted), strict=True))
            interfaces = dict(zip(SUITE_PORTS, wanted.values(), strict=True))
        else:
            self._numbers, interfaces = {port: port for port in SUITE_PORTS}, MODEL_INTERFACES
        self.ports = PacketPorts(interfaces)

    def restart(self) -> Tofino:
        self.control.set_deflection(self.number(MARKER_PORT))  # assumes that all four ports are in one pipe
        self.start()
        counters = self.control.counters().items()
        self._before = {(name, cell): count for name, cells in counters for cell, count in cells.items()}
        self._buckets_before = dict(self.control.histogram(self.number(RECEIVER_PORT)))
        return self

    def close(self) -> None:
        self.ports.close()
        self.control.close()

    def outputs(self) -> list[tuple[int, bytes]]:
        """Waits until no mirrored copy comes for MIRRORED_S. Markers do not pass the mirror buffer, so they cannot show
        that all copies are out.
        """
        super().outputs()
        while received := self.ports.receive(MIRRORED_S):
            self._keep(received)
        return self._sent

    def number(self, port: int) -> int:
        return self._numbers.get(port, port)

    def count(self, name: str, port: int) -> Count:
        now = super().count(name, port)
        before = self._before.get((name, self.number(port)), Count(0, 0))
        return Count(now.packets - before.packets, now.bytes - before.bytes)

    def histogram(self, port: int) -> list[tuple[int, int]]:
        assert port == RECEIVER_PORT, "restart() saves the buckets of this port only"
        return [(lowest, packets - self._buckets_before[lowest]) for lowest, packets in super().histogram(port)]

    def preset(self, register: str, value: int, port: int = RECEIVER_PORT) -> None:
        raise NotImplementedError("this target lacks the ability register_presets")
