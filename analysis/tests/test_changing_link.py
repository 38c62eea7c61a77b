# SPDX-License-Identifier: MIT
"""Links that change, against the switch core: which packets are lost, when packets leave, what the link can carry."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from analysis.measure.metrics import LinkUsage
from analysis.read import columns
from analysis.read.documents import Port
from analysis.read.link_loss import lost
from analysis.read.link_rate import LinkRate
from analysis.read.raw import Columns
from lib.link_dynamics import Loss, RateSchedule
from p4src.tests.under_test import CoreControl
from softswitch.tests.core_driver import Core, departures, frame_to

START_NS, MS, BPS = 1_000_003, 10**6, 333_333_333
STEPS = RateSchedule(((0, 7 * 10**8), (2 * MS + 1, 0), (2 * MS + 90_001, 77_777_777), (9 * MS, 10**9)))
OPPORTUNITIES = RateSchedule(((MS, 2), (3 * MS, 9), (4 * MS, 1)), opportunities=True)


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


@pytest.mark.parametrize("schedule", [STEPS, OPPORTUNITIES])
def test_rate__departures_are_exact_to_the_ns_and_the_link_is_never_used_more_than_fully(
    schedule: RateSchedule,
) -> None:
    core = Core(packets=8192, rate_entries=len(schedule.entries))
    core.set(f"port set 2 rate {BPS}")
    CoreControl(core).set_schedule(2, schedule)
    CoreControl(core).start_schedule(2, START_NS)
    queue, rate = carried(core), LinkRate(BPS, schedule, START_NS)
    assert rate.misspaced(queue) == 0
    after = np.flatnonzero(queue["left"] > START_NS + 2 * MS)
    for off_ns in (-1, 1):
        changed = queue | {"sojourn_ns": queue["sojourn_ns"].copy()}
        changed["sojourn_ns"][after[20]] += off_ns
        assert rate.misspaced(changed) >= 1
    for wrong in (RateSchedule(schedule.entries[:-1], schedule.opportunities), RateSchedule(((0, BPS),))):
        assert LinkRate(BPS, wrong, START_NS).misspaced(queue) > 10
    starts = np.arange(START_NS, int(queue["left"][-1]) - 3 * MS, MS // 3)
    used = LinkUsage(queue, rate).utilization(starts, 3 * MS)
    rounding = 1 / 3 if schedule.opportunities else 1e-5  # a whole packet of at least three opportunities; 1 ns
    assert 0.9 < np.nanmax(used) <= 1 + rounding
    for from_ns, to_ns in ((0, 1), (123, 5 * MS), (2 * MS, 2 * MS + 90_001)):
        possible = rate.capacity_bits(START_NS + from_ns, to_ns - from_ns)
        assert possible == pytest.approx(float(schedule.bits_possible(from_ns, to_ns)), rel=1e-12, abs=1e-6)


def test_rate__a_backlog_uses_each_opportunity() -> None:
    core = Core(packets=8192, rate_entries=3)
    core.set(f"port set 2 rate {BPS}")
    CoreControl(core).set_schedule(2, OPPORTUNITIES)
    CoreControl(core).start_schedule(2, 1)
    for _ in range(60):
        core.receive(1, 1, frame_to(2, 1514))
    left = np.array(departures(core.run()))
    came = np.ones(len(left), dtype=np.int64)
    sizes, flags = np.full(len(left), 1514), np.zeros(len(left), dtype=np.uint8)
    queue: Columns = {"enqueue_mono_ns": came, "sojourn_ns": left - came, "packet_bytes": sizes, "flags": flags}
    used = LinkUsage(queue, LinkRate(BPS, OPPORTUNITIES, 1)).utilization(1 + MS * np.arange(16), MS)
    assert [None if np.isnan(share) else share for share in used] == [1, None, 1, 1] * 4
    assert LinkRate(BPS, OPPORTUNITIES, 1).misspaced(queue) == 0


@pytest.mark.parametrize("loss", [Loss(in_good=Fraction(1, 9)), Loss(*map(Fraction, ("0.02", "0.1", "0.7", "0.01")))])
def test_loss__names_the_packets_that_the_switch_lost(
    loss: Loss, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "SLAB_ROWS", 100)
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
    mask = lost(cards, 2, port, tmp_path)
    assert mask is not None
    assert mask.sum() == core.stats()["port.2.lost"] > 20
    assert everything["left"][~mask].tolist() == arrived.tolist()
