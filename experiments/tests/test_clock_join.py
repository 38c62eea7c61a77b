# SPDX-License-Identifier: MIT
"""The offset between two clocks, from readings that take time."""

import itertools
import random

from experiments.plan import clock_join

OFFSET_NS = 5_000_123_456


class World:
    """Two clocks. The request that reads the second clock takes some time before and after the reading."""

    def __init__(self, tick_ns: int, seed: int) -> None:
        self.now = 10**10
        self.tick_ns = tick_ns
        self.random = random.Random(seed)

    def mono_ns(self) -> int:
        self.now += 50
        return self.now

    def read_ns(self) -> int:
        self.now += self.random.randrange(20_000, 200_000)
        read = (self.now - OFFSET_NS) // self.tick_ns * self.tick_ns
        self.now += self.random.randrange(20_000, 200_000)
        return read


def test_offset__is_known_to_its_uncertainty() -> None:
    for tick_ns, seed in itertools.product((1, 1000), range(5)):
        world = World(tick_ns, seed)
        found = clock_join.measure(world.read_ns, tick_ns, world.mono_ns)
        assert abs(found.offset_ns - OFFSET_NS) <= found.uncertainty_ns < 60_000
        assert found.at_mono_ns == world.now


def test_offset__of_a_clock_that_steps_meanwhile_is_as_uncertain_as_the_step() -> None:
    world = World(1000, 1)
    stepped = iter([0] * 25 + [3_000_000] * 25)
    found = clock_join.measure(lambda: world.read_ns() + next(stepped), 1000, world.mono_ns)
    assert found.uncertainty_ns > 1_000_000
