# SPDX-License-Identifier: MIT
"""SWITCH=ns3: a simulated run is valid by the rules of all runs, its queue acts like the P4 program's, and a seed
determines every byte.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from bufferscope.__main__ import main
from experiments.lab import ns3, virtual

pytestmark = [
    pytest.mark.long,  # `make test` installs no ns-3
    pytest.mark.skipif(not ns3.SIMULATOR.exists(), reason="build/simulator is missing: make simulator"),
]
RUN = (
    "experiment",
    "SWITCH=ns3",
    "CC=cubic:2,reno:1",
    "RATE=20mbit",
    "RTT=10ms",
    "RTT_SPREAD=4ms",
    "DURATION=1s",
    "WARMUP=0.5s",
)


def experiment(results: Path, *words: str) -> Path:
    assert main([*RUN, *words, f"RESULTS={results}"]) == 0
    return (results / "latest").resolve() / "rep-1"


@pytest.mark.parametrize("mode", ["MODE=tail-drop", "MODE=egress-threshold", "MODE=ecn"])
def test_simulated_queue__is_that_of_the_p4_program(tmp_path: Path, mode: str) -> None:
    repetition = experiment(tmp_path, mode)
    summary: dict[str, Any] = json.loads((repetition / "summary.json").read_text())
    assert summary["valid"], summary["reasons"]
    assert summary["idle_rtt_ns"]["min"] == summary["idle_rtt_ns"]["expected"]
    assert summary["marks" if mode == "MODE=ecn" else "drops"] > 0
    assert main(["replay", f"RUN={repetition}", mode if mode == "MODE=ecn" else "BUF=1bdp"]) == 0
    assert json.loads((repetition / "whatif-1/summary.json").read_text())["same_as_the_run"] is True


@pytest.mark.usefixtures("undrawn")
def test_slow_link__leaves_its_flows_time_to_connect(tmp_path: Path) -> None:
    """On a slow link the interval between SYNs is long. One SYN per flow must fit before the start of the traffic."""
    words = ("experiment", "SWITCH=ns3", "CC=reno", "FLOWS=2", "RATE=1mbit", "RTT=100ms", "DURATION=3s", "WARMUP=1s")
    assert main([*words, f"RESULTS={tmp_path}"]) == 0
    ledger = json.loads((tmp_path / "latest/rep-1/summary.json").read_text())["ledger"]
    assert ledger["switch_packets"] == ledger["postcards_sent"] == ledger["postcards_rows"] > 100


FINITE = (
    "TRAFFIC=finite", "CC=reno", "RATE=20mbit", "RTT=20ms", "LOAD=0.6", "SIZES=fixed:14p", "BUF=200p", "DURATION=4s",
    "WARMUP=0.5s",
)  # fmt: skip
# Flows with different RTTs and access links, and the TCP options of old papers, which both stacks have.
ALL_APART = ("RTT_SPREAD=30ms", "ACCESS=10mbit", "ACCESS_LINKS=3", "PROFILE=paper")


def flows_of(repetition: Path) -> pl.DataFrame:
    return pl.read_parquet(repetition / "flows.parquet").sort("line")


@pytest.mark.long
@pytest.mark.usefixtures("undrawn")
@pytest.mark.skipif(not virtual.KERNEL.exists(), reason="build/virtual/linux missing: make kernel")
@pytest.mark.parametrize("more", [(), ALL_APART], ids=["alike", "apart"])
def test_finite_flows__are_those_of_linux_and_take_as_long(tmp_path: Path, more: tuple[str, ...]) -> None:
    """ns-3 and Linux have the same flows on the same paths at the same times. Mean completion times differ because the
    TCP stacks do: 73.1 and 73.3 ms if all flows are alike.
    """
    repetitions: list[Path] = []
    for name, words in (("ns3", ("SWITCH=ns3",)), ("linux", ("CLOCK=virtual",))):
        assert main(["experiment", *words, *FINITE, *more, f"RESULTS={tmp_path / name}"]) == 0
        repetitions.append((tmp_path / name / "latest").resolve() / "rep-1")
    ns3_flows, linux_flows = map(flows_of, repetitions)
    for column in ("line", "group", "src_port", "dst_port", "size_bytes", *(["path"] if more else [])):
        assert ns3_flows[column].equals(linux_flows[column]), column
    assert (ns3_flows["acked_bytes"] == ns3_flows["size_bytes"]).filter(ns3_flows["end"] == "finished").all()
    summaries = [json.loads((repetition / "summary.json").read_text()) for repetition in repetitions]
    offsets = [
        flows["syn_mono_ns"] - summary["traffic_start_mono_ns"]
        for flows, summary in zip((ns3_flows, linux_flows), summaries, strict=True)
    ]
    assert (offsets[0] - offsets[1]).abs().max() < 10_000  # in virtual time each reading of the clock takes 1 ns
    ours, linux = (summary["finite_flows"][0] for summary in summaries)
    assert ours["offered_fraction"] == pytest.approx(linux["offered_fraction"], rel=0.02)
    assert ours["completion_s"]["mean"] == pytest.approx(linux["completion_s"]["mean"], rel=0.02)
    assert summaries[0]["drops"] == summaries[1]["drops"] == 0


@pytest.mark.usefixtures("undrawn")
def test_users__think_from_the_end_of_their_flows(tmp_path: Path) -> None:
    words = (
        "SWITCH=ns3", "TRAFFIC=long,closed-loop", "CC=cubic", "FLOWS=1", "FINITE_CC=reno", "USERS=20", "RATE=20mbit",
        "RTT=10ms", "SIZES=pareto:30000b:1.5", "THINK=exponential:100ms", "WARMUP=0.5s", "DURATION=4s", "MODE=ecn",
    )  # fmt: skip
    assert main(["experiment", *words, f"RESULTS={tmp_path}"]) == 0
    repetition = (tmp_path / "latest").resolve() / "rep-1"
    summary = json.loads((repetition / "summary.json").read_text())
    (group,) = summary["finite_flows"]
    assert abs(group["littles_law"]["cycle_error_fraction"]) < 0.05
    assert group["finished"] > 100
    assert summary["marks"] > 0
    assert summary["ledger"]["flows_begun"] == summary["ledger"]["flow_rows"]
    flows = flows_of(repetition)
    assert flows.filter(pl.col("end") == "long").height == 1
    ended = flows.filter(pl.col("user") == 1).sort("syn_mono_ns")
    assert (ended["syn_mono_ns"][1:] > ended["ended_mono_ns"][:-1]).all()


@pytest.mark.usefixtures("undrawn")
def test_seed__decides_every_byte(tmp_path: Path) -> None:
    names = ("postcards.bsp", "tcp.bst", "goodput.bsg", "switch.json", "traffic.json")
    first, again, other = (experiment(tmp_path / f"{number}", f"SEED={seed}") for number, seed in enumerate((3, 3, 4)))
    assert all((first / name).read_bytes() == (again / name).read_bytes() for name in names)
    assert (first / names[0]).read_bytes() != (other / names[0]).read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("CLOCK=real",), "SWITCH=ns3 simulates its time; allowed: process, or ns3 with CLOCK=virtual"),
        (("BUF=30kb",), "BUF=30kb is in bytes; the simulated queue compares packets; allowed: p, bdp"),
        (("CC=cdg",), "CC=cdg is not a congestion control of ns-3; allowed: bbr, bic, cubic, "),
        (("TRAFFIC=open-loop", "CC="), "which is not simulated; allowed: long, finite, closed-loop"),
    ],
)  # fmt: skip
def test_parameters__that_are_not_simulated_are_refused(
    tmp_path: Path, capsys, words: tuple[str, ...], said: str
) -> None:
    given = [word for word in (*RUN[:2], *words) if not word.endswith("=")]
    assert main([*given, f"RESULTS={tmp_path / 'none'}"]) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
