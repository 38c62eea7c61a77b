# SPDX-License-Identifier: MIT
"""Packets before and behind a queue are matched as a queue made them: each drop, mark and depth."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.matching import match, recorded
from analysis.matching.depths import with_depths
from analysis.matching.match import ECN_CE, Limits, Matcher
from analysis.measure import wall_clock
from analysis.read.columns import Columns, joined, rows_of, slabs
from analysis.read.postcards import NEVER_NS
from analysis.read.raw import load_postcards
from hosts import recorder
from p4src.tests import frames
from runs.names import CAPTURES, POSTCARDS_FILE
from wire import wire

CARD = wire.POSTCARD.const
LIMIT, GAP_NS = 30, 1000
MOST = Limits(2 * LIMIT * GAP_NS)


def queue(count: int, seed: int) -> tuple[Columns, Columns, np.ndarray]:
    """(packets before, packets behind, the number behind of each before or -1) of a queue that drops at LIMIT, and some
    others.
    """
    draw = np.random.default_rng(seed)
    came = np.cumsum(draw.integers(1, 2 * GAP_NS - 100, count))
    number = np.arange(count)
    before = {
        "time_ns": came, "frame_bytes": draw.integers(60, 1515, count), "ecn": draw.integers(0, 4, count),
        "ip_id": number & 0xFFFF, "tcp_seq": number,
    }  # fmt: skip
    left: list[int] = []
    out = np.full(count, -1)
    for row, now in enumerate(came.tolist()):
        if sum(end > now for end in left[-LIMIT - 1 :]) < LIMIT and draw.random() > 0.02:
            out[row] = len(left)
            left.append(max(now, left[-1] if left else 0) + GAP_NS)
    behind = rows_of(before, out >= 0) | {"time_ns": np.array(left)}
    marked = (draw.random(len(left)) < 0.1) & (behind["ecn"] > 0)
    return before, behind | {"ecn": np.where(marked, ECN_CE, behind["ecn"])}, out


def cut(columns: Columns, rows: int) -> Iterator[Columns]:
    return (rows_of(columns, part) for part in slabs(len(columns["time_ns"]), rows))


def matched(before: Columns, behind: Columns, rows: int, limits: Limits = MOST) -> tuple[Columns, Matcher]:
    matcher = Matcher(cut(before, rows), cut(behind, rows + 7), limits)
    return joined(*with_depths(packets for packets, _ in matcher if packets)), matcher


@pytest.mark.parametrize("rows", [13, 400, 10_000])
def test_queue__gives_back_its_drops_marks_and_depths(rows: int) -> None:
    before, behind, out = queue(5000, rows)
    found, matcher = matched(before, behind, rows)
    left = np.where(out >= 0, behind["time_ns"][out], NEVER_NS)
    assert found["departure_ns"].tolist() == left.tolist()
    marked = (out >= 0) & (behind["ecn"][out] == ECN_CE) & (before["ecn"] != ECN_CE)
    assert found["marked"].tolist() == marked.tolist()
    assert (matcher.drops, matcher.marks) == (np.count_nonzero(out < 0), np.count_nonzero(marked))
    assert (matcher.only_behind, matcher.ambiguous) == (0, 0)
    inside = [(left[:row] > came) for row, came in enumerate(before["time_ns"].tolist())]
    assert found["depth_packets"].tolist() == [np.count_nonzero(mask) for mask in inside]
    sizes = before["frame_bytes"]
    assert found["depth_bytes"].tolist() == [sizes[: len(mask)][mask].sum() for mask in inside]


def test_retransmission__that_looks_the_same_is_told_apart_by_time() -> None:
    """The first is dropped, the second comes out: within the limits both could be the packet behind."""
    before, behind, out = queue(3000, 1)
    lost = np.flatnonzero(out < 0)[5:-50:9]
    again = rows_of(before, lost) | {"time_ns": before["time_ns"][lost] + 20 * GAP_NS}
    order = np.argsort(np.append(before["time_ns"], again["time_ns"]), kind="stable")
    both = rows_of(joined(before, again), order)
    sojourn = np.median(behind["time_ns"] - before["time_ns"][out >= 0])
    out_again = rows_of(again, slice(None)) | {"time_ns": again["time_ns"] + int(sojourn)}
    sorted_behind = np.argsort(np.append(behind["time_ns"], out_again["time_ns"]), kind="stable")
    found, matcher = matched(both, rows_of(joined(behind, out_again), sorted_behind), 500)
    assert matcher.ambiguous > 0
    of_first = np.isin(order, lost)
    assert found["dropped"][of_first].all()
    assert not found["dropped"][order >= len(out)].any()


def test_ip_id__that_the_switch_writes_is_left_out() -> None:
    before, behind, out = queue(1000, 6)
    found, matcher = matched(before, behind | {"ip_id": behind["ip_id"] + 7000}, 80)
    assert found["dropped"].tolist() == (out < 0).tolist()
    assert matcher.changed == matcher.pairs == np.count_nonzero(out >= 0)


def test_packet__that_nobody_saw_before_is_only_behind() -> None:
    before, behind, out = queue(1000, 2)
    seen = out != 100
    alone = [part for _, part in Matcher(cut(rows_of(before, seen), 90), cut(behind, 90), MOST) if part]
    assert [part["tcp_seq"].tolist() for part in alone if len(part["tcp_seq"])] == [[before["tcp_seq"][~seen][0]]]


def test_clocks__that_are_not_aligned_need_a_lower_limit() -> None:
    before, behind, out = queue(1000, 3)
    early = behind | {"time_ns": behind["time_ns"] - 50 * GAP_NS}
    found, _ = matched(before, early, 70, Limits(MOST.most_ns, -50 * GAP_NS))
    assert found["dropped"].tolist() == (out < 0).tolist()


def test_gap_behind__holds_no_arrivals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes out for long, but packets still arrive: those that are too old do not wait."""
    monkeypatch.setattr(match, "SLAB_ROWS", 300)
    before, behind, out = queue(5000, 7)
    silent = (out >= 0) & (out < 100) | (out >= len(behind["time_ns"]) - 100)
    few = rows_of(behind, out[silent])
    matcher = Matcher(cut(before, 50), cut(few, 10_000), MOST)
    parts, most = [], 0
    for packets, _ in matcher:
        parts += [packets] if packets else []
        most = max(most, matcher._rows)
    found = joined(*parts)
    assert most < 300 + 3 * LIMIT + 50
    assert found["dropped"].tolist() == (~silent).tolist()
    assert found["time_ns"].tolist() == before["time_ns"].tolist()


