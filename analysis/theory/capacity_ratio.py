# SPDX-License-Identifier: MIT
"""The buffer with the fastest TCP transfers, given loss and delay as functions of the buffer.

Prasad, Dovrolis, Thottan 2007, Router Buffer Sizing Revisited: The Role of the Output/Input Capacity Ratio. The buffer
B and the BDP without queueing, C T_o, are in packets; `capacity` C is in packets/s, times are in s. Flows are small
(S-model: mostly in slow start) or large (L-model: mostly in congestion avoidance; five congestion events or more,
section 4).
Loss falls as a power, p = a B^-b (PL-form), if the link is slower than its inputs (Gamma = C_out / C_in well below 1),
and exponentially, p = a e^(-b B) (EX-form), if it is faster (Gamma > 1). Assumes heavy-tailed closed-loop traffic that
fills the link, and a mean queueing delay of f B / C up to a cutoff: a buffer that holds all packets that the users
offer adds no more delay if it grows (6.1).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from scipy import optimize

from analysis.theory.checks import check_at_least, check_positive, check_share, check_whole

L_MODEL_K = 1.22  # section 4: "we set k=1.22"
S_SEGMENTS = 30  # section 5: the transfer that the paper's S-models describe
S_MODEL_V = 1.0  # section 4: RTTs that a retransmitted packet costs; with SACK one
MM1B_A, MM1B_B, MM1B_F = 1.0, 1.0, 0.5  # the PL-form of M/M/1/B in heavy load (7.1)
TYPICAL_B, TYPICAL_F = 0.5, 0.4  # of the paper's simulations with Gamma = 0.1 (7.1)
EX_LARGEST_PACKETS = 10  # with the EX-form "zero or very low (less than 10 packets)" (7.2)


def ratio(output_bps: float, input_bps: float) -> float:
    """Gamma = C_out / C_in; C_in is the highest rate at which one flow can arrive (section 1). ValueError unless both
    are above 0.
    """
    check_positive("an output capacity", output_bps)
    check_positive("an input capacity", input_bps)
    return output_bps / input_bps


def slow_start_rtts(segments: int) -> int:
    """D = 1 + ceil(log2(M / 2)): RTTs to transfer M segments in slow start, from a first window of two. One RTT sets up
    the connection (section 4).

    The formula is as printed. Windows of 2, 4, 8 ... that add up to M need 1 + ceil(log2(M / 2 + 1)) RTTs: one more
    where M is 2^k or 2^k - 1. M = 1 counts as 2. ValueError unless M is whole and 1 or more.
    """
    check_whole("segments", segments, 1)
    return 1 + max((int(segments) - 1).bit_length() - 1, 0)


def s_model_throughput(size_bytes: float, segments: int, rtt_s: float, loss: float, v: float = S_MODEL_V) -> float:
    """R_S = S / (T (D(S) + v p M(S))) bytes/s of a flow of S bytes, M segments (equation 1).

    ValueError unless S > 0, T > 0, 0 <= p <= 1, v >= 0 and M is whole and 1 or more.
    """
    check_positive("a size", size_bytes)
    check_positive("an RTT", rtt_s)
    check_share("a loss rate", loss, ends=True)
    check_at_least("v", v, 0)
    return size_bytes / (rtt_s * (slow_start_rtts(segments) + v * loss * segments))


def l_model_throughput(mss_bytes: float, rtt_s: float, loss: float, k: float = L_MODEL_K) -> float:
    """R_L = k L / (T sqrt(p)) bytes/s of a flow in congestion avoidance (equation 2).

    ValueError unless L, T and k are above 0 and 0 < p <= 1.
    """
    check_positive("an MSS", mss_bytes)
    check_positive("an RTT", rtt_s)
    check_positive("a loss rate", loss)
    check_share("a loss rate", loss, ends=True)
    check_positive("k", k)
    return k * mss_bytes / (rtt_s * math.sqrt(loss))


def rtt(base_rtt_s: float, buffer: float, capacity: float, f: float) -> float:
    """T(B) = T_o + f B / C (equation 6). ValueError unless T_o > 0, C > 0, B >= 0 and f >= 0."""
    check_positive("an RTT", base_rtt_s)
    check_at_least("a buffer", buffer, 0)
    check_positive("a capacity", capacity)
    check_at_least("f", f, 0)
    return base_rtt_s + f * buffer / capacity


def pl_loss(buffer: float, a: float, b: float) -> float:
    """p(B) = a B^-b (equation 5). ValueError unless B, a and b are above 0."""
    check_positive("a buffer", buffer)
    check_positive("a", a)
    check_positive("b", b)
    return a * buffer**-b


def ex_loss(buffer: float, a: float, b: float) -> float:
    """p(B) = a e^(-b B) (equation 9). ValueError unless B >= 0, a > 0 and b > 0."""
    check_at_least("a buffer", buffer, 0)
    check_positive("a", a)
    check_positive("b", b)
    return a * math.exp(-b * buffer)


def mm1b_s_buffer(pipe: float, segments: int, v: float = S_MODEL_V) -> float:
    """B_S = sqrt(2 v M / D x C T_o): best for a flow of M segments through M/M/1/B in heavy load, where p = 1 / B and d
    = B / (2 C) (equation 3).

    1 Gb/s, 60 ms, 1500 bytes: 0.031, 0.062 and 0.163 C T_o for 10 kB, 100 kB and 1 MB. The paper prints 0.03, 0.06 and
    0.15 (a buffer of 1.125 MB); 0.15 is 8 % off the paper's own formula. ValueError unless C T_o > 0, v > 0 and M is
    whole and 1 or more.
    """
    check_positive("C T_o", pipe)
    check_positive("v", v)
    return math.sqrt(2 * v * segments / slow_start_rtts(segments) * pipe)


def mm1b_l_buffer(pipe: float) -> float:
    """B_L = 2 C T_o: best for a flow in congestion avoidance through M/M/1/B in heavy load (equation 4). ValueError
    unless C T_o > 0.
    """
    check_positive("C T_o", pipe)
    return 2 * pipe


def pl_l_buffer(pipe: float, b: float = TYPICAL_B, f: float = TYPICAL_F) -> float:
    """B = b / (f (2 - b)) C T_o: L-model, PL-form (equation 7); a does not matter. The defaults are those of
    the paper's simulations: 0.83 C T_o.

    math.inf for b >= 2, where a larger buffer is always better. ValueError unless C T_o > 0, b > 0 and f > 0.
    """
    check_positive("C T_o", pipe)
    check_positive("b", b)
    check_positive("f", f)
    return b / (f * (2 - b)) * pipe if b < 2 else math.inf


def pl_s_buffer(pipe: float, segments: int, a: float, b: float, f: float, v: float = S_MODEL_V) -> float:
    """The B that solves a b v M C T_o B^-(1+b) = a v M f (1 - b) B^-b + f D: S-model, PL-form (equation 8, with v = 1).

    There is exactly one solution: the left side minus the right side begins at infinity, falls as long as it is
    positive, and stays negative from then on. ValueError unless all are above 0 and M is whole.
    """
    for name, value in (("C T_o", pipe), ("a", a), ("b", b), ("f", f), ("v", v)):
        check_positive(name, value)
    lossy, rtts = a * v * segments, slow_start_rtts(segments)

    def slope(log_buffer: float) -> float:
        # Divided by f D, so that neither end overflows within the bracket
        return lossy * math.exp(-b * log_buffer) * (b * pipe * math.exp(-log_buffer) / f - (1 - b)) / rtts - 1

    low = high = math.log(pipe)
    while slope(low) < 0:
        low -= 2
    while slope(high) > 0:
        high += 2
    return math.exp(float(optimize.brentq(slope, low, high, xtol=1e-14)))


class ModelBuffer(NamedTuple):
    """The buffer with the highest throughput in the EX-form."""

    buffer: float  # 0, the stationary point, or the largest buffer (math.inf if it has no limit)
    stationary: float | None  # where the derivative of the throughput changes sign; None if there is no such B above 0


def ex_l_buffer(pipe: float, b: float, f: float, largest: float = math.inf) -> ModelBuffer:
    """L-model, EX-form: throughput has its *minimum* at 2 / (f b) (f - b C T_o / 2) (equation 10), so the best buffer
    is 0 or `largest`.

    R is proportional to e^(bB/2) / (C T_o + f B). `largest` = math.inf gives the paper's choice: 0 if equation 10 is
    positive (throughput falls at B = 0), else math.inf. But beyond the minimum, throughput grows as long as the L-model
    and the EX-form hold. A finite `largest` bounds the range in which they hold: the result is the better of B = 0 and
    B = `largest`. ValueError unless all are above 0.
    """
    for name, value in (("C T_o", pipe), ("b", b), ("f", f), ("the largest buffer", largest)):
        check_positive(name, value)
    least = 2 / (f * b) * (f - b * pipe / 2)
    if least <= 0:
        return ModelBuffer(largest, None)
    if largest < math.inf and b * largest / 2 > math.log1p(f * largest / pipe):
        return ModelBuffer(largest, least)
    return ModelBuffer(0.0, least)


def ex_s_buffer(pipe: float, segments: int, a: float, b: float, f: float, v: float = S_MODEL_V) -> ModelBuffer:
    """S-model, EX-form: the best buffer, 0 or the larger root of f D / (v M) + (a f - a b C T_o) e^(-bB) = a b f B
    e^(-bB) (equation 11).

    With x = b B + b C T_o / f - 1 the equation is x e^-x = D / (v M a) e^(1 - b C T_o / f): two roots or none.
    Throughput is lowest at the smaller root, if that root is above 0, and highest at the larger root. (In the
    throughput above equation 11 the paper prints S for C.) ValueError unless all are above 0 and M is whole.
    """
    for name, value in (("C T_o", pipe), ("a", a), ("b", b), ("f", f), ("v", v)):
        check_positive(name, value)
    rtts = slow_start_rtts(segments)
    # ln of both sides, because e^(b C T_o / f) overflows: x - ln x = y. The left side has its minimum 1 at x = 1.
    y = math.log(v * segments * a / rtts) + b * pipe / f - 1
    if y <= 1:
        return ModelBuffer(0.0, None)
    x = float(optimize.brentq(lambda x: x - math.log(x) - y, 1.0, 2 * y + 2, xtol=1e-13))
    root = (x + 1) / b - pipe / f
    if root <= 0:
        return ModelBuffer(0.0, None)

    def log_time(buffer: float) -> float:  # of a transfer, up to a constant
        return math.log(rtts + v * segments * a * math.exp(-b * buffer)) + math.log(pipe + f * buffer)

    return ModelBuffer(root if log_time(root) < log_time(0.0) else 0.0, root)
