# SPDX-License-Identifier: MIT
"""Sends the same packets through BMv2 and the soft switch's core, one at a time, and compares the results.

The soft switch goes first: its number of output frames is the number to wait for at BMv2. If a packet leaves no frame
(dropped silently, or sent to a port without a host), a marker and the register of departures show when BMv2 is done.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass

from controlplane.bmv2 import Bmv2Switch
from controlplane.program import COUNTERS
from controlplane.soft import SoftSwitch
from p4src.tests.bmv2_target import Bmv2
from p4src.tests.under_test import SoftCore
from softswitch.tests.differential import frames, states
from softswitch.tests.differential.states import ATTACHED, MARKER_MAC, MARKER_PORT, PORTS, REGISTERS, UNATTACHED, State
from wire.wire import POSTCARD

FRAMES_PER_STATE = 24
STATES_WITHOUT_MIRROR = 30
ANSWER_S = 30.0
PACKET_SPACING_NS = 1_000_000
HEADERS_BYTES = 14 + 20 + 8
CLOCK_FIELDS = ("enqueue_switch_ns", "sojourn_ns")
Outputs = dict[int, list[bytes]]  # by port, in order


class Different(AssertionError):
    """The two switches treated a packet differently; the message has the packet, the state and the difference."""


@dataclass(frozen=True)
class Case:
    """Packet `index` of seed `seed`: it arrives after the earlier packets of the same state."""

    seed: int
    index: int
    port: int
    frame: bytes


def state_of(seed: int, number: int) -> State:
    return states.state(random.Random(f"{seed} state {number}"), mirrored=number >= STATES_WITHOUT_MIRROR)


def case_of(seed: int, index: int, state: State) -> Case:
    """The case that seed and index determine. A few packets go to unknown hosts."""
    chance = random.Random(f"{seed} packet {index}")
    known = sorted(set(state.forward) - {MARKER_MAC})
    mac = chance.choice(known) if chance.random() < 0.95 else chance.getrandbits(48) | 1 << 40
    port = chance.choice(ATTACHED)
    return Case(seed, index, port, frames.frame(chance, mac.to_bytes(6, "big"), index))


class Comparison:
    """A program on both switches, in the same state. A subclass says when BMv2 is done with a packet."""

    ports: tuple[int, ...] = ATTACHED  # of which frames are compared
    test = ""  # the options of pytest that select the test

    def __init__(self, bmv2: Bmv2, soft: SoftCore) -> None:
        self.bmv2 = bmv2
        self.soft = soft
        self.counted: Counter[str] = Counter()

    def compare(self, case: Case) -> None:
        """Raises Different if the output frames differ."""
        expected = self._soft_outputs(case)
        outputs = self._bmv2_outputs(case, expected)
        self._count(case, expected)
        if self._comparable(case, outputs) != self._comparable(case, expected):
            raise Different(self._report(case, expected, outputs, "frames differ"))

    def _soft_outputs(self, case: Case) -> Outputs:
        already = len(self.soft.outputs())
        self.soft.send((case.index + 1) * PACKET_SPACING_NS, case.port, case.frame)
        outputs: Outputs = {}
        for port, frame in self.soft.outputs()[already:]:
            if port in self.ports:
                outputs.setdefault(port, []).append(frame)
        return outputs

    def _bmv2_outputs(self, case: Case, expected: Outputs) -> Outputs:
        self.bmv2.ports.send(case.port, case.frame)
        outputs: Outputs = {}
        missing = sum(map(len, expected.values()))
        end = time.monotonic() + ANSWER_S
        while missing > 0 and (received := self.bmv2.ports.until(end)):
            for port, frame in received:
                outputs.setdefault(port, []).append(frame)
            missing -= len(received)
        self._wait_until_done(case, expected, outputs)
        return outputs

    def _wait_until_done(self, case: Case, expected: Outputs, outputs: Outputs) -> None:
        """Adds frames that came meanwhile to `outputs`."""
        raise NotImplementedError

    def _comparable(self, case: Case, outputs: Outputs) -> Outputs:
        raise NotImplementedError

    def _count(self, case: Case, expected: Outputs) -> None:
        """Counts each kind of output, so that a run can show that every kind occurred."""
        raise NotImplementedError

    def _state_lines(self) -> list[str]:
        """The state, to set it up by hand."""
        raise NotImplementedError

    def compare_memory(self, case: Case, soft: dict[str, int], bmv2: dict[str, int]) -> None:
        """Raises Different if registers or counters differ. `case`: the packet sent last."""
        if soft != bmv2:
            wrong = [
                f"{key}: soft {soft.get(key)}, BMv2 {bmv2.get(key)}"
                for key in sorted(soft | bmv2)
                if soft.get(key) != bmv2.get(key)
            ]
            raise Different(self._report(case, {}, {}, "registers or counters differ: " + "; ".join(wrong[:20])))

    def _report(self, case: Case, expected: Outputs, outputs: Outputs, what: str) -> str:
        again = f"pytest softswitch/tests/test_differential.py{self.test}, DIFFERENTIAL={case.seed}:{case.index}"
        return "\n".join(
            [
                f"{what}. Again: {again}",
                f"packet {case.index} into port {case.port}: {case.frame.hex()}",
                "state:",
                *(f"  {line}" for line in self._state_lines()),
                *_described("soft switch sent", expected),
                *_described("BMv2 sent", outputs),
            ]
        )


class Pair(Comparison):
    """Both switches with our own program, or with a policy in it, in the same state."""

    def __init__(self, bmv2: Bmv2, program: str = "p4", registers: tuple[str, ...] = REGISTERS) -> None:
        super().__init__(bmv2, SoftCore((*ATTACHED, MARKER_PORT, *UNATTACHED), program))
        self.registers = registers
        self.soft.count_by_the_program()  # as on BMv2, so that both switches compute lengths alike
        self.bmv2.control.reset()
        self._state: State | None = None
        self._markers = 0

    def set(self, state: State) -> None:
        for switch in (self.soft.control, self.bmv2.control):
            state.apply(switch, self._state)
        self._state = state

    def compare_registers(self, case: Case) -> None:
        """Raises Different if one of REGISTERS differs, or a counter of a port in use, except depth_histogram.

        `case`: the packet sent last.
        """
        self.compare_memory(case, self._memory(self.soft.control), self._memory(self.bmv2.control))

    def compare_histograms(self) -> None:
        """Compares all buckets of depth_histogram of all PORTS."""
        for port in PORTS:
            soft, bmv2 = self.soft.control.histogram(port), self.bmv2.control.histogram(port)
            assert soft == bmv2, f"depth_histogram of port {port}: soft {soft}, BMv2 {bmv2}"

    def _wait_until_done(self, case: Case, expected: Outputs, outputs: Outputs) -> None:
        """If no frame leaves, ingress is done when a marker behind the packet comes out, and egress when the departures
        equal the soft switch's.
        """
        if expected:
            return
        self._markers += 1
        marker = MARKER_MAC.to_bytes(6, "big") + bytes(6) + b"\x88\xb6" + self._markers.to_bytes(46, "big")
        self.bmv2.ports.send(case.port, marker)
        end = time.monotonic() + ANSWER_S
        came = False
        while not came and (received := self.bmv2.ports.until(end)):
            for port, frame in received:
                came |= (port, frame) == (MARKER_PORT, marker)
                if frame != marker:
                    outputs.setdefault(port, []).append(frame)
        assert came, f"BMv2 did not forward the marker that followed packet {case.index}"
        departed = self.soft.control.register("departed_packets")
        while self.bmv2.control.register("departed_packets") != departed and time.monotonic() < end:
            time.sleep(0.001)

    def _memory(self, control: SoftSwitch | Bmv2Switch) -> dict[str, int]:
        memory: dict[str, int] = {}
        for name in self.registers:
            memory.update({f"{name}[{port}]": value for port, value in enumerate(control.register(name)) if value})
        for name in COUNTERS:
            if name != "depth_histogram":
                for port, count in control.read_counter(name, (*PORTS, MARKER_PORT)).items():
                    memory[f"{name}[{port}].packets"], memory[f"{name}[{port}].bytes"] = count.packets, count.bytes
        return memory

    def _comparable(self, case: Case, outputs: Outputs) -> Outputs:
        return {port: [self._without_clock(case, port, frame) for frame in out] for port, out in outputs.items()}

    def _without_clock(self, case: Case, port: int, frame: bytes) -> bytes:
        """Replaces readings of the switch's clock in a postcard with zeros."""
        start = self._postcard_at(case, port, frame)
        if start is None:
            return frame
        fields = POSTCARD.decode(frame[start:])
        masked = POSTCARD.encode(**{**fields, **dict.fromkeys(CLOCK_FIELDS, 0)})
        return frame[:start] + masked + frame[start + POSTCARD.length :]

    def _postcard_at(self, case: Case, port: int, frame: bytes) -> int | None:
        """The offset of the postcard in an output frame. None: the frame is the packet itself.

        Without a collector a postcard has no headers before it and is followed by the start of the packet's payload.
        """
        assert self._state
        addressed = self._state.collector.action == "send_to_collector"
        start = HEADERS_BYTES if addressed else 0
        if port != self._state.mirror_port or len(frame) < start + POSTCARD.length:
            return None
        if addressed:
            macs = [
                self._state.collector.arguments[name].to_bytes(6, "big") for name in ("collector_mac", "switch_mac")
            ]
            if frame[:12] != b"".join(macs):
                return None
        elif frame[:6] == case.frame[:6]:
            return None
        return start if frame[start] == POSTCARD.const["POSTCARD_VERSION"] else None

    def _count(self, case: Case, expected: Outputs) -> None:
        assert self._state
        for port, out in expected.items():
            for frame in out:
                start = self._postcard_at(case, port, frame)
                if start is None:
                    self.counted["forwarded" if frame == case.frame else "marked"] += 1
                    continue
                self.counted["postcards"] += 1
                flags = frame[start + 1]
                for name in ("DROPPED", "CE_MARKED", "ECT", "AT_INGRESS", "HAS_PORTS", "HAS_TCP", "HAS_IP"):
                    self.counted[name] += bool(flags & POSTCARD.const[f"POSTCARD_{name}"])
        self.counted["silent"] += not expected
        self.counted["packets"] += 1

    def _state_lines(self) -> list[str]:
        assert self._state
        return self._state.lines()


def _described(who: str, outputs: Outputs) -> list[str]:
    return [f"{who}:", *(f"  port {port}: {frame.hex()}" for port, out in sorted(outputs.items()) for frame in out)]
