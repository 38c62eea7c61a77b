# SPDX-License-Identifier: MIT
"""Rates of links that change, as numbers."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from lib.link_dynamics import QUANTILES, Jitter, Loss, RateSchedule

STEPS = RateSchedule(((0, 3000), (7, 0), (20, 10**9), (21, 5000)))
OPPORTUNITIES = RateSchedule(((3, 1), (4, 2), (9, 1)), opportunities=True)


def test_rate_schedule__bits_are_the_sum_over_every_ns() -> None:
    rng = random.Random(1)
    for from_ns, to_ns in [(0, 0), (0, 40), *(sorted(rng.choices(range(60), k=2)) for _ in range(40))]:
        each = [STEPS.rate_at(ns) for ns in range(from_ns, to_ns)]
        assert STEPS.bits_possible(from_ns, to_ns) == sum(each, Fraction(0)) / 10**9
        packets = sum({3: 1, 4: 2, 0: 1}.get(ns % 9, 0) for ns in range(from_ns + 1, to_ns + 1))
        assert OPPORTUNITIES.bits_possible(from_ns, to_ns) == 12_000 * packets
    assert [STEPS.rate_at(ns) for ns in (-1, 0, 6, 7, 20, 10**9)] == [3000, 3000, 3000, 0, 10**9, 5000]
    assert OPPORTUNITIES.rate_at(5) == Fraction(4 * 12_000 * 10**9, 9)


def test_rate_schedule__refuses_what_the_switch_cannot_keep() -> None:
    for entries, opportunities in (
        ((), False),
        (((0, 1000),) * (2**20 + 1), False),
        (((1, 1000),), False),
        (((0, 1000), (0, 2000)), False),
        (((0, 999),), False),
        (((0, 10**15 + 1),), False),
        (((0, 1000), (5, 0)), False),
        (((0, 1000), (86_400 * 10**9 + 1, 1000)), False),
        (((0, 1),), True),
        (((1, 0),), True),
        (((1, 10**6 + 1),), True),
    ):
        with pytest.raises(ValueError, match="; allowed: "):
            RateSchedule(entries, opportunities)


def test_loss_and_jitter__have_the_switchs_settings() -> None:
    half = Loss(Fraction(1, 2), Fraction(1, 4), Fraction(1), Fraction(0))
    assert half.settings() == {"good": 0, "bad": 2**64 - 1, "to_bad": 2**63, "to_good": 2**62}
    assert (half.mean, Loss(in_good=Fraction(1, 1000)).mean, Loss().mean) == (Fraction(2, 3), Fraction(1, 1000), 0)
    assert Jitter(77).quantiles_ns() == (0, 77)
    normal = Jitter(10**9, "normal").quantiles_ns()
    assert len(normal) == QUANTILES
    assert (normal[0], normal[QUANTILES // 2], normal[-1]) == (0, 5 * 10**8, 10**9)
    assert list(normal) == sorted(normal)
