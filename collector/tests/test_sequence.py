# SPDX-License-Identifier: MIT
"""Gaps, duplicates and reordering against a model that keeps every received number."""

import random
import struct
import subprocess
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

WINDOW = 1 << 18
STREAMS = 256
NAMES = ("received", "first", "last", "gaps", "missing", "duplicates", "reordered", "too_late", "restarts")


@dataclass
class Model:
    """A stream of unwrapped numbers, each at most WINDOW - 2 behind the highest number before it."""

    seen: set[int] = field(default_factory=set)
    received: int = 0
    duplicates: int = 0
    reordered: int = 0

    def note(self, seq: int) -> None:
        self.received += 1
        if seq in self.seen:
            self.duplicates += 1
        elif self.seen and seq < max(self.seen):
            self.reordered += 1
        self.seen.add(seq)

    def counts(self) -> dict[str, int]:
        ordered = sorted(self.seen)
        holes = [after - before - 1 for before, after in pairwise(ordered) if after > before + 1]
        first = ordered[0] % 2**32
        return {
            "received": self.received,
            "first": first,
            "last": first + ordered[-1] - ordered[0],
            "gaps": len(holes),
            "missing": sum(holes),
            "duplicates": self.duplicates,
            "reordered": self.reordered,
            "too_late": 0,
            "restarts": 0,
        }


def run(binaries: Path, cases: list[list[tuple[int, int, int]]]) -> list[tuple[dict, int]]:
    """Per case: {(switch, port, at_ingress): counts}, untracked."""
    data = b"".join(
        struct.pack("=I", len(case)) + b"".join(struct.pack("=3I", key, at, seq % 2**32) for key, at, seq in case)
        for case in cases
    )
    tool = binaries / "obj/collector/sequence_tool"
    output = subprocess.run([tool], input=data, stdout=subprocess.PIPE, check=True).stdout.decode()
    results: list[tuple[dict, int]] = []
    streams: dict = {}
    for line in output.splitlines():
        kind, *numbers = line.split()
        values = [int(number) for number in numbers]
        if kind == "stream":
            streams[tuple(values[:3])] = dict(zip(NAMES, values[3:], strict=True))
        else:
            results.append((streams, values[0]))
            streams = {}
    return results


def counts_of(binaries: Path, *numbers: int) -> dict[str, int]:
    return run(binaries, [[(1 << 16 | 2, 0, number) for number in numbers]])[0][0][(1, 2, 0)]


def disturb(chance: random.Random, count: int) -> list[int]:
    """Numbers as a network might deliver them: some lost, some doubled, displaced by up to `reach`."""
    start = chance.choice([0, 1, 5, 2**32 - count // 2, 2**32 - 1, chance.randrange(2**32)])
    loss, doubled = chance.choice([0, 0.01, 0.5]), chance.choice([0, 0.02, 0.3])
    reach = chance.choice([0, 2, 50, count])
    numbers = [start + index for index in range(count) if chance.random() >= loss]
    numbers += [number for number in numbers if chance.random() < doubled]
    return sorted(numbers, key=lambda number: number + chance.uniform(0, reach)) or [start]


def test_sequence__equals_the_model_for_random_loss_duplication_and_order(sanitized):
    chance = random.Random(5577)
    cases = [disturb(chance, chance.choice([1, 2, 3, 10, 200, 1000])) for _ in range(400)]
    results = run(sanitized, [[(1 << 16 | 2, 0, number) for number in case] for case in cases])
    for case, (streams, _) in zip(cases, results, strict=True):
        model = Model()
        for number in case:
            model.note(number)
        assert streams[(1, 2, 0)] == model.counts(), case[:50]


def test_sequence__equals_the_model_when_displaced_by_nearly_the_window(sanitized):
    chance = random.Random(7)
    numbers = [2**32 - 30_000 + index for index in range(400_000) if chance.random() > 0.1]
    numbers.sort(key=lambda number: number + chance.uniform(0, WINDOW - 2))
    model = Model(set(numbers), len(numbers))
    counts = counts_of(sanitized, *numbers)
    assert {**counts, "reordered": 0} == model.counts()
    assert counts["reordered"] > 300_000


def test_sequence__wraps_and_fills_gaps(sanitized):
    for numbers, expected in (
        ((2**32 - 2, 2**32 - 1, 0, 1), {"first": 2**32 - 2, "last": 2**32 + 1, "missing": 0, "gaps": 0}),
        ((0, 2**32 - 3), {"first": 2**32 - 3, "last": 2**32, "missing": 2, "gaps": 1}),
        # two in a row far behind are a restart; stragglers between regular cards are none
        ((1_000_000, 1_000_001, 0, 1, 2), {"restarts": 1, "too_late": 0, "missing": 0, "first": 0, "last": 2}),
        ((1_000_000, 0, 1_000_001, 1, 1_000_002), {"restarts": 0, "too_late": 2, "missing": 0}),
    ):
        counts = counts_of(sanitized, *numbers)
        assert {name: counts[name] for name in expected} == expected, numbers
        assert counts["received"] == len(numbers)


def test_sequence__classifies_numbers_up_to_the_end_of_the_window(sanitized):
    high = 3 * WINDOW
    inside = counts_of(sanitized, 0, high, high - WINDOW + 2, high - WINDOW + 2)
    assert (inside["reordered"], inside["duplicates"], inside["too_late"]) == (1, 1, 0)
    outside = counts_of(sanitized, 0, high, high - WINDOW + 1)
    assert (outside["reordered"], outside["duplicates"], outside["too_late"]) == (0, 0, 1)
    assert outside["missing"] == high - 1


def test_sequence__streams_differ_in_switch_port_or_origin_and_those_beyond_the_bound_are_counted(sanitized):
    keys = [(1, 2, 0), (1, 2, 1), (1, 3, 0), (2, 2, 0), (0x8001, 2, 0)]
    case = [(switch << 16 | port, at, seq) for seq in range(10) for switch, port, at in keys]
    many = [(stream, 0, seq) for seq in range(2) for stream in range(STREAMS + 10)]
    (streams, untracked), (tracked, beyond) = run(sanitized, [case, many])
    assert (list(streams), untracked) == (keys, 0)
    assert all(counts["received"] == 10 and counts["missing"] == 0 for counts in streams.values())
    assert (len(tracked), beyond) == (STREAMS, 20)
    assert all(counts["received"] == 2 for counts in tracked.values())
