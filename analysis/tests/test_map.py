# SPDX-License-Identifier: MIT
"""The map of all papers: its points, its rules, and the table in its page."""

from __future__ import annotations

import math
from typing import Any

import pytest

from analysis.map import page, points, rules
from analysis.map.points import BBR, CRITERIA, PACED, SLOW_ACCESS, UNPACED, MapPoint
from analysis.map.rules import HELD, OPEN, RULES, TOO_SMALL
from lib.errors import InputError

BDP, SQRT, DELTA, LOG = RULES


def point(**values: Any) -> MapPoint:
    row: dict[str, Any] = {
        "criterion": CRITERIA[0], "paper": "p", "cc": "reno", "flows": 100, "senders": UNPACED, "drops": "tail-drop",
        "rate_bps": 10**9, "mean_rtt_ns": 10**7, "access_bps": None, "window_packets": None, "bdp": 1000.0,
        "low": 50.0, "high": 100.0, "buffers": 3, "runs": ("a",), "sweeps": "s",
    }  # fmt: skip
    return MapPoint(**(row | values))


def test_rule__is_judged_only_outside_the_bounds() -> None:
    assert rules.judge(SQRT, point()) == HELD  # the rule asks for 100 packets
    assert rules.judge(SQRT, point(high=101.0)) == OPEN
    assert rules.judge(SQRT, point(low=100.0, high=150.0)) == TOO_SMALL
    assert rules.judge(DELTA, point(low=300.0, high=math.inf)) == OPEN
    assert rules.judge(BDP, point(low=1000.0, high=math.inf)) == TOO_SMALL


def test_logarithmic_rule__takes_the_limit_of_windows_or_the_fair_share() -> None:
    for more, expected in (
        ({"window_packets": 32}, HELD),  # 5 log10 W, W = 32: 8 packets
        ({}, TOO_SMALL),  # W = 10: 5 packets
        ({"flows": 40}, OPEN),  # W = 25: 7 packets
    ):
        assert rules.judge(LOG, point(low=5.0, high=8.0, **more)) == expected


def test_region__ends_where_one_point_fails() -> None:
    held = [point(flows=n, high=1000 / n**0.5) for n in (1, 4, 25, 100)]
    failed = point(flows=16, low=250.0, high=300.0)
    found = rules.region(SQRT, [*held, failed, point(flows=4, low=500.0, high=600.0)])
    assert (found.held_at, found.failed_at, found.held, found.too_small) == ((1, 25, 100), (4, 16), 4, 2)
    assert found.text == "4 of 6; all at n = 1, 25 to 100"
    assert rules.region(SQRT, []).text == "no run decides"
    search, alone = point(), point(buffers=1, flows=7)  # a variant of one buffer does not count beside a search
    assert points._without_variants([search, point(buffers=1, high=900.0), alone]) == [search, alone]


def test_senders__have_a_kind_and_an_offered_load() -> None:
    run = {
        "cc": "reno", "flows": 40, "pacing": "off", "access_bps": None, "access_links": None, "window_packets": None,
        "rate_bps": 10**9, points.PIPE: 1000.0,
    }  # fmt: skip
    cases: tuple[tuple[dict[str, Any], str, float], ...] = (
        ({}, UNPACED, math.inf),
        ({"pacing": "exact", "window_packets": 10}, PACED, 0.4),
        ({"cc": "bbr3"}, BBR, math.inf),
        ({"access_bps": 10**7, "window_packets": 50}, SLOW_ACCESS, 0.4),
        ({"access_bps": 10**7, "access_links": 80}, SLOW_ACCESS, 0.8),
        ({"access_bps": 10**10}, UNPACED, 400.0),
    )
    for row, senders, offered in cases:
        assert (points.senders(run | row), points.offered(run | row)) == (senders, offered), row


def test_page__without_a_place_or_tables_is_one_line(tmp_path: Any) -> None:
    path = tmp_path / page.NAME
    path.write_text("no map")
    with pytest.raises(InputError, match=rf"^{path}: has no <!-- map: .*; put both lines where the table belongs$"):
        page.with_table(path, [])
    with pytest.raises(InputError, match=r"no published runs .*; allowed: docs/results of a checkout$"):
        points.read(tmp_path, {})
