# SPDX-License-Identifier: MIT
"""Compares a program of programs.py on both switches. BMv2 is done with a packet when the packet counts of ingress and
egress (programs/end.p4) equal the soft switch's.
"""

from __future__ import annotations

import json
import random
import time

from controlplane.bmv2_requests import Bmv2Requests
from p4src.tests.bmv2_target import Bmv2
from p4src.tests.under_test import SoftCore
from softswitch.tests.differential import compare
from softswitch.tests.differential.compare import Case, Comparison, Different, Outputs
from softswitch.tests.differential.programs import HERE, PORTS, PROGRAMS, frame

PACKETS_PER_STATE = 100
QUEUE_PACKETS = 1 << 16  # more than one packet's clones; 64 by default
COUNTS = ("ingresses", "egresses")


class ProgramPair(Comparison):
    """A program in one random state. BMv2 starts anew, because it cannot forget all of an earlier state."""

    ports = PORTS

    def __init__(self, bmv2: Bmv2, name: str, seed: int, number: int) -> None:
        path = HERE / "build" / f"{name}.json"
        super().__init__(bmv2, SoftCore(PORTS, str(path)))
        self.test = f" -k {name}"
        self.name, self.seed = name, seed
        self.state = PROGRAMS[name].state(random.Random(f"{name} {seed} state {number}"))
        self.soft.core.set(*self.state)
        bmv2.stop()
        bmv2.start()
        bmv2.thrift.set_all_egress_queue_depths(QUEUE_PACKETS)
        self._requests = Bmv2Requests(bmv2.control._client, json.loads(path.read_text()))
        self._requests.set(self.state)

    def case(self, index: int) -> Case:
        """The packet that name, seed and index determine."""
        chance = random.Random(f"{self.name} {self.seed} packet {index}")
        return Case(self.seed, index, chance.choice(PORTS), frame(PROGRAMS[self.name], chance))

    def compare_registers(self, case: Case) -> None:
        soft, bmv2 = {}, {}
        for array in self._requests.registers():
            lines = self.soft.core.control(f"register read {array.name} 0 {array.size}")[1:]
            soft.update({f"{array.name}[{at}]": int(line.split()[1], 0) for at, line in enumerate(lines)})
            values = self._requests.register(array.name)
            bmv2.update({f"{array.name}[{at}]": value for at, value in enumerate(values)})
        for name, counter in self._requests.counters():
            for at in range(counter.size or 0):
                soft[f"{name}[{at}]"], bmv2[f"{name}[{at}]"] = self._packets(name, at), self._requests.packets(name, at)
        self.compare_memory(case, soft, bmv2)

    def _packets(self, counter: str, index: int) -> int:
        return int(self.soft.core.control(f"counter read {counter} {index}")[1].split()[1])

    def _wait_until_done(self, case: Case, expected: Outputs, outputs: Outputs) -> None:
        wanted = [self._packets(name, 0) for name in COUNTS]
        end = time.monotonic() + compare.ANSWER_S
        while (counts := [self._requests.packets(name, 0) for name in COUNTS]) != wanted:
            if time.monotonic() > end:
                what = f"packets of {' and '.join(COUNTS)} differ: soft {wanted}, BMv2 {counts}"
                raise Different(self._report(case, expected, outputs, what))
        for port, late in self.bmv2.ports.receive(0):
            outputs.setdefault(port, []).append(late)

    def _comparable(self, case: Case, outputs: Outputs) -> Outputs:
        """Copies of a packet to the same port have no order in BMv2, whose clones and egress run in several threads."""
        return {port: sorted(frames) for port, frames in outputs.items()}

    def _count(self, case: Case, expected: Outputs) -> None:
        self.counted["packets"] += 1
        self.counted["frames"] += sum(map(len, expected.values()))

    def _state_lines(self) -> list[str]:
        return self.state
