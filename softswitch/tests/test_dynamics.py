# SPDX-License-Identifier: MIT
"""Links that change during a run: rates by a schedule, to the ns, and loss and jitter against their distributions."""

import random
from bisect import bisect_right
from collections import Counter
from fractions import Fraction
from itertools import groupby, pairwise
from statistics import NormalDist

import pytest

from lib.link_dynamics import Jitter, Loss, RateSchedule
from p4src.tests.under_test import CoreControl

from .core_driver import Core, SentFrame, departures, frame_to, wire_bits
from .fifo_model import fifo, mahimahi, stepped
from .test_core import EGRESS_DROP, MIRROR_EGRESS, record
from .test_flows import udp

START_NS = 1_000_003
MS = 10**6
MOST_DEVIATIONS = 5  # of a mean from its expectation: one test in two million fails by chance


def scheduled(schedule: RateSchedule, before_bps: int, start_ns: int = START_NS, *requests: str) -> Core:
    core = Core(packets=8192, rate_entries=len(schedule.entries))
    core.set(f"port set 2 rate {before_bps}", *requests)
    CoreControl(core).set_schedule(2, schedule)
    CoreControl(core).start_schedule(2, start_ns)
    return core


def carry(core: Core, arrivals: list[tuple[int, int]], dropped: list[bool], rng: random.Random) -> list[SentFrame]:
    outputs = []
    for (arrival_ns, length), drop in zip(arrivals, dropped, strict=True):
        core.receive(arrival_ns, 1, frame_to(2, length, EGRESS_DROP if drop else 0))
        if not rng.randrange(20):
            outputs += core.run(arrival_ns)
    return outputs + core.run()


def test_step__a_packet_in_transmission_sends_the_rest_of_its_bits_at_the_new_rate() -> None:
    for steps, expected in (
        (((0, 992_000_000), (400, 99_200_000)), [6400, 16400]),  # 1000 ns at the first rate, 10 us at the second
        (((0, 992_000_000), (400, 0), (5000, 992_000_000)), [5600, 6600]),
        (((0, 992_000_000), (1000, 0), (5000, 992_000_000)), [1000, 6000]),  # its last bit leaves as the outage begins
        (((0, 0), (7, 992_000_000)), [1007, 2007]),
    ):
        core = scheduled(RateSchedule(steps), 10**9, 50)
        for _ in expected:
            core.receive(50, 1, frame_to(2))
        outputs = core.run()
        assert departures(outputs) == [50 + ns for ns in expected], steps
        assert [output.back_to_back for output in outputs] == [False, True]


@pytest.mark.parametrize("seed", range(6))
def test_steps__departures_equal_an_independent_model(seed: int) -> None:
    rng = random.Random(seed)
    before_bps = rng.choice((333_333_333, 10**9))
    times_ns = sorted({0, *(rng.randrange(1, 8 * MS) for _ in range(rng.choice((1, 300))))})
    rates_bps = [rng.choice((0, 1000, 1_000_003, 777_777_777, 10**9, 40 * 10**9)) for _ in times_ns]
    schedule = RateSchedule(tuple(zip(times_ns, [*rates_bps[:-1], 10**9 + 7], strict=True)))
    arrivals, now_ns = [], 1
    for _ in range(3000):
        now_ns += rng.choice((0, rng.randrange(8000)))
        arrivals.append((now_ns, rng.randrange(40, 1515)))
    dropped = [rng.random() < 0.1 for _ in arrivals]
    core = scheduled(schedule, before_bps, START_NS, "mirror set 1 3", f"test mirror {MIRROR_EGRESS}")
    outputs = carry(core, arrivals, dropped, rng)
    steps = [(0, before_bps), *((START_NS + at_ns, rate_bps) for at_ns, rate_bps in schedule.entries)]
    model = fifo(arrivals, stepped(steps), drops_at_egress=dropped.__getitem__)
    cards = [record(output) for output in outputs if output.port == 3]
    assert [(card["enq_qdepth"], card["egress_ns"], card["deq_timedelta"]) for card in cards] == [
        (packet.depth_packets, packet.departure_ns, (packet.departure_ns or 0) - packet.arrival_ns) for packet in model
    ]
    assert departures(outputs) == [packet.departure_ns for packet in model if not packet.dropped]


@pytest.mark.parametrize("seed", range(4))
def test_opportunities__departures_equal_mahimahis_link(seed: int) -> None:
    rng = random.Random(seed)
    trace_ms = sorted(rng.randrange(1, 60) for _ in range(rng.choice((5, 40, 200))))
    counts = Counter(trace_ms)
    schedule = RateSchedule(tuple((ms * MS, counts[ms]) for ms in sorted(counts)), opportunities=True)
    arrivals, now_ns = [], START_NS
    for _ in range(1500):
        now_ns += rng.choice((0, rng.randrange(MS), rng.randrange(10 * MS)) if rng.randrange(20) else (60 * MS,))
        if not rng.randrange(3):  # at an opportunity, which is then past
            now_ns += -(now_ns - START_NS) % MS
        arrivals.append((now_ns, rng.choice((15, 54, 1514, rng.randrange(60, 2048)))))
    core = scheduled(schedule, 10**9)
    assert departures(carry(core, arrivals, [False] * len(arrivals), rng)) == mahimahi(arrivals, trace_ms, START_NS)


