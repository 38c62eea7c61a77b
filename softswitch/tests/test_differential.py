# SPDX-License-Identifier: MIT
"""BMv2 and the soft switch execute the same compiled program: any input must give the same output and the same state.

7,200 packets, most of them malformed, in 300 random states of tables and registers; tests with the marker `long` send
six times as many. Frames are compared byte by byte, except fields that are read from a clock. Registers and counters
are compared after each state, the depth histogram after the last. $DIFFERENTIAL=SEED:INDEX repeats the state of packet
INDEX, from its first packet to packet INDEX, and compares registers and counters after each packet.

Small programs of ours (differential/programs) do the same for constructs that bufferscope's program has not, with 120
packets each, or $DIFFERENTIAL_PACKETS.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.program import ProgramEntry
from p4src.compile import policy
from p4src.tests import bmv2_target
from p4src.tests.under_test import composed
from softswitch.tests.differential import compare
from softswitch.tests.differential.compare import (
    FRAMES_PER_STATE,
    STATES_WITHOUT_MIRROR,
    Case,
    Different,
    Pair,
    case_of,
    state_of,
)
from softswitch.tests.differential.program_pair import PACKETS_PER_STATE, ProgramPair
from softswitch.tests.differential.programs import HERE, PROGRAMS
from softswitch.tests.differential.states import REGISTERS, State

SEED = 1
POLICY = "p4src/tests/programs/build/decides.json"
SEEDS_OF_THE_LONG_RING = range(2, 8)
STATES = 300
STATES_OF_THE_SHELF = 80


PROGRAM_PACKETS = int(os.environ.get("DIFFERENTIAL_PACKETS", "120"))


@pytest.fixture(scope="module")
def bmv2() -> Iterator[bmv2_target.Bmv2]:
    yield from running(bmv2_target.JSON)


@pytest.fixture
def bmv2_with(request: pytest.FixtureRequest) -> Iterator[bmv2_target.Bmv2]:
    """BMv2 with the program that is the test's parameter `name`."""
    yield from running(HERE / "build" / f"{request.getfixturevalue('name')}.json")


def running(program: Path) -> Iterator[bmv2_target.Bmv2]:
    if reason := bmv2_target.why_not():
        pytest.skip(f"bmv2: {reason}")
    with bmv2_target.Bmv2(program) as switch:
        yield switch


@pytest.mark.software
def test_random_packets_and_states__give_the_same_frames_and_registers(bmv2):
    seed, _, wanted = os.environ.get("DIFFERENTIAL", f"{SEED}:").partition(":")
    if wanted:
        replay(Pair(bmv2), int(seed), int(wanted))
        return
    compare_seed(bmv2, int(seed))


@pytest.mark.software
def test_a_policy_of_its_own__gives_the_same_decisions_and_the_same_state():
    """Of a policy with state that both controls share: drops and marks at arrival and at departure, and its values."""
    program = composed(POLICY)
    for bmv2 in running(program):
        more = str(program), (*REGISTERS, "arrived", "departed")
        counted = run(bmv2, SEED, 0, STATES_WITHOUT_MIRROR, *more) + run(
            bmv2, SEED, STATES_WITHOUT_MIRROR, STATES, *more
        )
    assert counted["packets"] == STATES * FRAMES_PER_STATE
    assert min(counted.values()) > 100, "at least one kind of output occurred too rarely"


@pytest.mark.software
@pytest.mark.long
@pytest.mark.parametrize("name", policy.shelf())
def test_an_aqm_of_the_shelf__gives_the_same_decisions_and_the_same_state(name, tmp_path):
    """With times and random numbers from the packet: both switches then have the same ones."""
    program = policy.read(name).json
    ours = {array["name"] for array in policy.P4Program("", policy.OURS.read_text()).json["register_arrays"]}
    arrays = {array["name"] for array in program["register_arrays"]} - ours - {"last_departure_ns"}
    repeatable = policy.stored(policy.P4Program(name, json.dumps(without_clock_and_chance(program))), tmp_path)
    for bmv2 in running(repeatable):
        counted = run(bmv2, SEED, STATES_WITHOUT_MIRROR, STATES_OF_THE_SHELF, str(repeatable), (*REGISTERS, *arrays))
    assert counted["DROPPED"], "nothing was decided"


def without_clock_and_chance(program: Any) -> Any:
    """The program whose policy reads its times and its random numbers from the source MAC, which is random."""

    def of_the_packet(first_bit: int, bits: int) -> Any:
        address = {"type": "field", "value": ["ethernet", "src_addr"]}
        low = {"op": ">>", "left": address, "right": {"type": "hexstr", "value": hex(first_bit)}}
        shifted = {"type": "expression", "value": low}
        masked = {"op": "&", "left": shifted, "right": {"type": "hexstr", "value": hex(2**bits - 1)}}
        return {"type": "expression", "value": {"type": "expression", "value": masked}}

    bits = {"now_ns": (0, 32), "sojourn_ns": (0, 28), "wait_ns": (0, 27)}  # up to 4.3 s, 0.27 s, 0.13 s
    for action in program["actions"]:
        for number, primitive in enumerate(action["primitives"]):
            to = primitive["parameters"][0]
            if primitive["op"] == "modify_field_rng_uniform":
                most = int(primitive["parameters"][2]["value"], 0)
                chance = of_the_packet(16 - number % 2, most.bit_length())
                action["primitives"][number] = primitive | {"op": "assign", "parameters": [to, chance]}
            field = re.fullmatch(r".*_seen_(\w+_ns)\d+", to["value"][1]) if isinstance(to["value"], list) else None
            if field and action["name"] in ("arrival_hook_seen", "departure_hook_seen"):
                primitive["parameters"][1] = of_the_packet(*bits[field[1]])
    return program


