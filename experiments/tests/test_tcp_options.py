# SPDX-License-Identifier: MIT
"""The keys of the hosts' TCP: resolved, refused, set on hosts, and their effect on the wire."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.raw import load_postcards, load_tcp
from experiments.host import Host
from experiments.lab import virtual as virtual_lab
from experiments.resolved import Resolved
from experiments.tests import resolving
from experiments.tests.tcp_lab import SACK_PERMITTED, SHORT_SEGMENTS
from experiments.tests.test_virtual import run
from hosts.tune.tcp_options import LINUX, PAPER
from runs import run_table
from runs.spec_file import load_spec
from softswitch.tests.user_mode import boot
from wire.wire import POSTCARD

HOST = Host(("cubic", "reno"), netem=True, clock="virtual")
NEEDS_KERNEL = pytest.mark.skipif(not virtual_lab.KERNEL.exists(), reason="build/virtual/linux missing: make kernel")
SACK = 5  # kind of the TCP option
PROBE = 1

resolved, problems = partial(resolving.resolved, HOST), partial(resolving.problems, HOST)


def test_resolve__linux_is_the_default_and_not_in_the_spec() -> None:
    assert "tcp" not in resolved().to_dict()
    own = {"initcwnd": "10", "acks": "delayed", "sack": "on", "comp_sack_slack": "100us", "comp_sack_nr": "44"}
    assert resolved(profile="linux", **own).to_dict() == resolved().to_dict()
    assert resolved(switch="ns3", cc="reno", **own).tcp is None


def test_resolve__a_profile_and_its_options_one_by_one_are_the_same() -> None:
    paper = resolved(profile="paper")
    assert paper.tcp == PAPER
    one_by_one = {name: value for name, value in PAPER.items() if value != LINUX[name]}
    del one_by_one["comp_sack_nr"]  # has no meaning without SACK
    assert resolved(**one_by_one).tcp == PAPER | {"comp_sack_nr": 44}
    assert Resolved.from_dict(paper.to_dict()) == paper
    mixed = resolved(profile="paper", sack="on", initcwnd="4").tcp
    assert mixed == PAPER | {"sack": "on", "initcwnd": 4}
    assert resolved(comp_sack_slack="0ns").tcp == LINUX | {"comp_sack_slack_ns": 0}


def test_resolve__without_sack_there_is_neither_rack_nor_tlp() -> None:
    assert resolved(sack="off").tcp == LINUX | {"sack": "off", "rack": "off", "tlp": "off"}
    assert problems(sack="off", rack="on", comp_sack_nr="3") == {
        "RACK": "needs SACK, which SACK=off switches off; allowed: with SACK=on only",
        "COMP_SACK_NR": "needs SACK, which SACK=off switches off; allowed: with SACK=on only",
    }
    assert problems(profile="paper", tlp="on")["TLP"].startswith("needs SACK, which PROFILE=paper switches off")


def test_resolve__keys_are_refused_where_they_have_no_meaning() -> None:
    assert problems(traffic="open-loop", profile="paper", initcwnd="3").keys() == {"PROFILE", "INITCWND"}
    assert problems(initcwnd="0", acks="all", comp_sack_slack="2s").keys() == {"INITCWND", "ACKS", "COMP_SACK_SLACK"}


def test_resolve__ns3_has_the_options_of_its_own_tcp() -> None:
    ns3 = {"switch": "ns3", "cc": "reno"}
    assert resolved(profile="paper", **ns3).tcp == PAPER
    without = {"rack": "off", "tlp": "off", "frto": "off", "comp_sack_nr": 0}
    assert resolved(initcwnd="4", **ns3).tcp == LINUX | without | {"initcwnd": 4}
    assert problems(rack="on", comp_sack_slack="0ns", comp_sack_nr="7", initcwnd="4", **ns3) == {
        "RACK": "is an option of Linux's TCP; ns-3 lacks it; allowed: RACK=off with SWITCH=ns3",
        "COMP_SACK_SLACK": "is an option of Linux's TCP; ns-3 lacks it; allowed: no COMP_SACK_SLACK with SWITCH=ns3",
        "COMP_SACK_NR": "is an option of Linux's TCP; ns-3 lacks it; allowed: COMP_SACK_NR=0 with SWITCH=ns3",
    }


def test_run_table__has_every_option() -> None:
    summary: dict[str, Any] = {"valid": True, "reasons": [], "utilization": {}}
    here = run_table.Place("a/rep-1", None, 1, 1, "all", None)

    def row(**given: object) -> dict[str, Any]:
        return run_table.row(summary | {"spec": resolved(**given).to_dict()}, {}, here)

    for given, profile, values in (
        ({}, "linux", LINUX),
        ({"profile": "paper"}, "paper", PAPER),
        ({"initcwnd": "3"}, "mixed", LINUX | {"initcwnd": 3}),
        ({"traffic": "open-loop"}, None, dict.fromkeys(LINUX)),
        ({"switch": "ns3", "cc": "reno", "profile": "paper"}, "paper", PAPER),
        ({"switch": "ns3", "cc": "reno"}, None, dict.fromkeys(LINUX)),
    ):
        cells = row(**given)
        assert {name: cells[name] for name in ("profile", *LINUX)} == {"profile": profile, **values}


@pytest.fixture(scope="module")
def exchanged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if not virtual_lab.KERNEL.exists():
        pytest.skip("build/virtual/linux missing: make kernel")
    directory = tmp_path_factory.mktemp("tcp")
    sizes = ("ports=2", "packets=4096", "frame_bytes=1518", "flows=16")
    console = boot(directory, "experiments.tests.tcp_lab", *(f"bufferscope_switch.{size}" for size in sizes))
    assert (directory / "output").exists(), console
    found: dict[str, Any] = json.loads((directory / "output").read_text())
    assert "failed" not in found, found["failed"]
    return found


class Connection:
    """The packets of one exchange that passed the sender's interface."""

    def __init__(self, found: dict[str, Any], case: str, exchange: str) -> None:
        self.packets = found["cases"][case][exchange]
        self.data = [packet for packet in self.packets if packet["sent"] and packet["data_bytes"]]
        self.acks = [packet for packet in self.packets if not packet["sent"] and not packet["syn"]]

    @property
    def first_burst(self) -> int:
        return sum(packet["ns"] < self.acks[0]["ns"] for packet in self.data)

    @property
    def repaired_after_ms(self) -> float:
        """Time from the first lost segment to its retransmission."""
        sent: dict[int, int] = {}
        for packet in self.data:
            if packet["seq"] in sent:
                return (packet["ns"] - sent[packet["seq"]]) / 1e6
            sent[packet["seq"]] = packet["ns"]
        raise AssertionError("nothing was sent again")

    @property
    def sack_permitted(self) -> list[bool]:
        return [SACK_PERMITTED in packet["options"] for packet in self.packets if packet["syn"]]

    @property
    def sacks(self) -> int:
        return sum(SACK in packet["options"] for packet in self.acks)


