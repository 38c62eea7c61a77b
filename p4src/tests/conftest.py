# SPDX-License-Identifier: MIT
"""The compiled program in the switch core, in virtual time: frames go in at exact times, outputs come out with theirs.

The suite talks to a `Switch`, of which the soft switch's core is one kind; tests say nothing about how it is driven.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from p4src.tests import frames
from wire.wire import POSTCARD

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "p4src/build"
SENDER_PORT, RECEIVER_PORT, COLLECTOR_PORT = 1, 2, 3
SWITCH_ID = 7
BUFFER_PACKETS = 163
RATE_BPS = 200_000_000
POSTCARD_HEADERS_BYTES = 14 + 20 + 8


@dataclass(frozen=True)
class Postcard:
    """One postcard as the collector's port got it."""

    fields: dict[str, int]

    def __getattr__(self, name: str) -> int:
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(name) from None

    def has(self, flag: str) -> bool:
        return bool(self.fields["flags"] & POSTCARD.const[f"POSTCARD_{flag}"])


class CoreConfig(ctypes.Structure):
    """struct core_config of softswitch/runtime/core.h."""

    _fields_ = (("packets", ctypes.c_uint32), ("frame_bytes", ctypes.c_uint32), ("flows", ctypes.c_uint32))


class CoreOutput(ctypes.Structure):
    """struct core_output of softswitch/runtime/core.h."""

    _fields_ = (
        ("due_ns", ctypes.c_uint64),
        ("departure_ns", ctypes.c_uint64),
        ("frame", ctypes.POINTER(ctypes.c_uint8)),
        ("bytes", ctypes.c_uint32),
        ("port", ctypes.c_uint16),
        ("back_to_back", ctypes.c_bool),
        ("packet", ctypes.c_void_p),
    )


class Switch:
    """A core with the program, configured as the lab has it: three ports, the queue towards the receiver watched."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        config = CoreConfig(packets=8192, frame_bytes=9216, flows=64)
        self.memory = ctypes.create_string_buffer(library.core_memory_bytes(ctypes.byref(config)) + 64)
        self.core = library.core_create((ctypes.addressof(self.memory) + 63) & ~63, ctypes.byref(config))
        self.sent: list[tuple[int, int, bytes]] = []
        for port in (SENDER_PORT, RECEIVER_PORT, COLLECTOR_PORT):
            assert library.core_attach_port(self.core, port) == 0
        for mac, port in ((frames.SENDER_MAC, SENDER_PORT), (frames.RECEIVER_MAC, RECEIVER_PORT)):
            self.control(f"table set forward 0x{mac.replace(':', '')} = send_to {port}")
        self.control(f"port set {RECEIVER_PORT} rate {RATE_BPS}")
        self.control(f"mirror set 1 {COLLECTOR_PORT}")
        self.control("table default collector send_to_collector " + " ".join(map(hex, COLLECTOR_ARGUMENTS)))
        self.policy(f"tail_drop {BUFFER_PACKETS} 0")
        self.postcards_of(RECEIVER_PORT)

    def control(self, request: str) -> list[str]:
        """The reply's lines after `ok`; an error reply fails the test."""
        reply = ctypes.create_string_buffer(65536)
        self.library.core_control(self.core, request.encode(), reply, len(reply))
        first, *lines = reply.value.decode().splitlines()
        assert first == "ok", f"{request}: {first}"
        return lines

    def policy(self, action: str) -> None:
        self.control(f"table set queue_policy {RECEIVER_PORT} = {action}")

    def postcards_of(self, port: int, switch_id: int = SWITCH_ID) -> None:
        self.control(f"table set postcards {port} = report {switch_id} 1")

    def counter(self, name: str, index: int) -> tuple[int, int]:
        """(packets, bytes)"""
        self.outputs()
        _, packets, size = self.control(f"counter read {name} {index}")[0].split()
        return int(packets), int(size)

    def send(self, at_ns: int, port: int, frame: bytes) -> None:
        assert self.library.core_receive(self.core, at_ns, port, frame, len(frame)) == 0

    def run(self, until_ns: int) -> None:
        self.library.core_advance(self.core, until_ns)

    def outputs(self) -> list[tuple[int, int, bytes]]:
        """(due_ns, port, frame) of everything that has come out, once all that was sent has gone through."""
        self.run(2**64 - 2)
        output = CoreOutput()
        while self.library.core_take_output(self.core, 2**64 - 2, ctypes.byref(output)):
            self.sent.append((output.due_ns, output.port, ctypes.string_at(output.frame, output.bytes)))
            self.library.core_release(self.core, ctypes.byref(output))
        return self.sent

    def frames_to(self, port: int) -> list[bytes]:
        return [frame for _, to, frame in self.outputs() if to == port]

    def postcards(self) -> list[Postcard]:
        return [Postcard(POSTCARD.decode(frame[POSTCARD_HEADERS_BYTES:])) for frame in self.frames_to(COLLECTOR_PORT)]


def _ipv4(address: str) -> int:
    return int.from_bytes(bytes(map(int, address.split("."))), "big")


def _mac(address: str) -> int:
    return int(address.replace(":", ""), 16)


COLLECTOR_ARGUMENTS = (
    _mac(frames.SWITCH_MAC),
    _mac(frames.COLLECTOR_MAC),
    _ipv4(frames.SWITCH),
    _ipv4(frames.COLLECTOR),
    POSTCARD.const["POSTCARD_UDP_PORT"],
    POSTCARD.const["POSTCARD_UDP_PORT"],
)


@pytest.fixture(scope="session")
def core_library(tmp_path_factory) -> ctypes.CDLL:
    """Core and translated program as a shared library, undefined behaviour trapped."""
    directory = tmp_path_factory.mktemp("core")
    pipeline, library = directory / "pipeline.c", directory / "core.so"
    digest = (BUILD / "bufferscope.sha256").read_text().split()[0]
    translate = [sys.executable, "-m", "softswitch.translate", BUILD / "bufferscope.json", "--digest", digest]
    subprocess.run([*translate, "-o", pipeline], cwd=ROOT, check=True)
    flags = ["-std=gnu11", "-O1", "-fPIC", "-shared", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    sources = sorted((ROOT / "softswitch/runtime").glob("*.c"))
    subprocess.run(
        ["cc", *flags, f"-I{ROOT / 'softswitch/runtime'}", pipeline, *sources, "-o", library], cwd=ROOT, check=True
    )
    loaded = ctypes.CDLL(str(library))
    loaded.core_memory_bytes.restype = ctypes.c_size_t
    loaded.core_create.restype = ctypes.c_void_p
    loaded.core_create.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    loaded.core_attach_port.argtypes = (ctypes.c_void_p, ctypes.c_uint16)
    loaded.core_receive.argtypes = (
        ctypes.c_void_p,
        ctypes.c_uint64,
        ctypes.c_uint16,
        ctypes.c_char_p,
        ctypes.c_uint32,
    )
    loaded.core_advance.argtypes = (ctypes.c_void_p, ctypes.c_uint64)
    loaded.core_take_output.argtypes = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p)
    loaded.core_take_output.restype = ctypes.c_bool
    loaded.core_release.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    loaded.core_control.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
    loaded.core_control.restype = ctypes.c_size_t
    return loaded


@pytest.fixture
def switch(core_library) -> Switch:
    return Switch(core_library)