def test_equal_packets__take_no_quadratic_time() -> None:
    """A hundred thousand datagrams without an IP id, all at once in the queue, each a microsecond behind the other."""
    came = np.arange(100_000) * 1000
    packets = {"time_ns": came, "frame_bytes": np.full(len(came), 100), "ecn": np.zeros(len(came), dtype=int)}
    behind = packets | {"time_ns": came + 10**9}
    start = time.process_time()
    found, matcher = matched(packets, behind, len(came), Limits(2 * 10**9))
    assert time.process_time() - start < 20  # comparing each with each took minutes
    assert found["departure_ns"].tolist() == behind["time_ns"].tolist()
    assert matcher.ambiguous > 0


def test_arrival__that_may_still_be_queued_at_the_end_is_undecided() -> None:
    before, behind, _ = queue(1000, 4)
    half = rows_of(behind, slice(300))
    undecided = (before["time_ns"] >= half["time_ns"][-1] - MOST.most_ns) & ~np.isin(before["tcp_seq"], half["tcp_seq"])
    assert matched(before, half, 50)[1].undecided == np.count_nonzero(undecided)


def test_recording__becomes_postcards(tmp_path: Path) -> None:
    sent = [frames.tcp(1514, seq=number, ecn=2) for number in range(4)] + [frames.udp(200), frames.tcp6(100)]
    marked = bytearray(sent[2])
    marked[15] |= ECN_CE
    write(tmp_path / CAPTURES[0], [(1000 * at, frame) for at, frame in enumerate(sent)])
    left = [(5000, sent[0]), (6000, bytes(marked)), (7000, sent[3]), (8000, sent[4]), (9000, sent[5])]
    write(tmp_path / CAPTURES[1], left)
    (tmp_path / "recorder.json").write_text(json.dumps({"until_mono_ns": 10**9}))
    recorded.make_postcards(tmp_path, recorded.Watched(1, 7, 5, 10**6))
    cards, flows, _ = load_postcards(tmp_path / POSTCARDS_FILE)
    dropped = CARD["POSTCARD_DROPPED"] | CARD["POSTCARD_AT_INGRESS"]
    assert [flags & dropped for flags in cards["flags"][:]] == [0, dropped, 0, 0, 0, 0]
    assert np.flatnonzero(cards["flags"] & CARD["POSTCARD_CE_MARKED"]).tolist() == [2]
    assert cards["depth_packets"][:].tolist() == [0, 1, 1, 2, 3, 3]
    assert (cards["enqueue_mono_ns"] + cards["sojourn_ns"])[:].tolist() == [5000, 1000, 6000, 7000, 8000, 9000]
    assert cards["packet_bytes"][:].tolist() == [1514] * 4 + [200, 100]
    assert cards["tcp_seq"][:].tolist() == [0, 1, 2, 3, 0, 1]
    assert len(flows.tuples()) == 3
    assert json.loads((tmp_path / "matching.json").read_text())["pairs"] == 5


def write(path: Path, packets: list[tuple[int, bytes]]) -> None:
    with path.open("wb") as file:
        file.write(recorder.PCAP_HEADER)
        for time_ns, frame in packets:
            kept = frame[: recorder.SNAP_BYTES]
            file.write(recorder.PCAP_FRAME.pack(*divmod(time_ns, 10**9), len(kept), len(frame)) + kept)


@pytest.mark.parametrize("takes_link_time", [True, False])
def test_lateness__allows_for_packets_that_were_dropped_in_the_switch(takes_link_time: bool) -> None:
    """A switch at 1000 packets/s that is on time. It drops some packets, before or after they took their time."""
    draw = np.random.default_rng(5)
    came = np.cumsum(draw.integers(500_000, 1_400_000, 2000))
    lost, left, due = draw.random(2000) < 0.1, [], 0
    for now, is_lost in zip(came.tolist(), lost.tolist(), strict=True):
        left.append(max(now, due))
        if takes_link_time or not is_lost:
            due = left[-1] + 1_000_000
    cards = {
        "enqueue_mono_ns": came, "sojourn_ns": np.where(lost, 0, np.array(left) - came),
        "flags": np.where(lost, CARD["POSTCARD_DROPPED"] | CARD["POSTCARD_AT_INGRESS"], 0),
        "packet_bytes": np.full(2000, 1514),
    }  # fmt: skip
    run: Any = SimpleNamespace(
        experiment=SimpleNamespace(rate_pps=1000, packet_ns=1e6, is_recorded=True, mtu_bytes=1500, imported=None),
        recount=None,
    )
    late = wall_clock.lateness_ns(run, cards)
    assert late is not None
    assert (late.max, len(late)) == (0, np.count_nonzero(~lost))
    facts = wall_clock.link_facts(run, cards)
    assert (facts["rate_error_fraction"], facts["gap_error_max_ns"]) == (0, 0)
