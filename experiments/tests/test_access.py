# SPDX-License-Identifier: MIT
"""ACCESS in virtual time: long flows with links of their own and on shared links are spaced to the ns. Datagrams of
bursts and of periodic sources have the gaps and the queue of theory.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from analysis.load import load
from analysis.postcards import wire_bytes
from analysis.theory import short_flows
from experiments.lab import virtual as virtual_lab
from experiments.tests.test_virtual import run

pytestmark = pytest.mark.skipif(not virtual_lab.KERNEL.exists(), reason="build/virtual/linux missing: make kernel")
ACCESS_BPS, FULL_FRAME_BYTES = 5_000_000, 1514
LINKS = """
clock: virtual
rate: 250mbit
warmup: 0.5s
duration: 1s
groups:
- {cc: reno, flows: 40, rtt: 20ms, rtt_spread: 7ms, access: 5mbit}
- {cc: reno, flows: 5, rtt: 20ms, access: 5mbit, access_links: 2}
"""


def test_access__spaces_the_packets_of_own_and_shared_links_to_the_ns(tmp_path: Path) -> None:
    (tmp_path / "links.yaml").write_text(LINKS)
    summary = run(tmp_path / "results", f"SPEC={tmp_path / 'links.yaml'}")
    assert summary["valid"], summary["reasons"]
    assert summary["ledger"]["pool_exhausted"] == 0  # type: ignore[index]
    loaded = load(tmp_path / "results/latest/rep-1")
    links = {entry["flow"]: link or -entry["flow"] for entry, link in zip(
        loaded.traffic, loaded.spec["link_of_flows"], strict=True)}  # fmt: skip
    assert len(set(links.values())) == 40 + 2
    cards = loaded.postcards
    for link in set(links.values()):
        rows = np.flatnonzero(np.isin(cards["flow"], [flow for flow in links if links[flow] == link]))
        gaps_ns = np.diff(cards["enqueue_mono_ns"][rows].astype(np.int64))
        least_ns = wire_bytes(cards["packet_bytes"][rows[1:]]) * 8 * 10**9 // ACCESS_BPS
        assert (gaps_ns >= least_ns).all()
        full = cards["packet_bytes"][rows[1:]] == FULL_FRAME_BYTES
        assert (gaps_ns == least_ns)[full].sum() > full.sum() / 2


def test_bursts__come_whole_and_their_queue_is_the_theorys(tmp_path: Path) -> None:
    words = (
        "CLOCK=virtual", "TRAFFIC=open-loop", "SIZES=bursts:14p", "LOAD=0.6", "FLOWS=5", "RATE=80mbit", "RTT=5ms",
        "BUF=1000p", "WARMUP=0.2s", "DURATION=6s",
    )  # fmt: skip
    summary = run(tmp_path, *words)
    assert summary["valid"], summary["reasons"]
    found = summary["open_loop"]
    assert isinstance(found, dict)
    for name in ("mean_depth_packets", "time_mean_depth_packets"):
        depth = found[name]
        assert abs(depth["measured"] - depth["theory"]) < 4 * depth["standard_error"], name
        assert depth["standard_error"] < 0.08 * depth["theory"], name
    expected = short_flows.mean_depth(0.6, short_flows.slow_start_bursts(14))
    assert found["time_mean_depth_packets"]["theory"] == pytest.approx(expected)
    assert found["depth_distance"] < 0.03

    cards = load((tmp_path / "latest").resolve() / "rep-1").postcards
    of_sender = cards["packet_bytes"] == FULL_FRAME_BYTES
    came, flow = cards["enqueue_mono_ns"][of_sender], cards["flow"][of_sender]
    # A reading of the clock takes 1 ns, so packets of a burst are some ns apart; bursts are 1.2 ms apart on average.
    starts = np.flatnonzero(np.r_[True, (np.diff(came) > 100) | (np.diff(flow) != 0)])
    sizes, counts = np.unique(np.diff(starts), return_counts=True)
    whole = np.isin(sizes, (2, 4, 8))
    assert counts[whole].sum() > 0.995 * counts.sum()  # two bursts of a flow may coincide
    assert counts[whole] / counts.sum() == pytest.approx([1 / 3] * 3, abs=4 / 3 / np.sqrt(counts.sum()))


@pytest.mark.long
def test_periodic__gaps_are_exact_and_the_seed_sets_the_phases(tmp_path: Path) -> None:
    words = (
        "CLOCK=virtual", "TRAFFIC=open-loop", "ARRIVALS=periodic", "LOAD=0.5", "FLOWS=8", "RATE=98mbit", "MTU=1201",
        "RTT=10ms", "BUF=20p", "WARMUP=0s", "DURATION=0.2s", "REPS=2",
    )  # fmt: skip  # 1239 bytes on the wire
    run(tmp_path, *words)
    gap_ns = 8 * 1239 * 8 * 10**9 / (0.5 * 98_000_000)
    phases = []
    for name in ("rep-1", "rep-2"):
        repetition = (tmp_path / "latest").resolve() / name
        cards = load(repetition).postcards
        of_sender = cards["packet_bytes"] == 1215
        times, flow = cards["enqueue_mono_ns"][of_sender], cards["flow"][of_sender]
        each = [times[flow == number] for number in np.unique(flow)]
        buckets = json.loads((repetition / "open_loop.json").read_text())["lateness_ns"]
        late = sum(count for edge_ns, count in buckets if edge_ns > 4)
        assert len(each) == 8
        # A time is rounded down to a ns, and a reading of the clock takes 1 ns. A late datagram, which the program
        # counts, lengthens one gap and shortens the next.
        inexact = sum(np.count_nonzero(np.abs(np.diff(times) - gap_ns) >= 4) for times in each)
        assert inexact <= 2 * late <= 8
        phases.append([int(times[0]) - min(int(times[0]) for times in each) for times in each])
    assert phases[0] != phases[1]