def test_opportunities__a_backlog_gets_the_bytes_of_every_ms() -> None:
    trace_ms = [1, 1, 1, 2, 5, 5, 9]
    counts = Counter(trace_ms)
    schedule = RateSchedule(tuple((ms * MS, counts[ms]) for ms in sorted(counts)), opportunities=True)
    core = scheduled(schedule, 10**9)
    for _ in range(21):
        core.receive(START_NS, 1, frame_to(2, 1514))
    left = Counter((ns - START_NS) // MS for ns in departures(core.run()))
    assert left == Counter(ms + 9 * turn for turn in range(3) for ms in trace_ms)


def test_opportunity__of_a_packet_that_egress_drops_is_the_next_packets() -> None:
    core = scheduled(RateSchedule(tuple((ms * MS, 1) for ms in (1, 2, 3, 5)), opportunities=True), 10**9)
    for length, ask in ((1514, 0), (2014, EGRESS_DROP), (714, 0), (714, 0), (214, 0)):  # the second needs 2 and 3 ms
        core.receive(START_NS, 1, frame_to(2, length, ask))
    assert departures(core.run()) == [START_NS + ms * MS for ms in (1, 3, 3, 5)]


def test_schedule__before_its_start_the_ports_rate_holds() -> None:
    for schedule in (RateSchedule(((0, 1000),)), RateSchedule(((MS, 1),), opportunities=True)):
        core = scheduled(schedule, 992_000_000)
        core.receive(7, 1, frame_to(2))
        assert departures(core.run()) == [1007]
        core.set("schedule clear")
        core.receive(START_NS, 1, frame_to(2))
        assert departures(core.run()) == [START_NS + 1000]


def test_schedule__bad_requests_are_refused_and_change_nothing() -> None:
    core = Core(rate_entries=3)
    core.set("schedule steps 2 0 1000 5 0")
    for request in (
        "schedule start 2 5",  # it ends in an outage
        "schedule start 1 5",
        "schedule steps 2 5 1000",
        "schedule steps 2 6 999",
        "schedule steps 2 6",
        "schedule steps 2",
        "schedule steps 9 0 1000",
        "schedule steps 1 1 1000",
        "schedule steps 2 6 1000 7 1000",
        "schedule opportunities 2 6 1",
        "schedule opportunities 1 0 1",
        "schedule opportunities 1 1 0",
        "schedule steps 2 86400000000001 1000",
        "schedule",
        "loss 2 good 18446744073709551616",
        "loss 9",
        "jitter 2 1 5",
        "jitter 2 1 5 4",
        "jitter 2",
        "jitter 2 1 " + "5 " * 258,
    ):
        assert core.control(request)[0].startswith("error "), request
    assert "schedule_entries 2" in core.control("port show 2")
    assert core.control("port show 1") == ["ok", *(f"{name} 0" for name in (
        "rate", "delay", "access", "limit_packets", "limit_bytes", "drop_cost"))]  # fmt: skip
    core.set("schedule steps 2 6 1000", "schedule start 2 5")
    for request in ("schedule steps 2 7 1000", "schedule clear now", "schedule start 2 0", "schedule start 2 7 7"):
        assert core.control(request)[0].startswith("error "), request


def departed(core: Core, packets: int, gap_ns: int) -> list[int]:
    """Sends numbered packets to port 2, `gap_ns` apart. The numbers of the delivered ones, by due time."""
    delivered = []
    for number in range(packets):
        core.receive(number * gap_ns, 1, frame_to(2, 60, fill=b"") + number.to_bytes(4, "big"))
        if number % 1000 == 999:
            delivered += core.run((number + 1) * gap_ns)
    delivered += core.run()
    return [int.from_bytes(output.frame[-4:], "big") for output in delivered]


def with_loss(loss: Loss, seed: int, *requests: str) -> Core:
    core = Core()
    core.set(*requests)
    CoreControl(core).set_loss(2, loss, seed)
    return core


def test_loss__has_its_share_and_is_counted_apart_from_drops() -> None:
    packets = 60_000
    for loss, inflation in (
        (Loss(in_good=Fraction(1, 50)), 1.0),
        # The variance of the number of losses is larger, as they come in bursts of about 1 / to_good.
        (Loss(Fraction(1, 100), Fraction(1, 4), Fraction(3, 4), Fraction(1, 500)), 2 / 0.26),
    ):
        core = with_loss(loss, 7)
        delivered = departed(core, packets, 10)
        mean, lost = float(loss.mean), packets - len(delivered)
        deviation = (packets * mean * (1 - mean) * inflation) ** 0.5
        assert abs(lost - packets * mean) < MOST_DEVIATIONS * deviation, loss
        stats = core.stats()
        assert (stats["port.2.lost"], stats["port.2.departed"]) == (lost, packets)
        assert stats["port.2.queue_drops"] + stats["port.2.egress_drops"] + stats["packets_used"] == 0


def test_loss__of_gilbert_comes_in_geometric_bursts() -> None:
    to_bad, to_good = Fraction(1, 50), Fraction(1, 3)
    delivered = set(departed(with_loss(Loss(to_bad, to_good), 3), 60_000, 10))
    runs = [(lost, len(list(run))) for lost, run in groupby(number not in delivered for number in range(60_000))]
    for chance, lengths in ((to_good, [n for lost, n in runs if lost]), (to_bad, [n for lost, n in runs if not lost])):
        deviation = float((1 - chance) ** 0.5 / chance) / len(lengths) ** 0.5
        assert abs(sum(lengths) / len(lengths) - float(1 / chance)) < MOST_DEVIATIONS * deviation
    bursts = Counter(n for lost, n in runs if lost)
    for length in range(1, 6):
        expected = bursts.total() * float(to_good * (1 - to_good) ** (length - 1))
        assert abs(bursts[length] - expected) < MOST_DEVIATIONS * expected**0.5, length


def test_loss_and_jitter__have_random_numbers_of_their_own() -> None:
    loss, jitter = Loss(in_good=Fraction(1, 10)), Jitter(500)
    delivered = departed(with_loss(loss, 5), 3000, 1000)
    assert delivered == departed(with_loss(loss, 5), 3000, 1000)
    assert delivered != departed(with_loss(loss, 6), 3000, 1000)
    both = with_loss(loss, 5)
    CoreControl(both).set_jitter(2, jitter, 9)
    alone = with_loss(Loss(), 5)
    CoreControl(alone).set_jitter(2, jitter, 9)
    due: list[dict[int, int]] = []
    for core in (both, alone):
        for number in range(3000):
            core.receive(number * 1000, 1, frame_to(2))
        due.append({output.departure_ns: output.due_ns for output in core.run()})
    assert [ns // 1000 for ns in due[0]] == delivered
    assert len(due[1]) == 3000
    assert due[0].items() < due[1].items(), "a lost packet takes a jitter, too, and delays no other"


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
def test_jitter__has_its_distribution(distribution: str) -> None:
    packets, most_ns = 40_000, 100_000
    core = Core()
    core.set("port set 2 delay 5000")
    CoreControl(core).set_jitter(2, Jitter(most_ns, distribution), 11)
    values = []
    for number in range(packets):  # further apart than the jitter: none waits for its predecessor
        core.receive(number * (most_ns + 1), 1, frame_to(2))
        values += [output.due_ns - output.departure_ns - 5000 for output in core.run(number * (most_ns + 1))]
    values += [output.due_ns - output.departure_ns - 5000 for output in core.run()]
    values.sort()
    assert len(values) == packets
    assert values[0] >= 0
    assert values[-1] <= most_ns
    normal = NormalDist(most_ns / 2, most_ns / 6)
    least, most = normal.cdf(0), normal.cdf(most_ns)
    for share in (k / 50 for k in range(51)):
        below = bisect_right(values, share * most_ns) / packets
        expected = share if distribution == "uniform" else (normal.cdf(share * most_ns) - least) / (most - least)
        assert abs(below - expected) < 1.95 / packets**0.5, share  # Kolmogorov-Smirnov: 1 in 1000 by chance


def test_jitter__keeps_the_order_of_the_delay_line_and_moves_no_departure() -> None:
    core = Core()
    core.set("port set 2 rate 992000000 delay 5000", "flow set 10.0.0.1 10.0.0.9 udp 1 1 delay 100000")
    CoreControl(core).set_jitter(2, Jitter(20_000), 4)
    for number in range(3000):
        core.receive(number * 700, 1, udp(f"10.0.0.{1 + number % 2}", "10.0.0.9", 1, 1))
    outputs = sorted(core.run(), key=lambda output: output.departure_ns)
    ns = wire_bits(62) * 1000 // 992
    assert departures(outputs) == [number * 700 + ns for number in range(3000)]
    exits = [output.due_ns - (100_000 if output.frame[29] == 1 else 0) for output in outputs]
    assert all(one_ns <= next_ns for one_ns, next_ns in pairwise(exits)), "a flow's own delay comes after the line"
    assert all(5000 <= out - output.departure_ns <= 25_000 for out, output in zip(exits, outputs, strict=True))
    assert sum(one_ns == next_ns for one_ns, next_ns in pairwise(exits)) > 1000
