# SPDX-License-Identifier: MIT
"""Finite flows in virtual time: their records agree with the postcards, 98 % within 5 ns. The seed decides every byte.
Loads are as given, Little's law holds, and every flow is in the ledger.
"""

import hashlib
import itertools
import json
import math
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from analysis.derive import derive
from analysis.load import load
from experiments.host import Host
from experiments.lab import virtual as virtual_lab
from experiments.tests import resolving
from experiments.tests.test_virtual import run
from hosts.traffic import draws

virtual = pytest.mark.skipif(not virtual_lab.KERNEL.exists(), reason="build/virtual/linux missing: make kernel")
HOST = Host(("cubic", "reno"), netem=True, clock="virtual", kernel="a test's kernel")
resolved = partial(resolving.resolved, HOST, clock="virtual")
RTT_NS = 20_000_000
FINITE = (
    "CLOCK=virtual", "TRAFFIC=finite", "CC=reno", "RATE=50mbit", "RTT=20ms", "LOAD=0.5", "SIZES=fixed:14p",
    "WARMUP=0.5s", "DURATION=2s",
)  # fmt: skip
USERS = (
    "CLOCK=virtual", "TRAFFIC=long,closed-loop", "CC=cubic", "FLOWS=2", "FINITE_CC=reno", "USERS=30", "RATE=50mbit",
    "RTT=20ms", "SIZES=pareto:30000b:1.5", "THINK=exponential:100ms", "WARMUP=1s", "DURATION=6s",
)  # fmt: skip


def test_resolve__load_counts_every_bit_of_a_connection() -> None:
    spec = resolved(traffic="finite", cc="reno", rate="100mbit", load="0.8", sizes="fixed:14p", mtu="1500")
    (group,) = spec.transfers
    assert group.sizes == {"name": "fixed", "value": 14 * 1448.0}
    # 14 segments of 1538 bytes; a SYN of 98 bytes, and three segments without data, each of 90 bytes
    assert group.mean_wire_bytes == pytest.approx(14 * 1538 + 98 + 3 * 90)
    assert group.offered_bps() == pytest.approx(0.8e8)
    assert spec.groups == ()
    assert spec.flows == 0


def test_resolve__mixes_have_groups_of_each_kind() -> None:
    spec = resolved(traffic="closed-loop,long", cc="cubic:2,reno:1", finite_cc="reno", users="7", think="fixed:2s")
    assert spec.traffic == "long,closed-loop"
    assert [(group.cc, group.flows) for group in spec.groups] == [("cubic", 2), ("reno", 1)]
    (group,) = spec.transfers
    assert (group.kind, group.users, group.mean_think_ns, group.think_from) == ("closed-loop", 7, 2e9, "end")
    assert type(spec).from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


def test_resolve__a_file_of_sizes_is_copied_into_the_spec(tmp_path: Path) -> None:
    file = tmp_path / "sizes.txt"
    file.write_text("1000 0.5  # half are small\n\n100000 1\n")
    (group,) = resolved(traffic="finite", cc="reno", sizes=f"file:{file}").transfers
    assert group.sizes == {"name": "empirical", "points": [[1000.0, 0.5], [100000.0, 1.0]]}
    assert group.mean_size_bytes == draws.distribution(group.sizes).mean == pytest.approx(500 + 50_500 / 2)


def repetition(results: Path) -> Path:
    return (results / "latest").resolve() / "rep-1"


def flows_of(results: Path) -> pl.DataFrame:
    return pl.read_parquet(repetition(results) / "flows.parquet")


@pytest.fixture(scope="module")
def finite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("finite")
    run(results, *FINITE, drawn=True)
    return results


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("users")
    run(results, *USERS)
    return results


@virtual
def test_records__agree_with_the_times_of_packets_and_the_delays_of_links(finite: Path) -> None:
    """Each reading of the clock takes 1 ns of virtual time. Another program that runs in the same ns, such as the
    runner taking a sample, delays a few records by a us or two.
    """
    flows = flows_of(finite).filter(pl.col("end") == "finished")
    loaded = load(repetition(finite))
    cards = loaded.postcards
    departed = cards["enqueue_mono_ns"] + cards["sojourn_ns"]
    syn = (cards["tcp_flags"] & 2) != 0
    of_flow = {number: row for row, number in zip(np.flatnonzero(syn), cards["flow"][syn], strict=True)}
    rows = np.array([of_flow[number] for number in flows["flow"]])
    column = {name: flows[name].to_numpy() for name in flows.columns if name.endswith("_mono_ns")}
    late_ns = {
        "SYN": cards["enqueue_mono_ns"][rows] - column["syn_mono_ns"],
        "SYN-ACK": column["connected_mono_ns"] - departed[rows] - RTT_NS,
        "first data": column["first_data_arrival_mono_ns"] - column["connected_mono_ns"],
        # The FIN is on the last segment, because 14 segments do not fit into the first window.
        "last ACK": column["ended_mono_ns"] - column["last_data_departure_mono_ns"] - RTT_NS,
    }
    for name, values in late_ns.items():
        assert values.min() >= 0, name
        assert np.count_nonzero(values > 5) <= 0.02 * len(values), name
        assert values.max() < 3000, name
    assert (flows["acked_bytes"] == flows["size_bytes"]).all()
    assert len(flows) > 200


