# SPDX-License-Identifier: MIT
"""The client against the compiled program: the switch core answers requests behind a socket."""

from fractions import Fraction
from pathlib import Path

import pytest

from controlplane.soft import MAX_REQUEST_BYTES, ControlTuple, SoftSwitch, SourceAddress
from controlplane.switch import SwitchError
from lib.link_dynamics import Jitter, Loss, RateSchedule
from softswitch.tests.core_driver import Core, wire_bits
from softswitch.tests.test_flows import udp


@pytest.fixture
def core() -> Core:
    return Core("p4", flows=1000, rate_entries=2000)


@pytest.fixture
def switch(soft: SoftSwitch) -> SoftSwitch:
    soft.set_forwarding("02:bf:00:00:00:02", 2)
    return soft


def frame(source_port: int) -> bytes:
    return udp("10.77.0.1", "10.77.0.2", source_port, 5201)


def test_set_port__keeps_settings_that_are_not_named(switch: SoftSwitch) -> None:
    switch.set_port(2, rate=200_000_000, delay=5_000_000)
    switch.set_port(2, limit_packets=9)
    assert switch.port(2) == {
        "rate": 200_000_000, "delay": 5_000_000, "access": 0, "limit_packets": 9, "limit_bytes": 0, "drop_cost": 0,
    }  # fmt: skip


@pytest.fixture
def requests(switch: SoftSwitch, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The length of each request."""
    lengths: list[int] = []
    exchange = switch._transport.exchange

    def counted(request: bytes) -> bytes:
        lengths.append(len(request))
        return exchange(request)

    monkeypatch.setattr(switch._transport, "exchange", counted)
    return lengths


def flows(ports: range, to: int = 5201) -> list[tuple[ControlTuple, dict[str, int]]]:
    return [(ControlTuple("10.77.0.1", "10.77.0.2", 17, port, to), {"delay": port}) for port in ports]


def test_set_flows__needs_few_requests_for_many_flows(core: Core, switch: SoftSwitch, requests: list[int]) -> None:
    ports = range(30_000, 31_000)
    switch.set_flows(flows(ports))
    assert len(requests) < len(ports) / 50
    assert MAX_REQUEST_BYTES - 64 < max(requests) <= MAX_REQUEST_BYTES
    for port in (ports[0], ports[499], ports[-1], ports[-1] + 1):
        core.receive(0, 1, frame(port))
    assert [output.due_ns for output in core.run()] == [0, 30_000, 30_499, 30_999]
    switch.set_link(2, 1_488_000_000)
    switch.request("flow", "clear")
    switch.set_flows([(SourceAddress("10.77.0.1"), {"link": 2, "delay": 7})])
    core.receive(0, 1, frame(ports[0]))
    assert [output.due_ns for output in core.run()] == [7 + wire_bits(len(frame(ports[0]))) * 1000 // 1488]
    switch.request("flow", "clear")
    switch.set_flows(flows(ports))
    with pytest.raises(SwitchError, match=r"'flow set 10\.77.*\.\.\.': flow table full") as refused:
        switch.set_flows(flows(ports[:70], 5202))
    assert len(str(refused.value)) < 500


def test_links__get_long_schedules_loss_and_jitter(switch: SoftSwitch, requests: list[int]) -> None:
    assert "schedule_entries" not in switch.port(2)
    for schedule in (
        RateSchedule(tuple((number * 10**9, 2_000_000) for number in range(2000))),
        RateSchedule(tuple((number * 10**9, number) for number in range(1, 2000)), opportunities=True),
    ):
        requests.clear()
        switch.set_schedule(2, schedule)
        assert len(requests) < len(schedule.entries) / 50
        assert max(requests) <= MAX_REQUEST_BYTES
        switch.start_schedule(2, 77)
        shown = switch.port(2)
        assert (shown["schedule_entries"], shown["schedule_start"]) == (len(schedule.entries), 77)
        assert shown["schedule_opportunities"] == schedule.opportunities
    switch.set_loss(2, Loss(in_good=Fraction(1, 2)), 2**64 - 1)
    switch.set_jitter(2, Jitter(3_600_000_000_000, "normal"), 5)
    shown = switch.port(2)
    assert (shown["loss_seed"], shown["loss_good"], shown["jitter_seed"]) == (2**64 - 1, 2**63, 5)
    assert shown["jitter_most"] == 3_600_000_000_000
    assert max(requests) <= MAX_REQUEST_BYTES
    assert switch.stats()["port.2.lost"] == 0


def test_no_switch__is_an_error_that_names_the_path(tmp_path: Path) -> None:
    with pytest.raises(SwitchError, match=r"no switch answers at .*/absent: No such file or directory"):
        SoftSwitch(tmp_path / "absent")
