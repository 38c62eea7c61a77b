# SPDX-License-Identifier: MIT
"""As many long flows as FLOWS may ask for: their ports, their memory, and a whole run in virtual time."""

from pathlib import Path
from typing import Any

import pytest

from experiments import run_plan
from experiments.lab import virtual as virtual_lab
from experiments.sizes import sizes
from experiments.tests.test_resolve import resolved
from experiments.tests.test_virtual import run
from experiments.traffic import FIRST_CLIENT_PORT, LAST_CLIENT_PORT, MAX_FLOWS


@pytest.mark.parametrize("generator", ["epoll", "iperf3"])
def test_ports__are_distinct_and_reserved(generator: str) -> None:
    for seed in range(20):
        spec = resolved(flows=MAX_FLOWS, generator=generator, seed=seed)
        plan = run_plan.plan_run(spec, 1)
        ports = {flow.src_port for flow in plan.traffic.flows}
        assert len(ports) == MAX_FLOWS
        assert min(ports) >= FIRST_CLIENT_PORT
        assert max(ports) <= LAST_CLIENT_PORT
        assert not ports & {flow.dst_port for flow in plan.traffic.flows}
    assert plan.setup["client_ports"] == f"{FIRST_CLIENT_PORT}-{LAST_CLIENT_PORT}"


def test_memory__of_10000_flows_is_less_than_4_gib() -> None:
    path = {"generator": "epoll", "rate": "10gbit", "rtt": "100ms", "mtu": 1500}
    one, many = (sizes(resolved(flows=flows, **path)) for flows in (1, 10_000))
    assert many.machine_mib < 4096
    assert 10_000 * 32 < (many.machine_mib - one.machine_mib) * 1024 < 10_000 * 128  # KiB per flow
    assert many.tcp_mib < many.machine_mib


@pytest.mark.long
@pytest.mark.skipif(not virtual_lab.KERNEL.exists(), reason="build/virtual/linux missing: make kernel")
def test_run__of_10000_flows_is_valid(tmp_path: Path) -> None:
    words = ("CLOCK=virtual", "CC=reno", f"FLOWS={MAX_FLOWS}", "RATE=1gbit", "RTT=20ms", "RTT_SPREAD=5ms")
    summary: dict[str, Any] = run(tmp_path, *words, "WARMUP=0s", "DURATION=0.2s")
    assert len(summary["flows"]) == MAX_FLOWS
    assert summary["ledger"]["tcp_events_lost"] == 0
    assert summary["utilization"]["mean"] > 0.99
