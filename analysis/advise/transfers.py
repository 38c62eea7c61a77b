# SPDX-License-Identifier: MIT
"""The buffers with the fastest small and large transfers, in five lines, for a link with INPUT and FLOW_SIZES. Its
traffic is transfers through access links (Prasad et al.).

The answer comes from the published runs nearest in capacity ratio. The paper's rules scale the best buffers of these
runs: with the square root of the BDP for small transfers, with the BDP for large ones. If the link is faster than its
inputs, the paper has no such rule, and the buffers are not scaled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from analysis.advise import loss_forms, rules
from analysis.advise.brief import pasteable
from analysis.advise.link import Link
from analysis.advise.loss_forms import LossForm
from analysis.advise.parameters import Question
from analysis.map import ratio
from analysis.map.ratio import LARGE, PAPER, SMALL, BestBuffer
from analysis.theory import capacity_ratio
from analysis.wording.formats import round_up
from hosts.traffic.draw_words import in_base_units, is_distribution, read_distribution
from lib import units
from lib.terminal import counted

LARGE_BYTES = 1e6  # Prasad et al.'s L-flows
NEAR = 3.0  # a factor in capacity ratio and BDP, for medium confidence


class Answer(NamedTuple):
    """The result of the published runs for one class of transfers, on the asked link."""

    runs: list[BestBuffer]
    low: float  # packets: from `low` to `high` is the range of the best buffers, scaled to the asked link
    high: float
    is_open: bool  # the largest buffer of the runs was the best, or within 5 % of the best: a larger one may be better


def lines(question: Question, docs: Path) -> list[str]:
    """The five lines. Raises InputError if the published figures are damaged."""
    link = question.link
    gamma = link.gamma or 0.0
    bests = ratio.read(docs) if ratio.has_runs(docs) else []
    forms = loss_forms.read(docs) if bests else []
    small, large = (_answer(link, gamma, bests, name) for name in (SMALL, LARGE))
    packets, share = _large_share(link)
    return [
        _regime(gamma, forms, str(question.flow_sizes)),
        f"Small transfers: {_small(link, gamma, small)}",
        f"Large transfers (above 1 MB: {share:.2g} % of your transfers, {packets:.2g} % of all packets): "
        f"{_large(link, gamma, large)}",
        _basis(link, gamma, str(question.flow_sizes), small, large),
        f"Long flows beside them: leave INPUT and FLOW_SIZES out. All {len(rules.advise(link))} rules with their "
        "assumptions: ADVISE=full; sources in docs/theory.md.",
    ]


def _regime(gamma: float, forms: Sequence[LossForm], sizes: str | None) -> str:
    ratio_text = f"Regime: the ratio of output to input capacity is {gamma:.3g}: "
    if not forms:
        word = "falls as a power of the buffer" if gamma < 1 else "falls exponentially with the buffer"
        return f"{ratio_text}by the paper, loss {word}; no published run is at hand to test it."
    nearest = loss_forms.nearest(forms, gamma, exponential_sizes=(sizes or "").startswith("exponential"))
    return f"{ratio_text}{nearest.text} (our runs at {nearest.gamma:g}: {nearest.evidence})."


def _answer(link: Link, gamma: float, bests: Sequence[BestBuffer], transfers: str) -> Answer | None:
    """The best buffers of the nearest runs, scaled to the link; None without runs."""
    of_class = [best for best in bests if best.transfers == transfers]
    if not of_class:
        return None
    least = min(_distance(best, link, gamma) for best in of_class)
    runs = [best for best in of_class if _distance(best, link, gamma) == least]
    carried = [best.buffer * _factor(link, gamma, best) for best in runs]
    return Answer(runs, min(carried), max(carried), any(ratio.is_open(best) for best in runs))


def _distance(best: BestBuffer, link: Link, gamma: float) -> tuple[float, float]:
    """Logarithmic distances: of the capacity ratio, which decides, and of the BDP for ties."""
    return round(abs(math.log(best.gamma / gamma)), 9), round(abs(math.log(best.bdp / link.bdp)), 9)


def _factor(link: Link, gamma: float, best: BestBuffer) -> float:
    if gamma > 1:
        return 1.0
    share = link.bdp / best.bdp
    return share if best.transfers == LARGE else math.sqrt(share)


def _small(link: Link, gamma: float, answer: Answer | None) -> str:
    by_rule = capacity_ratio.mm1b_s_buffer(link.bdp, capacity_ratio.S_SEGMENTS) if gamma < 1 else None
    rule = (
        f"{round_up(by_rule)}p by equation 3" if by_rule else f"under {capacity_ratio.EX_LARGEST_PACKETS}p by the paper"
    )
    if answer is None:
        packets = max(round_up(by_rule if by_rule else capacity_ratio.EX_LARGEST_PACKETS), 1)
        return f"{pasteable(link, packets)}, by the paper's rule alone."
    return f"start with {pasteable(link, _start(answer))}; {_ours(link, gamma, answer)}; {rule}."


def _large(link: Link, gamma: float, answer: Answer | None) -> str:
    by_rule = round_up(capacity_ratio.pl_l_buffer(link.bdp)) if gamma < 1 else None
    rule = f"{by_rule}p by equation 7" if by_rule else f"under {capacity_ratio.EX_LARGEST_PACKETS}p by the paper"
    if answer is None:
        return f"{rule}; no published run is at hand."
    return f"{_start(answer)}p{' or more' * answer.is_open}; {_ours(link, gamma, answer)}; {rule}."


def _start(answer: Answer) -> int:
    return max(round_up(math.sqrt(answer.low * answer.high)), 1)


def _ours(link: Link, gamma: float, answer: Answer) -> str:
    """The best buffers of the runs, and the buffers within 5 % of the best under every load."""
    best = sorted(round(best.buffer) for best in answer.runs)
    bdps = sorted(best.buffer / best.bdp for best in answer.runs)
    many = f"{best[0]}p to {best[-1]}p ({bdps[0]:.2g} to {bdps[-1]:.2g} BDP)"
    text = f"our runs did best with {many if len(best) > 1 else f'{best[0]}p ({bdps[0]:.2g} BDP)'}"
    low, high = max(best.low for best in answer.runs), min(best.high for best in answer.runs)
    if low > high:
        text += ", and no buffer came within 5 % of the best under every load"
    elif low < high:
        text += f", within 5 % from {low:.0f}p" + (" on" if math.isinf(high) else f" to {high:.0f}p")
    if _factor(link, gamma, answer.runs[0]) != 1:
        text += (
            f", carried over with {'the BDP' if answer.runs[0].transfers == LARGE else 'the square root of the BDP'}"
        )
    return text


def _basis(link: Link, gamma: float, sizes_text: str, *answers: Answer | None) -> str:
    runs = [best for answer in answers if answer for best in answer.runs]
    if not runs:
        return f"Confidence: low: the directory of EVIDENCE has no published run of {PAPER}."
    first = runs[0]
    figures = ", ".join(sorted({best.figure for best in runs}, key=int))
    off = {"capacity ratio": gamma / first.gamma, "BDP": link.bdp / first.bdp, "rate": link.rate_bps / first.rate_bps}
    near = all(1 / NEAR <= off[name] <= NEAR for name in ("capacity ratio", "BDP"))
    distance = ", ".join(f"{name} {_times(value)}" for name, value in off.items())
    sizes = "the same" if _are_same(sizes_text, first.sizes, link.mtu_bytes) else sizes_text
    count = counted(min(best.repetitions for best in runs), "run")
    return (
        f"Confidence: {'medium' if near else 'low'}: rests on {PAPER}, figure{'s' * (',' in figures)} {figures}, "
        f"{count} a point ({units.show(first.rate_bps, 'rate')}, BDP {first.bdp:.0f}p, sizes {first.sizes}); "
        f"your link: {distance}, sizes {sizes}."
    )


def _are_same(asked: str, measured: str, mtu_bytes: int) -> bool:
    """Whether two words give the same distribution. A list of sizes is not a distribution."""
    if not is_distribution(asked):
        return False
    read = read_distribution("bytes", "packets")
    return in_base_units(read(asked), mtu_bytes) == in_base_units(read(measured), mtu_bytes)


def _times(value: float) -> str:
    return "the same" if 0.95 <= value <= 1.05 else f"x {value:.2g}"


def _large_share(link: Link) -> tuple[float, float]:
    """Shares of the large transfers, in percent: of all packets, and of all transfers."""
    large = [(packets, weight) for packets, weight in link.flow_packets if packets * link.mtu_bytes > LARGE_BYTES]
    every = sum(packets * weight for packets, weight in link.flow_packets)
    return (
        100 * sum(packets * weight for packets, weight in large) / every,
        100 * sum(weight for _, weight in large) / sum(weight for _, weight in link.flow_packets),
    )
