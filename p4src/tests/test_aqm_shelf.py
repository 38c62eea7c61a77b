# SPDX-License-Identifier: MIT
"""The laws of the AQMs on the shelf (p4src/aqm), compiled, against their RFCs in floating point. Packets come faster
than the link takes them; the postcards say what each packet met and what the AQM decided.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random

import pytest

from controlplane.policy import TailDrop
from controlplane.program import ProgramEntry
from p4src.compile import policy
from p4src.tests import frames
from p4src.tests.under_test import RATE_BPS, RECEIVER_PORT, SENDER_PORT, Postcard, SoftCore, composed

FRAME_BYTES = 1000
PACKET_NS = (FRAME_BYTES + 24) * 8 * 10**9 // RATE_BPS
FIRST_NS = 10**9
MS = 10**6


def switch_with(name: str, **values: int) -> SoftCore:
    """The switch with an AQM, with values of its parameters, its queues and its scheduler."""
    program = policy.read(name).json
    switch = SoftCore(program=str(composed(name))).configure()
    switch.policy(TailDrop(10**6))
    known = policy.parameters(program)
    for (table, action), arguments in policy.default_actions(program, policy.values(known, {}, values)[0]).items():
        switch.control.write_default(table, ProgramEntry(action, arguments))
    switch.core.set(*(" ".join(map(str, words)) for words in policy.requests(program, RECEIVER_PORT)))
    return switch


def from_port(frame: bytes, port: int) -> bytes:
    return frame[:34] + port.to_bytes(2, "big") + frame[36:]


def send(switch: SoftCore, index: int, at_ns: int, frame: bytes) -> None:
    switch.send(at_ns, SENDER_PORT, frame)
    if index % 500 == 0:
        switch.advance(at_ns - 1)


def overload(switch: SoftCore, packets: int, gap_ns: int, ecn: int, pauses_ns: tuple[int, ...] = ()) -> list[Postcard]:
    """Postcards of packets at equal times, in the order of their departures or drops. As many come after each pause."""
    frame, at_ns = frames.tcp(FRAME_BYTES, ecn=ecn), FIRST_NS
    for pause_ns in (0, *pauses_ns):
        at_ns += pause_ns
        for index in range(packets):
            send(switch, index, at_ns, frame)
            at_ns += gap_ns
    return switch.postcards()


def test_codel__drops_as_rfc_8289_says() -> None:
    """Section 5, with reals, over the same arrivals. A drop may be one packet off: 1/sqrt(count) is rounded."""
    gap_ns, packets, target, interval = PACKET_NS * 9 // 10, 20_000, 5 * MS, 100 * MS
    cards = overload(switch_with("codel"), packets, gap_ns, ecn=0)
    found = [(card.enqueue_switch_ns - FIRST_NS) // gap_ns for card in cards if card.has("DROPPED")]

    wanted, queue, now, first_above, drop_next, dropping, count, last = (
        [],
        list(range(packets)),
        FIRST_NS,
        0,
        0,
        False,
        0,
        0,
    )

    def dequeue() -> tuple[int | None, bool]:
        nonlocal first_above
        if not queue:
            first_above = 0
            return None, False
        index = queue.pop(0)
        waited = now - (FIRST_NS + index * gap_ns)
        behind = min(packets - 1, (now + PACKET_NS - FIRST_NS) // gap_ns) - index
        if waited < target or behind * FRAME_BYTES <= 1514:
            first_above = 0
        elif not first_above:
            first_above = now + interval
        elif now >= first_above:
            return index, True
        return index, False

    while queue:
        now = max(now, FIRST_NS + queue[0] * gap_ns)
        index, ok = dequeue()
        if dropping:
            dropping = ok
            while dropping and now >= drop_next:
                wanted.append(index)
                count += 1
                index, ok = dequeue()
                dropping = ok
                if ok:
                    drop_next += interval / math.sqrt(count)
        elif ok:
            wanted.append(index)
            index, ok = dequeue()
            dropping = True
            count = count - last if count - last > 1 and now - drop_next < 16 * interval else 1
            drop_next, last = now + interval / math.sqrt(count), count
        now += PACKET_NS if index is not None else 0
    assert len(found) == len(wanted) > 10
    assert max(abs(ours - theirs) for ours, theirs in zip(found, wanted, strict=True)) <= 1


def test_codel__goes_on_when_the_clock_wraps() -> None:
    found = []
    for first_ns in (FIRST_NS, 2**48 - 300 * MS):
        cards = standing(switch_with("codel"), 0, (), first_ns)
        found.append(sorted((card.enqueue_switch_ns - first_ns) % 2**48 for card in cards if card.has("DROPPED")))
    assert found[0] == found[1]
    assert len(found[0]) > 10


def test_codel__marks_instead_unless_ecn_is_0() -> None:
    for ecn, flag in ((1, "CE_MARKED"), (0, "DROPPED")):
        cards = overload(switch_with("codel", ecn=ecn), 12_000, PACKET_NS * 9 // 10, ecn=2)
        assert sum(card.has(flag) for card in cards) > 3
        assert not any(card.has("DROPPED") for card in cards) or not ecn


def test_fq_codel__sends_a_new_flow_before_the_backlog() -> None:
    switch = switch_with("fq_codel")
    for index in range(2000):
        at_ns = FIRST_NS + index * PACKET_NS // 2
        send(switch, index, at_ns, from_port(frames.tcp(FRAME_BYTES), index % 3))
        if index % 100 == 50:
            send(switch, index, at_ns, from_port(frames.tcp(60), 2000))
    cards = switch.postcards()
    sparse = [card for card in cards if card.packet_bytes == 60]
    assert len({card.threshold for card in cards}) == 4, "a queue for each flow"
    assert max(card.sojourn_ns for card in sparse) < 2 * PACKET_NS + 10_000
    assert max(card.sojourn_ns for card in cards) > 100 * PACKET_NS


def test_red__averages_as_floyd_and_jacobson_do() -> None:
    switch = switch_with("red", min_th_packets=20, max_th_packets=60, packet_time_ns=PACKET_NS)
    cards = overload(switch, 6000, PACKET_NS * 95 // 100, ecn=2)
    average, hits = 0.0, []
    for card in sorted(cards, key=lambda card: card.enqueue_switch_ns):
        average += (card.depth_packets - average) / 512 if card.depth_packets else 0
        assert card.threshold / 65536 == pytest.approx(average, abs=0.3)
        hits.append((card.threshold / 65536, card.has("CE_MARKED") or card.has("DROPPED")))
    assert not any(hit for average, hit in hits if average < 20)
    low = [hit for average, hit in hits if 30 < average < 40]
    # Gaps between marks are uniform up to 1/p, so their mean is half of it.
    assert sum(low) / len(low) == pytest.approx(2 * 0.1 * 15 / 40, rel=0.5)


# alpha and beta (Hz), target (s) and period (ns) of each controller
LAWS = {
    "pi2": (0.16, 3.2, 0.015, 16 * MS),
    "dualpi2": (0.16, 3.2, 0.015, 16 * MS),
    "pie": (0.125, 1.25, 0.015, 15 * MS),
}


def by_timer(name: str, cards: list[Postcard], law: tuple[float, float, float, int]) -> list[tuple[int, float, float]]:
    """(time, probability of the postcard, probability by the RFC's law with a timer) of each packet.

    RFC 9332, figure 6, and RFC 8033, section 4.2, with its scale of small probabilities and its cap of 2 %, in floating
    point. PI2 and PIE decide at an arrival, DualPI2 when a transmission begins. An update takes the delay of the packet
    that left last until then (of DualPI2: that left queue C), 0 if it left no other behind.
    """
    alpha, beta, target_s, period_ns = law
    dual, free, begins = name == "dualpi2", 0, {}
    for card in sorted(cards, key=lambda card: card.enqueue_switch_ns + card.sojourn_ns):
        begins[card.enqueue_switch_ns] = max(free, card.enqueue_switch_ns)
        free = free if card.has("DROPPED") else card.enqueue_switch_ns + card.sojourn_ns
    queued = [card for card in cards if not card.has("AT_INGRESS") and not (dual and card.has("ECT"))]
    came = sorted(card.enqueue_switch_ns for card in queued)
    left = []
    for index, card in enumerate(sorted(queued, key=lambda card: card.enqueue_switch_ns + card.sojourn_ns)):
        begin, end = begins[card.enqueue_switch_ns], card.enqueue_switch_ns + card.sojourn_ns
        behind = bisect.bisect_right(came, end) > index + 1
        left.append((begin if dual else end, (begin - card.enqueue_switch_ns) / 1e9 if behind else 0.0))
    p = last = 0.0
    due, found = 0, []
    for card in sorted(cards, key=lambda card: begins[card.enqueue_switch_ns] if dual else card.enqueue_switch_ns):
        now = begins[card.enqueue_switch_ns] if dual else card.enqueue_switch_ns
        due = due or (now // period_ns + 1) * period_ns
        while due <= now:
            at = bisect.bisect_right(left, (due, math.inf))
            delay = left[at - 1][1] if at else 0.0
            change = alpha * (delay - target_s) + beta * (delay - last)
            if name == "pie":
                change /= next((2 ** (-1 - 2 * b) for b in range(-6, 0) if p < 10**b), 1)
                change = min(change, 0.02) if p >= 0.1 else change
            p = min(max(p + change, 0), 0.5 if dual else 1)
            p *= 0.98 if name == "pie" and not delay and not last else 1
            last = delay
            due += period_ns
        found.append((now, card.threshold / 2**32, p))
    return found


def standing(switch: SoftCore, ecn: int, pauses_ns: tuple[int, ...], first_ns: int = FIRST_NS) -> list[Postcard]:
    """Postcards of packets that fill the queue to 40 ms, keep it for 0.8 s and let it drain; again after each pause."""
    frame, at_ns, index = frames.tcp(FRAME_BYTES, ecn=ecn), first_ns, 0
    for pause_ns in (0, *pauses_ns):
        at_ns += pause_ns
        for packets, tenths in ((10_000, 9), (20_000, 10), (6000, 12)):
            for _ in range(packets):
                send(switch, index, at_ns, frame)
                at_ns += PACKET_NS * tenths // 10
                index += 1
    return switch.postcards()


CONTROLLERS = pytest.mark.parametrize(("name", "ecn"), [("pi2", 2), ("dualpi2", 0), ("pie", 2)])


@pytest.mark.parametrize(
    ("name", "ecn", "pauses_ns"), [("pi2", 2, (60 * MS, 600 * MS)), ("dualpi2", 0, (60 * MS, 600 * MS)), ("pie", 2, ())]
)
def test_controller__has_a_timers_probability_in_use_and_after_pauses(
    name: str, ecn: int, pauses_ns: tuple[int, ...]
) -> None:
    values = by_timer(name, standing(switch_with(name), ecn, pauses_ns), LAWS[name])
    for now, value, p in values:
        assert value == pytest.approx(p, rel=2e-3, abs=1e-4), now
    assert max(value for _, value, _ in values) > 0.07


def test_pi2__loses_all_of_its_probability_in_a_long_pause() -> None:
    cards = overload(switch_with("pi2"), 80_000, PACKET_NS // 2, ecn=0, pauses_ns=(6000 * MS,))
    values = by_timer("pi2", cards, LAWS["pi2"])
    before, first = next(pair for pair in itertools.pairwise(values) if pair[1][0] > pair[0][0] + 5000 * MS)
    assert before[1] > 0.65
    assert first[1] == first[2] == 0


@pytest.mark.parametrize("pause_ms", [60, 300, 600, 1300])
def test_pie__decays_in_a_pause_as_with_a_timer_to_0_05(pause_ms: int) -> None:
    cards = overload(switch_with("pie"), 40_000, PACKET_NS * 17 // 20, ecn=0, pauses_ns=(pause_ms * MS,))
    values = by_timer("pie", cards, LAWS["pie"])
    before, first = next(pair for pair in itertools.pairwise(values) if pair[1][0] > pair[0][0] + 25 * MS)
    assert before[1] > 0.5
    assert first[2] - 0.05 < first[1] <= first[2]


@CONTROLLERS
def test_controller__keeps_up_where_packets_are_further_apart_than_updates(name: str, ecn: int) -> None:
    """As on a link below 0.8 Mb/s."""
    alpha, beta, period_ns = 0.016, 0.5, PACKET_NS * 2 // 7
    switch = switch_with(name, t_update_ns=period_ns, alpha_mhz=16, beta_mhz=500)
    values = by_timer(name, standing(switch, ecn, ()), (alpha, beta, LAWS[name][2], period_ns))
    assert max(value for _, value, _ in values) > 0.3
    for now, value, p in values:
        assert value == pytest.approx(p, abs=2e-3), now


@CONTROLLERS
def test_controller__goes_on_when_the_clock_wraps(name: str, ecn: int) -> None:
    period_ns, found = LAWS[name][3], []
    for first_ns in (FIRST_NS, (2**48 - 500 * MS) // period_ns * period_ns + FIRST_NS % period_ns):
        switch = switch_with(name)
        switch.preset("updated_ns", first_ns - first_ns % period_ns, port=0)
        cards = standing(switch, ecn, (), first_ns)
        cards.sort(key=lambda card: (card.enqueue_switch_ns - first_ns) % 2**48)
        found.append([card.threshold / 2**32 for card in cards])
    assert max(found[0][-20_000:]) > 0.07
    assert found[1] == found[0]


@CONTROLLERS
def test_controller__has_no_delay_of_78_hours_if_the_clock_wraps_while_the_link_is_idle(name: str, ecn: int) -> None:
    switch, frame = switch_with(name), frames.tcp(FRAME_BYTES, ecn=ecn)
    for at_ns in (2**48 - 400 * MS, 2**48 + 100 * MS, 2**48 + 100 * MS + PACKET_NS // 2):
        send(switch, 0, at_ns, frame)
    switch.advance(at_ns + PACKET_NS)  # the first of the two has left, the second has not
    assert switch.control.register("delay_ns")[0] == 0


def test_pie__drops_nothing_in_the_first_burst_and_in_one_after_a_long_pause() -> None:
    """max_burst is 150 ms. Without it, drops begin after 141 ms here."""
    cards = overload(switch_with("pie"), 8000, PACKET_NS * 7 // 10, ecn=0, pauses_ns=(3000 * MS,))
    arrivals = sorted(card.enqueue_switch_ns for card in cards)
    again = next(after for before, after in itertools.pairwise(arrivals) if after > before + 1000 * MS)
    dropped = [card.enqueue_switch_ns for card in cards if card.has("DROPPED")]
    assert min(dropped) > FIRST_NS + 150 * MS
    assert min(at for at in dropped if at >= again) > again + 150 * MS


def test_dualpi2__an_idle_time_counts_whichever_queue_has_the_first_packet_after_it() -> None:
    """A packet of C comes while the first one, of L, is being sent."""
    switch = switch_with("dualpi2")
    low, classic = frames.tcp(FRAME_BYTES, ecn=1), frames.tcp(FRAME_BYTES, ecn=0)
    for index in range(30_000):
        send(switch, index, FIRST_NS + index * PACKET_NS * 9 // 10, classic)
    at_ns = FIRST_NS + 30_000 * PACKET_NS + 600 * MS
    for index, frame in enumerate((low, classic)):
        send(switch, 0, at_ns + index * PACKET_NS // 2, frame)
    values = by_timer("dualpi2", switch.postcards(), LAWS["dualpi2"])
    assert values[-3][1] > values[-1][1] + 0.05 > 0.1
    for _, value, p in values:
        assert value == pytest.approx(p, abs=2e-4)


def test_dualpi2__makes_no_update_for_a_packet_that_began_before_the_last_one() -> None:
    """Such are packets behind one that was dropped at departure."""
    switch = switch_with("dualpi2")
    switch.preset("updated_ns", FIRST_NS + MS, port=0)
    switch.preset("base_prob", 2**30, port=0)
    send(switch, 0, FIRST_NS, frames.tcp(FRAME_BYTES, ecn=1))
    assert [card.threshold for card in switch.postcards()] == [2**30]


def test_dualpi2__marks_l_by_its_own_ramp_and_couples_it_to_c() -> None:
    """Queue L alone: no mark below 0.8 ms, all above 1.2 ms. Beside a standing queue C it waits little."""
    alone = overload(switch_with("dualpi2"), 100, PACKET_NS * 2 // 3, ecn=1)
    for card in alone:
        wait = card.sojourn_ns - PACKET_NS
        assert card.has("CE_MARKED") == (wait > MS) or 0.8 * MS < wait < 1.2 * MS or card is alone[-1], wait
    switch, chance = switch_with("dualpi2"), random.Random(1)
    of_low, of_classic = frames.tcp(FRAME_BYTES, ecn=1), frames.tcp(FRAME_BYTES, ecn=0)
    for index in range(30_000):
        send(switch, index, FIRST_NS + index * PACKET_NS * 9 // 10, of_low if chance.random() < 0.2 else of_classic)
    cards = switch.postcards()
    late = [card for card in cards if card.enqueue_switch_ns > FIRST_NS + 500 * MS]
    low = [card for card in late if card.has("ECT")]
    classic = [card for card in late if not card.has("ECT")]
    assert max(card.sojourn_ns for card in low) < 16 * PACKET_NS
    assert min(card.sojourn_ns for card in classic) > 5 * MS
    base = sum(card.threshold for card in late) / len(late) / 2**32
    assert sum(card.has("DROPPED") for card in classic) / len(classic) == pytest.approx(base**2, rel=0.3)
    assert sum(card.has("CE_MARKED") for card in low) / len(low) == pytest.approx(2 * base, rel=0.2)
