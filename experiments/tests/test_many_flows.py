# SPDX-License-Identifier: MIT
"""The largest number of long flows in whole runs, in virtual and in real time."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.spec.traffic import MAX_FLOWS
from experiments.tests.conftest import faults
from experiments.tests.test_run import ended, software, started
from experiments.tests.test_virtual import run


@pytest.mark.long
@pytest.mark.virtual
def test_virtual__run_of_10000_flows_is_whole(tmp_path: Path) -> None:
    words = ("CLOCK=virtual", "CC=reno", f"FLOWS={MAX_FLOWS}", "RATE=1gbit", "RTT=20ms", "RTT_SPREAD=5ms")
    summary: dict[str, Any] = run(tmp_path, *words, "WARMUP=0s", "DURATION=0.2s")
    assert faults(summary) == []
    assert len(summary["flows"]) == MAX_FLOWS
    assert summary["ledger"]["tcp_events_lost"] == 0
    assert summary["utilization"]["mean"] > 0.99


class TestRealTime:
    pytestmark = [*software, pytest.mark.serial, pytest.mark.long]  # noqa: RUF012

    @pytest.mark.parametrize(("generator", "flows"), [("iperf3", 300), ("epoll", MAX_FLOWS)])
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
