# SPDX-License-Identifier: MIT
"""The switch core alone, on one processor: P4, queue, and a postcard for every packet, of our program and of each AQM
on the shelf. Frames of 1514 bytes of 16 flows come from memory (core_loop.c), at 0.99 of the link's rate, so the link
is busy and the queue short. BMv2 stands beside: our program through its veths, with TCP.
"""

from __future__ import annotations

import ctypes
import statistics

from bench.part import Part
from bench.report import BenchRow
from bench.switch import configure
from bench.targets import bmv2_packets_per_s
from controlplane.policy import TailDrop
from controlplane.program import ProgramEntry
from controlplane.soft import SoftSwitch
from experiments.machine import host
from experiments.spec import topology
from lib.frames import WIRE_EXTRA_BYTES
from p4src.compile import policy
from softswitch.library import Core

FRAME_BYTES, RATE_BPS, LOAD = 1514, 10_000_000_000, 0.99
PACKETS, RUNS = 1_000_000, 5
GAP_NS = round((FRAME_BYTES + WIRE_EXTRA_BYTES) * 8e9 / RATE_BPS / LOAD)
FIRST_NS = 1_000_000_000
BUFFER_PACKETS = 1000
CALLS = ("core_receive", "core_advance", "core_take_output", "core_release")


class _Loop(ctypes.Structure):
    _fields_ = [
        ("frame", ctypes.c_void_p),
        ("bytes", ctypes.c_uint32),
        ("port", ctypes.c_uint16),
        ("first_ns", ctypes.c_uint64),
        ("gap_ns", ctypes.c_uint64),
        ("packets", ctypes.c_uint64),
        ("outputs", ctypes.c_uint64),
    ]


class _InProcess:
    """A connection of the control plane to a core of this process."""

    def __init__(self, core: Core) -> None:
        self.core = core

    def exchange(self, request: bytes) -> bytes:
        return "\n".join(self.core.control(request.decode())).encode()

    def close(self) -> None:
        pass


def measure(short: bool) -> list[BenchRow]:
    packets, runs = (100_000, 1) if short else (PACKETS, RUNS)
    peer = bmv2_packets_per_s(short)
    return [
        _row(name, [packets_per_s(name, packets) / 1e6 for _ in range(runs)], peer) for name in ("", *policy.shelf())
    ]


PART = Part(measure, goals=("bench-programs",))


def _row(name: str, rates: list[float], peer: str) -> BenchRow:
    what, bounds = (name, {"aim": 1.5}) if name else ("our program", {"aim": 3.0})
    return BenchRow(f"core: {what}: packets with a postcard each", statistics.median(rates), "M/s", samples=rates,
                    peer=peer, note="processor time of one core", **bounds)  # fmt: skip


def packets_per_s(name: str, packets: int) -> float:
    """Of processor time, through the AQM `name` ("": our program)."""
    program = policy.read(name) if name else None
    pipeline = str(policy.stored(program, host.BUILD / "p4")) if program else "p4"
    core = Core(pipeline, tuple(each.port for each in topology.HOSTS), packets=1 << 14)
    control = SoftSwitch("this process", _InProcess(core))
    configure(control)
    control.set_policy(topology.RECEIVER.port, TailDrop(BUFFER_PACKETS))
    control.set_port(topology.RECEIVER.port, rate=RATE_BPS)
    if program:
        for (table, action), arguments in policy.default_actions(program.json, {}).items():
            control.write_default(table, ProgramEntry(action, arguments))
        core.set(*(" ".join(map(str, words)) for words in policy.requests(program.json, topology.RECEIVER.port)))
    loop = _Loop(bytes=FRAME_BYTES, port=topology.SENDER.port, first_ns=FIRST_NS, gap_ns=GAP_NS, packets=packets)
    frame = (ctypes.c_uint8 * FRAME_BYTES).from_buffer_copy(_frame())
    loop.frame = ctypes.addressof(frame)
    functions = (ctypes.c_void_p * len(CALLS))(
        *(ctypes.cast(getattr(core.library, call), ctypes.c_void_p).value for call in CALLS)
    )
    run = ctypes.CDLL(str(host.BUILD / "core_loop.so")).core_loop
    run.restype = ctypes.c_uint64
    spent_ns = run(core.pointer, ctypes.byref(functions), ctypes.byref(loop))
    if not spent_ns or loop.outputs < 1.9 * packets:
        raise RuntimeError(f"the core gave {loop.outputs} outputs for {packets} packets")
    return packets / spent_ns * 1e9


def _frame() -> bytes:
    """A TCP segment from the sender to the receiver."""
    macs = bytes.fromhex((topology.RECEIVER.mac + topology.SENDER.mac).replace(":", ""))
    addresses = bytes(int(part) for each in (topology.SENDER, topology.RECEIVER) for part in each.ipv4.split("."))
    ip = bytes.fromhex("4500") + (FRAME_BYTES - 14).to_bytes(2, "big") + bytes.fromhex("00004000400600 00") + addresses
    tcp = (40000).to_bytes(2, "big") + (5201).to_bytes(2, "big") + bytes(8) + b"\x50\x10" + bytes(6)
    return (macs + b"\x08\x00" + ip + tcp).ljust(FRAME_BYTES, b"\0")
