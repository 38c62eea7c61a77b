# SPDX-License-Identifier: MIT
"""SWITCH=ns3: a simulated run is valid like any other, its queue is the P4 program's, and a seed decides every byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bufferscope.__main__ import main
from experiments.lab import ns3

pytestmark = pytest.mark.skipif(not ns3.SIMULATOR.exists(), reason="build/simulator is missing: make simulator")
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


def test_slow_link__leaves_its_flows_time_to_connect(tmp_path: Path) -> None:
    """SYNs are far apart there, but only as many as there are flows must fit before the start."""
    words = ("experiment", "SWITCH=ns3", "CC=reno", "FLOWS=2", "RATE=1mbit", "RTT=100ms", "DURATION=3s", "WARMUP=1s")
    assert main([*words, f"RESULTS={tmp_path}"]) == 0
    ledger = json.loads((tmp_path / "latest/rep-1/summary.json").read_text())["ledger"]
    assert ledger["switch_packets"] == ledger["postcards_sent"] == ledger["postcards_rows"] > 100


def test_seed__decides_every_byte(tmp_path: Path) -> None:
    names = ("postcards.bsp", "tcp.bst", "goodput.bsg", "switch.json", "traffic.json")
    first, again, other = (experiment(tmp_path / f"{number}", f"SEED={seed}") for number, seed in enumerate((3, 3, 4)))
    assert all((first / name).read_bytes() == (again / name).read_bytes() for name in names)
    assert (first / names[0]).read_bytes() != (other / names[0]).read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("CLOCK=real",), "SWITCH=ns3 simulates its time; allowed: process, or ns3 with CLOCK=virtual"),
        (("BUF=30kb",), "BUF=30kb is in bytes, the simulated queue compares packets; allowed: p, bdp"),
        (("CC=cdg",), "CC=cdg is no congestion control of ns-3; allowed: bbr, bic, cubic, "),
        (("TRAFFIC=open-loop", "CC="), "is not simulated; allowed: long with SWITCH=ns3"),
    ],
)  # fmt: skip
def test_parameters__that_are_not_simulated_are_refused(
    tmp_path: Path, capsys, words: tuple[str, ...], said: str
) -> None:
    given = [word for word in (*RUN[:2], *words) if not word.endswith("=")]
    assert main([*given, f"RESULTS={tmp_path / 'none'}"]) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