@pytest.mark.software
@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS_OF_THE_LONG_RING)
def test_more_random_packets_and_states__give_the_same_frames_and_registers(bmv2, seed):
    compare_seed(bmv2, seed)


def compare_seed(bmv2: bmv2_target.Bmv2, seed: int) -> None:
    counted = run(bmv2, seed, 0, STATES_WITHOUT_MIRROR) + run(bmv2, seed, STATES_WITHOUT_MIRROR, STATES)
    assert counted["packets"] == STATES * FRAMES_PER_STATE >= 5000
    assert min(counted.values()) > 100, "at least one kind of output occurred too rarely"


@pytest.mark.software
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs__give_the_same_frames_and_registers(name, bmv2_with):
    seed, _, wanted = os.environ.get("DIFFERENTIAL", f"{SEED}:").partition(":")
    first, end = (0, PROGRAM_PACKETS) if not wanted else (0, int(wanted) + 1)
    if wanted:
        first = int(wanted) // PACKETS_PER_STATE * PACKETS_PER_STATE
    counted: Counter[str] = Counter()
    for start in range(first, end, PACKETS_PER_STATE):
        pair = ProgramPair(bmv2_with, name, int(seed), start // PACKETS_PER_STATE)
        for index in range(start, min(start + PACKETS_PER_STATE, end)):
            pair.compare(case := pair.case(index))
            if wanted:
                pair.compare_registers(case)
        pair.compare_registers(case)
        counted += pair.counted
    assert counted["packets"] == end - first
    assert wanted or counted["frames"] > counted["packets"] / 4, "too few packets leave"


@pytest.mark.software
@pytest.mark.parametrize("name", ["resubmit"])
def test_programs__in_different_states_are_seen_as_different(name, bmv2_with):
    pair = ProgramPair(bmv2_with, name, SEED, 0)
    pair.soft.core.set("register write credits 3 77")
    with pytest.raises(Different, match=r"credits\[3\]: soft 77"):
        pair.compare_registers(pair.case(0))


@pytest.mark.software
class TestComparison:
    """The comparison can fail: it detects each kind of difference, at the first packet that shows it."""

    NUMBER = 100  # of a state with a mirror session

    def test_another_table_entry__is_seen_in_frames(self, bmv2, monkeypatch):
        monkeypatch.setattr(compare, "ANSWER_S", 1.0)  # for a frame that never comes
        pair, state = Pair(bmv2), state_of(SEED, self.NUMBER)
        pair.set(state)
        for port, entry in state.policies.items():
            if port in (1, 2, 3):
                other = "unwatched" if entry and entry.action != "unwatched" else "tail_drop"
                arguments = {} if other == "unwatched" else {"threshold": 0, "in_bytes": 0}
                pair.soft.control.write_entry("queue_policy", port, ProgramEntry(other, arguments))
        with pytest.raises(Different, match=r"frames differ. Again: .* DIFFERENTIAL=1:24\d\d"):
            compare_all(pair, SEED, self.NUMBER, state)

    def test_another_register__is_seen(self, bmv2):
        pair, state = Pair(bmv2), state_of(SEED, self.NUMBER)
        pair.set(state)
        pair.soft.control.set_register("departed_bytes", 510, 1 ^ state.registers["departed_bytes", 510])
        with pytest.raises(Different, match=r"departed_bytes\[510\]: soft"):
            pair.compare_registers(case_of(SEED, self.NUMBER * FRAMES_PER_STATE, state))

    def test_a_packet_more__is_seen_in_counters(self, bmv2):
        pair, state = Pair(bmv2), state_of(SEED, self.NUMBER)
        pair.set(state)
        case = case_of(SEED, self.NUMBER * FRAMES_PER_STATE, state)
        pair.soft.send(0, 1, b"\xff" * 5 + bytes(55))  # to an unknown host
        pair.soft.outputs()
        with pytest.raises(Different, match=r"unknown_hosts\[1\].packets: soft 1, BMv2 None"):
            pair.compare_registers(case)


def run(
    bmv2: bmv2_target.Bmv2, seed: int, first: int, end: int, program: str = "p4", registers: tuple[str, ...] = REGISTERS
) -> Counter[str]:
    """Compares the states first .. end - 1, from an empty switch on. A mirror session stays once it exists."""
    pair = Pair(bmv2, program, registers)
    for number in range(first, end):
        state = state_of(seed, number)
        pair.set(state)
        last = compare_all(pair, seed, number, state)
        try:
            pair.compare_registers(last)
        except Different:
            replay(Pair(bmv2, program, registers), seed, last.index)  # finds the packet
            raise
    pair.compare_histograms()
    return pair.counted


def compare_all(pair: Pair, seed: int, number: int, state: State) -> Case:
    """Compares the frames of all packets of a state. Returns the last packet."""
    for index in range(number * FRAMES_PER_STATE, (number + 1) * FRAMES_PER_STATE):
        case = case_of(seed, index, state)
        pair.compare(case)
    return case


def replay(pair: Pair, seed: int, index: int) -> None:
    number = index // FRAMES_PER_STATE
    state = state_of(seed, number)
    pair.set(state)
    for each in range(number * FRAMES_PER_STATE, index + 1):
        case = case_of(seed, each, state)
        pair.compare(case)
        pair.compare_registers(case)