@virtual
def test_finite__offer_their_load_and_are_all_in_the_ledger(finite: Path) -> None:
    summary = json.loads((repetition(finite) / "summary.json").read_text())
    assert summary["valid"], summary["reasons"]
    (group,) = summary["finite_flows"]
    drawn = group["measured"]
    assert abs(drawn / (2 * group["flows_per_s"]) - 1) < 1e-9
    # Poisson: the standard deviation of the number of flows in the window is the square root of the mean.
    planned = 0.5 * 50e6 / (8 * (14 * 1538 + 368)) * 2
    assert abs(drawn - planned) < 4 * math.sqrt(planned)
    assert group["offered_fraction"] == pytest.approx(drawn / planned * 0.5, rel=0.05)
    ledger = summary["ledger"]
    assert ledger["flows_begun"] == ledger["flow_records"] == ledger["flow_rows"] == group["begun"]
    assert (ledger["flows_refused"], ledger["flows_reset"]) == (0, 0)
    assert summary["goodput_bps"] == pytest.approx(drawn * 14 * 1448 * 8 / 2, rel=0.06)
    assert summary["application_goodput_bps"] == pytest.approx(summary["goodput_bps"], rel=0.06)
    queue = group["slow_start_queue"]  # 14 segments behind an initial window of 10
    assert queue["bursts_packets"] == [10, 4]
    depth = queue["time_mean_depth_data_packets"]
    assert 0 < depth["measured"] < summary["queue_depth_packets"]["time_mean"]
    # ACK-clocked bursts arrive more slowly than back to back, so the queue is shorter.
    assert 0.5 * depth["theory"] < depth["measured"] < depth["theory"] + 4 * depth["standard_error"]
    page = (repetition(finite) / "report.html").read_text()
    assert "Finite flows" in page
    assert "(bursts of 10, 4)" in page
    assert (repetition(finite) / "figures/completion_times.png").exists()
    assert not (repetition(finite) / "figures/window_distribution.png").exists()


@virtual
def test_users__obey_littles_law_beside_long_flows(users: Path) -> None:
    summary = json.loads((repetition(users) / "summary.json").read_text())
    assert summary["valid"], summary["reasons"]
    (group,) = summary["finite_flows"]
    law = group["littles_law"]
    assert abs(law["cycle_error_fraction"]) < 0.01
    assert law["mean_flow_by_open_flows_s"] == pytest.approx(law["mean_flow_of_ended_s"], rel=0.2)
    assert law["mean_think_s"] == pytest.approx(0.1, rel=0.15)
    assert [flow["cc"] for flow in summary["flows"]] == ["cubic", "cubic"]
    flows = flows_of(users)
    assert flows.filter(pl.col("end") == "long").height == 2
    assert set(flows["user"].drop_nulls()) == set(range(1, 31))
    assert flows.filter(pl.col("user") == 1).sort("syn_mono_ns")["syn_mono_ns"].is_sorted()


@virtual
def test_congestion_events__are_the_drops_more_than_two_rtts_apart(users: Path) -> None:
    cards = pl.read_parquet(repetition(users) / "joined.parquet").filter("dropped").sort("enqueue_mono_ns")
    of_flow = {number: rows["enqueue_mono_ns"].to_list() for (number,), rows in cards.group_by("flow")}
    rows = flows_of(users).filter(pl.col("drops") > 1, pl.col("srtt_us").is_not_null())
    for row in rows.iter_rows(named=True):
        times = of_flow[row["flow"]]
        later = (after - before > 2000 * row["srtt_us"] for before, after in itertools.pairwise(times))
        assert row["congestion_events"] == 1 + sum(later)
    assert max(rows["congestion_events"].to_list()) > 4  # of a long flow
    assert (rows["congestion_events"] < rows["drops"]).any()


@pytest.mark.long
@virtual
def test_seed__decides_every_byte(users: Path, tmp_path: Path) -> None:
    run(tmp_path, *USERS)
    for name in ("postcards.bsp", "tcp.bst", "flows.bsf", "goodput.bsg", "traffic.json"):
        once, again = ((repetition(results) / name).read_bytes() for results in (users, tmp_path))
        assert hashlib.sha256(once).digest() == hashlib.sha256(again).digest(), name


@virtual
def test_damage__of_the_records_is_a_reason(finite: Path, tmp_path: Path) -> None:
    copy = tmp_path / "rep-1"
    shutil.copytree(repetition(finite), copy)
    raw = (copy / "flows.bsf").read_bytes()
    (copy / "flows.bsf").write_bytes(raw[: len(raw) // 2])
    summary, damage = derive(copy, force=True)
    assert not summary["valid"]
    assert any("flows.bsf" in line for line in damage)
    assert any("could be read from flows.bsf" in reason for reason in summary["reasons"])
