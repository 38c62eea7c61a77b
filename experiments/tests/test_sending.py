# SPDX-License-Identifier: MIT
"""How senders send, seen at the switch and in the trace of runs in virtual time: PACING, WINDOW, OFFLOADS and
COALESCE. (Options of TCP, access links: test_groups.py, test_transfers.py.)
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from analysis.read.raw import load_postcards, load_tcp
from experiments.lab import virtual as virtual_lab
from experiments.tests.test_virtual import run
from model.experiment import Offloads
from runs.spec_file import load_spec
from virtual import offers
from wire.wire import TCP_RECORD

pytestmark = [
    pytest.mark.virtual,
    pytest.mark.long,
]
PROBE = TCP_RECORD.const["TCP_EVENT_PROBE"]
WINDOW = 32
UNPACED_SEGMENTS = 10  # Linux paces from a connection's 11th segment on (tcp_update_skb_after_send in tcp_output.c)
# Only bursts queue, and nothing is lost: the window is 32 packets, and the BDP is 163.
PACED = ("RATE=100mbit", "RTT=20ms", "DURATION=1s", "WARMUP=0.5s", f"WINDOW={WINDOW}p")
NICS = ("CC=reno", "FLOWS=1", "RATE=1gbit", "RTT=2ms", "MTU=9000", "DURATION=0.15s", "WARMUP=0.1s", "OFFLOADS=on",
        "NIC_RATE=20gbit")  # fmt: skip
WORDS = {
    "exact": (*PACED, "CC=cubic", "FLOWS=1", "PACING=exact"),
    "linux": (*PACED, "CC=reno", "FLOWS=1", "PACING=linux"),
    "poisson": (*PACED, "CC=reno", "FLOWS=1", "PACING=poisson", "REPS=2"),
    "fq": (*PACED, "CC=reno", "FLOWS=1", "PACING=fq"),
    "on": (*NICS, "COALESCE=1us"),
    "merged": (*NICS, "COALESCE=300us"),
}


class RunsOnDemand(dict[str, Path]):
    """The first repetition of each entry of WORDS. A run is made when a test first asks for it."""

    def __init__(self, make_directory: Callable[[str], Path]) -> None:
        super().__init__()
        self.make_directory = make_directory

    def __missing__(self, name: str) -> Path:
        results = self.make_directory(name)
        summary = run(results, "CLOCK=virtual", *WORDS[name])
        assert summary["valid"], summary["reasons"]
        self[name] = results / "latest/rep-1"
        return self[name]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return RunsOnDemand(tmp_path_factory.mktemp)


def arrivals_ns(repetition: Path) -> np.ndarray:
    """The arrivals of full packets at the switch."""
    cards = load_postcards(repetition / "postcards.bsp")[0]
    return np.sort(cards["enqueue_mono_ns"][cards["packet_bytes"] == cards["packet_bytes"].max()].astype(np.int64))


def gaps_ns(repetition: Path) -> np.ndarray:
    """The gaps between full packets, without the first packets, which are never paced."""
    return np.diff(arrivals_ns(repetition))[UNPACED_SEGMENTS:]


def pace_ns(repetition: Path) -> np.ndarray:
    """srtt/W in ns, for each ACK at which the congestion window is W packets."""
    tcp = load_tcp(repetition / "tcp.bst")[0]
    probes = (tcp["event"] == PROBE) & (tcp["cwnd_packets"] == WINDOW)
    return np.asarray(1000 * tcp["srtt_us"][probes].astype(np.int64) / WINDOW)


def in_flight(repetition: Path) -> dict[int, int]:
    """The most packets of each flow in flight."""
    tcp = load_tcp(repetition / "tcp.bst")[0]
    count = {name: tcp[name].astype(np.int64) for name in ("packets_out", "sacked_out", "lost_out", "retrans_out")}
    flight = count["packets_out"] - count["sacked_out"] - count["lost_out"] + count["retrans_out"]
    return {int(flow): int(flight[tcp["flow"] == flow].max()) for flow in np.unique(tcp["flow"])}


def test_exact__spreads_the_window_over_the_round_trip(runs: dict[str, Path]) -> None:
    gaps, pace = gaps_ns(runs["exact"]), pace_ns(runs["exact"])
    assert len(gaps) > 1500
    assert np.median(gaps) == pytest.approx(np.median(pace), rel=0.02)
    assert gaps.min() >= 0.98 * pace.min()  # also after a late packet
    assert in_flight(runs["exact"]) == {0: WINDOW}
    spec = load_spec(runs["exact"])
    assert (spec.shared.pacing, spec.shared.window_packets) == ("exact", WINDOW)


def test_poisson__draws_exponential_gaps_of_one_window_per_rtt_for_each_repetition(runs: dict[str, Path]) -> None:
    repetitions = (runs["poisson"], runs["poisson"].parent / "rep-2")
    for repetition in repetitions:
        unit = gaps_ns(repetition) / np.median(pace_ns(repetition))
        assert len(unit) > 1500
        assert unit.mean() == pytest.approx(1, abs=4 / len(unit) ** 0.5)
        assert stats.kstest(unit, "expon").pvalue > 0.01
        counts = np.histogram(unit.cumsum(), np.arange(0, unit.sum(), 10))[0]
        assert counts.var() / counts.mean() == pytest.approx(1, abs=4 * (2 / len(counts)) ** 0.5)
        # In about every other RTT more than one window is in flight; the bound is two windows.
        assert WINDOW < max(in_flight(repetition).values()) <= 2 * WINDOW
    first, second = (gaps_ns(repetition)[:100] for repetition in repetitions)
    assert not np.array_equal(first, second)


def test_linux_and_fq__send_at_twice_the_window_per_rtt_before_a_loss(runs: dict[str, Path]) -> None:
    """Linux halves the gap behind a late segment, and an ACK releases two segments at once. With fq only a late packet
    halves the next gap, so the test compares sums of two gaps.
    """
    assert np.percentile(gaps_ns(runs["linux"]), 25) == pytest.approx(np.median(pace_ns(runs["linux"])) / 4, rel=0.05)
    gaps, wire_ns = gaps_ns(runs["fq"]), 1538 * 8 * 10  # a packet at 100 Mb/s
    assert gaps.min() > wire_ns
    assert np.median(gaps[1:] + gaps[:-1]) == pytest.approx(np.median(pace_ns(runs["fq"])), rel=0.05)
    assert in_flight(runs["linux"]) == in_flight(runs["fq"]) == {0: WINDOW}


def test_window__binds_every_congestion_control_with_losses(tmp_path: Path) -> None:
    names = offers.congestion_controls(virtual_lab.KERNEL)
    mix = ",".join(f"{name}:1" for name in names)
    link = ("RATE=100mbit", "RTT=20ms", "BUF=40p", "DURATION=3s", "WARMUP=0.5s")
    assert run(tmp_path, "CLOCK=virtual", f"CC={mix}", *link, "WINDOW=20p")["drops"]
    most = in_flight(tmp_path / "latest/rep-1")
    assert len(most) == len(names)
    assert max(most.values()) == np.median(list(most.values())) == 20, most


def bursts(repetition: Path, wire_ns: int) -> np.ndarray:
    """The packets of each burst: they reach the queue faster than the bottleneck serves them."""
    gaps = np.diff(arrivals_ns(repetition))
    return np.diff(np.append(-1, np.flatnonzero(np.append(gaps >= wire_ns, True))))


def segments_per_ack(repetition: Path) -> float:
    acks = np.count_nonzero(load_tcp(repetition / "tcp.bst")[0]["event"] == PROBE)
    return float(len(arrivals_ns(repetition)) / acks)


def test_offloads__send_super_segments_at_the_rate_of_the_nic_and_merge_what_comes(runs: dict[str, Path]) -> None:
    """The bottleneck delivers a segment every 72 us: no second segment within 1 us, four within 300 us."""
    wire_bits = 9038 * 8
    assert np.median(bursts(runs["on"], wire_bits)) == 7  # TCP's super-segment of 64 KiB
    gaps, spaced_ns = np.diff(arrivals_ns(runs["on"])), wire_bits // 20
    close = gaps[gaps < 10 * spaced_ns]
    assert np.isin(close, (spaced_ns, spaced_ns + 1)).mean() > 0.95
    assert close.min() >= spaced_ns
    assert segments_per_ack(runs["on"]) < 2.2
    assert 3 < segments_per_ack(runs["merged"]) < 6
    assert load_spec(runs["merged"]).offloads == Offloads(nic_rate_bps=20 * 10**9, coalesce_us=300)
    hosts = json.loads((runs["merged"] / "environment.json").read_text())["hosts"]
    for host, offload in (("sender", "on"), ("receiver", "on"), ("collector", "off")):
        interface = hosts[host]["interfaces"]["eth0"]
        assert interface["offloads"]["gro"] == offload
        assert ("rx-usecs: 300" in interface["coalescing"]) == (offload == "on")
    summary = json.loads((runs["merged"] / "summary.json").read_text())
    assert summary["fidelity"]["lateness_us"]["max"] == 0
