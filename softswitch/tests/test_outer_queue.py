# SPDX-License-Identifier: MIT
"""A queue outside of the core, here a list of Python's: with the same rule its postcards are those of the core's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from p4src.tests import frames
from softswitch.library import _COPY, _Output

from .core_driver import Core
from .test_watch import WATCH, cards, counts, fates, flag

ECN_AT, CE = 15, 3
PUT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Output))
NEXT = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Queue(ctypes.Structure):
    _fields_ = [("put", PUT), ("next", NEXT), ("context", ctypes.c_void_p), ("entering", ctypes.c_void_p)]


class Outer:
    """Port 2's queue of a core. `choose(waiting)` says what becomes of the oldest packet when the link is free: "send",
    "drop", or "mark". A packet beyond `limit` is dropped at its arrival.
    """

    def __init__(self, limit: int = 1000, choose: Callable[[int], str] = lambda waiting: "send") -> None:
        self.core, self.limit, self.choose = Core("p4", frame_bytes=9216), limit, choose
        self.waiting: list[tuple[int, bytes, int | None]] = []
        self.is_busy, self.library = False, self.core.library
        self.callbacks = PUT(self.put), NEXT(self.next), _COPY(ctypes.memmove)
        self.library.core_set_outer_queue(self.core.pointer, 2, ctypes.byref(_Queue(*self.callbacks[:2])))
        self.core.set("table set forward 0x02bf00000002 = send_to 2", "port set 2 rate 1000000000 delay 5000", WATCH)

    def put(self, _: int, output: ctypes._Pointer[_Output]) -> None:
        frame = output.contents
        if len(self.waiting) >= self.limit:
            if frame.body:
                del self.core.bodies[frame.body]
            self.library.core_outer_drop(self.core.pointer, ctypes.c_void_p(frame.packet), ctypes.c_uint64(0))
            return
        self.waiting.append((frame.packet, ctypes.string_at(frame.frame, frame.frame_bytes), frame.body))
        if not self.is_busy:
            self.run()

    def next(self, _: int) -> None:
        self.is_busy = False
        self.run()

    def run(self, now_ns: int = 0) -> None:
        while self.waiting and not self.is_busy:
            verdict = self.choose(len(self.waiting))
            handle, frame, body = self.waiting.pop(0)
            packet, now = ctypes.c_void_p(handle), ctypes.c_uint64(now_ns)
            if verdict == "drop":
                self.core.bodies.pop(body or 0, None)
                self.library.core_outer_drop(self.core.pointer, packet, now)
                continue
            self.is_busy = True
            head = frame[:ECN_AT] + bytes([frame[ECN_AT] | CE * (verdict == "mark")]) + frame[ECN_AT + 1 :]
            if body:
                self.core.bodies[body] = head + self.core.bodies[body][len(head) :]
            self.library.core_outer_send(
                self.core.pointer, packet, now, self.callbacks[2], head, ctypes.c_void_p(body or None)
            )


def receive(core: Core, count: int, gap_ns: int = 3000) -> None:
    for number in range(count):
        assert core.receive_with_body(1 + number * gap_ns, 1, frames.tcp(1514 if number % 3 else 60, seq=number)) == 0


def test_fifo__has_the_postcards_and_frames_of_the_cores_own_queue() -> None:
    outer, own = Outer(limit=5), Core("p4", frame_bytes=9216)
    own.set("table set forward 0x02bf00000002 = send_to 2", "port set 2 rate 1000000000 delay 5000 limit_packets 6")
    own.set(WATCH)
    receive(outer.core, 60)
    receive(own, 60)
    made = outer.core.run()
    assert made == own.run()
    assert set(fates(made)) == {"departed", "refused"}
    assert not outer.core.bodies


def test_packets__that_the_queue_drops_or_marks_have_the_time_and_the_depth() -> None:
    verdicts = iter(("send", "drop", "mark", "drop", "send"))
    outer = Outer(choose=lambda waiting: next(verdicts))
    receive(outer.core, 5, gap_ns=1)
    made = cards(outer.core.run())
    first_ns = (60 + 24) * 8
    lost = [card for card in made if card["flags"] & flag("DROPPED")]
    assert [(card["tcp_seq"], card["depth_packets"]) for card in lost] == [(1, 1), (3, 3)]
    assert lost[0]["flags"] & flag("AT_INGRESS") == 0
    assert lost[0]["sojourn_ns"] == first_ns - 1  # it came 1 ns after the first packet, and was dropped at its end
    assert [card["tcp_seq"] for card in made if card["flags"] & flag("CE_MARKED")] == [2]
    shown = counts(outer.core)
    assert (shown["arrivals"][0], shown["departure_drops"][0], shown["marks"][0]) == (5, 2, 1)
    assert not outer.core.bodies


def test_queue__that_sends_later_starts_the_link_then() -> None:
    outer = Outer()
    outer.is_busy = True  # it waits for a timer of its own
    receive(outer.core, 1)
    outer.core.advance(1)
    outer.is_busy = False
    outer.run(now_ns=50_000)
    (card,) = cards(outer.core.run())
    assert card["sojourn_ns"] == 50_000 - 1 + (60 + 24) * 8


def test_port__with_an_outer_queue_has_no_scheduler() -> None:
    for request in ("queue scheduler 2 strict", "queue show 2"):
        assert Outer().core.control(request)[0].startswith("error")
