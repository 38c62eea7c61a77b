# SPDX-License-Identifier: MIT
"""The senders' options against exact expectations: access links, windows, pacing, initial windows, ACKs and SACK."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis.read.raw import load_flows, load_postcards
from simulator.tests.test_simulator import CARD, EVENT, SIMULATOR, START_NS, cards, records, simulate
from wire import wire

pytestmark = [
    pytest.mark.long,  # `make test` installs no ns-3
    pytest.mark.skipif(not SIMULATOR.exists(), reason="build/simulator is missing: make simulator"),
]

FAST = {
    "rate_bps": 100_000_000, "threshold_packets": 1000, "data_delay_ns": 50_000_000, "ack_delay_ns": 50_000_000,
    "window_packets": 200,
}  # fmt: skip
SMALL = FAST | {"window_packets": 20}
FULL_BYTES, FULL_WIRE_BYTES = 1514, 1538
ACCESS_BPS = 8 * FULL_WIRE_BYTES * 1000  # a full frame takes exactly 1 ms
RTT_NS = 100_000_000
MSS = 1448


def full_frames(directory: Path) -> dict[str, np.ndarray]:
    """The full frames of the traffic, in the order of arrival."""
    table = cards(directory)
    is_full = (table["packet_bytes"] == FULL_BYTES) & (table["enqueue_mono_ns"] >= START_NS)
    return {name: column[is_full] for name, column in table.items()}


def gaps_ns(table: dict[str, np.ndarray], flow: int | None = None) -> np.ndarray:
    chosen = np.ones(len(table["flow"]), bool) if flow is None else table["flow"] == flow
    return np.diff(table["enqueue_mono_ns"][chosen])


def test_access_link__spaces_the_packets_of_its_flow_or_flows_exactly(tmp_path):
    word = f"access={ACCESS_BPS}"
    simulate(tmp_path / "own", flows=f"reno 30000 5201 0 0 {word}\nreno 30001 5201 0 0 {word}\n", **FAST)
    table = full_frames(tmp_path / "own")
    for flow in np.unique(table["flow"]):
        gaps = gaps_ns(table, flow)
        assert len(gaps) > 300
        assert gaps.min() == np.median(gaps) == 1_000_000
    assert gaps_ns(table).min() < 1_000_000
    word += " link=1000"
    simulate(tmp_path / "shared", flows=f"reno 30000 5201 0 0 {word}\nreno 2000 6001 0 0 900000 0 {word}\n", **FAST)
    table = full_frames(tmp_path / "shared")
    assert (np.unique(table["flow"], return_counts=True)[1] > 100).all()
    assert gaps_ns(table).min() == 1_000_000
    # A rate that does not divide the bits: the link carries the remainder on.
    simulate(tmp_path / "odd", flows="reno 30000 5201 0 0 access=7000001\n", **FAST)
    gaps = gaps_ns(full_frames(tmp_path / "odd"))
    busy = gaps[np.flatnonzero(gaps > 2_000_000)[-1] + 1 :]  # after slow start's last pause
    assert len(busy) > 300
    assert busy.sum() == pytest.approx(len(busy) * 8 * FULL_WIRE_BYTES * 1e9 / 7_000_001, abs=1)


def test_source__is_that_of_its_flow_and_its_record(tmp_path):
    finite = ("2000 6001 0 0 20000 0 from=10.77.0.16", "2001 6001 0 30000000 20000 0 from=10.77.3.17")
    lines = "reno 30000 5201 0 0\n" + "".join(f"reno {words}\n" for words in finite)
    summary = simulate(tmp_path / "run", flows=lines, **FAST)
    assert summary["finite"]["finished"] == 2
    _, flows, _ = load_postcards(tmp_path / "run/postcards.bsp", 0)
    found, _ = load_flows(tmp_path / "run/flows.bsf", flows)
    finished = found["end"] == wire.FLOW_RECORD.const["FLOW_END_FINISHED"]
    low = found["src_addr_lo"] & 0xFF
    assert sorted(low[finished].tolist()) == [16, 17]
    assert (found["flow"] >= 0).all()  # the postcards have packets of every record's flow
    took = {int(end): int(rtt) for end, rtt in zip(low[finished], found["min_rtt_us"][finished], strict=True)}
    assert took[17] - took[16] == pytest.approx(30_000, abs=1000)  # ns-3's timestamps count ms


def test_window__is_never_above_its_bound_nor_the_flight_above_the_socket_buffer(tmp_path):
    for cc in ("reno", "bbr"):
        simulate(tmp_path / cc, flows=f"{cc} 30000 5201 0 0\n", **SMALL)
        table = records(tmp_path / cc)
        assert table["cwnd_packets"].max() == table["in_flight_packets"].max() == 20
        times = full_frames(tmp_path / cc)["enqueue_mono_ns"]
        assert (np.searchsorted(times, times + RTT_NS) - np.arange(len(times))).max() == 20  # in every RTT
    more = {"socket_bytes": 40 * MSS} | {name: value for name, value in FAST.items() if name != "window_packets"}
    simulate(tmp_path / "buffer", flows=f"reno 30000 5201 0 0 access={ACCESS_BPS}\n", **more)
    assert records(tmp_path / "buffer")["in_flight_packets"].max() == 40


def test_pacing__at_one_window_per_rtt_makes_even_gaps_and_acks_are_delayed_or_each(tmp_path):
    gaps, acks_per_packet = {}, {}
    for pacing, acks in (("exact", "each"), ("off", "delayed")):
        run = tmp_path / pacing
        simulate(run, flows="reno 30000 5201 0 0\n", pacing=pacing, acks=acks, **SMALL)
        times = full_frames(run)["enqueue_mono_ns"]
        gaps[pacing] = np.diff(times[times > START_NS + 800_000_000])
        probes = int((records(run)["event"] == EVENT["TCP_EVENT_PROBE"]).sum())
        acks_per_packet[acks] = probes / int((cards(run)["packet_bytes"] == FULL_BYTES).sum())
    assert len(gaps["exact"]) > 100
    assert np.median(gaps["exact"]) == pytest.approx(RTT_NS / 20, rel=0.02)
    assert gaps["exact"].min() > 0.95 * RTT_NS / 20
    assert np.median(gaps["off"]) < 0.05 * RTT_NS / 20
    assert acks_per_packet == {"each": pytest.approx(1, abs=0.1), "delayed": pytest.approx(0.5, abs=0.1)}


def test_initial_window__and_an_ack_per_packet_double_the_window(tmp_path):
    flow = "reno 30000 5201 0 0\n"
    simulate(tmp_path / "run", flows=flow, initial_window=2, acks="each", sack="off", **FAST)
    times = full_frames(tmp_path / "run")["enqueue_mono_ns"] - START_NS
    assert [int(((times >= n * RTT_NS) & (times < (n + 0.9) * RTT_NS)).sum()) for n in range(5)] == [2, 4, 8, 16, 32]
    simulate(tmp_path / "default", flows=flow, **FAST)
    times = full_frames(tmp_path / "default")["enqueue_mono_ns"] - START_NS
    assert int((times < 0.9 * RTT_NS).sum()) == 10


def test_sack_off__repairs_one_loss_per_rtt(tmp_path):
    """NewReno: only a partial ACK, an RTT later, reveals the next loss."""
    repairs = {}
    for sack in ("on", "off"):
        simulate(tmp_path / sack, flows="reno 30000 5201 0 0\n", sack=sack, duration_ns=8_000_000_000)
        table = records(tmp_path / sack)
        at = table["mono_ns"][table["event"] == EVENT["TCP_EVENT_RETRANSMIT"]]
        dropped = cards(tmp_path / sack)["flags"] & CARD["POSTCARD_DROPPED"] != 0
        assert dropped.sum() > 3
        repairs[sack] = np.diff(at)[:3]
    assert repairs["off"].min() >= 20_000_000
    assert repairs["on"].min() < 20_000_000
