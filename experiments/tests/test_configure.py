# SPDX-License-Identifier: MIT
"""Links that change are set on the switch that has the link: the measured one, or the delay line behind it."""

from dataclasses import replace
from fractions import Fraction

import pytest

from controlplane.policy import TailDrop, Unwatched
from controlplane.switch import Queue, SwitchError
from controlplane.tests.bfrt_memory import Device, MemoryTables
from controlplane.tofino import TofinoSwitch
from experiments.plan.configure import SwitchSettings, configure
from experiments.plan.switches import BOTTLENECK, Switches
from experiments.spec.topology import HOSTS, LINE_TO_RECEIVER, LINE_TO_SENDER
from lib.link_dynamics import Jitter, Loss, RateSchedule
from p4src.tests.under_test import CoreControl
from softswitch.tests.core_driver import Core

QUEUES = {host.port: Queue(limit_packets=100) for host in HOSTS}
PLAIN = SwitchSettings(10**9, 0, 0, QUEUES, TailDrop(10), ())
IMPAIRED = replace(PLAIN, loss=Loss(in_good=Fraction(1, 2)), loss_seed=3, jitter=Jitter(70), jitter_seed=4)
SCHEDULED = replace(PLAIN, rate_schedule=RateSchedule(((0, 1000), (5, 2000))))
SHOWN = {"loss_seed": 3, "loss_good": 2**63, "jitter_seed": 4, "jitter_most": 70}


def soft(*ports: int) -> CoreControl:
    return CoreControl(Core("p4", ports, rate_entries=2))


def test_changing_link__is_the_measured_soft_switchs() -> None:
    switch = soft(*(host.port for host in HOSTS))
    switches = Switches(switch, switch)
    configure(switches, IMPAIRED)
    configure(switches, SCHEDULED)
    assert switch.port(BOTTLENECK).items() >= (SHOWN | {"schedule_entries": 2}).items()
    assert [port for port in QUEUES if "loss_seed" in switch.port(port)] == [BOTTLENECK]


def test_changing_link__of_another_switch_is_the_delay_lines_or_refused() -> None:
    other = TofinoSwitch("memory", MemoryTables(Device("tf1")))
    impaired, scheduled = (replace(given, policy=Unwatched(), queues={}) for given in (IMPAIRED, SCHEDULED))
    line = soft(LINE_TO_SENDER, LINE_TO_RECEIVER)
    configure(Switches(other, line), impaired)
    assert line.port(LINE_TO_RECEIVER).items() >= SHOWN.items()
    assert "loss_seed" not in line.port(LINE_TO_SENDER)
    for links, settings in ((line, scheduled), (None, scheduled), (None, impaired)):
        with pytest.raises(SwitchError, match="links"):
            configure(Switches(other, links), settings)