def test_initcwnd__is_the_first_burst(exchanged: dict[str, Any]) -> None:
    bursts = {case: Connection(exchanged, case, "long").first_burst for case in exchanged["cases"]}
    assert (bursts["linux"], bursts["initcwnd"], bursts["paper"], bursts["again"]) == (10, 3, 2, 10)


def test_acks__each_acknowledges_every_segment(exchanged: dict[str, Any]) -> None:
    for case in ("acks", "paper"):
        connection = Connection(exchanged, case, "long")
        assert len(connection.acks) == len(connection.data) > 200
    for case in ("linux", "again"):  # not 0.5: at the start of a connection Linux acknowledges each segment
        connection = Connection(exchanged, case, "long")
        assert len(connection.acks) < 0.75 * len(connection.data)


def test_sack__off_is_not_offered_and_not_accepted(exchanged: dict[str, Any]) -> None:
    for case in exchanged["cases"]:
        assert Connection(exchanged, case, "long").sack_permitted == [case != "paper"] * 2


def test_tlp__off_lets_a_lost_tail_wait_for_the_timeout(exchanged: dict[str, Any]) -> None:
    assert len(Connection(exchanged, "linux", "tail").data) == SHORT_SEGMENTS + 2
    waits = {case: Connection(exchanged, case, "tail").repaired_after_ms for case in ("linux", "tlp", "again")}
    assert waits["linux"] < 100
    assert waits["tlp"] > 200
    assert waits["again"] < 100


