# SPDX-License-Identifier: MIT
"""OFFLOADS, NIC_RATE, COALESCE: resolved values, refused values, and their effect on the queue and the sender."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from analysis.raw import load_postcards, load_tcp
from experiments.host import Host
from experiments.lab import virtual as virtual_lab
from experiments.resolved import Resolved
from experiments.run_plan import plan_run
from experiments.tests import resolving
from experiments.tests.test_virtual import raw, run
from runs.spec_file import load_spec
from wire.wire import POSTCARD

HOST = Host(("cubic", "reno"), netem=True, clock="virtual")
PROBE = 1
RATE_BPS, NIC_RATE_BPS, WIRE_BITS = 10**9, 20 * 10**9, 9038 * 8

resolved, problems = partial(resolving.resolved, HOST), partial(resolving.problems, HOST)


def test_resolve__off_is_the_default_and_not_in_the_spec() -> None:
    assert "offloads" not in resolved().to_dict()
    assert resolved(offloads="off").to_dict() == resolved().to_dict()
    assert plan_run(resolved(), 1).settings.nic_rate_bps == 0


def test_resolve__the_nic_is_faster_than_the_bottleneck() -> None:
    assert resolved(offloads="on").offloads == {"nic_rate_bps": 10**10, "coalesce_us": 20}
    assert resolved(offloads="on", rate="10gbit").offloads == {"nic_rate_bps": 4 * 10**10, "coalesce_us": 20}
    given = resolved(offloads="on", nic_rate="300mbit", coalesce="1ms")
    assert given.offloads == {"nic_rate_bps": 3 * 10**8, "coalesce_us": 1000}
    assert Resolved.from_dict(given.to_dict()) == given
    assert plan_run(given, 1).settings.nic_rate_bps == 3 * 10**8
    assert problems(offloads="on", nic_rate="200mbit").keys() == {"NIC_RATE"}


def test_resolve__offloads_need_nics() -> None:
    assert problems(offloads="on", clock="virtual", switch="process").keys() == {"OFFLOADS"}
    assert problems(offloads="on", clock="virtual", switch="ns3").keys() == {"OFFLOADS"}
    assert problems(offloads="on", clock="real").keys() == {"OFFLOADS"}
    assert problems(nic_rate="1gbit", coalesce="20us").keys() == {"NIC_RATE", "COALESCE"}
    assert problems(offloads="on", coalesce="1500ns").keys() == {"COALESCE"}
    assert resolved(offloads="on", clock="real", target="tofino").offloads == {}
    assert problems(offloads="on", clock="real", target="tofino", nic_rate="40gbit").keys() == {"NIC_RATE"}


class Measured(NamedTuple):
    bursts: np.ndarray  # packets of each burst: they reach the queue faster than the bottleneck serves them
    gaps_ns: np.ndarray
    segments_per_ack: float


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    if not virtual_lab.KERNEL.exists():
        pytest.skip("build/virtual/linux missing: make kernel")
    link = ("CLOCK=virtual", "CC=reno", "FLOWS=1", "RATE=1gbit", "RTT=2ms", "MTU=9000", "DURATION=0.15s", "WARMUP=0.1s")
    on = ("OFFLOADS=on", "NIC_RATE=20gbit")
    directories = {}
    for name, words in (("off", ()), ("on", (*on, "COALESCE=1us")), ("merged", (*on, "COALESCE=300us"))):
        results = tmp_path_factory.mktemp(name)
        run(results, *link, *words)
        directories[name] = results
    again = tmp_path_factory.mktemp("again")
    run(again, *link, *on, "COALESCE=300us")
    return directories | {"again": again}


def measured(results: Path) -> Measured:
    repetition = results / "latest/rep-1"
    cards, events = load_postcards(repetition / "postcards.bsp")[0], load_tcp(repetition / "tcp.bst")[0]
    full = cards["packet_bytes"] == cards["packet_bytes"].max()
    data = full & (cards["flags"] & POSTCARD.const["POSTCARD_DROPPED"] == 0)
    gaps_ns = np.diff(np.sort(cards["enqueue_mono_ns"][data].astype(np.int64)))
    ends = np.flatnonzero(np.append(gaps_ns >= WIRE_BITS * 10**9 // RATE_BPS, True))
    acks = int(np.count_nonzero(events["event"] == PROBE))
    return Measured(np.diff(np.append(-1, ends)), gaps_ns, float(np.count_nonzero(data)) / acks)


@pytest.mark.long
def test_burst__is_a_super_segment_at_the_rate_of_the_nic(runs: dict[str, Path]) -> None:
    off, on = measured(runs["off"]), measured(runs["on"])
    assert (off.bursts.max() < 12, np.median(off.bursts)) == (True, 2)  # the ACK of two segments releases two
    assert np.median(on.bursts) == 7  # TCP's super-segment of 64 KiB
    spaced_ns = WIRE_BITS * 10**9 // NIC_RATE_BPS
    close = on.gaps_ns[on.gaps_ns < 10 * spaced_ns]
    assert np.isin(close, (spaced_ns, spaced_ns + 1)).mean() > 0.95
    assert close.min() >= spaced_ns


@pytest.mark.long
def test_gro__merges_the_segments_of_an_interval(runs: dict[str, Path]) -> None:
    """The bottleneck delivers a segment every 72 us: no second segment within 1 us, four within 300 us."""
    on, merged = measured(runs["on"]), measured(runs["merged"])
    assert on.segments_per_ack < 2.2
    assert 3 < merged.segments_per_ack < 6


@pytest.mark.long
def test_run__is_valid_exact_and_the_same_again(runs: dict[str, Path]) -> None:
    for results in runs.values():
        summary = json.loads((results / "latest/rep-1/summary.json").read_text())
        assert summary["valid"], summary["reasons"]
        assert summary["fidelity"]["lateness_us"]["max"] == 0
    assert raw(runs["merged"]) == raw(runs["again"])


@pytest.mark.long
def test_run__records_the_nics(runs: dict[str, Path]) -> None:
    repetition = runs["merged"] / "latest/rep-1"
    assert load_spec(repetition)["offloads"] == {"nic_rate_bps": NIC_RATE_BPS, "coalesce_us": 300}
    hosts = json.loads((repetition / "environment.json").read_text())["hosts"]
    for host in ("sender", "receiver"):
        interface = hosts[host]["interfaces"]["eth0"]
        assert (interface["offloads"]["gso"], interface["offloads"]["gro"]) == ("on", "on")
        assert "rx-usecs: 300" in interface["coalescing"]
    assert hosts["collector"]["interfaces"]["eth0"]["offloads"]["gro"] == "off"
