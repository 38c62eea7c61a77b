# SPDX-License-Identifier: MIT
"""The switch core as a Python object: the shared library that the Makefile's `library` target builds, over ctypes.

Tests and what-if replay (analysis/whatif) use it to run the core in virtual time.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
from dataclasses import dataclass
from functools import cache

from lib import places

ROOT = places.CHECKOUT
NEVER_NS = 2**64 - 1
COVERAGE = ["COVERAGE=1"] if os.environ.get("COVERAGE") else []
# Of builds without SANITIZE: sanitized builds never count coverage, so they are always directly in build/.
BUILD = places.BUILD / ("coverage" if COVERAGE else "")
REPLY_BYTES = 1 << 17


class BuildError(Exception):
    """softswitch/Makefile failed; the message is its output with the compiler's messages."""


class Refused(Exception):
    """The core refused a request; the message has the request and the error reply."""


_COPY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)
_READ_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)
_DROP_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_TAP = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint16, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)


class _Config(ctypes.Structure):
    _fields_ = [
        ("packets", ctypes.c_uint32),
        ("frame_bytes", ctypes.c_uint32),
        ("flows", ctypes.c_uint32),
        ("rate_entries", ctypes.c_uint32),
        ("read_body", _READ_BODY),
        ("drop_body", _DROP_BODY),
        ("tap", _TAP),
    ]


class _Output(ctypes.Structure):
    _fields_ = [
        ("due_ns", ctypes.c_uint64),
        ("departure_ns", ctypes.c_uint64),
        ("frame", ctypes.POINTER(ctypes.c_uint8)),
        ("bytes", ctypes.c_uint32),
        ("frame_bytes", ctypes.c_uint32),
        ("body_offset", ctypes.c_uint32),
        ("body", ctypes.c_void_p),
        ("port", ctypes.c_uint16),
        ("back_to_back", ctypes.c_bool),
        ("packet", ctypes.c_void_p),
    ]


@dataclass(frozen=True)
class SentFrame:
    due_ns: int
    departure_ns: int
    port: int
    frame: bytes
    back_to_back: bool


def make(*words: str) -> None:
    """Runs softswitch/Makefile. Raises BuildError with the messages of the compiler."""
    # make reads COVERAGE from the environment, too; an empty argument overrides it.
    counted = ["COVERAGE="] if "SANITIZE=1" in words or "freestanding" in words else COVERAGE
    done = subprocess.run(["make", "-C", ROOT / "softswitch", *words, *counted], capture_output=True, text=True)
    if done.returncode:
        raise BuildError(done.stdout + done.stderr)


@cache
def library(pipeline: str) -> ctypes.CDLL:
    """The core with a pipeline: "test" (written by hand), "p4" (our program), or the path of another program's JSON."""
    if pipeline.endswith(".json"):
        path = (ROOT / pipeline).resolve()  # programs in several directories may have the same name
        name = f"softswitch-{path.stem}-{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
        make(f"P4_JSON={ROOT / pipeline}", f"PROGRAM_OBJ={BUILD}/obj/{name}", f"BIN={BUILD}/{name}", "library")
    else:
        name = "softswitch-test" if pipeline == "test" else "softswitch"
        make(f"PIPELINE={pipeline}", "library")
    loaded = ctypes.CDLL(str(BUILD / f"{name}.so"))
    loaded.core_memory_bytes.restype = ctypes.c_size_t
    loaded.core_create.restype = ctypes.c_void_p
    loaded.core_next_event_ns.restype = ctypes.c_uint64
    loaded.core_next_output_ns.restype = ctypes.c_uint64
    loaded.core_lookahead_ns.restype = ctypes.c_uint64
    loaded.core_control.restype = ctypes.c_size_t
    loaded.core_take_output.restype = ctypes.c_bool
    return loaded


