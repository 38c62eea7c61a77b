# SPDX-License-Identifier: MIT
"""The papers' rules for long flows, judged by the points of the map."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from analysis.map.points import BBR, PACED, SLOW_ACCESS, UNPACED, MapPoint
from analysis.theory import tiny_buffers
from analysis.theory.many_flows import MEASURED_DELTA, sqrt_rule
from analysis.theory.single_flow import bdp_rule
from analysis.wording.formats import round_up

DELTA = MEASURED_DELTA["reno"]
LEAST_WINDOW = 2.0  # packets: for smaller windows the logarithm asks for next to no buffer
HELD, TOO_SMALL, OPEN = "held", "too small", "open"


class MapRule(NamedTuple):
    """`buffer`: packets from BDP, flows and largest window; `senders`: the kinds that the paper states the rule for."""

    column: str  # of the CSV
    name: str
    paper: str
    buffer: Callable[[float, int, float], float]
    senders: tuple[str, ...]


RULES = (
    MapRule("bdp", "BDP", "rule of thumb", lambda bdp, _n, _w: bdp_rule(bdp), (UNPACED,)),
    MapRule("sqrt_n", "BDP/√n", "Appenzeller et al.", lambda bdp, n, _w: sqrt_rule(bdp, n), (UNPACED,)),
    MapRule("delta_sqrt_n", f"{DELTA:g} BDP/√n", "Spang et al. with their Δ",
         lambda bdp, n, _w: DELTA * sqrt_rule(bdp, n), (UNPACED, BBR)),
    MapRule("log_w", f"{tiny_buffers.LOG_FACTOR:g} log₁₀ W", "Enachescu et al.",
         lambda _bdp, _n, window: tiny_buffers.log_window_buffer(max(window, LEAST_WINDOW)), (PACED, SLOW_ACCESS)),
)  # fmt: skip


def window(point: MapPoint) -> float:
    """W of a point: the limit of the flows' windows or, without a limit, a flow's share of the BDP."""
    return float(point.window_packets or point.bdp / point.flows)


def judge(rule: MapRule, point: MapPoint) -> str:
    """Whether the rule's buffer was enough: HELD from the point's upper bound on, TOO_SMALL up to its lower bound.
    Between the bounds no run decides (OPEN).
    """
    asked = max(round_up(rule.buffer(point.bdp, point.flows, window(point))), 1)
    if asked >= point.bounds.high:
        return HELD
    return TOO_SMALL if asked <= point.bounds.low else OPEN


class Region(NamedTuple):
    """Where a rule held. `held_at`: the numbers of flows at which the rule held for every judged point. `failed_at`:
    the numbers of flows at which its buffer was too small for a point. `held`, `too_small`: numbers of points.
    """

    held_at: tuple[int, ...]
    failed_at: tuple[int, ...]
    held: int
    too_small: int

    @property
    def text(self) -> str:
        judged = self.held + self.too_small
        if not judged:
            return "no run decides"
        return f"{self.held} of {judged}" + (
            f"; all at n = {ranges(self.held_at, self.failed_at)}" * bool(self.held_at)
        )


def region(rule: MapRule, points: Iterable[MapPoint]) -> Region:
    """The region of a rule among these points."""
    verdicts: dict[int, list[str]] = {}
    for point in points:
        verdict = judge(rule, point)
        if verdict != OPEN:
            verdicts.setdefault(point.flows, []).append(verdict)
    failed_at = tuple(sorted(n for n, each in verdicts.items() if TOO_SMALL in each))
    held_at = tuple(sorted(n for n in verdicts if n not in failed_at))
    every = [verdict for each in verdicts.values() for verdict in each]
    return Region(held_at, failed_at, every.count(HELD), every.count(TOO_SMALL))


def ranges(held: Sequence[int], failed: Sequence[int]) -> str:
    """Numbers of flows as ranges that no number in `failed` interrupts: 1 to 8, 50 to 500."""
    return ", ".join(f"{first:,}" if first == last else f"{first:,} to {last:,}" for first, last in spans(held, failed))


def spans(held: Sequence[int], failed: Sequence[int]) -> list[tuple[int, int]]:
    """(first, last) of each stretch of numbers in `held` without a number of `failed` between them."""
    result: list[tuple[int, int]] = []
    for n in sorted(held):
        if result and not any(result[-1][1] < other < n for other in failed):
            result[-1] = (result[-1][0], n)
        else:
            result.append((n, n))
    return result
