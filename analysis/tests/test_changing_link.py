# SPDX-License-Identifier: MIT
"""Links that change, against the switch core: which packets are lost, when packets leave, what the link can carry."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from analysis.read.documents import Port
from analysis.read.link_loss import lost
from analysis.read.raw import Columns
from lib.link_dynamics import Loss
from p4src.tests.under_test import CoreControl
from softswitch.tests.core_driver import Core, departures, frame_to

BPS = 333_333_333


def carried(core: Core) -> Columns:
    """Packets of many lengths through port 2, from before the start of its schedule on."""
    rng, arrivals, now_ns = random.Random(7), [], 1
    for _ in range(1500):
        now_ns += rng.choice((0, rng.randrange(12_000), rng.randrange(200_000) if rng.random() < 0.05 else 5))
        arrivals.append((now_ns, rng.randrange(60, 1515)))
    for arrival_ns, length in arrivals:
        core.receive(arrival_ns, 1, frame_to(2, length))
    left = departures(core.run())
    came, sizes = (np.array(column, dtype=np.int64) for column in zip(*arrivals, strict=True))
    queue: Columns = {"enqueue_mono_ns": came, "packet_bytes": sizes, "flags": np.zeros(len(came), dtype=np.uint8)}
    whole = len(left) == len(came)
    return queue | {"sojourn_ns": np.array(left) - came if whole else np.arange(len(came)), "left": np.array(left)}


@pytest.mark.parametrize("loss", [Loss(in_good=Fraction(1, 9)), Loss(*map(Fraction, ("0.02", "0.1", "0.7", "0.01")))])
def test_loss__names_the_packets_that_the_switch_lost(loss: Loss) -> None:
    core = Core(packets=8192)
    core.set(f"port set 2 rate {BPS}")
    everything = carried(core)
    core = Core(packets=8192)
    core.set(f"port set 2 rate {BPS}")
    CoreControl(core).set_loss(2, loss, 2**64 - 5)
    arrived = carried(core)["left"]
    port = Port(loss_seed=2**64 - 5, **{f"loss_{name}": chance for name, chance in loss.settings().items()})
    count = len(everything["flags"])
    cards = everything | {"egress_port": np.full(count, 2), "card_seq": np.arange(count, dtype=np.uint32)}
    mask = lost(cards, 2, port)
    assert mask is not None
    assert mask.sum() == core.stats()["port.2.lost"] > 20
    assert everything["left"][~mask].tolist() == arrived.tolist()
