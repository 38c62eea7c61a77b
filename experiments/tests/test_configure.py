# SPDX-License-Identifier: MIT
"""Links that change are set on the switch that has the link: the measured one, or the delay line behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest

from controlplane.policy import TailDrop
from controlplane.switch import Queue, SwitchError
from controlplane.tests.fake import MEMORIES, FakeSwitch
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


@pytest.fixture
def other() -> Iterator[FakeSwitch]:
    """A measured switch without links."""
    with FakeSwitch("configure") as switch:
        yield switch
    del MEMORIES["configure"]


def soft(*ports: int) -> CoreControl:
    return CoreControl(Core("p4", ports, rate_entries=2))


def test_changing_link__is_the_measured_soft_switchs() -> None:
    switch = soft(*(host.port for host in HOSTS))
    switches = Switches(switch, switch)
    configure(switches, IMPAIRED)
    configure(switches, SCHEDULED)
    assert switch.port(BOTTLENECK).items() >= (SHOWN | {"schedule_entries": 2}).items()
    assert [port for port in QUEUES if "loss_seed" in switch.port(port)] == [BOTTLENECK]


def test_changing_link__of_another_switch_is_the_delay_lines_or_refused(other: FakeSwitch) -> None:
    line = soft(LINE_TO_SENDER, LINE_TO_RECEIVER)
    configure(Switches(other, line), IMPAIRED)
    assert line.port(LINE_TO_RECEIVER).items() >= SHOWN.items()
    assert "loss_seed" not in line.port(LINE_TO_SENDER)
    for links, settings in ((line, SCHEDULED), (None, SCHEDULED), (None, IMPAIRED)):
        with pytest.raises(SwitchError, match="links"):
            configure(Switches(other, links), settings)