def test_rack__off_waits_for_the_timeout_after_one_sack(exchanged: dict[str, Any]) -> None:
    """Only one segment arrives after the lost ones. RACK retransmits after an RTT. Without RACK the sender waits for
    the timeout, because three duplicate ACKs never come.
    """
    waits = {case: Connection(exchanged, case, "middle").repaired_after_ms for case in ("tlp", "rack")}
    assert waits["tlp"] < 50
    assert waits["rack"] > 200


def test_comp_sack_nr__zero_sends_every_sack(exchanged: dict[str, Any]) -> None:
    assert Connection(exchanged, "comp_sack", "lossy").sacks > 1.5 * Connection(exchanged, "linux", "lossy").sacks


def test_moderation__frames_lost_in_a_device_that_goes_down_are_counted(exchanged: dict[str, Any]) -> None:
    found = exchanged["moderation"]
    assert (found["after"], found["dropped"], found["refused"]) == ("next", 1, True)


def test_undo__leaves_the_routes_as_they_were(exchanged: dict[str, Any]) -> None:
    for route in exchanged["routes"]:
        assert not {"initcwnd", "quickack"} & set(route)


SHORT = ("CLOCK=virtual", "CC=reno", "FLOWS=1", "RATE=50mbit", "RTT=10ms", "DURATION=0.4s", "WARMUP=0ns")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The repetitions of two whole runs, by profile."""
    directories = {}
    for profile in ("linux", "paper"):
        results = tmp_path_factory.mktemp(profile)
        run(results, *SHORT, f"PROFILE={profile}")
        directories[profile] = results / "latest/rep-1"
    return directories


def measured(repetition: Path) -> tuple[int, float]:
    """Data packets that reach the queue in the first RTT (10 ms), and segments per ACK."""
    cards = load_postcards(repetition / "postcards.bsp")[0]
    events = load_tcp(repetition / "tcp.bst")[0]
    data = (cards["packet_bytes"] > 1000) & (cards["flags"] & POSTCARD.const["POSTCARD_DROPPED"] == 0)
    arrivals_ns = np.sort(cards["enqueue_mono_ns"][data].astype(np.int64))
    acks = events["event"] == PROBE
    burst = int(np.searchsorted(arrivals_ns, arrivals_ns[0] + 10_000_000))
    return burst, len(arrivals_ns) / np.count_nonzero(acks)


@NEEDS_KERNEL
def test_run__with_a_profile_behaves_so_from_end_to_end(runs: dict[str, Path]) -> None:
    linux, paper = (measured(runs[profile]) for profile in ("linux", "paper"))
    assert (linux[0], paper[0]) == (10, 2)
    assert 0.9 < paper[1] < 1.2 < 1.5 < linux[1]


@NEEDS_KERNEL
def test_run__records_what_was_set(runs: dict[str, Path]) -> None:
    assert "tcp" not in load_spec(runs["linux"])
    assert load_spec(runs["paper"])["tcp"] == PAPER
    hosts = json.loads((runs["paper"] / "environment.json").read_text())["hosts"]
    for host in ("sender", "receiver"):
        settings = hosts[host]["sysctls"]
        assert [settings[f"net.ipv4.tcp_{name}"] for name in ("sack", "recovery", "early_retrans", "frto")] == ["0"] * 4
        assert any("initcwnd 2 quickack 1" in route for route in hosts[host]["routes"])
