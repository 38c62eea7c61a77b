# SPDX-License-Identifier: MIT
"""ACCESS: each long flow has its own access link, or flows share ACCESS_LINKS links. Tests in virtual time check the
spacing of packets to the ns. Tests of plans check the links of flows, and the memory for the links' queues.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from experiments import announce
from experiments.lab import virtual as virtual_lab
from experiments.resolved import MAX_POOL_BYTES, Resolved
from experiments.run_plan import plan_run
from experiments.sizes import sizes
from experiments.tests.test_resolve import problems, resolved
from experiments.tests.test_virtual import run
from lib.frames import WIRE_EXTRA_BYTES

ACCESS_BPS = 5_000_000
FULL_FRAME_BYTES = 1514
SERIAL_NS = (FULL_FRAME_BYTES + WIRE_EXTRA_BYTES) * 8 * 10**9 // ACCESS_BPS
SHORT = ("CLOCK=virtual", "CC=reno", "RTT=20ms", "ACCESS=5mbit", "WARMUP=0.5s", "DURATION=1s")


def access(**given: object) -> Resolved:
    return resolved(generator="epoll", access="5mbit", **given)


def test_plan__gives_every_flow_its_link_and_its_delay() -> None:
    for spread, with_delay in (("0ns", 0), ("4ms", 4)):
        plan = plan_run(access(flows=5, rtt_spread=spread), 1)
        own = [settings for _, settings in plan.settings.flow_settings]
        assert [settings["access"] for settings in own] == [ACCESS_BPS] * 5
        assert sum("delay" in settings for settings in own) == with_delay
    assert plan.stored_spec["access_bps"] == ACCESS_BPS
    assert plan_run(resolved(flows=5), 1).settings.flow_settings == ()


def test_spec_without_access_links__has_no_key_for_them() -> None:
    assert "access_bps" not in resolved().to_dict()
    for spec in (resolved(), access()):
        assert Resolved.from_dict(spec.to_dict()) == spec
    assert "each flow behind 5mbit:" in announce.headline(access(), Path("x"))
    assert "behind" not in announce.headline(resolved(), Path("x"))


def test_access__may_be_any_rate_of_a_link() -> None:
    assert resolved(access="200mbit", rate="200mbit").access_bps == 200_000_000
    assert resolved(access="1gbit", rate="200mbit").access_bps == 10**9
    assert problems(access="0").keys() == {"ACCESS"}
    assert problems(access="5mbit", traffic="open-loop").keys() == {"ACCESS"}


def test_pool__has_room_for_full_access_queues_up_to_its_bound() -> None:
    without, few, many = resolved(flows=100), access(flows=100), access(flows=10_000)
    room = (few.pool_packets - without.pool_packets) * 7 // 8  # clones have an eighth of the pool
    assert room == pytest.approx(100 * few.access_packets(few.access_bps), abs=2)
    assert few.access_packets(few.access_bps) * few.mtu_bytes > (few.access_buffer_bytes or 0) >= 128 << 10
    assert few.longest_rtt_ns == without.longest_rtt_ns + few.access_packets(few.access_bps) * SERIAL_NS
    assert many.pool_packets > few.pool_packets
    assert many.pool_bytes <= MAX_POOL_BYTES
    assert sizes(few).tcp_mib > sizes(without).tcp_mib


def test_plan__deals_shared_links_to_long_flows() -> None:
    plan = plan_run(access(flows=5, access_links=2, rtt_spread="4ms"), 1)
    own = [settings for _, settings in plan.settings.flow_settings]
    assert [settings["link"] for settings in own] == [1, 2, 1, 2, 1]
    assert not any("access" in settings for settings in own)
    assert plan.settings.shared_links_bps == {1: ACCESS_BPS, 2: ACCESS_BPS}
    assert plan.stored_spec["link_of_flows"] == [1, 2, 1, 2, 1]
    assert plan.stored_spec["links_bps"] == [ACCESS_BPS] * 2
    assert "2 access links of 5mbit" in announce.headline(access(access_links=2), Path("x"))


def test_longest_rtt__has_the_windows_of_all_flows_of_a_shared_link() -> None:
    alone, shared = access(flows=32), access(flows=32, access_links=1)
    idle_ns = resolved(flows=32).longest_rtt_ns
    assert shared.longest_rtt_ns - idle_ns == pytest.approx(32 * (alone.longest_rtt_ns - idle_ns), rel=1e-6)


def test_plan__lets_long_and_finite_flows_share_the_links_of_a_run() -> None:
    mix = {"traffic": "long,finite", "load": "0.2", "sizes": "fixed:14p"}
    plan = plan_run(access(flows=3, access_links=2, **mix), 1)
    assert plan.settings.shared_links_bps == {1: ACCESS_BPS, 2: ACCESS_BPS}
    assert [settings.get("link") for _, settings in plan.settings.flow_settings] == [1, 2, 1, 1, 2]
    assert problems(access="5mbit", **mix).keys() == {"ACCESS"}


def test_plan__gives_each_group_links_of_its_own() -> None:
    long = {"traffic": "long", "cc": "reno", "flows": "3", "access": "5mbit", "access_links": "2"}
    other = {"traffic": "long", "cc": "cubic", "flows": "2", "access": "9mbit"}
    users = {"traffic": "closed-loop", "cc": "reno", "users": "3", "access": "4mbit", "access_links": "1"}
    plan = plan_run(resolved(generator="epoll", groups=[long, other, users, {**long, "flows": "1"}]), 1)
    assert list(plan.settings.shared_links_bps.values()) == [4_000_000, *[ACCESS_BPS] * 4]
    assert plan.stored_spec["link_of_flows"] == [2, 3, 2, 0, 0, 4]
    assert [settings.get("access", 0) for _, settings in plan.settings.flow_settings][3:5] == [9_000_000] * 2


@pytest.mark.skipif(not virtual_lab.KERNEL.exists(), reason="build/virtual/linux missing: make kernel")
def test_access__spaces_the_packets_of_all_flows_of_a_shared_link_to_the_ns(tmp_path: Path) -> None:
    summary: dict[str, Any] = run(tmp_path, *SHORT, "FLOWS=5", "RATE=20mbit", "ACCESS_LINKS=2")
    assert summary["spec"]["link_of_flows"] == [1, 2, 1, 2, 1]
    cards = polars.read_parquet(tmp_path / "latest/rep-1/postcards.parquet").sort("enqueue_mono_ns")
    port = polars.col("five_tuple").cast(polars.String).str.extract(r":(\d+) >").cast(polars.Int64)
    for odd in (0, 1):
        of_link = cards.filter(port % 2 == odd)
        gaps = of_link["enqueue_mono_ns"].cast(polars.Int64).diff().drop_nulls().to_numpy()
        full = gaps[(of_link["packet_bytes"] == FULL_FRAME_BYTES).to_numpy()[1:]]
        assert full.min() == SERIAL_NS
        assert np.count_nonzero(full == SERIAL_NS) > len(full) / 2


@pytest.mark.skipif(not virtual_lab.KERNEL.exists(), reason="build/virtual/linux missing: make kernel")
@pytest.mark.parametrize("words", [("FLOWS=4", "RATE=10mbit"), ("FLOWS=40", "RATE=100mbit", "RTT_SPREAD=7ms")])
def test_access__spaces_the_packets_of_a_flow_to_the_ns(tmp_path: Path, words: tuple[str, ...]) -> None:
    summary: dict[str, Any] = run(tmp_path, *SHORT, *words)
    assert summary["spec"]["access_bps"] == ACCESS_BPS
    cards = polars.read_parquet(tmp_path / "latest/rep-1/postcards.parquet").sort("flow", "enqueue_mono_ns")
    gaps = cards.select(
        gap_ns=polars.col("enqueue_mono_ns").cast(polars.Int64).diff().over("flow"), size="packet_bytes"
    ).drop_nulls()
    least_ns = (gaps["size"].clip(60) + WIRE_EXTRA_BYTES).cast(polars.Int64) * 8 * 10**9 // ACCESS_BPS
    assert (gaps["gap_ns"] >= least_ns).all()
    full = gaps.filter(polars.col("size") == FULL_FRAME_BYTES)["gap_ns"].to_numpy()
    assert full.min() == SERIAL_NS
    assert np.count_nonzero(full == SERIAL_NS) > len(full) / 2
    assert summary["ledger"]["pool_exhausted"] == 0
