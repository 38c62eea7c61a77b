# SPDX-License-Identifier: MIT
"""Finite flows in virtual time, with several RTTs and access links: their records agree with the postcards, 98 % within
10 ns. Loads are as given, and on an access link no gap between packets is too short by even 1 ns.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from analysis.measure.access_links import access_reasons
from analysis.measure.finite_flow_paths import access_link_of_flows
from analysis.read.load import load
from analysis.read.postcards import wire_bytes
from experiments.tests.test_virtual import run
from wire.wire import POSTCARD

pytestmark = [
    pytest.mark.long,
    pytest.mark.virtual,
]
RST = 4
RTTS_NS = [20_000_000, 50_000_000, 120_000_000]
FINITE = (
    "CLOCK=virtual", "TRAFFIC=finite", "CC=reno", "RATE=50mbit", "RTTS=50ms,20ms,120ms", "LOAD=0.5",
    "SIZES=fixed:14p", "WARMUP=0.5s", "DURATION=2s",
)  # fmt: skip
LINKS = (
    "CLOCK=virtual", "TRAFFIC=closed-loop", "CC=reno", "USERS=60", "RATE=10mbit", "RTTS=20ms,50ms", "ACCESS=1mbit",
    "ACCESS_LINKS=1000", "SERVERS=1000", "PATH_OF=transfer", "SIZES=fixed:20000b", "THINK=exponential:200ms", "BUF=40p",
    "WARMUP=0.5s", "DURATION=3s",
)  # fmt: skip
Recorded = tuple[Path, dict[str, Any]]


def repetition(results: Path) -> Path:
    return (results / "latest").resolve() / "rep-1"


def recorded(results: Path, words: tuple[str, ...], *, drawn: bool = False) -> Recorded:
    """The repetition of a valid run, and its summary."""
    summary = run(results, *words, drawn=drawn)
    assert summary["valid"], summary["reasons"]
    return repetition(results), summary


def flows_of(directory: Path) -> pl.DataFrame:
    return pl.read_parquet(directory / "flows.parquet")


@pytest.fixture(scope="module")
def finite(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(tmp_path_factory.mktemp("finite"), FINITE, drawn=True)


def test_records__agree_with_the_times_of_packets_and_the_delays_of_links(finite: Recorded) -> None:
    """Each reading of the clock takes 1 ns of virtual time. Another program that runs in the same ns, such as the
    runner taking a sample, delays a few records by a us or two.
    """
    flows = flows_of(finite[0]).filter(pl.col("end") == "finished", pl.col("retransmits") == 0)
    cards = load(finite[0]).postcards
    departed = cards["enqueue_mono_ns"] + cards["sojourn_ns"]
    syn = (cards["tcp_flags"] & 2) != 0
    of_flow = {number: row for row, number in zip(np.flatnonzero(syn), cards["flow"][syn], strict=True)}
    rows = np.array([of_flow[number] for number in flows["flow"]])
    column = {name: flows[name].to_numpy() for name in flows.columns if name.endswith("_ns")}
    late_ns = {
        "SYN": cards["enqueue_mono_ns"][rows] - column["syn_mono_ns"],
        "SYN-ACK": column["connected_mono_ns"] - departed[rows] - column["base_rtt_ns"],
        "first data": column["first_data_arrival_mono_ns"] - column["connected_mono_ns"],
        # The FIN is on the last segment, because 14 segments do not fit into the first window.
        "last ACK": column["ended_mono_ns"] - column["last_data_departure_mono_ns"] - column["base_rtt_ns"],
    }
    for name, values in late_ns.items():
        assert values.min() >= 0, name
        assert np.count_nonzero(values > 10) <= 0.02 * len(values), name
        assert values.max() < 3000, name
    assert (flows["acked_bytes"] == flows["size_bytes"]).all()
    per_class = flows.group_by("base_rtt_ns").len().sort("base_rtt_ns")
    assert per_class["base_rtt_ns"].to_list() == RTTS_NS
    assert len(flows) > 200
    counts = per_class["len"].to_list()
    assert max(counts) - min(counts) <= 6 * len(RTTS_NS)  # dealt in turn; long ones may not have finished


def test_finite__offer_their_load(finite: Recorded) -> None:
    directory, summary = finite
    assert (directory / "figures/completion_times.png").exists()
    (group,) = summary["finite_flows"]
    drawn = group["measured"]
    # Poisson: the standard deviation of the number of flows in the window is the square root of the mean.
    planned = 0.5 * 50e6 / (8 * (14 * 1538 + 368)) * 2
    assert abs(drawn - planned) < 4 * math.sqrt(planned)
    assert group["offered_fraction"] == pytest.approx(drawn / planned * 0.5, rel=0.05)
    assert summary["goodput_bps"] == pytest.approx(drawn * 14 * 1448 * 8 / 2, rel=0.1)
    assert [entry["rtt_ns"] for entry in group["by_rtt"]] == RTTS_NS
    assert sum(entry["measured"] for entry in group["by_rtt"]) == drawn


def test_thousand_links__space_the_packets_of_flows_that_draw_them(tmp_path: Path) -> None:
    directory, _ = recorded(tmp_path, LINKS)
    loaded = load(directory)
    cards = loaded.postcards
    link = access_link_of_flows(loaded)[cards["flow"]]
    order = np.lexsort((cards["enqueue_mono_ns"], link))
    same = (np.diff(link[order]) == 0) & (link[order][1:] > 0)
    gaps_ns = np.diff(cards["enqueue_mono_ns"][order].astype(np.int64))[same]
    least_ns = (wire_bytes(cards["packet_bytes"][order[1:]]) * 8_000)[same]
    assert (gaps_ns >= least_ns).all()
    assert (gaps_ns == least_ns).sum() > 0.2 * len(gaps_ns)
    flows = flows_of(directory)
    assert flows["path"].n_unique() > 200
    per_user = flows.group_by("user").agg(pl.len(), paths=pl.col("path").n_unique()).filter(pl.col("len") > 3)
    assert min(per_user["paths"].to_list()) > 1
    assert access_reasons(loaded, cards) == []
    (group,) = loaded.experiment.groups
    slow = group.model_copy(update={"access_bps": (group.access_bps or 0) // 2})
    slower = loaded.experiment.model_copy(update={"groups": (slow,)})
    (reason,) = access_reasons(replace(loaded, experiment=slower), cards)
    assert "packets arrived too soon after the previous packet of their access link" in reason


def test_connections_whose_reset_was_lost__end_while_the_switch_counts(tmp_path: Path) -> None:
    """If sinks ended after the switch's count, the run would have more postcards than packets."""
    words = (
        "CLOCK=virtual", "TRAFFIC=closed-loop", "CC=reno", "USERS=300", "RATE=50mbit", "ACCESS=10mbit",
        "ACCESS_LINKS=20", "RTTS=30ms,66ms,110ms", "SIZES=pareto:80000b:1.5", "THINK=exponential:0.2s", "INITCWND=2",
        "RACK=off", "TLP=off", "BUF=6p", "WARMUP=0.5s", "DURATION=1.2s",
    )  # fmt: skip
    directory, _ = recorded(tmp_path, words)
    cards = load(directory).postcards
    dropped = (cards["flags"] & POSTCARD.const["POSTCARD_DROPPED"]) != 0
    assert (dropped & ((cards["tcp_flags"] & RST) != 0)).any()
