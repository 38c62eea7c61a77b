# SPDX-License-Identifier: MIT
"""The largest number of long flows: their ports, their memory, and whole runs in virtual and in real time."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from experiments import run_plan
from experiments.host import Host
from experiments.lab import virtual as virtual_lab
from experiments.resolve import MOST_IPERF3_FLOWS
from experiments.sizes import sizes
from experiments.tests import resolving
from experiments.tests.conftest import faults
from experiments.tests.test_resolve import resolved
from experiments.tests.test_run import ended, software, started
from experiments.tests.test_virtual import run
from experiments.traffic import FIRST_CLIENT_PORT, LAST_CLIENT_PORT, MAX_FLOWS


@pytest.mark.parametrize(("generator", "flows"), [("epoll", MAX_FLOWS), ("iperf3", MOST_IPERF3_FLOWS)])
def test_ports__are_distinct_and_reserved(generator: str, flows: int) -> None:
    for seed in range(20):
        spec = resolved(flows=flows, generator=generator, seed=seed)
        plan = run_plan.plan_run(spec, 1)
        ports = {flow.src_port for flow in plan.traffic.flows}
        assert len(ports) == flows
        assert min(ports) >= FIRST_CLIENT_PORT
        assert max(ports) <= LAST_CLIENT_PORT
        assert not ports & {flow.dst_port for flow in plan.traffic.flows}
    assert plan.setup["client_ports"] == f"{FIRST_CLIENT_PORT}-{LAST_CLIENT_PORT}"


def test_iperf3__has_no_room_for_more_streams() -> None:
    host = Host(("cubic", "reno"), netem=True)
    for given in ({"flows": MOST_IPERF3_FLOWS + 1}, {"cc": f"reno:{MOST_IPERF3_FLOWS},cubic:1"}):
        (problem,) = resolving.problems(host, clock="real", **given).values()
        assert problem.endswith(f"256 MiB; allowed: {MOST_IPERF3_FLOWS} flows, or GENERATOR=epoll")
        assert resolving.resolved(host, clock="real", generator="epoll", **given).flows == MOST_IPERF3_FLOWS + 1


def test_memory__of_10000_flows_is_less_than_4_gib() -> None:
    path = {"generator": "epoll", "rate": "10gbit", "rtt": "100ms", "mtu": 1500}
    one, many = (sizes(resolved(flows=flows, **path)) for flows in (1, 10_000))
    assert many.machine_mib < 4096
    assert 10_000 * 32 < (many.machine_mib - one.machine_mib) * 1024 < 10_000 * 128  # KiB per flow
    assert many.tcp_mib < many.machine_mib


def test_unsent_bytes__are_a_share_of_the_window_and_bounded_for_all_flows_together() -> None:
    path = {"generator": "epoll", "rate": "1435mbit", "rtt": "80ms", "mtu": 1500, "buf": "1050pkt"}
    one, few, many = (resolved(flows=flows, clock="virtual", **path) for flows in (1, 4, 10_000))
    assert one.unsent_bytes is None
    assert few.unsent_bytes == 2 * -(-(few.bdp_packets + few.buffer_packets) // 4) * 1500
    assert many.unsent_bytes == 32 << 10
    assert resolved(flows=4, clock="real", **path).unsent_bytes is None
    assert run_plan.plan_run(few, 1).setup["tune_unsent_bytes"] == few.unsent_bytes
    assert "tune_unsent_bytes" not in run_plan.plan_run(one, 1).setup


@pytest.mark.long
@pytest.mark.skipif(not virtual_lab.KERNEL.exists(), reason="build/virtual/linux missing: make kernel")
def test_memory__holds_flows_that_once_had_the_whole_link(tmp_path: Path) -> None:
    """When send buffers held two of a flow's largest windows, these flows exhausted the machine's 586 MiB after 8 s."""
    words = ("CLOCK=virtual", "CC=reno", "PROFILE=linux", "FLOWS=500", "RATE=800mbit", "RTT=90ms", "RTT_SPREAD=20ms")
    summary = run(tmp_path, *words, "MTU=1500", "BUF=291pkt", "START_SPREAD=10s", "WARMUP=10s", "DURATION=2s")
    assert faults(summary) == []


@pytest.mark.long
@pytest.mark.skipif(not virtual_lab.KERNEL.exists(), reason="build/virtual/linux missing: make kernel")
def test_runs__of_10000_flows_are_valid_and_one_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    words = ("CLOCK=virtual", "CC=reno", f"FLOWS={MAX_FLOWS}", "RATE=1gbit", "RTT=20ms", "RTT_SPREAD=5ms")
    digests = []
    for name in ("once", "again"):
        summary: dict[str, Any] = run(tmp_path / name, *words, "WARMUP=0s", "DURATION=0.2s")
        assert len(summary["flows"]) == MAX_FLOWS
        assert summary["ledger"]["tcp_events_lost"] == 0
        assert summary["utilization"]["mean"] > 0.99
        raw = [tmp_path / name / "latest/rep-1" / file for file in ("postcards.bsp", "tcp.bst", "goodput.bsg")]
        digests.append([hashlib.sha256(path.read_bytes()).hexdigest() for path in raw])
    assert digests[0] == digests[1]


class TestRealTime:
    pytestmark = [*software, pytest.mark.serial, pytest.mark.long]  # noqa: RUF012

    @pytest.mark.parametrize(("generator", "flows"), [("iperf3", 1000), ("epoll", 10_000)])
    def test_no_flow_and_no_record_is_lost(self, tmp_path: Path, generator: str, flows: int) -> None:
        words = ("CLOCK=real", "CC=reno", f"FLOWS={flows}", f"GENERATOR={generator}", "RATE=100mbit", "RTT=100ms")
        # If all 10,000 flows started at once, they would send 100,000 packets in the first RTT.
        spread = ("START_SPREAD=5s",) if generator == "epoll" else ()
        status, _, errors = ended(started(tmp_path, *words, *spread, "WARMUP=2s", "DURATION=3s"))
        assert status in (0, 2), errors
        summary = json.loads((tmp_path / "latest/rep-1/summary.json").read_text())
        assert faults(summary) == []
        assert len(summary["flows"]) == flows
        assert summary["utilization"]["mean"] > 0.9
