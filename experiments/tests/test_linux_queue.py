# SPDX-License-Identifier: MIT
"""QUEUE: Linux's qdiscs at the bottleneck. The runs are virtual: each has a whole ledger, an exact link and the same
bytes each time, and pfifo drops what our own queue drops.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from analysis.read.raw import load_postcards
from experiments.plan.run_plan import plan_run
from experiments.tests.resolving import problems, resolved
from experiments.tests.test_virtual import command, raw, run
from wire import wire

CARD = wire.POSTCARD.const
SHORT = ("CLOCK=virtual", "CC=cubic:2,reno:2", "RATE=50mbit", "RTT=4ms", "DURATION=1s", "WARMUP=0.2s")
QDISCS = {
    "linux:fq_codel ecn": "on",
    "linux:cake rtt 4ms": "on",
    "linux:pfifo limit 15": "off",
    "linux:bfifo limit=20000": "off",
    "linux:red limit 60000 min 10000 max 30000 avpkt 1500 bandwidth 50mbit probability 0.1 ecn": "on",
    "linux:codel target 1ms interval 10ms": "off",
    "linux:pie target 2ms": "off",
    "linux:fq_pie": "off",
    "linux:fq limit 20": "off",
    "linux:sfq limit 20 perturb 1": "off",
    "linux:cake bandwidth 40mbit": "off",
}


@pytest.mark.parametrize(
    ("queue", "packets"),
    [
        ("linux:codel target=5ms   interval 100ms", 1001),
        ("linux:pfifo limit=30", 31),
        ("linux:pfifo limit 10 limit 30", 31),
        ("linux:bfifo limit 300kb", 204),
        ("linux:bfifo", 1001),
        ("linux:red limit 151400 avpkt 1000", 101),
        ("linux:fq_codel", 10241),
    ],
)
def test_buffer__is_the_qdiscs_limit_and_the_packet_on_the_link(queue: str, packets: int) -> None:
    spec = resolved(queue=queue)
    assert (spec.buffer_packets, spec.buffer_given) == (packets, f"{packets}p")
    qdisc = plan_run(spec, 1).settings.qdisc
    assert qdisc is not None
    assert qdisc.words[1:] == tuple(queue.replace("=", " ").split()[1:])


def test_theory__holds_for_tail_drop_alone() -> None:
    assert resolved(queue="linux:pfifo limit 30").no_theory is None
    assert resolved(queue="linux:pie").no_theory


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"queue": "linux:codel", "buf": "30p"}, "BUF"),
        ({"queue": "linux:codel", "mode": "ecn"}, "MODE"),
        ({"queue": "linux:codel", "p4": "template"}, "P4"),
        ({"queue": "linux:codel", "clock": "real"}, "QUEUE"),
        ({"queue": "linux:codel", "switch": "process"}, "QUEUE"),
        ({"queue": "linux:codel", "switch": "ns3"}, "QUEUE"),
        ({"queue": "linux:codel limit 0x20"}, "QUEUE"),
        ({"queue": "linux:bfifo limit 1.5kb"}, "QUEUE"),
    ],
)
def test_keys__of_our_own_queue_and_of_other_kernels_are_refused(given: dict[str, str], key: str) -> None:
    assert [*problems(**given)] == [key]


@pytest.mark.long
@pytest.mark.virtual
@pytest.mark.parametrize(("queue", "ecn"), QDISCS.items())
def test_run__is_valid_exact_and_the_same_each_time(tmp_path: Path, queue: str, ecn: str) -> None:
    digests = []
    for directory in (tmp_path / "first", tmp_path / "second"):
        directory.mkdir()
        summary = run(directory, *SHORT, f"QUEUE={queue}", f"ECN={ecn}")
        assert summary["valid"], summary["reasons"]
        assert summary["fidelity"]["rate_error_fraction"] == 0  # type: ignore[index]
        digests.append(raw(directory / "latest/rep-1"))
    assert digests[0] == digests[1]
    cards, *_ = load_postcards(directory / "latest/rep-1/postcards.bsp", 0)
    lost = (cards["flags"] & CARD["POSTCARD_DROPPED"]) != 0
    marked = (cards["flags"] & CARD["POSTCARD_CE_MARKED"]) != 0
    assert (marked if ecn == "on" else lost).any()


@pytest.mark.long
@pytest.mark.virtual
def test_pfifo__drops_the_packets_that_our_own_queue_drops(tmp_path: Path) -> None:
    same = []
    for name, words in (("linux", "QUEUE=linux:pfifo limit=15"), ("own", "BUF=16p")):
        (tmp_path / name).mkdir()
        run(tmp_path / name, *SHORT, words)
        cards, *_ = load_postcards(tmp_path / name / "latest/rep-1/postcards.bsp", 0)
        same.append({key: column[:].tolist() for key, column in cards.items() if key not in ("policy", "threshold")})
    assert any(flags & CARD["POSTCARD_DROPPED"] for flags in same[0]["flags"])
    assert same[0] == same[1]


@pytest.mark.long
@pytest.mark.virtual
@pytest.mark.parametrize(
    ("queue", "words"),
    [
        ("linux:codel target never", 'Illegal "target"'),
        ("linux:red limit 100", "RED: Required parameter (limit, avpkt) is missing"),
    ],
)
def test_argument__that_tc_refuses_ends_the_run_with_tcs_words(tmp_path: Path, queue: str, words: str) -> None:
    asked = command(tmp_path, *SHORT, f"QUEUE={queue}", drawn=False)
    done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error")]
    assert words in line
    assert queue in line
