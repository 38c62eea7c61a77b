# SPDX-License-Identifier: MIT
"""Every switch behaves alike: settings read back, and a refused setting is one line and changes nothing.

BMv2 needs seconds to start, so the tests share one simple_switch, and each test restores its settings.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from controlplane.policy import Ecn, EgressThreshold, Policy, TailDrop, Unit, Unwatched
from controlplane.program import COUNTERS, Switch
from controlplane.switch import Collector, Queue, SwitchError

COLLECTOR = Collector(3, "02:bf:00:00:01:03", "02:bf:00:00:00:03", "10.78.0.1", "10.78.0.2", 5577, 5578)


def in_its_unit(switch: Switch, policy: Policy) -> Policy:
    """The policy with the same numbers, in a unit that this switch compares."""
    units = switch.capabilities.depth_units
    return policy if isinstance(policy, Unwatched) or policy.unit in units else replace(policy, unit=units[0])


def test_policy__reads_back_the_set_policy(switch: Switch) -> None:
    assert switch.program().name == "bufferscope"
    assert sorted(switch.ports().values())[:3] == [1, 2, 3]
    for policy in (TailDrop(168), TailDrop(9000, Unit.BYTES), Ecn(24, 168), EgressThreshold(32, True), Unwatched()):
        wanted = in_its_unit(switch, policy)
        switch.set_policy(2, wanted)
        assert (switch.policy(2), switch.policy(1)) == (wanted, Unwatched())


def test_tables__read_back_the_set_entries(switch: Switch) -> None:
    assert (switch.forwarding(), switch.postcards(2)) == ({}, None)
    switch.set_collector(COLLECTOR)
    switch.set_forwarding("02:BF:00:00:00:02", 2)
    switch.set_forwarding("02:bf:00:00:00:01", 1)
    switch.set_forwarding("02:bf:00:00:00:01", 3)
    switch.set_postcards(2, 7)
    assert switch.collector() == COLLECTOR
    assert switch.forwarding() == {"02:bf:00:00:00:01": 3, "02:bf:00:00:00:02": 2}
    assert (switch.postcards(2), switch.postcards(1)) == (7, None)
    for mac in ("02:bf:00:00:00:01", "02:bf:00:00:00:01", "02:bf:00:00:00:02"):  # also an absent one
        switch.delete_forwarding(mac)
    switch.set_postcards(2, None)
    assert (switch.forwarding(), switch.postcards(2)) == ({}, None)


def test_queue__reads_back_the_settings_in_force(switch: Switch) -> None:
    unit = switch.capabilities.limit_units[0]
    rate = {"rate_bps": 200_000_000} if switch.capabilities.rate_unit == "bps" else {"rate_pps": 1000}
    requested = Queue(**rate, **{f"limit_{unit}": 104})
    switch.set_queue(2, requested)
    assert switch.holds(requested, switch.queue(2))
    assert not switch.holds(Queue(), switch.queue(2))
    switch.set_queue(2, Queue())
    assert switch.queue(2) == Queue()


def test_counters__are_those_of_the_program(switch: Switch) -> None:
    assert set(switch.counters()) == set(COUNTERS)
    assert all(isinstance(value, int) for value in switch.target_counters().values())
    depths = [depth for depth, _ in switch.histogram(2)]
    assert depths == sorted(set(depths))
    assert depths[0] == 0


def test_bad_values__are_one_line_and_change_nothing(switch: Switch) -> None:
    before = switch.forwarding(), switch.policy(2), switch.postcards(2), switch.queue(2)
    units = switch.capabilities.depth_units
    asked: list[tuple[Callable[[], None], str]] = [
        (
            lambda: switch.set_policy(2, TailDrop(2**32, units[0])),
            "policy, key 2.*tail_drop: threshold 4294967296 does",
        ),
        (lambda: switch.set_policy(2, EgressThreshold(-1, unit=units[0])), "egress_threshold: threshold -1 does not"),
        (lambda: switch.set_policy(512, Unwatched()), "queue_policy, key 512.*does not fit in 9 bits"),
        (lambda: switch.set_postcards(2, 2**16), "table postcards, key 2.*switch_id 65536 does not fit"),
        (lambda: switch.set_forwarding("02:bf", 2), "'02:bf' is not a MAC address"),
        (lambda: switch.set_queue(2, Queue(rate_bps=5, rate_pps=5)), "port 2: .* switch at .*"),
    ]
    for unit in set(Unit) - set(units):
        asked.append((partial(switch.set_policy, 2, TailDrop(5, unit)), f"compares no {unit}; allowed: "))
    for ask, says in asked:
        with pytest.raises(SwitchError, match=says) as refusal:
            ask()
        assert "\n" not in str(refusal.value)
    assert (switch.forwarding(), switch.policy(2), switch.postcards(2), switch.queue(2)) == before


def test_writing__is_for_one_at_a_time(switch: Switch) -> None:
    with switch.writing(), pytest.raises(SwitchError, match="is writing to it"), switch.writing():
        pass
    with switch.writing():
        pass
