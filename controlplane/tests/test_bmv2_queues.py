# SPDX-License-Identifier: MIT
"""The control plane refuses a policy that BMv2's own queue limit would preempt. No simple_switch is needed."""

from __future__ import annotations

import pytest

from controlplane.bmv2 import Bmv2Switch
from controlplane.policy import Ecn, EgressThreshold, Policy, TailDrop, Unit, Unwatched
from controlplane.switch import Queue

BYTES = Unit.BYTES


def refusal(policy: Policy, limit_packets: int | None) -> str:
    switch = Bmv2Switch.__new__(Bmv2Switch)  # without a connection
    return switch.silent_drops(policy, Queue(limit_packets=limit_packets))


@pytest.mark.parametrize(
    ("policy", "least_limit"),
    [
        (TailDrop(163), 164),
        (Ecn(40, 163), 164),
        (EgressThreshold(100), 101),
        (EgressThreshold(100, mark_instead_of_drop=True), 101),
        (TailDrop(6000, BYTES), 101),
        (TailDrop(6001, BYTES), 102),
        (Ecn(1000, 6000, BYTES), 101),
        (EgressThreshold(6000, unit=BYTES), 101),
    ],
)
def test_limit__must_lie_above_the_depth_at_which_the_policy_acts(policy: Policy, least_limit: int) -> None:
    assert refusal(policy, least_limit) == refusal(policy, None) == ""
    assert f"the queue itself holds {least_limit - 1} packets" in refusal(policy, least_limit - 1)


def test_refusal__names_both_settings_and_the_remedy() -> None:
    assert refusal(EgressThreshold(100), 50) == (
        "the queue itself holds 50 packets, egress-threshold acts at 100 packets: on BMv2 the program's depth then "
        "counts every refused packet as queued forever; give the queue a limit above 100p"
    )
    assert "tail-drop acts at 102400 bytes (1707 packets of 60 bytes)" in refusal(TailDrop(102_400, BYTES), 64)


def test_unwatched_queue__may_have_any_limit() -> None:
    assert refusal(Unwatched(), 1) == ""
