# SPDX-License-Identifier: MIT
"""Packets in flight by the sequence and ACK numbers of a capture: those that were sent, and not acknowledged yet."""

from __future__ import annotations

import io

import numpy as np
import pytest

from analysis.importing.outstanding import ACK, OF_ACK, PROBE, RETRANSMIT, Outstanding
from analysis.importing.tap import SYN
from analysis.importing.write import unknown_fields
from analysis.read.columns import Columns
from wire import wire

MSS, RTT_NS = 1000, 4_000_000


def packets(rows: list[tuple[int, int, str, int, int]], isn: int) -> tuple[Columns, np.ndarray, np.ndarray]:
    """Of (time in ns, flow, kind, number, payload): the number counts from the flow's first."""
    time, flow, kind, number, payload = map(np.array, zip(*rows, strict=True))
    is_ack = kind == "ack"
    seq = (isn + number).astype(np.uint32)
    return {
        "time_ns": time, "tcp_seq": np.where(is_ack, 7, seq).astype(np.uint32),
        "tcp_ack": np.where(is_ack, seq, 9).astype(np.uint32), "payload_bytes": payload.astype(np.uint32),
        "tcp_flags": np.full(len(rows), 0x10, dtype=np.uint8),
        "src_port": np.where(is_ack, 80, 5 + flow).astype(np.uint16),
        "dst_port": np.where(is_ack, 5 + flow, 80).astype(np.uint16),
        **{name: np.full(len(rows), 3, dtype=np.uint64) for name in ("src_addr_hi", "src_addr_lo", "dst_addr_hi")},
        "dst_addr_lo": np.full(len(rows), 4, dtype=np.uint64),
    }, flow, is_ack  # fmt: skip


def records(file: io.BytesIO) -> np.ndarray:
    data, at, parts = file.getvalue(), 0, []
    while at < len(data):
        header = wire.BLOCK.decode(data[at:])
        at += wire.BLOCK.length + header["payload_bytes"]
        parts.append(np.frombuffer(data[at - header["payload_bytes"] : at], dtype=wire.STORED_TCP_RECORD))
    return np.concatenate(parts)


@pytest.mark.parametrize("isn", [5, 2**32 - 2500])
@pytest.mark.parametrize("parts", [1, 7])
def test_in_flight__is_what_was_sent_and_not_acknowledged(isn: int, parts: int) -> None:
    """Two flows; sequence numbers may wrap around. One segment is sent again, one ACK comes twice."""
    rows = []
    for step in range(6):
        rows += [(step * RTT_NS + flow, flow, "data", step * MSS, MSS) for flow in (0, 1)]
        rows += [(step * RTT_NS + 20, 0, "ack", max(step - 2, 0) * MSS, 0)]
    rows += [(6 * RTT_NS, 0, "data", 4 * MSS, MSS)]
    rows += [(6 * RTT_NS + again, 0, "ack", 6 * MSS, 0) for again in (1, 2)]
    file = io.BytesIO()
    outstanding = Outstanding(file)
    for part in np.array_split(np.arange(len(rows)), parts):
        outstanding.add(*packets([rows[row] for row in part.tolist()], isn), RTT_NS)
    outstanding.end(RTT_NS)
    found = records(file)
    acks, again = found[found["event"] == PROBE], found[found["event"] == RETRANSMIT]
    in_flight = (acks["snd_nxt"] - acks["snd_una"]).tolist()
    assert in_flight == [1000, 2000, 3000, 3000, 3000, 3000, 0]
    assert acks["src_port"].tolist() == [5] * 7
    assert set(acks["unknown_fields"].tolist()) == {unknown_fields(OF_ACK)}
    assert [((int(r["event_seq"]) - isn) % 2**32, int(r["data_bytes"])) for r in again] == [(4 * MSS, MSS)]


@pytest.mark.parametrize("parts", [1, 5])
def test_in_flight__is_the_senders_who_answers_an_ack_a_while_after_it_came_by(parts: int) -> None:
    """A window of ten segments; the sender is 3 ms away from the capture and back."""
    way_ns, rows = 3 * RTT_NS // 4, [(0, 0, "data", -1, 0), (RTT_NS // 4, 0, "ack", 0, 0)]
    first_ns = RTT_NS // 4 + way_ns
    rows += [(first_ns, 0, "data", 0, 0)]
    for step in range(40):  # a segment each 0.5 ms; the capture sees its ACK 2 ms later
        rows += [(first_ns + step * RTT_NS // 8, 0, "data", step * MSS, MSS)]
        rows += [(first_ns + step * RTT_NS // 8 + RTT_NS // 2, 0, "ack", (step + 1) * MSS, 0)]
    rows.sort(key=lambda row: row[0])
    file = io.BytesIO()
    outstanding = Outstanding(file)
    for part in np.array_split(np.arange(len(rows)), parts):
        of, flow, is_ack = packets([rows[row] for row in part.tolist()], 5)
        if part[0] == 0:
            of["tcp_flags"][:2] = SYN, SYN | ACK
        outstanding.add(of, flow, is_ack, RTT_NS)
    outstanding.end(RTT_NS)
    found = records(file)
    steady = (found["mono_ns"] > first_ns + 2 * RTT_NS) & (found["mono_ns"] <= first_ns + 39 * RTT_NS // 8)
    assert set((found["snd_nxt"] - found["snd_una"])[steady].tolist()) == {9 * MSS}  # before the answer to the ACK
    assert (np.diff(found["mono_ns"].astype(np.int64)) >= 0).all()


@pytest.mark.parametrize("parts", [1, 5])
@pytest.mark.parametrize("is_server", [False, True])
@pytest.mark.parametrize(("answer_ns", "way_ns"), [(0, 0), (3_000_000, 3_000_000), (60 * 10**9, 0)])
def test_the_way_to_the_sender__is_that_of_his_first_answer_and_never_long(
    answer_ns: int, way_ns: int, is_server: bool, parts: int
) -> None:
    """Who is there at once has a way of 0, whatever he sends later. A minute: the capture lacks the answer."""
    asked, answered = ("ack", 0, 0), ("data", -1 if is_server else 0, 0)
    rows = [(1000, 0, *asked), (1000 + answer_ns, 0, *answered)]
    flags = [SYN, SYN | ACK] if is_server else [SYN, SYN | ACK, ACK]
    rows = rows if is_server else [(500, 0, "data", -1, 0), *rows]
    rows += [(1000 + answer_ns + RTT_NS * step, 0, "data", step * MSS, MSS) for step in range(1, 11)]
    of, flow, is_ack = packets(rows, 5)
    of["tcp_flags"][: len(flags)] = flags
    outstanding = Outstanding(io.BytesIO())
    for part in np.array_split(np.arange(len(rows)), parts):
        outstanding.add({name: column[part] for name, column in of.items()}, flow[part], is_ack[part], RTT_NS)
    assert outstanding.way_ns[0] == way_ns
