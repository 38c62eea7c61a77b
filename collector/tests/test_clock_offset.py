# SPDX-License-Identifier: MIT
"""The difference of two clocks, from samples of known error."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path


def narrow(binaries: Path, samples: list[tuple[int, int, int]]) -> list[list[int]]:
    """Per sample: stepped, offset, first offset, samples, steps, greatest step."""
    text = "\n".join(" ".join(map(str, sample)) for sample in samples)
    tool = binaries / "obj/collector/clock_offset_tool"
    output = subprocess.run([tool], input=text, text=True, stdout=subprocess.PIPE, check=True).stdout
    return [[int(word) for word in line.split()] for line in output.splitlines()]


def samples(chance: random.Random, offset: int, count: int) -> list[tuple[int, int, int]]:
    """Samples that take 20 ns, 100 ns or 1 ms. The realtime clock is read at a random time within the sample."""
    result = []
    for index in range(count):
        before = index * 1_000_000_000
        after = before + chance.choice([20, 100, 1_000_000])
        result.append((before, chance.randint(before, after) + offset, after))
    return result


def test_clock__narrows_to_within_the_best_sample_and_sees_no_step(sanitized):
    offset = 1_790_000_000_123_456_789
    last = narrow(sanitized, samples(random.Random(1), offset, 200))[-1]
    assert abs(last[1] - offset) <= 20
    assert last[1] == last[2]
    assert last[3:] == [200, 0, 0]


def test_clock__keeps_its_answer_until_a_sample_excludes_it(sanitized):
    lines = narrow(sanitized, [(0, 1000, 100), (200, 1150, 300), (400, 1330, 420), (500, 1490, 600)])
    assert [line[1] for line in lines] == [950, 950, 930, 930]


def test_clock__step_is_seen_at_the_next_sample_and_measured(sanitized):
    chance = random.Random(3)
    small = samples(chance, 10**18, 50) + samples(chance, 10**18 + 80_000, 50)
    assert narrow(sanitized, small)[-1][4] == 1
    before, after = samples(chance, 10**18, 50), samples(chance, 10**18 - 37_000_000, 50)
    lines = narrow(sanitized, before + after)
    assert [index for index, line in enumerate(lines) if line[0]] == [50]
    _, offset, first, count, steps, greatest = lines[-1]
    assert abs(offset - (10**18 - 37_000_000)) <= 20
    assert abs(first - 10**18) <= 20
    assert (count, steps) == (100, 1)
    assert abs(greatest - 37_000_000) <= 1_000_100
