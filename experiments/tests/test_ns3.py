# SPDX-License-Identifier: MIT
"""SWITCH=ns3: a simulated run is valid by the rules of all runs, and its queue acts like the P4 program's."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from bufferscope.__main__ import main
from experiments.lab import ns3

pytestmark = [
    pytest.mark.long,  # `make test` installs no ns-3
    pytest.mark.skipif(not ns3.SIMULATOR.exists(), reason="build/simulator is missing: make simulator"),
]
MIX = ("CC=cubic:2,reno:1", "RATE=20mbit", "RTT=10ms", "RTT_SPREAD=4ms", "DURATION=1s", "WARMUP=0.5s")
FINITE = (
    "TRAFFIC=finite", "CC=reno", "RATE=20mbit", "RTT=20ms", "LOAD=0.6", "SIZES=fixed:14p", "BUF=200p", "DURATION=4s",
    "WARMUP=0.5s", "RTT_SPREAD=30ms", "ACCESS=10mbit", "ACCESS_LINKS=3", "PROFILE=paper",
)  # fmt: skip


def experiment(results: Path, *words: str, switch: str = "SWITCH=ns3") -> tuple[Path, dict[str, Any]]:
    """The repetition of a run, and its summary."""
    assert main(["experiment", switch, *words, f"RESULTS={results}"]) == 0
    repetition = (results / "latest").resolve() / "rep-1"
    summary: dict[str, Any] = json.loads((repetition / "summary.json").read_text())
    return repetition, summary


def test_simulated_queue__is_that_of_the_p4_program(tmp_path: Path) -> None:
    for mode, fate in (("tail-drop", "drops"), ("egress-threshold", "drops"), ("ecn", "marks")):
        repetition, summary = experiment(tmp_path / mode, *MIX, f"MODE={mode}")
        assert summary["valid"], summary["reasons"]
        assert summary["idle_rtt_ns"]["min"] == summary["idle_rtt_ns"]["expected"]
        assert summary[fate] > 0
        assert main(["replay", f"RUN={repetition}", "MODE=ecn" if mode == "ecn" else "BUF=1bdp"]) == 0
        assert json.loads((repetition / "whatif-1/summary.json").read_text())["same_as_the_run"] is True


@pytest.mark.usefixtures("undrawn")
def test_slow_link__leaves_its_flows_time_to_connect(tmp_path: Path) -> None:
    """On a slow link the interval between SYNs is long. One SYN per flow must fit before the start of the traffic."""
    _, summary = experiment(tmp_path, "CC=reno", "FLOWS=2", "RATE=1mbit", "RTT=100ms", "DURATION=3s", "WARMUP=1s")
    ledger = summary["ledger"]
    assert ledger["switch_packets"] == ledger["postcards_sent"] == ledger["postcards_rows"] > 100


@pytest.mark.usefixtures("undrawn")
@pytest.mark.virtual
def test_finite_flows__are_those_of_linux_and_take_as_long(tmp_path: Path) -> None:
    """ns-3 and Linux have the same flows on the same paths at the same times, with the TCP options of old papers. Mean
    completion times differ because the TCP stacks do.
    """
    (simulated, ours), (recorded, linux) = (
        experiment(tmp_path / name, *FINITE, switch=switch)
        for name, switch in (("ns3", "SWITCH=ns3"), ("linux", "CLOCK=virtual"))
    )
    flows = [pl.read_parquet(path / "flows.parquet").sort("line") for path in (simulated, recorded)]
    for column in ("line", "group", "src_port", "dst_port", "size_bytes", "path"):
        assert flows[0][column].equals(flows[1][column]), column
    assert (flows[0]["acked_bytes"] == flows[0]["size_bytes"]).filter(flows[0]["end"] == "finished").all()
    starts = [
        each["syn_mono_ns"] - summary["traffic_start_mono_ns"]
        for each, summary in zip(flows, (ours, linux), strict=True)
    ]
    assert (starts[0] - starts[1]).abs().max() < 10_000  # in virtual time each reading of the clock takes 1 ns
    group, of_linux = ours["finite_flows"][0], linux["finite_flows"][0]
    assert group["offered_fraction"] == pytest.approx(of_linux["offered_fraction"], rel=0.02)
    assert group["completion_s"]["mean"] == pytest.approx(of_linux["completion_s"]["mean"], rel=0.02)
    assert ours["drops"] == linux["drops"] == 0