class Core:
    """A core. Times are ns; frames are bytes."""

    def __init__(
        self, pipeline: str = "test", ports: tuple[int, ...] = (1, 2, 3), packets: int = 4096, frame_bytes: int = 2048,
        flows: int = 64, rate_entries: int = 0,
    ) -> None:  # fmt: skip
        self.library = library(pipeline)
        self.bodies: dict[int, bytes] = {}  # by handle: received frames whose payload stays outside the core
        bodies = self.bodies  # A callback that held `self` would keep the core's memory until gc finds the cycle.

        def read_body(to: int, body: int, offset: int, length: int) -> None:
            ctypes.memmove(to, bodies[body][offset : offset + length], length)

        self._callbacks = _READ_BODY(read_body), _DROP_BODY(bodies.__delitem__), _COPY(ctypes.memmove)
        config = _Config(packets, frame_bytes, flows, rate_entries, *self._callbacks[:2])
        size = self.library.core_memory_bytes(ctypes.byref(config))
        assert size
        self._memory = ctypes.create_string_buffer(size + 64)
        at = (ctypes.addressof(self._memory) + 63) // 64 * 64
        self.pointer = ctypes.c_void_p(self.library.core_create(ctypes.c_void_p(at), ctypes.byref(config)))
        for port in ports:
            assert self.library.core_attach_port(self.pointer, port) == 0

    def receive(self, arrival_ns: int, port: int, frame: bytes) -> int:
        return self.library.core_receive(self.pointer, ctypes.c_uint64(arrival_ns), port, frame, len(frame))

    def receive_with_body(self, arrival_ns: int, port: int, frame: bytes) -> int:
        """Receives a frame whose payload stays outside the core, as in the kernel driver."""
        handle = max(self.bodies, default=0) + 1
        body = ctypes.c_void_p(handle) if len(frame) > self.library.core_head_bytes() else None
        status = self.library.core_receive_from(
            self.pointer, ctypes.c_uint64(arrival_ns), port, self._callbacks[2], frame, len(frame), body
        )
        if body and not status:
            self.bodies[handle] = frame
        return status

    def advance(self, until_ns: int) -> None:
        self.library.core_advance(self.pointer, ctypes.c_uint64(until_ns))

    def next_event_ns(self) -> int:
        return self.library.core_next_event_ns(self.pointer)

    def next_output_ns(self) -> int:
        return self.library.core_next_output_ns(self.pointer)

    def lookahead_ns(self) -> int:
        return self.library.core_lookahead_ns(self.pointer)

    def take(self, until_ns: int = NEVER_NS) -> list[SentFrame]:
        """All outputs that are due up to until_ns; releases them."""
        outputs, raw = [], _Output()
        while self.library.core_take_output(self.pointer, ctypes.c_uint64(until_ns), ctypes.byref(raw)):
            frame = ctypes.string_at(raw.frame, raw.frame_bytes)
            if raw.body:
                frame += self.bodies.pop(raw.body)[raw.body_offset :][: raw.bytes - raw.frame_bytes]
            outputs.append(SentFrame(raw.due_ns, raw.departure_ns, raw.port, frame, raw.back_to_back))
            self.library.core_release(self.pointer, ctypes.byref(raw))
        return outputs

    def run(self, until_ns: int = 2**62) -> list[SentFrame]:
        self.advance(until_ns)
        return self.take(until_ns)

    def control(self, request: str) -> list[str]:
        """The lines of the reply; the first is `ok` or starts with `error`."""
        reply = ctypes.create_string_buffer(REPLY_BYTES)
        self.library.core_control(self.pointer, request.encode(), reply, REPLY_BYTES)
        return reply.value.decode().splitlines()

    def set(self, *requests: str) -> None:
        """Makes these requests. Raises Refused at the first error reply."""
        for request in requests:
            answer = self.control(request)
            if answer[0] != "ok":
                raise Refused(f"{request}: {' '.join(answer)}")

    def stats(self) -> dict[str, int]:
        return {name: int(value) for name, value in (line.split() for line in self.control("stats")[1:])}
