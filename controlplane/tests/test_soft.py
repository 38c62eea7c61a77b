# SPDX-License-Identifier: MIT
"""The client against the compiled program itself: requests are answered by the switch core behind a socket."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.lock import lock_file
from controlplane.policy import Ecn, EgressThreshold, TailDrop, Unit, Unwatched
from controlplane.soft import FiveTuple, SoftSwitch
from controlplane.switch import Collector, Count, FrontPanel, Queue, SwitchError
from softswitch.tests.core_driver import Core


@pytest.fixture
def core() -> Core:
    return Core("p4")


@pytest.fixture
def switch(core: Core, tmp_path: Path) -> Iterator[SoftSwitch]:
    path = tmp_path / "switch.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                while request := connection.recv(4096):
                    connection.send("\n".join([*core.control(request.decode()), ""]).encode())

        thread = threading.Thread(target=serve)
        thread.start()
        with SoftSwitch(path) as client:
            yield client
        thread.join()


def frame(source_port: int = 1) -> bytes:
    ip = struct.pack(">BBHHHBBH8s", 0x45, 0, 28, 0, 0, 64, 17, 0, b"\x0a\x4d\0\1\x0a\x4d\0\2")
    return bytes.fromhex("02bf0000000202bf000000010800") + ip + struct.pack(">HHHH", source_port, 5201, 8, 0)


def dump(switch: SoftSwitch, table: str) -> str:
    return "\n".join(switch.request("table", "dump", table))


def test_program__is_told(switch: SoftSwitch) -> None:
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
def test_set_policy__is_what_the_table_says(switch: SoftSwitch, policy, action: str) -> None:
    switch.set_policy(2, TailDrop(1))
    switch.set_policy(2, policy)
    name, *arguments = action.split()
    (entry,) = [line for line in dump(switch, "queue_policy").splitlines() if line.split(" = ")[0].endswith("2")]
    done, *given = entry.split(" = ")[1].split()
    assert done.endswith(name)
    assert given == arguments


@pytest.mark.parametrize(
    "policy", [TailDrop(163), TailDrop(9, Unit.BYTES), Ecn(20, 163), EgressThreshold(30, True), Unwatched()]
)
def test_policy__reads_back_what_was_set(switch: SoftSwitch, policy) -> None:
    assert switch.policy(2) == Unwatched()
    switch.set_policy(2, policy)
    assert (switch.policy(2), switch.policy(1)) == (policy, Unwatched())


def test_tables__read_back_what_was_set(switch: SoftSwitch) -> None:
    assert (switch.forwarding(), switch.collector(), switch.postcards(2)) == ({}, None, None)
    collector = Collector(3, "02:bf:00:00:01:03", "02:bf:00:00:00:03", "10.78.0.1", "10.78.0.2", 5577, 5578)
    switch.set_collector(collector)
    switch.set_forwarding("02:BF:00:00:00:02", 2)
    switch.set_forwarding("02:bf:00:00:00:01", 1)
    switch.set_postcards(2, 7)
    switch.set_queue(2, Queue(rate_bps=200_000_000, limit_packets=100))
    assert switch.collector() == collector
    assert switch.forwarding() == {"02:bf:00:00:00:01": 1, "02:bf:00:00:00:02": 2}
    assert (switch.postcards(2), switch.postcards(1)) == (7, None)
    assert switch.queue(2) == Queue(rate_bps=200_000_000, limit_packets=100)
    assert switch.ports() == {"1": 1, "2": 2, "3": 3}
    switch.delete_forwarding("02:bf:00:00:00:01")
    switch.delete_forwarding("02:bf:00:00:00:01")
    switch.set_postcards(2, None)
    switch.set_queue(2, Queue())
    assert switch.forwarding() == {"02:bf:00:00:00:02": 2}
    assert (switch.postcards(2), switch.queue(2)) == (None, Queue())


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (
            lambda s: s.set_policy(2, TailDrop(2**32)),
            "table queue_policy, key 2: action tail_drop: threshold 4294967296",
        ),
        (lambda s: s.set_policy(512, TailDrop(1)), "table queue_policy, key 512: .*does not fit in 9 bits"),
        (lambda s: s.set_policy(2, TailDrop(1, Unit.CELLS)), "compares no cells; allowed: packets, bytes"),
        (lambda s: s.set_postcards(2, 2**16), "table postcards, key 2: action report: switch_id 65536"),
        (lambda s: s.set_forwarding("02:bf", 2), "'02:bf' is no MAC address"),
        (lambda s: s.set_queue(2, Queue(rate_pps=5)), "port 2: soft switch at .* serves bits"),
        (lambda s: s.set_front_panel(2, FrontPanel(10**9)), "port 2 has no cable"),
        (lambda s: s.histogram(2), "depth_histogram, port 2"),
    ],
)
def test_what_does_not_fit__is_one_line_and_changes_nothing(switch: SoftSwitch, ask, says: str) -> None:
    before = switch.forwarding(), switch.policy(2), switch.postcards(2), switch.queue(2)
    with pytest.raises(SwitchError, match=says) as refusal:
        ask(switch)
    assert "\n" not in str(refusal.value)
    assert (switch.forwarding(), switch.policy(2), switch.postcards(2), switch.queue(2)) == before


def test_writing__is_for_one_at_a_time(switch: SoftSwitch) -> None:
    with switch.writing():
        with pytest.raises(SwitchError, match=f"process {os.getpid()} is writing to it"), switch.writing():
            pass
        assert lock_file("soft", switch.path).exists()
    assert not lock_file("soft", switch.path).exists()
    with switch.writing():
        pass


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


def test_set_port__keeps_what_is_not_named(switch: SoftSwitch) -> None:
    switch.set_port(2, rate=200_000_000, delay=5_000_000)
    switch.set_port(2, limit_packets=9)
    assert switch.port(2) == {
        "rate": 200_000_000, "delay": 5_000_000, "access": 0, "limit_packets": 9, "limit_bytes": 0,
    }  # fmt: skip


def test_set_flow__delays_one_flow(core: Core, switch: SoftSwitch) -> None:
    switch.set_forwarding("02:bf:00:00:00:02", 2)
    switch.set_flow(FiveTuple("10.77.0.1", "10.77.0.2", 17, 30000, 5201), delay=500)
    for port in (30000, 30001):
        core.receive(0, 1, frame(port))
    assert [output.due_ns for output in core.run()] == [0, 500]
    switch.clear_flows()
    core.receive(1000, 1, frame(30000))
    assert [output.due_ns for output in core.run()] == [1000]


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
