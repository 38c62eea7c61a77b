# SPDX-License-Identifier: MIT
"""Registers that the switch fills with the lengths of its queues: their values, and refused declarations."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from softswitch.tests.core_driver import Core
from softswitch.tests.fifo_model import fifo
from softswitch.translate.__main__ import main as translate

from .conftest import PROGRAMS, ROOT, compiled

PROGRAM = str((PROGRAMS / "build" / "shorter_queue.json").relative_to(ROOT))
LENGTHS = struct.Struct(">III")
RATE_BPS = 1_000_000_000


def frame(length: int) -> bytes:
    return bytes(length)


def test_program__reads_the_length_of_every_queue_at_every_moment() -> None:
    """Bursts fill two queues until the limits refuse packets. At each arrival the program reads the true lengths."""
    core = Core(PROGRAM)
    for port in (2, 3):
        core.set(f"port set {port} rate {RATE_BPS} limit_packets 7")
    sizes = [60 + 37 * (number % 29) for number in range(400)]
    arrivals = [(1 + number // 20 * 60_000 + number % 20 * 100, size) for number, size in enumerate(sizes)]
    queues: dict[int, list[tuple[int, int]]] = {2: [], 3: []}
    expected, refused = [], 0
    for arrival_ns, size in arrivals:
        core.receive(arrival_ns, 1, frame(size))
        lengths = {}
        for port, sent in queues.items():
            waiting = [packet for packet in fifo(sent, RATE_BPS) if (packet.departure_ns or 0) > arrival_ns]
            lengths[port] = (len(waiting), sum(length for _, length in sent[len(sent) - len(waiting) :]))
        port = 3 if lengths[3][0] < lengths[2][0] else 2
        if lengths[port][0] < 7:
            queues[port].append((arrival_ns, size))
            expected.append((lengths[2][0], lengths[3][0], lengths[2][1] + lengths[3][1]))
        else:
            refused += 1
        core.advance(arrival_ns)
        (line,) = core.control(f"register read queue_packets {port}")[1:]
        assert line == f"{port} {core.stats()[f'port.{port}.queue_packets']}"
    outputs = core.run()
    assert refused > 20
    assert sorted(LENGTHS.unpack_from(output.frame) for output in outputs) == sorted(expected)
    assert core.control("register read queue_bytes 2")[1:] == ["2 0"]


def test_control_plane__reads_the_lengths_and_cannot_write_them() -> None:
    core = Core(PROGRAM)
    for name in ("queue_packets", "queue_bytes"):
        assert core.control(f"register write {name} 2 5") == [
            f"error {name}: the switch fills it with the lengths of its queues: it can only be read"
        ]
        assert core.control(f"register read {name} 2") == ["ok", "2 0"]
    assert core.control("register read queue_registers_filled 0") == ["ok", "0 1"]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"bitwidth": 16}, "register<bit<16>>(512) queue_packets is not supported by the soft switch"),
        ({"size": 511}, "register<bit<32>>(511) queue_packets is not supported by the soft switch"),
    ],
)
def test_declaration__of_another_form_is_refused(
    change: dict[str, int], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = json.loads(compiled("shorter_queue")[0].read_text())
    (register,) = [array for array in program["register_arrays"] if array["name"] == "queue_packets"]
    register.update(change)
    line = register["source_info"]["line"]
    assert refusal(program, tmp_path, capsys) == (
        f"softswitch/tests/translate/programs/shorter_queue.p4:{line}: {error}: the switch fills registers of this "
        "name: declare register<bit<32>>(512) queue_packets, once, or choose another name\n"
    )


def test_declaration__of_two_registers_of_one_name_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = json.loads(compiled("shorter_queue")[0].read_text())
    (register,) = [array for array in program["register_arrays"] if array["name"] == "queue_bytes"]
    program["register_arrays"].append({**register, "name": "I.queue_bytes", "id": 9})
    assert refusal(program, tmp_path, capsys).endswith(
        ": declare register<bit<32>>(512) queue_bytes, once, or choose another name\n"
    )


def test_program__may_not_write_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = json.loads(compiled("shorter_queue")[0].read_text())
    (first, *_) = [
        (action["primitives"], number)
        for action in program["actions"]
        for number, primitive in enumerate(action["primitives"])
        if primitive["op"] == "register_read"
    ]
    primitives, number = first
    to, register, index = primitives[number]["parameters"]
    primitives[number] = {**primitives[number], "op": "register_write", "parameters": [register, index, to]}
    line = primitives[number]["source_info"]["line"]
    assert refusal(program, tmp_path, capsys) == (
        f"softswitch/tests/translate/programs/shorter_queue.p4:{line}: writing register {register['value']} is not "
        "supported by the soft switch: the switch fills it: read it only\n"
    )


def refusal(program: object, directory: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path, output = directory / "changed.json", directory / "out.c"
    path.write_text(json.dumps(program))
    assert translate([str(path), "--digest", "0" * 64, "-o", str(output)]) == 1
    assert not output.exists()
    return capsys.readouterr().err


def test_metadata__would_be_read_once_for_both_ports() -> None:
    """The reason why the lengths are registers: p4c merges two reads of metadata, and no comparison remains."""
    assert conditions("shorter_queue") == 1
    assert conditions("shorter_queue_metadata") == 0
    text = compiled("shorter_queue_metadata")[0].read_text()
    assert '"<"' not in text
    assert json.loads(text)["actions"][0]["primitives"][0]["parameters"][1]["value"] == "0x0003"


def conditions(name: str) -> int:
    program = json.loads(compiled(name)[0].read_text())
    return sum(len(pipeline["conditionals"]) for pipeline in program["pipelines"])
