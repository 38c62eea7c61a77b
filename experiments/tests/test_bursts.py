# SPDX-License-Identifier: MIT
"""UDP bursts of slow start in virtual time: bursts arrive whole, and the queue agrees with theory. Periodic datagrams:
the gaps are exact, and the same seed gives each flow the same first time.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from analysis.load import load
from analysis.theory import short_flows
from experiments.host import Host
from experiments.lab import virtual as virtual_lab
from experiments.resolve import resolve
from experiments.resolved import Resolved
from experiments.run_plan import plan_run
from experiments.tests.test_virtual import run
from hosts.traffic import open_loop

virtual = pytest.mark.skipif(not virtual_lab.KERNEL.exists(), reason="build/virtual/linux missing: make kernel")
BURSTS = (
    "CLOCK=virtual", "TRAFFIC=open-loop", "SIZES=bursts:14p", "LOAD=0.6", "FLOWS=5", "RATE=80mbit", "RTT=5ms",
    "BUF=1000p", "WARMUP=0.2s", "DURATION=6s",
)  # fmt: skip


def test_resolve__bursts_reach_the_program_that_sends_them() -> None:
    host = Host(("cubic",), netem=True, clock="virtual", kernel="a test's kernel")
    spec = resolve({"clock": "virtual", "traffic": "open-loop", "sizes": "bursts:14p"}, host)
    assert (spec.sizes, spec.name) == ("bursts:14p", "open-loop-bursts-14p")
    assert Resolved.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    assert spec.packets == resolve({"clock": "virtual", "traffic": "open-loop", "sizes": "fixed"}, host).packets
    plan = open_loop.parse(plan_run(spec, 1).traffic.options)
    words = open_loop.arguments(plan.group, "10.0.0.2", 0, plan.duration_ns, Path("report"))
    assert words[words.index("--sizes") + 1] == "bursts"
    assert words[words.index("--flow-packets") + 1] == "14"


@virtual
def test_bursts__come_whole_and_their_queue_is_the_theorys(tmp_path: Path) -> None:
    summary = run(tmp_path, *BURSTS)
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
    of_sender = cards["packet_bytes"] == 1514
    came, flow = cards["enqueue_mono_ns"][of_sender], cards["flow"][of_sender]
    # A reading of the clock takes 1 ns, so packets of a burst are some ns apart; bursts are 1.2 ms apart on average.
    starts = np.flatnonzero(np.r_[True, (np.diff(came) > 100) | (np.diff(flow) != 0)])
    sizes, counts = np.unique(np.diff(starts), return_counts=True)
    whole = np.isin(sizes, (2, 4, 8))
    assert counts[whole].sum() > 0.995 * counts.sum()  # two bursts of a flow may coincide
    assert counts[whole] / counts.sum() == pytest.approx([1 / 3] * 3, abs=4 / 3 / np.sqrt(counts.sum()))


@pytest.mark.long
@virtual
def test_periodic__gaps_are_exact_and_the_same_seed_gives_the_same_phases(tmp_path: Path) -> None:
    words = (
        "CLOCK=virtual", "TRAFFIC=open-loop", "ARRIVALS=periodic", "LOAD=0.5", "FLOWS=8", "RATE=98mbit", "MTU=1201",
        "RTT=10ms", "BUF=20p", "WARMUP=0s", "DURATION=0.2s",
    )  # fmt: skip  # 1239 bytes on the wire
    runs, late = [], []
    for place, seed in (("first", 3), ("again", 3), ("other", 4)):
        directory = tmp_path / place
        directory.mkdir()
        summary = run(directory, *words, f"SEED={seed}")
        assert summary["valid"], summary["reasons"]
        repetition = (directory / "latest").resolve() / "rep-1"
        cards = load(repetition).postcards
        of_sender = cards["packet_bytes"] == 1215
        times, flow = cards["enqueue_mono_ns"][of_sender], cards["flow"][of_sender]
        runs.append([times[flow == number] for number in np.unique(flow)])
        buckets = json.loads((repetition / "open_loop.json").read_text())["lateness_ns"]
        late.append(sum(count for edge_ns, count in buckets if edge_ns > 4))
    gap_ns = 8 * 1239 * 8 * 10**9 / (0.5 * 98_000_000)
    for each, late_datagrams in zip(runs, late, strict=True):
        assert len(each) == 8
        # A time is rounded down to a ns, and a reading of the clock takes 1 ns. A late datagram, which the program
        # counts, lengthens one gap and shortens the next.
        inexact = sum(np.count_nonzero(np.abs(np.diff(times) - gap_ns) >= 4) for times in each)
        assert inexact <= 2 * late_datagrams <= 8
    first, again, other = ([int(times[0]) - min(int(t[0]) for t in each) for times in each] for each in runs)
    assert first == again
    assert first != other
