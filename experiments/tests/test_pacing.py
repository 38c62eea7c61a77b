# SPDX-License-Identifier: MIT
"""PACING and WINDOW: resolved, refused, and their effect on the switch and the trace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from analysis.raw import load_postcards, load_tcp
from experiments.host import Host
from experiments.lab import virtual as virtual_lab
from experiments.pacing import PACING
from experiments.resolve import resolve
from experiments.resolved import Resolved
from experiments.run_plan import plan_run
from experiments.tests.test_virtual import raw, run
from lib.errors import SpecError
from runs.spec_file import load_spec
from virtual import offers
from wire.wire import TCP_RECORD

HOST = Host(("cubic", "reno"), netem=True, clock="virtual")
WINDOW = 32
UNPACED_SEGMENTS = 10  # Linux paces from a connection's 11th segment on (tcp_update_skb_after_send in tcp_output.c)
TOLERANCE = 0.02
# Only bursts queue, and nothing is lost: the window is 32 packets, and the BDP is 163.
LINK = ("CLOCK=virtual", "FLOWS=1", "RATE=100mbit", "RTT=20ms", "DURATION=1s", "WARMUP=0.5s")


def resolved(**given: object) -> Resolved:
    return resolve(given, HOST)


def problems(**given: object) -> dict[str, str]:
    with pytest.raises(SpecError) as failure:
        resolve(given, HOST)
    return {error.key: error.problem for error in failure.value.errors}


def test_resolve__without_them_spec_and_plan_are_as_before() -> None:
    plain = resolved()
    assert not {"pacing", "window_packets"} & plain.to_dict().keys()
    assert resolved(pacing="off").to_dict() == plain.to_dict()
    plan = plan_run(plain, 1)
    assert not {"pacing", "window_segments"} & plan.traffic.options.keys()
    assert "tune_pacing_percent" not in plan.setup


def test_resolve__both_reach_the_traffic_program_and_the_hosts() -> None:
    given = resolved(pacing="exact", window="32p", traffic="long,finite")
    assert (given.pacing, given.window_packets) == ("exact", WINDOW)
    assert Resolved.from_dict(given.to_dict()) == given
    plan = plan_run(given, 1)
    assert (plan.traffic.options["pacing"], plan.traffic.options["window_segments"]) == (True, WINDOW)
    assert plan.setup["tune_pacing_percent"] == 100
    assert "tune_pacing_percent" not in plan_run(resolved(pacing="linux"), 1).setup
    gaps = [dict(plan_run(resolved(pacing=pacing), 1).kernel_parameters) for pacing in PACING]
    assert gaps == [{}, {}, {"tcp_pacing_gaps": "1"}, {"tcp_pacing_gaps": "2"}, {}]


def test_resolve__fq_is_a_setting_of_the_sender() -> None:
    plan = plan_run(resolved(pacing="fq"), 1)
    assert plan.setup["sender_qdisc"] == "fq"
    assert "pacing" not in plan.traffic.options
    assert "sender_qdisc" not in plan_run(resolved(pacing="linux"), 1).setup
    groups = [{"cc": "reno", "flows": "1", "pacing": "fq"}, {"cc": "cubic", "flows": "1"}]
    assert "allowed: fq for all" in problems(groups=groups)["GROUPS"]


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"clock": "real", "target": "tofino"},
        {"traffic": "open-loop"},
    ],
)
def test_resolve__pacing_and_window_need_linux_in_the_lab(elsewhere: dict[str, object]) -> None:
    assert problems(pacing="linux", window="32p", **elsewhere).keys() == {"PACING", "WINDOW"}
    assert resolved(pacing="off", **elsewhere).pacing is None


def test_resolve__ns3_paces_and_bounds_windows_itself() -> None:
    ns3 = {"clock": "virtual", "switch": "ns3", "cc": "reno"}
    given = resolved(pacing="exact", window="32p", **ns3)
    assert (given.pacing, given.window_packets) == ("exact", WINDOW)
    assert problems(pacing="poisson", **ns3) == {"PACING": "needs Linux; allowed: off, linux, exact with SWITCH=ns3"}


@pytest.mark.parametrize("generator", ["iperf3", "epoll"])
def test_resolve__in_real_time_bpf_bounds_the_windows(generator: str) -> None:
    given = resolved(pacing="exact", window="32p", clock="real", generator=generator)
    plan = plan_run(given, 1)
    assert plan.traffic.options["pacing"] is True
    assert "window_segments" not in plan.traffic.options  # no traffic device in this kernel
    assert plan.setup["congestion_control_windows"] == [f"1-65535={WINDOW}"]


def test_resolve__values_are_checked() -> None:
    assert problems(pacing="even").keys() == {"PACING"}
    for window in ("0p", "32", "1bdp", "2.5p", "2000000p"):
        assert problems(window=window).keys() == {"WINDOW"}, window


WORDS = {
    "exact reno": ("CC=reno", "PACING=exact"),
    "exact cubic": ("CC=cubic", "PACING=exact"),
    "linux": ("CC=reno", "PACING=linux"),
    "off": ("CC=reno",),
    "again": ("CC=cubic", "PACING=exact"),
    "poisson": ("CC=reno", "PACING=poisson"),
    "poisson again": ("CC=reno", "PACING=poisson"),
    "other poisson": ("CC=reno", "PACING=poisson", "SEED=2"),
    "fq": ("CC=reno", "PACING=fq"),
}


class RunsOnDemand(dict[str, Path]):
    """The results directory of each entry of WORDS. A run is made when a test first asks for its directory."""

    def __init__(self, make_directory: Callable[[str], Path]) -> None:
        super().__init__()
        self.make_directory = make_directory

    def __missing__(self, name: str) -> Path:
        results = self.make_directory(name.replace(" ", "-"))
        run(results, *LINK, f"WINDOW={WINDOW}p", *WORDS[name])
        self[name] = results
        return results


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    if not virtual_lab.KERNEL.exists():
        pytest.skip("build/virtual/linux missing: make kernel")
    return RunsOnDemand(tmp_path_factory.mktemp)


def gaps_ns(results: Path) -> np.ndarray:
    """The gaps between full packets that arrive at the switch, without the first packets, which are never paced."""
    cards = load_postcards(results / "latest/rep-1/postcards.bsp")[0]
    full = cards["packet_bytes"] == cards["packet_bytes"].max()
    return np.diff(np.sort(cards["enqueue_mono_ns"][full].astype(np.int64)))[UNPACED_SEGMENTS:]


def pace_ns(results: Path) -> np.ndarray:
    """srtt/W in ns, for each ACK at which the congestion window is W packets."""
    tcp = load_tcp(results / "latest/rep-1/tcp.bst")[0]
    probes = (tcp["event"] == TCP_RECORD.const["TCP_EVENT_PROBE"]) & (tcp["cwnd_packets"] == WINDOW)
    return np.asarray(1000 * tcp["srtt_us"][probes].astype(np.int64) / WINDOW)


def in_flight(results: Path) -> np.ndarray:
    tcp = load_tcp(results / "latest/rep-1/tcp.bst")[0]
    count = {name: tcp[name].astype(np.int64) for name in ("packets_out", "sacked_out", "lost_out", "retrans_out")}
    return np.asarray(count["packets_out"] - count["sacked_out"] - count["lost_out"] + count["retrans_out"])


@pytest.mark.long
def test_pacing__exact_spreads_the_window_over_the_round_trip(runs: dict[str, Path]) -> None:
    for name in ("exact reno", "exact cubic"):
        gaps, pace = gaps_ns(runs[name]), pace_ns(runs[name])
        assert len(gaps) > 1500
        assert np.median(gaps) == pytest.approx(np.median(pace), rel=TOLERANCE), name
        assert gaps.min() >= (1 - TOLERANCE) * pace.min(), name  # also after a late packet


@pytest.mark.long
def test_pacing__poisson_draws_exponential_gaps_of_one_window_per_rtt(runs: dict[str, Path]) -> None:
    for name in ("poisson", "other poisson"):
        unit = gaps_ns(runs[name]) / np.median(pace_ns(runs[name]))
        assert len(unit) > 1500
        assert unit.mean() == pytest.approx(1, abs=4 / len(unit) ** 0.5), name
        assert stats.kstest(unit, "expon").pvalue > 0.01, name
        counts = np.histogram(unit.cumsum(), np.arange(0, unit.sum(), 10))[0]
        assert counts.var() / counts.mean() == pytest.approx(1, abs=4 * (2 / len(counts)) ** 0.5), name
    assert raw(runs["poisson"]) == raw(runs["poisson again"])
    assert not np.array_equal(gaps_ns(runs["poisson"])[:100], gaps_ns(runs["other poisson"])[:100])


@pytest.mark.long
def test_pacing__of_linux_is_twice_as_fast_before_a_loss_and_off_is_in_bursts(runs: dict[str, Path]) -> None:
    """Before a loss Linux paces at twice W/srtt: the gap is srtt/W / 2. An ACK releases two segments at once. Linux
    halves the gap behind a late segment, to srtt/W / 4.
    """
    linux, off = (gaps_ns(runs[name]) for name in ("linux", "off"))
    assert np.percentile(linux, 25) == pytest.approx(np.median(pace_ns(runs["linux"])) / 4, rel=0.05)
    assert np.mean(off < 1000) > 0.4  # the ACK of two segments releases two


@pytest.mark.long
def test_window__bounds_what_is_in_flight(runs: dict[str, Path]) -> None:
    """With PACING=poisson more than one window is in flight in about every other RTT; the bound is two windows."""
    for name in WORDS:
        results = runs[name]
        most = in_flight(results).max()
        assert (WINDOW < most <= 2 * WINDOW) if "poisson" in name else most == WINDOW, name


@pytest.mark.long
def test_runs__are_valid_the_same_again_and_in_the_run_table(runs: dict[str, Path]) -> None:
    for results in map(runs.__getitem__, WORDS):
        summary = json.loads((results / "latest/rep-1/summary.json").read_text())
        assert summary["valid"], summary["reasons"]
    assert raw(runs["exact cubic"]) == raw(runs["again"])
    spec = load_spec(runs["again"] / "latest/rep-1")
    assert (spec["pacing"], spec["window_packets"]) == ("exact", WINDOW)


def test_window__bounds_finite_flows_from_their_first_packet(tmp_path: Path) -> None:
    if not virtual_lab.KERNEL.exists():
        pytest.skip("build/virtual/linux missing: make kernel")
    finite = ("CC=cubic", "TRAFFIC=finite", "SIZES=fixed:40p", "LOAD=0.1", "DURATION=1s", "WARMUP=0.1s")
    run(tmp_path, "CLOCK=virtual", *finite, "RATE=100mbit", "RTT=20ms", "WINDOW=4p", "PACING=exact")
    cards = load_postcards(tmp_path / "latest/rep-1/postcards.bsp")[0]
    full = cards["packet_bytes"] == cards["packet_bytes"].max()
    in_a_round_trip = []
    for flow in np.unique(cards["flow"][full]):
        at = np.sort(cards["enqueue_mono_ns"][full & (cards["flow"] == flow)].astype(np.int64))
        in_a_round_trip.append(np.max(np.searchsorted(at, at + 20_000_000) - np.arange(len(at))))
    assert len(in_a_round_trip) > 10
    assert set(in_a_round_trip) == {4}


def test_window__binds_every_congestion_control_with_losses(tmp_path: Path) -> None:
    if not virtual_lab.KERNEL.exists():
        pytest.skip("build/virtual/linux missing: make kernel")
    names = offers.congestion_controls(virtual_lab.KERNEL)
    mix = ",".join(f"{name}:1" for name in names)
    link = ("RATE=100mbit", "RTT=20ms", "BUF=40p", "DURATION=3s", "WARMUP=0.5s")
    summary = run(tmp_path, "CLOCK=virtual", f"CC={mix}", *link, "WINDOW=20p")
    assert summary["drops"]
    tcp = load_tcp(tmp_path / "latest/rep-1/tcp.bst")[0]
    flight, limit = in_flight(tmp_path), 20
    most = {int(flow): int(flight[tcp["flow"] == flow].max()) for flow in np.unique(tcp["flow"])}
    assert len(most) == len(names)
    assert max(most.values()) <= limit, most
    assert np.median(list(most.values())) == limit


def test_fq__sends_at_the_pace_of_slow_start(runs: dict[str, Path]) -> None:
    """The pace is two windows per RTT: without a loss the window stays below half of the slow-start threshold. A late
    packet halves the next gap, so the test compares sums of two gaps.
    """
    gaps, wire_ns = gaps_ns(runs["fq"]), 1538 * 8 * 10  # a packet at 100 Mb/s
    assert gaps.min() > wire_ns
    assert np.median(gaps[1:] + gaps[:-1]) == pytest.approx(np.median(pace_ns(runs["fq"])), rel=0.05)
