# SPDX-License-Identifier: MIT
"""The client against the compiled program: the switch core answers requests behind a socket."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from controlplane.policy import Ecn, EgressThreshold, TailDrop, Unit, Unwatched
from controlplane.soft import MAX_REQUEST_BYTES, ControlTuple, SoftSwitch, SourceAddress
from controlplane.switch import Collector, Count, SwitchError
from softswitch.tests.core_driver import Core, wire_bits


@pytest.fixture
def switch(soft: SoftSwitch) -> SoftSwitch:
    return soft


def frame(source_port: int = 1) -> bytes:
    ip = struct.pack(">BBHHHBBH8s", 0x45, 0, 28, 0, 0, 64, 17, 0, b"\x0a\x4d\0\1\x0a\x4d\0\2")
    return bytes.fromhex("02bf0000000202bf000000010800") + ip + struct.pack(">HHHH", source_port, 5201, 8, 0)


def dump(switch: SoftSwitch, table: str) -> str:
    return "\n".join(switch.request("table", "dump", table))


def test_program__is_reported(switch: SoftSwitch) -> None:
    program = switch.about()
    assert program["name"] == "bufferscope"
    assert program["ports"] == "1 2 3"
    assert len(program["digest"]) == 64


def test_forward__sends_frames_to_their_port(core: Core, switch: SoftSwitch) -> None:
    switch.set_forwarding("02:bf:00:00:00:02", 2)
    core.receive(0, 1, frame())
    assert [output.port for output in core.run()] == [2]
    switch.set_forwarding("02:bf:00:00:00:02", 3)
    core.receive(1, 1, frame())
    assert [output.port for output in core.run()] == [3]


@pytest.mark.parametrize(
    ("policy", "action"),
    [
        (TailDrop(163), "tail_drop 163 0"),
        (TailDrop(250_000, Unit.BYTES), "tail_drop 250000 1"),
        (Ecn(20, 163), "ecn 20 163 0"),
        (EgressThreshold(30, mark_instead_of_drop=True), "egress_threshold 30 1 0"),
        (Unwatched(), "unwatched"),
    ],
)
def test_set_policy__writes_the_table_entry(switch: SoftSwitch, policy, action: str) -> None:
    switch.set_policy(2, TailDrop(1))
    switch.set_policy(2, policy)
    name, *arguments = action.split()
    (entry,) = [line for line in dump(switch, "queue_policy").splitlines() if line.split(" = ")[0].endswith("2")]
    dumped_action, *dumped_arguments = entry.split(" = ")[1].split()
    assert dumped_action.endswith(name)
    assert dumped_arguments == arguments


def test_postcards__are_sent_and_counted(core: Core, switch: SoftSwitch) -> None:
    switch.set_forwarding("02:bf:00:00:00:02", 2)
    switch.set_policy(2, TailDrop(1))
    switch.set_port(2, rate=1_000_000)
    switch.set_collector(Collector(3, "02:bf:00:00:01:03", "02:bf:00:00:00:03", "10.78.0.1", "10.78.0.2", 5577, 5577))
    switch.set_postcards(2, 7)
    core.receive(0, 1, frame())
    core.receive(0, 1, frame())
    assert sorted(output.port for output in core.run()) == [2, 3, 3]
    assert switch.counters()["arrival_drops"] == {2: Count(1, 42)}
    assert switch.counter("arrivals") == {2: Count(2, 84)}
    assert switch.stats()["clones"] == 2
    switch.set_postcards(2, None)
    core.receive(10**9, 1, frame())
    assert [output.port for output in core.run()] == [2]


def test_set_port__keeps_settings_that_are_not_named(switch: SoftSwitch) -> None:
    switch.set_port(2, rate=200_000_000, delay=5_000_000)
    switch.set_port(2, limit_packets=9)
    assert switch.port(2) == {
        "rate": 200_000_000, "delay": 5_000_000, "access": 0, "limit_packets": 9, "limit_bytes": 0, "drop_cost": 0,
    }  # fmt: skip


def test_set_flow__delays_one_flow(core: Core, switch: SoftSwitch) -> None:
    switch.set_forwarding("02:bf:00:00:00:02", 2)
    switch.set_flow(ControlTuple("10.77.0.1", "10.77.0.2", 17, 30000, 5201), delay=500)
    for port in (30000, 30001):
        core.receive(0, 1, frame(port))
    assert [output.due_ns for output in core.run()] == [0, 500]
    switch.request("flow", "clear")
    core.receive(1000, 1, frame(30000))
    assert [output.due_ns for output in core.run()] == [1000]


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


@pytest.mark.parametrize("core", [Core("p4", flows=1000)])
def test_set_flows__needs_few_requests_for_many_flows(core: Core, switch: SoftSwitch, requests: list[int]) -> None:
    switch.set_forwarding("02:bf:00:00:00:02", 2)
    requests.clear()
    ports = range(30_000, 31_000)
    switch.set_flows((ControlTuple("10.77.0.1", "10.77.0.2", 17, port, 5201), {"delay": port}) for port in ports)
    assert len(requests) < len(ports) / 50
    assert max(requests) <= MAX_REQUEST_BYTES
    for port in (ports[0], ports[499], ports[-1], ports[-1] + 1):
        core.receive(0, 1, frame(port))
    assert [output.due_ns for output in core.run()] == [0, 30_000, 30_499, 30_999]
    assert max(requests) > MAX_REQUEST_BYTES - 64  # a request is as full as it can be
    done = len(requests)
    switch.set_flows([])
    assert len(requests) == done
    switch.set_link(2, 1_488_000_000)
    switch.request("flow", "clear")
    switch.set_flows([(SourceAddress("10.77.0.1"), {"link": 2, "delay": 7})])
    core.receive(0, 1, frame(ports[0]))
    assert [output.due_ns for output in core.run()] == [7 + wire_bits(len(frame(ports[0]))) * 1000 // 1488]
    switch.request("flow", "clear")
    switch.set_flows((ControlTuple("10.77.0.1", "10.77.0.2", 17, port, 5201), {"delay": port}) for port in ports)
    flows = [(ControlTuple("10.77.0.1", "10.77.0.2", 17, port, 5202), {"delay": port}) for port in ports[:70]]
    with pytest.raises(SwitchError, match=r"'flow set 10\.77.*\.\.\.': flow table full") as refused:
        switch.set_flows(flows)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    "words",
    [
        ("port", "set", 9, "rate", 1000),
        ("port", "set", 2, "rate", 1),
        ("port", "set", 2, "speed", 1000),
        ("table", "set", "queue_policy", 2, "=", "tail_drop", 5),
        ("table", "set", "queue_policy", 512, "=", "unwatched"),
        ("table", "set", "absent", 2, "=", "unwatched"),
        ("mirror", "set", 1, 9),
        ("flow", "set", "10.0.0.1", "10.0.0.300", 6, 1, 2),
        ("nonsense",),
    ],
)
def test_refusals__say_the_request_and_change_nothing(switch: SoftSwitch, words: tuple) -> None:
    before = switch.port(2), dump(switch, "queue_policy")
    with pytest.raises(SwitchError, match=str(words[0])):
        switch.request(*words)
    assert (switch.port(2), dump(switch, "queue_policy")) == before


def test_no_switch__is_an_error_that_names_the_path(tmp_path: Path) -> None:
    with pytest.raises(SwitchError, match=r"no switch answers at .*/absent: No such file or directory"):
        SoftSwitch(tmp_path / "absent")
