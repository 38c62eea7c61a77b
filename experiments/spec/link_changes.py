# SPDX-License-Identifier: MIT
"""Keys of a bottleneck link that changes: LOSS and JITTER behind the queue. lib/link_dynamics.py has their meaning."""

from __future__ import annotations

from lib.link_dynamics import DISTRIBUTIONS
from lib.quantities import Time
from lib.values import number
from model.experiment import Jitter, Loss

LOSS_FORM = "bursts:P:R[:BAD[:GOOD]]"
_CHANCE, _LOSS = number("0", "1", percent=True), number("0", "0.5", percent=True)
_JITTER = Time.within("0ns", "10s")


def read_loss(value: object) -> Loss | None:
    """None: no packet is lost."""
    kind, *words = str(value).split(":")
    if kind != "bursts" and words:
        raise ValueError(f"is no kind of loss; allowed: 0 to 0.5, or {LOSS_FORM} as in bursts:0.001:0.2")
    if not words:
        loss = Loss(in_good=float(_LOSS(value)))
    elif not 2 <= len(words) <= 4:
        raise ValueError(f"has not two to four probabilities; allowed: {LOSS_FORM} as in bursts:0.001:0.2")
    else:
        chances = [float(_CHANCE(word)) for word in words]
        if not chances[1]:
            raise ValueError("never leaves the bad state; allowed: R above 0")
        loss = Loss(**dict(zip(("to_bad", "to_good", "in_bad", "in_good"), chances, strict=False)))
    return loss if loss.of_link.mean else None


def read_jitter(value: object) -> Jitter | None:
    """None: no jitter."""
    distribution, colon, time = str(value).rpartition(":")
    if colon and distribution not in DISTRIBUTIONS:
        raise ValueError(f"is no jitter; allowed: 2ms, or {' or '.join(f'{name}:2ms' for name in DISTRIBUTIONS)}")
    most_ns = _JITTER(time).ns
    return Jitter(most_ns=most_ns, distribution=distribution or DISTRIBUTIONS[0]) if most_ns else None
