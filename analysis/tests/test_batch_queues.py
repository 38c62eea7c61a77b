# SPDX-License-Identifier: MIT
"""M[X]/D/1 against Appenzeller et al.'s means, M/D/1 for bursts of one packet, and simulated queues."""

import itertools
from collections import deque

import numpy as np
import pytest

from analysis.theory import batch_queues, queues, short_flows

MIXES = (((2, 4, 8), None), ((1, 16), (9, 1)), (short_flows.slow_start_bursts(62), None))


def simulated(load, bursts, buffer, count, seed):
    """Simulates a queue packet by packet. Returns the share of time at each depth, and the share of packets that find
    each depth. Packets that find the depth `buffer` are dropped.
    """
    rng = np.random.default_rng(seed)
    over_time, at_arrivals = np.zeros(buffer + 1), np.zeros(buffer + 1)
    departures: deque[float] = deque()
    now, since, free = 0.0, 0.0, 0.0
    sizes = rng.choice(bursts, count)
    for size, gap in zip(sizes.tolist(), rng.exponential(np.mean(bursts) / load, count).tolist(), strict=True):
        now += gap
        while departures and departures[0] <= now:
            over_time[len(departures)] += departures[0] - since
            since = departures.popleft()
        over_time[len(departures)] += now - since
        since = now
        for _ in range(size):
            at_arrivals[len(departures)] += 1
            if len(departures) < buffer:
                free = max(free, now) + 1
                departures.append(free)
    return over_time / over_time.sum(), at_arrivals / at_arrivals.sum()


def test_distribution__has_the_mean_of_section_4_and_the_exact_decay():
    for load, (bursts, weights) in itertools.product((0.3, 0.8), MIXES):
        depth = batch_queues.depth_distribution(load, bursts, 2500, weights)
        assert depth.sum() == pytest.approx(1, abs=1e-9)
        assert depth[0] == pytest.approx(1 - load)
        assert np.dot(np.arange(2500), depth) == pytest.approx(short_flows.mean_depth(load, bursts, weights), rel=1e-9)
        far = next(n for n in range(2500) if depth[n] < 1e-9)
        kappa = short_flows.decay(load, bursts, weights)
        assert np.log(depth[far] / depth[far + 10]) / 10 == pytest.approx(kappa, rel=1e-3)


def test_single_packets__are_md1_with_and_without_limit():
    assert batch_queues.depth_distribution(0.8, (1,), 100) == pytest.approx(queues.md1_depth_distribution(0.8, 100))
    limited = queues.mg1k_depth_distribution(1.5, (1,), (1,), 7)
    over_time = batch_queues.limited_depth_distribution(1.5, (1,), 7)
    assert over_time == pytest.approx(limited)
    assert batch_queues.at_arrivals(over_time, (1,)) == pytest.approx(limited)


def test_limited__equals_a_simulated_queue():
    load, buffer, bursts = 1.3, 10, (2, 4, 8)
    over_time, at_arrivals = simulated(load, bursts, buffer, 100_000, seed=5)
    depth = batch_queues.limited_depth_distribution(load, bursts, buffer)
    assert over_time == pytest.approx(depth, abs=0.012)
    computed = batch_queues.at_arrivals(depth, bursts)
    computed = np.append(computed[:buffer], computed[buffer:].sum())
    assert at_arrivals == pytest.approx(computed, abs=0.012)
    # Each packet that was not dropped keeps the link busy for one service time.
    assert 1 - depth[0] == pytest.approx(load * (1 - computed[-1]), rel=1e-9)


def test_arguments__out_of_range_are_refused():
    for arguments in ((1.0, (2,), 5), (0.5, (), 5), (0.5, (2.5,), 5), (0.5, (2, 4), 5, (1,)), (0.5, (2,), 5, (0,))):
        with pytest.raises(ValueError, match="allowed"):
            batch_queues.depth_distribution(*arguments)
    for buffer in (0, queues.MOST_STATES):
        with pytest.raises(ValueError, match="allowed"):
            batch_queues.limited_depth_distribution(0.5, (2,), buffer)
